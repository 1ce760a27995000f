/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its runtime at this moment: compiled and generated code, by address.
 * It answers look-ups. Reading the runtime is in other files.
 */
#ifndef LIBSYM_CLR_RUNTIME_SOURCE_H
#define LIBSYM_CLR_RUNTIME_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/jit_reader.h"
#include "libsym/clr/reported_methods.h"
#include "libsym/clr/write_barrier.h"
#include "libsym/error.h"
#include "libsym/index/string_interner.h"
#include "libsym/source/source.h"

struct runtime_source;

/* Numbers beside the symbols. */
struct runtime_counts {
	size_t method_count;          /* named */
	size_t unnamed_count;         /* code whose name is not certain */
	size_t unnamed_dynamic_count; /* those in dynamic methods and collectible assemblies */
	bool is_editable;             /* methods may have been added by hot reload */
	uint64_t read_calls;          /* system calls that read memory */
	uint64_t read_bytes;
};

/* The parts of a source by data contract; borrowed. */
struct runtime_contract {
	struct jit_reader *reader;
	/*
	 * Executable memory that only the runtime uses. Outside its code heaps it is named as a
	 * stub.
	 */
	const struct jit_range *own_memory;
	size_t own_memory_count;
	bool is_other;                /* own_memory differs from that of the last reading */
	struct write_barrier barrier; /* for a runtime that does not publish it */
	/*
	 * Finds stubs in memory whose owner is unknown; `ret` is zero at first. NULL: not needed.
	 */
	struct sym_error *(*find_stubs)(const void *context, struct address_ranges *ret);
	const void *context;
};

/*
 * Opens a source by data contract.
 * *ret is NULL when the reader has read before and nothing has changed.
 * `names`: receives the names. The source becomes a user of the set, and the names live as long as
 * the set has users. NULL: a set of its own.
 * Errors: as jit_reader_read().
 */
struct sym_error *runtime_source_open_contract(const struct runtime_contract *contract,
					       struct string_interner *names,
					       struct runtime_source **ret)
	__attribute__((warn_unused_result));

/*
 * Opens a source of reported methods; `names`: as for runtime_source_open_contract().
 * Errors: LIMIT, NO_MEMORY.
 */
struct sym_error *runtime_source_open_reported(const struct reported_methods *reported,
					       struct string_interner *names,
					       struct runtime_source **ret)
	__attribute__((warn_unused_result));

void runtime_source_close(struct runtime_source *source);

/* The names that it was opened with; NULL: its own. */
const struct string_interner *runtime_source_names(const struct runtime_source *source);
/* Bytes of names in use; a name counts once for each piece. */
size_t runtime_source_name_bytes(const struct runtime_source *source);

/* True when both have the same answer for every address. */
bool runtime_source_is_equal(const struct runtime_source *a, const struct runtime_source *b);

const struct runtime_counts *runtime_source_counts(const struct runtime_source *source);

/*
 * An unnamed stub, or a method without its signature, yields to a line of the perf map that has
 * more.
 * True when this line has more.
 */
bool runtime_source_yields_to(const struct source_match *reported, const struct source_match *line);

size_t runtime_source_count(const struct runtime_source *source);
/*
 * The i-th disjoint piece. Its name lives as long as the source. True: it may yield to a line of
 * the perf map.
 */
bool runtime_source_at(const struct runtime_source *source, size_t i, struct sym_symbol *ret);

/* *yields_ret: as runtime_source_at() returns, when something is found. */
enum source_outcome runtime_source_find(const struct runtime_source *source, uint64_t address,
					struct source_match *ret, bool *yields_ret);

DEFINE_GUARD(runtime_source, struct runtime_source *, runtime_source_close)
#define AUTO_RUNTIME_SOURCE GUARDED(runtime_source)

#endif
