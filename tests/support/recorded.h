/* SPDX-License-Identifier: MIT */
/*
 * The recorded .NET process in fixtures/recorded: its id, and what of its own perf
 * map and mappings a test asks about. Knows nothing of commands.
 */
#ifndef TESTS_SUPPORT_RECORDED_H
#define TESTS_SUPPORT_RECORDED_H

#include <stdint.h>

#define RECORDED_ROOT "fixtures/recorded"

/* Heap text. Fails the test when it does not run in the top directory of the tree. */
char *recorded_pid(void);

/* Address and (heap) name of a jitted method of the recorded perf map: a line with "::". */
uint64_t recorded_method(const char *pid, char **name_ret);

/* Offset of an address into the file that is executed there, as perf 6.1 prints it, and (heap) that
 * file. */
uint64_t recorded_file_offset(const char *pid, uint64_t address, char **file_ret);

#endif
