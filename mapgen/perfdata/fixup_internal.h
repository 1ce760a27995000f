/* SPDX-License-Identifier: MIT */
/*
 * Shared by the fixup_*.c files: the process that is being decided on, and how symbol files are
 * made from lists of symbols. No other file includes this.
 */
#ifndef MAPGEN_PERFDATA_FIXUP_INTERNAL_H
#define MAPGEN_PERFDATA_FIXUP_INTERNAL_H

#include "libsym/base/address_ranges.h"
#include "libsym/libsym.h"
#include "mapgen/perfdata/fixup_plan.h"
#include "mapgen/perfdata/recorded_origin.h"
#include "mapgen/symfile/symfile.h"

#define NO_SYMFILE UINT32_MAX

/* The mappings of one process, and their fixes. */
struct process_fixup {
	struct fixup_plan *plan;
	struct planned_process *process;
	struct recorded_mapping *mappings; /* executable ones; `data_count` others follow */
	size_t count, data_count;
	int memory_fd; /* memory of the live process: offsets are addresses; negative: none */
	int root_fd;   /* root of the paths of a live process; negative: our own */
	const struct rights *rights;   /* rights for these paths; NULL: the caller's */
	struct sym_snapshot *snapshot; /* the live process; NULL: none */
	bool no_runtime;               /* the process is visible, and is not a .NET process */
};

/* True for a record that an earlier perf-fix changed. */
bool is_fixed_already(const struct recorded_mapping *mapping);

/* A symbol file from symbols; finds an existing one with the same content. NULL on success, else
 * why not. */
struct symbol_run {
	const struct sym_symbol *const *symbols; /* ascending */
	size_t count;
	const char *origin;                /* stored in the file */
	const char *label;                 /* for people */
	const struct address_ranges *code; /* file with machine code; NULL: none */
	struct symfile_code_source code_source;
	/* The holders of the lines of that code; both NULL: it has none. */
	struct sym_snapshot *lines_of;
	struct sym_image *lines_of_image; /* positions are offsets into its file */
};

/* Adds the lines of the methods in run->code. What fails leaves lines out. */
void fixup_add_lines(struct symfile *elf, const struct symbol_run *run);

/* Puts a symbol file into the cache and counts it. Copies its label. */
struct sym_error *fixup_keep_symfile(struct fixup_plan *plan, struct planned_symfile *standin,
				     const struct buf *file, uint32_t *index_ret);

struct sym_error *fixup_make_symfile(struct fixup_plan *plan, const struct symbol_run *run,
				     uint32_t *index_ret);

/*
 * The symbol file of a file with precompiled code, made once for all its mappings. `key` identifies
 * the file and whether it has machine code, which is in the part of the file that `code` describes
 * (NULL: without). *index_ret: NO_SYMFILE when there is no precompiled code. NULL on success, else
 * why not.
 */
struct file_code {
	struct symfile_code_source source;
	uint64_t start, end; /* in the file */
};

struct sym_error *fixup_file_symfile(struct fixup_plan *plan, const char *key,
				     struct sym_image *image, const struct file_code *code,
				     uint32_t *index_ret);

/* Whether a sample lies in its code. Code without samples is not annotated. */
bool process_fixup_is_hit(const struct process_fixup *process_fixup,
			  const struct recorded_mapping *mapping);

/* True when `key` was asked for before; then *index_ret is the result. */
bool fixup_known_file(const struct fixup_plan *plan, const char *key, uint32_t *index_ret);

/* Forgets all keys. */
void fixup_forget_files(struct fixup_plan *plan);

/* Remembers the result for a key, NO_SYMFILE too. */
void fixup_remember_file(struct fixup_plan *plan, const char *key, uint32_t standin);

/* Counts a mapping that gets a build-id as fixed, or reports that its record has no room for one.
 */
void process_fixup_fix(struct process_fixup *process_fixup, struct recorded_mapping *mapping,
		       enum recorded_fix fix, uint32_t standin);

