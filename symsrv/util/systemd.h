/* SPDX-License-Identifier: MIT */
/* The protocol between a service and systemd: sd_listen_fds(3), sd_notify(3). */
#ifndef SYMSRV_UTIL_SYSTEMD_H
#define SYMSRV_UTIL_SYSTEMD_H

#include <stddef.h>

/* Listening sockets from systemd, at most `most`; returns how many. */
size_t systemd_sockets(int *sockets, size_t most);

/* Sends "READY=1", "RELOADING=1", "STOPPING=1", ...; does nothing without a service manager. */
void systemd_notify(const char *state);

#endif
