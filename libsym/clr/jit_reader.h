/* SPDX-License-Identifier: MIT */
/*
 * All code that a live .NET runtime has compiled or generated, by address, read from outside
 * through its data contract: methods with full names and exact extents, and stub blocks by kind.
 * The process is not stopped, asked or written to, and keeps compiling during the reading.
 *
 * Data that can be recycled during the reading is named only if two looks agree (jit_scan.h). Code
 * without a name is counted.
 * This file defines the order of reading; each structure is read in its own file.
 */
#ifndef LIBSYM_CLR_JIT_READER_H
#define LIBSYM_CLR_JIT_READER_H

#include "libsym/clr/auxiliary_symbols.h"
#include "libsym/error.h"
#include "libsym/process/remote_memory.h"

struct jit_reader;

/*
 * Takes ownership of `memory` on success.
 * `runtime_base`: where the ELF header of libcoreclr.so, or of the executable that contains the
 * runtime, is mapped.
 * Errors: NOT_FOUND and UNSUPPORTED when this runtime cannot be read; the message names what is
 * missing.
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
	const char *tier; /* static, a hint; NULL when unknown */
};

/* Memory that may contain code without a name. */
struct jit_range {
	uint64_t begin_address, end_address;
};

/* Name of code that the runtime generated, when nothing more is known. */
extern const char jit_stub_name[];

enum jit_read_flags {
	JIT_READ_STUBS = 1 << 0, /* also blocks of stubs */
	JIT_READ_PRECODES =
		1 << 1, /* also precodes, named after their methods: as many as methods */
	JIT_READ_UNCHANGED = 1 << 2, /* return a result also when nothing has changed */
};

struct jit_reading {
	/* Where two share bytes, the later one is more precise. */
	struct jit_symbol *symbols;
	size_t symbol_count;
	struct jit_range *heaps; /* code heaps; by address, disjoint */
	size_t heap_count;
	struct auxiliary_symbols functions; /* named by the runtime, anywhere */
	size_t method_count;                /* named */
	size_t unnamed_count;               /* changed between the two looks, or inconsistent */
	size_t unnamed_dynamic_count;   /* those in dynamic methods and collectible assemblies */
	bool is_editable;               /* methods may have been added by hot reload */
	struct remote_memory_cost cost; /* of this reading */
};

/*
 * Reads everything at first; later only what is new or may have been replaced.
 * The names of a result live until the next reading, and no longer than the reader.
 * *ret is NULL when nothing has changed since the previous reading.
 * STUBS and PRECODES must be the same in all calls.
 */
struct sym_error *jit_reader_read(struct jit_reader *reader, uint32_t flags,
				  struct jit_reading **ret);
void jit_reading_destroy(struct jit_reading *reading);

DEFINE_GUARD(jit_reader, struct jit_reader *, jit_reader_close)
DEFINE_GUARD(jit_reading, struct jit_reading *, jit_reading_destroy)
#define AUTO_JIT_READER  GUARDED(jit_reader)
#define AUTO_JIT_READING GUARDED(jit_reading)

#endif
