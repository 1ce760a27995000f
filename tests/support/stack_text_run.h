/* SPDX-License-Identifier: MIT */
/*
 * Runs a text through the filter of mapgen/stacktext/stack_filter.h in pieces of a given size, with
 * made-up names: every address below 2^47 whose lowest 12 bits are less than 0x800 lies in the
 * method "A.B::C(int32)", which starts where those bits are 0. With `lines` the first half of it is
 * line 88 of "/src/Store.cs", the second one is approximately line 90.
 */
#ifndef TESTS_SUPPORT_STACK_TEXT_RUN_H
#define TESTS_SUPPORT_STACK_TEXT_RUN_H

#include "libsym/base/buf.h"
#include "mapgen/cli/options.h"
#include "mapgen/stacktext/stack_filter.h"

struct stack_text_run {
	bool no_names;    /* nothing has a name */
	bool no_default;  /* frames without a known owner have no name */
	bool lines;       /* with source lines */
	bool keep_owners; /* names are "[KIND ID]" with the owner: P, T or - */
	int names;        /* enum name_form */
	const char *name; /* used instead of "A.B::C(int32)" */
	const char *tier;
	const struct stack_inlined *inlined; /* into it, with `lines` */
	size_t inlined_count;
	size_t piece_bytes; /* 0: all at once */
	/* From the last run. */
	struct buf output;
	struct buf queries; /* "VALUE MODULE return\n" for each frame */
	struct stack_missing missing;
	bool failed;
};

/* Appends to output and queries, which are created on first use. */
void stack_text_run(struct stack_text_run *run, const char *text, size_t size_bytes);
void stack_text_run_deinit(struct stack_text_run *run);

#endif
