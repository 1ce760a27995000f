/* SPDX-License-Identifier: MIT */
/* Builds jitdumps for tests record by record, in either byte order. One at a time; its bytes may be
 * overwritten. */
#ifndef TESTS_SUPPORT_JITDUMP_BUILDER_H
#define TESTS_SUPPORT_JITDUMP_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_BUILDER_PID = 4321 /* of all records */
};

extern uint8_t jitdump_dump[1 << 22];
extern size_t jitdump_bytes; /* present so far */
extern bool jitdump_big_endian;

/* Appends the lowest `bytes` of a value. */
void jitdump_put(uint64_t value, size_t bytes);

/* Starts a new one with its header. */
void jitdump_begin(uint32_t pid);

/* Includes the code. */
void jitdump_load(uint64_t timestamp, uint64_t address, uint64_t size_bytes, const char *name);
/* In the form of writers that write names only. */
void jitdump_load_without_code(uint64_t timestamp, uint64_t address, uint64_t size_bytes,
			       const char *name);
void jitdump_move(uint64_t timestamp, uint64_t from, uint64_t to, uint64_t size_bytes);

struct jitdump_builder_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

/* The entries up to the one without a file. */
void jitdump_lines(uint64_t timestamp, uint64_t code_address,
		   const struct jitdump_builder_line *lines);

#endif
