/* SPDX-License-Identifier: MIT */
/*
 * Everything that a live .NET runtime has compiled or generated, by address,
 * read from outside by its data contract: methods with their whole names and
 * exact extents, and stub blocks by kind. The process is not stopped, asked
 * or written to, and goes on compiling meanwhile.
 *
 * What can be recycled while it is read is named only if two looks agree
 * (jit_round.h); what remains without a name is counted. Knows the order of reading;
 * each structure is read in its own file.
 */
#ifndef LIBSYM_CLR_JIT_READER_H
#define LIBSYM_CLR_JIT_READER_H

#include "libsym/clr/auxiliary_symbols.h"
#include "libsym/clr/remote_memory.h"
#include "libsym/error.h"

struct jit_reader;

/*
 * `memory` is taken over on success. `runtime_base` is where the ELF header of
 * libcoreclr.so, or of the executable that contains the runtime, is mapped.
 * NOT_FOUND, UNSUPPORTED: this runtime cannot be read so; the message says what is missing.
 */
struct sym_error *jit_reader_open(struct remote_memory *memory, uint64_t runtime_base,
				  struct jit_reader **ret);
void jit_reader_close(struct jit_reader *reader);

struct jit_symbol {
	uint64_t start_address;
	uint64_t size_bytes;
	const char *name; /* NUL terminated; without tier */
	uint32_t name_bytes;
	uint32_t kind;    /* enum sym_symbol_kind */
	const char *tier; /* static, a hint; NULL when not known */
};

/* Memory in which code may lie that has no name: nothing else may be said of it. */
struct jit_range {
	uint64_t begin_address, end_address;
};

/* Name of code that the runtime generated and that no more is known of. */
extern const char jit_stub_name[];

enum jit_read_flags {
	JIT_READ_STUBS = 1 << 0, /* also blocks of stubs */
	JIT_READ_PRECODES =
		1 << 1, /* also precodes, under the name of their method: as many as methods */
	JIT_READ_UNCHANGED = 1 << 2, /* a result also when nothing is otherwise */
};

struct jit_reading {
	/* Of two that share bytes the later one is more precise. */
	struct jit_symbol *symbols;
	size_t symbol_count;
	struct jit_range *heaps; /* code heaps; by address, disjoint */
	size_t heap_count;
	struct auxiliary_symbols functions; /* that the runtime names, wherever they are */
	size_t method_count;                /* named */
	size_t unnamed_count;         /* changed between the two looks, or contradict themselves */
	size_t unnamed_dynamic_count; /* of these: dynamic methods and what can be unloaded */
	bool is_editable;             /* methods may have been added */
	struct remote_memory_cost cost; /* of this reading */
};

/*
 * Reads everything the first time, later only what is new or may have been
 * exchanged; *ret is NULL when nothing is otherwise than at the reading before.
 * STUBS and PRECODES must be the same each time.
 */
struct sym_error *jit_reader_read(struct jit_reader *reader, uint32_t flags,
				  struct jit_reading **ret);
void jit_reading_destroy(struct jit_reading *reading);

/* A precompiled method that the runtime has prepared. */
struct jit_prepared {
	uint64_t address;
	const char *name; /* NULL: it cannot be told for sure */
};

struct jit_prepared_list {
	struct jit_prepared *items;
	size_t count;
	char *names;
};

/* UNSUPPORTED when the runtime does not describe where they are. */
struct sym_error *jit_reader_read_prepared(struct jit_reader *reader, struct jit_prepared_list *ret)
	__attribute__((warn_unused_result));
void jit_prepared_deinit(struct jit_prepared_list *list);

DEFINE_GUARD(jit_reader, struct jit_reader *, jit_reader_close)
DEFINE_GUARD(jit_reading, struct jit_reading *, jit_reading_destroy)
#define AUTO_JIT_READER  GUARDED(jit_reader)
#define AUTO_JIT_READING GUARDED(jit_reading)

#endif
