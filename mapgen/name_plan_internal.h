/* SPDX-License-Identifier: MIT */
/*
 * What the parts of name_plan.c share: one process under decision, and how
 * stand-ins are made from lists of symbols. Nobody else includes this.
 */
#ifndef MAPGEN_NAME_PLAN_INTERNAL_H
#define MAPGEN_NAME_PLAN_INTERNAL_H

#include "libsym/base/address_ranges.h"
#include "libsym/libsym.h"
#include "mapgen/name_plan.h"
#include "mapgen/standin_elf.h"

#define NO_STANDIN UINT32_MAX

/* The mappings of one process, and what becomes of it. */
struct deciding {
	struct name_plan *plan;
	struct planned_process *process;
	struct recorded_mapping *mappings; /* executable; `data_count` others lie behind them */
	size_t count, data_count;
	int memory_fd; /* of the live process, where addresses are offsets; negative for none */
	int root_fd;   /* of what the paths of a live process lead through; negative for our own */
	bool no_runtime; /* the process can be seen, and it is no .NET process */
};

enum mapping_class {
	MAPPING_OTHER, /* [vdso], [stack], ... */
	MAPPING_FILE,
	MAPPING_CODE, /* memory of no file, or the runtime's double mapping of its code */
};

enum mapping_class mapping_class_of(const char *name);

/* True for a record that an earlier perf-fix changed. */
bool is_fixed_already(const struct recorded_mapping *mapping);

/* A file that can be nothing but an assembly, by its name. */
bool is_assembly_name(const char *name);

/* A stand-in out of symbols; finds one of the same content again. NULL on success, else why not. */
struct symbol_run {
	const struct sym_symbol *const *symbols; /* ascending */
	size_t count;
	const char *origin;                /* goes into the file */
	const char *label;                 /* for people */
	const struct address_ranges *code; /* of which there is machine code; NULL for none */
	struct standin_code_source code_source;
};

/* Puts the file of a stand-in into the cache and counts it. Its label is copied. */
char *plan_keep_standin(struct name_plan *plan, struct planned_standin *standin,
			const struct buf *file, uint32_t *index_ret);

char *plan_make_standin(struct name_plan *plan, const struct symbol_run *run, uint32_t *index_ret);

/*
 * The stand-in of a file with precompiled code, made once for all mappings. `key` says
 * which file, and whether with machine code, which is in the part of the file that `code` tells
 * of (NULL: without). *index_ret: NO_STANDIN when it has no precompiled code. NULL, or why not.
 */
struct file_code {
	struct standin_code_source source;
	uint64_t start, end; /* in the file */
};

char *plan_file_standin(struct name_plan *plan, const char *key, struct sym_image *image,
			const struct file_code *code, uint32_t *index_ret);

/* Was any of its code run by a sample itself? The code of others is not annotated. */
bool deciding_is_hit(const struct deciding *deciding, const struct recorded_mapping *mapping);

/* True when `key` was asked for before; then what came of it. */
bool plan_known_file(const struct name_plan *plan, const char *key, uint32_t *index_ret);

/* Next time it is known; NO_STANDIN is remembered too. */
void plan_remember_file(struct name_plan *plan, const char *key, uint32_t standin);

/* Counts a mapping that gets a build-id as fixed, or says that its record has no room for one. */
void deciding_fix(struct deciding *deciding, struct recorded_mapping *mapping,
		  enum recorded_fix fix, uint32_t standin);

/* Names for a mapping of a native image that has few; `key` as for plan_file_standin(). */
void name_native(struct deciding *deciding, struct sym_image *image, const char *key,
		 struct recorded_mapping *mapping);

/* Lists a reason once. Takes it over. */
void deciding_complain(struct deciding *deciding, const char *subject, char *reason);

/*
 * Names for memory with code: one stand-in by address of `symbols` (ascending), and of
 * "[unnamed code]" where `mappings` and `unrecorded` have none. Fixes all mappings.
 * NULL on success, else heap text: why not.
 */
struct code_names {
	const struct sym_symbol *const *symbols;
	size_t symbol_count;
	struct recorded_mapping *const *mappings;
	size_t mapping_count;
	const struct address_ranges *unrecorded; /* taken in by one of these; NULL for none */
	const char *origin;                      /* goes into the file */
};

char *deciding_name_code(struct deciding *deciding, const struct code_names *names);

/* Counts the samples in memory with code of which no record got names: the process has it no more,
 * or is gone itself. */
void deciding_count_lost(struct deciding *deciding);

/* Executable memory that the process has today, as far as no record has it. */
struct unrecorded {
	struct address_ranges code; /* may be managed */
	struct address_ranges other;
};

/* `ret` is zeroed at first. False: no memory. */
bool unrecorded_find(const struct deciding *deciding, const struct sym_snapshot *snapshot,
		     struct unrecorded *ret);
void unrecorded_deinit(struct unrecorded *unrecorded);

/*
 * Makes the records of `mappings` reach as far as all code; of that is kept what they reach
 * without hiding anything else. False: no memory.
 */
bool unrecorded_take_in(struct unrecorded *unrecorded, const struct deciding *deciding,
			struct recorded_mapping *const *mappings, size_t count);

/* Sorts by start address. */
void sort_mappings(struct recorded_mapping **mappings, size_t count);

/* From the live process; of one without a runtime, its native images. False when it cannot serve:
 * nothing has been decided then. */
bool decide_by_process(struct deciding *deciding);

/* From files, and from a perf map that is kept or still written; for what is undecided. */
void decide_by_files(struct deciding *deciding);
void decide_by_saved_map(struct deciding *deciding);

#endif
