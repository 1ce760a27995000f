/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from the runtime in it, as it is at this moment: what it
 * has compiled and generated, by address. Knows how an answer is looked up, not
 * how the runtime was made to tell (clr/).
 */
#ifndef LIBSYM_SOURCE_RUNTIME_SOURCE_H
#define LIBSYM_SOURCE_RUNTIME_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/jit_reader.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/index_name_set.h"
#include "libsym/source/source.h"
#include "libsym/source/told_methods.h"

struct runtime_source;

/* What was learnt beside the symbols. */
struct runtime_counts {
	size_t method_count;          /* named */
	size_t unnamed_count;         /* code whose name could not be told for sure */
	size_t unnamed_dynamic_count; /* of these: dynamic methods and what can be unloaded */
	bool is_editable;             /* methods may have been added */
	uint64_t read_calls;          /* system calls that read memory */
	uint64_t read_bytes;
};

/* What a source by data contract is made with; all of it borrowed. */
struct runtime_contract {
	struct jit_reader *reader;
	/* Executable memory that is nobody's but the runtime's; what lies outside its code heaps
	 * there is named as a stub. */
	const struct jit_range *own_memory;
	size_t own_memory_count;
	bool is_other;                /* own_memory is not what it was at the last reading */
	struct write_barrier barrier; /* for a runtime that does not tell of it */
	/* Finds stubs in memory that may be anybody's; `ret` is zeroed at first. NULL: there is no
	 * need to. */
	struct sym_error *(*find_stubs)(const void *context, struct address_ranges *ret);
	const void *context;
};

/*
 * By data contract. *ret is NULL when the reader has read before and nothing is otherwise.
 * Errors: as jit_reader_read().
 *
 * @param names where names go, and stay when the source is closed: as long as the set has a user,
 * of whom the source is one. NULL: its own.
 */
struct sym_error *runtime_source_open_contract(const struct runtime_contract *contract,
					       struct index_name_set *names,
					       struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* By what the runtime told; `names` as above. Errors: LIMIT, NO_MEMORY. */
struct sym_error *runtime_source_open_told(const struct told_methods *told,
					   struct index_name_set *names,
					   struct runtime_source **ret)
	__attribute__((warn_unused_result));

void runtime_source_close(struct runtime_source *source);

/* The names that it was opened with; NULL: its own. */
const struct index_name_set *runtime_source_names(const struct runtime_source *source);
/* Bytes of names that are in use, counted once a piece. */
size_t runtime_source_name_bytes(const struct runtime_source *source);

/* Do both say the same of every address? */
bool runtime_source_is_equal(const struct runtime_source *a, const struct runtime_source *b);

const struct runtime_counts *runtime_source_counts(const struct runtime_source *source);

/*
 * What is only known to be a stub, or is a method without its signature, yields to a line of the
 * perf map that says more. Does this line?
 */
bool runtime_source_yields_to(const struct source_match *told, const struct source_match *line);

size_t runtime_source_count(const struct runtime_source *source);
/* The i-th disjoint piece. Its name lives as long as the source. True: it may yield to a line. */
bool runtime_source_at(const struct runtime_source *source, size_t i, struct sym_symbol *ret);

/* Tells the processor that these will be looked for soon. */
void runtime_source_warm(const struct runtime_source *source, const uint64_t *addresses,
			 size_t count);

/* *yields_ret as of runtime_source_at(), where something is found. */
enum source_outcome runtime_source_find(const struct runtime_source *source, uint64_t address,
					struct source_match *ret, bool *yields_ret);

DEFINE_GUARD(runtime_source, struct runtime_source *, runtime_source_close)
#define AUTO_RUNTIME_SOURCE GUARDED(runtime_source)

#endif
