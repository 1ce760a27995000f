/* SPDX-License-Identifier: MIT */
/* Whether a return address is one: a call is in front of it; and where signal handlers return to.
 */
#ifndef MAPGEN_CALL_SITE_H
#define MAPGEN_CALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: no call instruction of this machine's (x86-64, ARM64) ends with these bytes. */
bool call_may_end(const uint8_t *bytes, size_t count);

/* The same of what is in front of an address of a process; true also where that cannot be read. */
bool call_may_end_at(int32_t pid, uint64_t address);

/* Is this the system call (x86-64, ARM64) by which a signal handler ends? Its frame stands between
 * the handler's and that of what the signal interrupted. */
bool is_signal_return(const uint8_t *bytes, size_t count);

/* The same of what is at an address of a process; false where that cannot be read. */
bool signal_return_at(int32_t pid, uint64_t address);

#endif
