/* SPDX-License-Identifier: MIT */
/*
 * A symbol source turns a position into a symbol.
 * Each source is one file, and all are in one ordered table. The first one that answers wins.
 * A source is opened for one image (positions are rvas or vaddrs) or for the process (positions are
 * addresses).
 * It never changes afterwards, and several threads may use it at once.
 */
#ifndef LIBSYM_SOURCE_SOURCE_H
#define LIBSYM_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/elf/debugfile.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/source/precompiled.h"
#include "libsym/symbols/symbols.h"

struct debug_fetch;

/* Everything that a source may be opened from. Each source uses some of it. */
struct source_input {
	struct object_file *object;
	const char *path; /* the image's name in output; lives as long as the source */
	struct precompiled *precompiled; /* NULL when the image has no readable method tables */
	const char *const *relative_map_dirs; /* NULL terminated; may be NULL */
	struct debugfile_roots roots;         /* the image has its path below their `fd` */
	struct debug_fetch *debug_fetch;      /* fetches its debug file; may be NULL */
	bool forks_for_dwarf;                 /* SYM_SNAPSHOT_FORK_FOR_DWARF */
	/* A source opened before this one has some symbols; has all symbols. */
	bool has_symbols, has_all_symbols;
};

struct source_match {
	uint64_t start;
	uint64_t size_bytes;      /* 0 when unknown */
	const char *name;         /* lives as long as the source */
	const char *linkage_name; /* as in the symbol table; lives as long as the source; NULL:
				     equal to `name` */
	const char *tier;         /* static or NULL */
	enum sym_symbol_kind kind;
	const char *reason; /* SOURCE_NAMELESS: why there is no name; static */
};

enum source_outcome {
	SOURCE_MISS, /* nothing of this source contains the position */
	SOURCE_HIT,
	SOURCE_NAMELESS, /* something contains it, but its name is not available */
	SOURCE_BOUNDS,   /* a function contains it, of which only the bounds are known:
			    SYM_BOUNDS_ONLY */
	SOURCE_SHORT,    /* out of memory; a later look-up may succeed */
};

/* Receives the symbols of a source. `base` is added to each start. */
struct source_sink {
	struct symbols_builder *builder;
	uint64_t base;
	uint32_t image_index;
	bool stubs;         /* also ranges that are not methods */
	bool unnamed;       /* also native functions without a name */
	bool linkage_names; /* as in the symbol table, not readable names */
};

struct source_ops {
	enum sym_source_kind kind;
	/* Does not count as symbols: an image that has only this source is SYM_NO_SYMBOLS. */
	bool is_extra;
	bool for_elf; /* opened for ELF images only */
	/*
	 * Opens the source. *ret is NULL before.
	 * A source that has nothing for the image leaves it NULL without an error. If people would
	 * wonder why, it writes a text to `why`.
	 */
	struct sym_error *(*open)(const struct source_input *input, struct buf *why, void **ret);
	enum source_outcome (*find)(void *source, uint64_t position, struct source_match *ret);
	/* True when it has a symbol for every function of the image. May be NULL: false. */
	bool (*is_complete)(const void *source);
	/*
	 * Lists all symbols, aliases included, the preferred alias first. NULL: it only answers
	 * look-ups.
	 */
	struct sym_error *(*list)(void *source, const struct source_sink *sink);
	void (*close)(void *source); /* NULL: it belongs to the image */
	/*
	 * Path of the file with the symbol table, which may be a debug file; NULL when there are
	 * exports only. Lives as long as the source. May be NULL.
	 */
	const char *(*symbol_file)(const void *source);
};

extern const struct source_ops source_relmap;
extern const struct source_ops source_r2r;
extern const struct source_ops source_ngen;
extern const struct source_ops source_elf;
extern const struct source_ops source_dwarf;
extern const struct source_ops source_gopclntab;
extern const struct source_ops source_plt;
extern const struct source_ops source_fetched;
extern const struct source_ops source_eh_frame;

enum {
	SOURCE_COUNT = 9
};

/* The sources of images, in the order of their use. */
extern const struct source_ops *const source_table[SOURCE_COUNT];

/* Makes the text of a native function without a name; from malloc(), NULL when out of memory. */
char *eh_frame_source_text(const char *image_path, uint64_t vaddr);
/*
 * True when `name` is such a text for an image with this file name. Merged perf maps contain such
 * texts.
 */
bool eh_frame_source_is_text(const char *name, const char *image_path);

#endif
