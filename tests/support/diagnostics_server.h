/* SPDX-License-Identifier: MIT */
/* Listens as if it were the diagnostics socket of a runtime, in a directory of its own. The test
 * provides the answers. */
#ifndef TESTS_SUPPORT_DIAGNOSTICS_SERVER_H
#define TESTS_SUPPORT_DIAGNOSTICS_SERVER_H

#include "libsym/clr/diagnostics/diagnostics_socket.h"

struct diagnostics_server {
	char directory[64];
	char path[108];
	int fd;
	struct diagnostics_place place; /* of a process that started at 4711 */
};

/* `start_time_ticks` is part of the socket's name. */
void diagnostics_server_begin(struct diagnostics_server *server, uint64_t start_time_ticks);
void diagnostics_server_end(struct diagnostics_server *server);

/* The reply "session started", with number 7. */
extern const char diagnostics_session_reply[28];

#endif
