/* SPDX-License-Identifier: MIT */
/* Listening sockets from texts: "127.0.0.1:8002", "[::1]:8002", ":8002" (every address),
 * "unix:/PATH". */
#ifndef SYMSRV_UTIL_LISTEN_H
#define SYMSRV_UTIL_LISTEN_H

/* A descriptor, not blocking, or a negative errno; -EINVAL: malformed text. */
int listen_at(const char *text);

/* Prepares a socket from systemd; 0 or a negative errno. */
int listen_adopt(int fd);

#endif
