/* SPDX-License-Identifier: MIT */
/*
 * The small text files of /proc, from proc(5): PID/stat, PID/status, PID/environ, PID/fdinfo/N and
 * stat. PID/maps has its own reader (maps.h). The kernel writes these texts, but a recorded tree
 * can contain anything.
 *
 *   PID/stat     "PID (COMM) STATE ..." in one line; field n is counted from 1, COMM
 *                may contain blanks, parentheses and newlines: it ends at the last ')'
 *   PID/status   "Name:\tVALUE" lines
 *   PID/environ  NAME=VALUE, each ended by a NUL
 *   PID/fdinfo/N "pos:\t0\nflags:\t02100001\n..." with flags in octal
 *   stat         "btime SECONDS" among others
 */
#ifndef LIBSYM_FORMAT_LINUX_PROC_TEXT_H
#define LIBSYM_FORMAT_LINUX_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_stat {
	const char *comm; /* points into the text, not NUL terminated */
	size_t comm_bytes;
	char state;                /* 'R', 'S', 'Z', ... */
	uint64_t start_time_ticks; /* field 22 */
	uint64_t code_start;       /* field 26; 0 or 1 if the reader may not see it */
	uint64_t stack_start;      /* field 28; 0 if the reader may not see it */
};

/* Returns false if it is not such a line or is cut before field 22. */
bool proc_text_parse_stat(const char *text, size_t size_bytes, struct proc_stat *ret);

struct proc_status {
	int32_t process_id;        /* Tgid */
	int32_t parent_process_id; /* PPid; 0: none, or none in this /proc */
	/* innermost NStgid; Tgid if there is no such line (before Linux 4.1) */
	int32_t namespace_process_id;
	/* count of numbers on the NStgid line: 1 is the namespace of this /proc; 0: no such line */
	uint32_t namespace_depth;
	uint32_t uid;      /* effective */
	uint32_t gid;      /* effective */
	uint32_t file_uid; /* with which it opens files; the effective uid if unknown */
	uint32_t file_gid;
	uint64_t capabilities; /* CapEff; 0: none or unknown */
	/* VmSize is present; an exiting task loses it before its state changes */
	bool has_memory;
};

/* Returns false if Tgid, Uid or Gid is missing or malformed. */
bool proc_text_parse_status(const char *text, size_t size_bytes, struct proc_status *ret);

/* The supplementary groups. Writes the first `room_count` and returns how many there are. */
size_t proc_text_parse_groups(const char *text, size_t size_bytes, uint32_t *room,
			      size_t room_count);

/* Value of the environment variable `name`, if not empty. Points into the text, NUL terminated.
 * NULL if there is none. */
const char *proc_text_find_environ(const char *text, size_t size_bytes, const char *name);

/* The open(2) flags of a descriptor. */
bool proc_text_fdinfo_flags(const char *text, size_t size_bytes, uint64_t *ret);

/* When the machine was booted, in whole seconds since 1970, rounded down. */
bool proc_text_boot_time(const char *text, size_t size_bytes, int64_t *ret);

/* Parses a directory name in /proc as a process id: decimal, no sign, no leading zero, 1 to
 * INT32_MAX. */
bool proc_text_parse_id(const char *name, int32_t *ret);

/* Parses the process id in a file name that consists of `start`, id and `end`. */
bool proc_text_parse_file_name(const char *name, const char *start, const char *end, int32_t *ret);

#endif
