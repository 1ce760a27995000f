/* SPDX-License-Identifier: MIT */
/*
 * Processes that read foreign debug information, one for each image that was asked for lately
 * (symbol_child.h). When a process crashes, or takes too much memory or CPU time, only its image is
 * without answers, for a minute. One that does not answer by the deadline goes on for the next
 * question.
 */
#ifndef SYMSRV_RESOLVE_SYMBOL_WORKERS_H
#define SYMSRV_RESOLVE_SYMBOL_WORKERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"
#include "symsrv/resolve/resolve_answer.h"

/* So many images are kept open at a time. */
#define SYMBOL_WORKERS_MOST 8

struct symbol_workers;

/* `program`: the path of a program that calls symbol_child_run() on its standard input when it has
 * the one argument SYMBOL_CHILD_ARGUMENT. NULL: out of memory. */
struct symbol_workers *symbol_workers_create(const char *program);
/* Ends all processes; no question may be under way. */
void symbol_workers_destroy(struct symbol_workers *workers);
/* Ends processes that were not used for some minutes. Call it from time to time. */
void symbol_workers_tick(struct symbol_workers *workers, int64_t now_ms);

struct symbol_question {
	const char *identity; /* unique to the bytes of the image */
	const char *name;     /* for the log */
	int fd;               /* of the image */
	enum sym_position_kind kind;
	uint32_t fields; /* enum sym_field */
	const uint64_t *positions;
	size_t count;
	int64_t deadline_ms;
	/* A descriptor of the file that the process wants (JSON, symbol_child.c), or -1. Its bytes
	 * are the whole file. It is closed afterwards. */
	int (*find)(void *context, const json_t *wanted);
	void *context;
};

/*
 * Appends the answers to `list`: as many as there are before the deadline or the end of the
 * process. Returns NULL, or why there are not all of them (static).
 */
const char *symbol_workers_ask(struct symbol_workers *workers,
			       const struct symbol_question *question, struct answer_list *list);

struct symbol_worker_counts {
	uint64_t running, started, questions;
	uint64_t crashed; /* ended by themselves, also because memory or CPU time was used up */
	uint64_t late;    /* did not answer by the deadline */
	uint64_t refused; /* could not start, or could not read the image */
};

void symbol_workers_counts(struct symbol_workers *workers, struct symbol_worker_counts *ret);

#endif
