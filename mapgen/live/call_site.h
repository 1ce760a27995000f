/* SPDX-License-Identifier: MIT */
/* Whether an address is a return address, because a call stands before it; and where signal
 * handlers return to. */
#ifndef MAPGEN_LIVE_CALL_SITE_H
#define MAPGEN_LIVE_CALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: no call instruction of this machine's (x86-64, ARM64) ends with these bytes. */
bool call_may_end(const uint8_t *bytes, size_t count);

/* Looks at what stands before an address of a process; true also when that cannot be read. */
bool call_may_end_at(int32_t pid, uint64_t address);

/* Whether this is the system call (x86-64, ARM64) by which a signal handler ends. Its frame stands
 * between those of the handler and of the interrupted function. */
bool is_signal_return(const uint8_t *bytes, size_t count);

/* Looks at the instructions at an address of a process; false when they cannot be read. */
bool signal_return_at(int32_t pid, uint64_t address);

#endif