/* Names for a mapping of a native image with few symbols; `key` as for fixup_file_symfile(). */
void name_native(struct process_fixup *process_fixup, struct sym_image *image, const char *key,
		 struct recorded_mapping *mapping);

/* Lists each reason once. Adopts it. */
void process_fixup_complain(struct process_fixup *process_fixup, const char *subject, char *reason);
/* Adds the message of an error as the reason, and destroys the error. */
void process_fixup_fail(struct process_fixup *process_fixup, const char *subject,
			struct sym_error *error);

/*
 * Names for memory with code: one symbol file by address from `symbols` (ascending), with "[unnamed
 * code]" where `mappings` and `unrecorded` have none. Fixes all mappings.
 */
struct code_names {
	const struct sym_symbol *const *symbols;
	size_t symbol_count;
	struct recorded_mapping *const *mappings;
	size_t mapping_count;
	const struct address_ranges
		*unrecorded; /* memory without a record that one of `mappings` covers; NULL: none */
	const char *origin;  /* stored in the file */
};

struct sym_error *process_fixup_name_code(struct process_fixup *process_fixup,
					  const struct code_names *names);

/* Counts the samples in memory with code whose records got no names: the process has ended, or no
 * longer has the memory. */
void process_fixup_count_lost(struct process_fixup *process_fixup);

/* Executable memory of the live process that is in no record. */
struct unrecorded {
	struct address_ranges code; /* may be managed code */
	struct address_ranges other;
};

/* `ret` is zeroed by the caller. False: out of memory. */
bool unrecorded_find(const struct process_fixup *process_fixup, const struct sym_snapshot *snapshot,
		     struct unrecorded *ret);
void unrecorded_deinit(struct unrecorded *unrecorded);

/*
 * Extends the records of `mappings` over all code. Keeps the code that they reach without hiding
 * something else. False: out of memory.
 */
bool unrecorded_take_in(struct unrecorded *unrecorded, const struct process_fixup *process_fixup,
			struct recorded_mapping *const *mappings, size_t count);

/* The executable mappings, or those that `is_wanted` chooses, by address; heap. NULL when out of
 * memory. */
typedef bool choose_mapping_fn(const struct process_fixup *process_fixup,
			       const struct recorded_mapping *mapping);
struct recorded_mapping **process_fixup_choose(const struct process_fixup *process_fixup,
					       choose_mapping_fn *is_wanted, size_t *count_ret);

/* Names from the live process; without a runtime, for its native images. False when the process
 * cannot be used: nothing has been decided then. */
bool decide_by_process(struct process_fixup *process_fixup);

/* Where the mappings of the process at `first` end, and how many of them are executable; these come
 * first. */
size_t fixup_process_end(const struct recorded_maps *maps, size_t first, size_t *code_count_ret);

/* Programs and libraries may be loaded from memory files too. */
bool fixup_may_be_file(const struct recorded_mapping *mapping);

/*
 * Opens .NET processes whose mappings begin at `first` or behind it, and reads their jitted code
 * together. Returns where the mappings of the next group begin. `only`: one process; 0: all.
 */
size_t fixup_ahead_open(struct fixup_plan *plan, const struct recorded_maps *maps, size_t first,
			int32_t only);
/* NULL: it is not open. */
struct sym_snapshot *fixup_ahead_take(struct fixup_plan *plan, int32_t pid);
void fixup_ahead_close(struct fixup_plan *plan);

/* Names from files, and from a perf map that is kept or still written, for what is undecided. */
void decide_by_files(struct process_fixup *process_fixup);
void decide_by_saved_map(struct process_fixup *process_fixup);

/* Whether the process has a file mapped as it was recorded. */
bool plan_has_recorded(const struct recorded_mapping *mappings, size_t count,
		       const struct sym_snapshot *snapshot);

#endif
