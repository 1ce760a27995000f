/* SPDX-License-Identifier: MIT */
/* Jitdumps for tests, record by record, in either byte order. One at a time; what it has may be
 * written over. */
#ifndef TESTS_SUPPORT_JITDUMP_BUILDER_H
#define TESTS_SUPPORT_JITDUMP_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_BUILDER_PID = 4321 /* of all records */
};

extern uint8_t jitdump_dump[1 << 22];
extern size_t jitdump_bytes; /* that it has */
extern bool jitdump_big_endian;

/* The lowest `bytes` of a value. */
void jitdump_put(uint64_t value, size_t bytes);

/* The header of a new one. */
void jitdump_begin(uint32_t pid);

/* With its code. */
void jitdump_load(uint64_t timestamp, uint64_t address, uint64_t size_bytes, const char *name);
/* As some write that are asked for names only. */
void jitdump_load_without_code(uint64_t timestamp, uint64_t address, uint64_t size_bytes,
			       const char *name);
void jitdump_move(uint64_t timestamp, uint64_t from, uint64_t to, uint64_t size_bytes);

struct jitdump_builder_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

/* Those up to the one without a file. */
void jitdump_lines(uint64_t timestamp, uint64_t code_address,
		   const struct jitdump_builder_line *lines);

#endif
