/* SPDX-License-Identifier: MIT */
/*
 * Frames and stacks of a profile, each kept once. A frame is what a view shows: a function, the
 * image it is in, and of which kind it is. A stack is a list of frames, outermost first. Memory
 * grows with distinct frames and stacks, not with samples.
 */
#ifndef MAPGEN_PROFILE_FRAME_TABLE_H
#define MAPGEN_PROFILE_FRAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

/* Kinds of frames, as views colour and name them. */
enum frame_kind {
	FRAME_KIND_UNKNOWN,
	FRAME_KIND_JITTED,
	FRAME_KIND_PRECOMPILED,
	FRAME_KIND_RUNTIME, /* libcoreclr.so, libclrjit.so and what belongs to them; stubs */
	FRAME_KIND_NATIVE,
	FRAME_KIND_KERNEL,
	FRAME_KIND_EVENT, /* no code: what an event is of, a type or a lock */
	FRAME_KINDS,
};

/* Why a stack has no more frames: the values of enum sym_unwind_end, and these. */
enum stack_end {
	STACK_END_WHOLE = SYM_UNWIND_WHOLE,
	STACK_END_NOT_SAID =
		SYM_UNWIND_FULL + 1, /* frame pointers do not say whether it is whole */
	STACK_END_NO_STACK,          /* nothing was recorded */
	STACK_ENDS,
};

/* A few words, for a person; static. */
const char *stack_end_text(enum stack_end end);

/* "tier 1" and the like are in `tier`; this is "jitted", "precompiled", "runtime", ... */
const char *frame_kind_text(enum frame_kind kind);

/* Is it code of a managed method, jitted or precompiled? */
bool frame_kind_is_managed(enum frame_kind kind);

/* The name of an address without a name. */
#define FRAME_NAME_UNKNOWN "[unknown]"

/* The kind by what named it (sym_source_text()), its tier and its image. */
enum frame_kind frame_kind_of(const char *source, const char *tier, const char *image,
			      enum sym_symbol_kind kind);

struct profile_frame {
	const char *name;   /* full; of a frame without a name what stands for it */
	const char *image;  /* path; "" for memory of no file */
	const char *tier;   /* as the runtime says it; "" when there is none */
	const char *reason; /* why it has no name; "" when it has one */
	const char *file;   /* source file of the line; "" or NULL when unknown */
	const char *url;    /* of that file, by Source Link; "" or NULL when unknown */
	uint32_t line, column;
	enum sym_line_quality quality; /* of the line; without one, of the IL offset */
	uint32_t il_offset;            /* of managed code, with or without a line */
	bool has_il_offset;
	enum frame_kind kind;
	bool is_named;
	bool is_guessed; /* the unwinder guessed that it is the caller */
	bool is_inlined; /* into the next outer frame, which has the code */
};

enum {
	FRAME_MOST_INLINED = 64 /* into a frame; more are left out */
};

#define FRAME_NONE UINT32_MAX
#define STACK_NONE UINT32_MAX

struct frame_table;

struct sym_error *frame_table_create(struct frame_table **ret) __attribute__((warn_unused_result));
void frame_table_destroy(struct frame_table *table);

/* Number of a frame; texts are copied. Errors: NO_MEMORY, LIMIT. */
struct sym_error *frame_table_add(struct frame_table *table, const struct profile_frame *frame,
				  uint32_t *ret) __attribute__((warn_unused_result));

/*
 * Number of a frame and the functions that are inlined into it: all `count` frames, outermost
 * first, so the first one has the code. A stack has them all. Errors: NO_MEMORY, LIMIT.
 */
struct sym_error *frame_table_add_inlined(struct frame_table *table, const uint32_t *frames,
					  size_t count, uint32_t *ret)
	__attribute__((warn_unused_result));

/*
 * Number of the frame of an answer and of the functions that are inlined into it. `frame` has all
 * but the name of the innermost one. Errors: NO_MEMORY, LIMIT.
 */
struct sym_error *frame_table_add_answer(struct frame_table *table,
					 const struct profile_frame *frame,
					 const struct sym_answer *answer, uint32_t *ret)
	__attribute__((warn_unused_result));

/* Lives as long as the table, but moves when frames are added. With inlined functions: the frame
 * that has the code. */
const struct profile_frame *frame_table_at(const struct frame_table *table, uint32_t frame);
size_t frame_table_count(const struct frame_table *table);
/* Names a frame that had no name. It is not found by that name when it is added again. Errors:
 * NO_MEMORY. */
struct sym_error *frame_table_name(struct frame_table *table, uint32_t frame, const char *name)
	__attribute__((warn_unused_result));

/* Number of a stack; `frames` outermost first, `end` says why there are no more. Inlined functions
 * follow the frame that has their code; those for which a long stack has no room are left out.
 * Errors: NO_MEMORY, LIMIT. */
struct sym_error *frame_table_add_stack(struct frame_table *table, const uint32_t *frames,
					size_t count, enum stack_end end, uint32_t *ret)
	__attribute__((warn_unused_result));
enum stack_end frame_table_stack_end(const struct frame_table *table, uint32_t stack);
/* Its frames, outermost first; lives as long as the table. */
const uint32_t *frame_table_stack(const struct frame_table *table, uint32_t stack,
				  size_t *count_ret);
size_t frame_table_stack_count(const struct frame_table *table);

#endif
