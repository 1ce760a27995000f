/* SPDX-License-Identifier: MIT */
/* The two things that a service manager and a service say to each other: sd_listen_fds(3),
 * sd_notify(3). */
#ifndef SYMSRV_SYSTEMD_H
#define SYMSRV_SYSTEMD_H

#include <stddef.h>

/* Listening sockets that were handed over, at most `most`; returns how many. */
size_t systemd_sockets(int *sockets, size_t most);

/* "READY=1", "RELOADING=1", "STOPPING=1", ...: does nothing without a service manager. */
void systemd_notify(const char *state);

#endif
