/* SPDX-License-Identifier: MIT */
/*
 * The small text files of /proc, from proc(5): PID/stat, PID/status, PID/environ,
 * PID/fdinfo/N and stat. Text in, numbers out; opens nothing. The kernel writes
 * them, but a recorded tree is anybody's, so nothing in them is believed to be
 * there. PID/maps has a reader of its own (maps.h).
 *
 *   PID/stat     "PID (COMM) STATE ..." in one line; field n is counted from 1, COMM
 *                may contain blanks, parentheses and newlines: it ends at the last ')'
 *   PID/status   "Name:\tVALUE" lines
 *   PID/environ  NAME=VALUE, each ended by a NUL
 *   PID/fdinfo/N "pos:\t0\nflags:\t02100001\n..." with flags in octal
 *   stat         "btime SECONDS" among others
 */
#ifndef LIBSYM_FORMAT_PROC_TEXT_H
#define LIBSYM_FORMAT_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_stat {
	const char *comm; /* into the text, not NUL terminated */
	size_t comm_bytes;
	char state;                /* 'R', 'S', 'Z', ... */
	uint64_t start_time_ticks; /* field 22 */
	uint64_t code_start;  /* field 26; 0 or 1 when the reader was not permitted to see it */
	uint64_t stack_start; /* field 28; 0 when not permitted */
};

/* False when it is no such line or is cut before field 22. */
bool proc_stat_parse(const char *text, size_t size_bytes, struct proc_stat *ret);

struct proc_status {
	int32_t process_id;           /* Tgid */
	int32_t parent_process_id;    /* PPid; 0: none, or none of this /proc */
	int32_t namespace_process_id; /* innermost NStgid; Tgid where there is no such line (before
					 Linux 4.1) */
	uint32_t namespace_depth; /* numbers on the NStgid line: 1 is the namespace of this /proc; 0
				     no such line */
	uint32_t uid;             /* effective */
	uint32_t gid;             /* effective */
	bool has_memory;          /* VmSize: a task that ends has none before its state tells */
};

/* False when Tgid, Uid or Gid is missing or malformed. */
bool proc_status_parse(const char *text, size_t size_bytes, struct proc_status *ret);

/* Value of the environment variable `name`, not empty, into the text and NUL terminated there; NULL
 * when there is none. */
const char *proc_environ_find(const char *text, size_t size_bytes, const char *name);

/* The open(2) flags of a descriptor. */
bool proc_fdinfo_flags(const char *text, size_t size_bytes, uint64_t *ret);

/* When the machine was started, in whole seconds since 1970, rounded down. */
bool proc_boot_time(const char *text, size_t size_bytes, int64_t *ret);

/* A name in /proc as a process id: decimal, no sign, no leading zero, 1 to INT32_MAX. */
bool proc_parse_id(const char *name, int32_t *ret);

/* The process id in the name of a file that is nothing but `start`, id and `end`. */
bool proc_parse_file_name(const char *name, const char *start, const char *end, int32_t *ret);

#endif
