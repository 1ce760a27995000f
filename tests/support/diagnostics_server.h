/* SPDX-License-Identifier: MIT */
/*
 * The diagnostics socket of a runtime, on which this process listens as if it were one: a socket in
 * a directory of its own. What is answered is for the test to say.
 */
#ifndef TESTS_SUPPORT_DIAGNOSTICS_SERVER_H
#define TESTS_SUPPORT_DIAGNOSTICS_SERVER_H

#include "libsym/clr/diagnostics_socket.h"

struct diagnostics_server {
	char directory[64];
	char path[108];
	int fd;
	struct diagnostics_place place; /* of a process that began at 4711 */
};

/* `start_time_ticks`: as the socket's name has it. */
void diagnostics_server_begin(struct diagnostics_server *server, uint64_t start_time_ticks);
void diagnostics_server_end(struct diagnostics_server *server);

/* That a session has begun, whose number is 7. */
extern const char diagnostics_session_reply[28];

#endif
