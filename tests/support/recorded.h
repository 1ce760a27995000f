/* SPDX-License-Identifier: MIT */
/* The recorded .NET process in fixtures/recorded: its id, and facts from its own perf map and
 * mappings. */
#ifndef TESTS_SUPPORT_RECORDED_H
#define TESTS_SUPPORT_RECORDED_H

#include <stdint.h>

#define RECORDED_ROOT "fixtures/recorded"

/* Heap text. Fails the test unless it runs in the top directory of the tree. */
char *recorded_pid(void);

/* Address and (heap) name of a jitted method of the recorded perf map: a line with "::". */
uint64_t recorded_method(const char *pid, char **name_ret);

/* Offset of an address in its executable file, as perf 6.1 prints it, and that file (heap). */
uint64_t recorded_file_offset(const char *pid, uint64_t address, char **file_ret);

#endif
