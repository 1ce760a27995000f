/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/maps; see proc(5) and fs/proc/task_mmu.c.
 *
 *   START-END rwxp OFFSET MAJ:MIN INODE      PATH
 *
 * The path is the rest of the line. The kernel writes a newline in it as \012, and appends "
 * (deleted)" if the file has no name any more.
 */
#ifndef LIBSYM_FORMAT_LINUX_MAPS_H
#define LIBSYM_FORMAT_LINUX_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps_line {
	uint64_t start_address;
	uint64_t end_address;
	uint64_t offset;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t protection; /* enum sym_protection */
	bool deleted;        /* the kernel's " (deleted)" was present; it is not part of path */
	const char *path;    /* points into the text, still escaped, not NUL terminated */
	size_t path_bytes;
};

struct maps_parser {
	const char *next;
	const char *end;
	uint64_t bad_lines; /* skipped so far */
};

void maps_parser_init(struct maps_parser *parser, const char *text, size_t size_bytes);

/* The next well-formed line; false at the end. A malformed line is counted and skipped. */
bool maps_parser_next(struct maps_parser *parser, struct maps_line *ret);

/* Undoes \012 escapes. `room` must hold path_bytes + 1. Returns the length. */
size_t maps_unescape_path(const char *path, size_t path_bytes, char *room);

#endif
