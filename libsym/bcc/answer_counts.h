/* SPDX-License-Identifier: MIT */
/*
 * Counts the answers for each process, for the report at the end of the program.
 * Engines come and go; their counts are added up here by process.
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

/* Does nothing when out of memory. */
void answer_counts_add(int pid, const struct answer_counts *counts);
/* Prints a line for each process to standard error, by id, and resets the counts. */
void answer_counts_report(void);

#endif
