/* SPDX-License-Identifier: MIT */
/* The user of the server, and how it gives up root's capabilities. */
#ifndef SYMSRV_UTIL_USER_H
#define SYMSRV_UTIL_USER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Becomes the user with this name, with the groups of the user; NULL: stays the same user. In both
 * cases no capability is left, not even for programs that it runs. Logs a server that stays root.
 * Must be called before a second thread starts. False: `message` has the reason.
 */
bool user_settle(const char *name, char *message, size_t message_bytes);

#endif
