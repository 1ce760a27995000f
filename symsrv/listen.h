/* SPDX-License-Identifier: MIT */
/* Listening sockets from texts: "127.0.0.1:8002", "[::1]:8002", ":8002" (every address),
 * "unix:/PATH". */
#ifndef SYMSRV_LISTEN_H
#define SYMSRV_LISTEN_H

/* A descriptor, not blocking, or a negative errno; -EINVAL: the text is none of the above. */
int listen_at(const char *text);

/* Makes a socket that was handed over fit for use; 0 or a negative errno. */
int listen_adopt(int fd);

#endif
