/* SPDX-License-Identifier: MIT */
/*
 * What was answered about each process, for the report at the end of the program. Engines come and
 * go; what they have counted is added up here by process.
 */
#ifndef LIBSYM_BCC_ANSWER_COUNTS_H
#define LIBSYM_BCC_ANSWER_COUNTS_H

#include <stdint.h>

enum {
	ANSWER_SOURCES = 16 /* more than enum sym_source_kind has */
};

struct answer_counts {
	uint64_t asked;
	uint64_t by_source[ANSWER_SOURCES]; /* with a name */
	uint64_t looks;
};

/* Without memory they are not added. */
void answer_counts_add(int pid, const struct answer_counts *counts);
/* To standard error, a line a process in the order of their ids, and forgets them. */
void answer_counts_report(void);

#endif
