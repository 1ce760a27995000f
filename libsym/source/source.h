/* SPDX-License-Identifier: MIT */
/*
 * What a symbol source is: something that turns a position into a symbol. One
 * file a source, all of them in one ordered table; the first that answers wins.
 * A source is opened for one image (positions are its rvas or vaddrs) or for
 * the process (positions are addresses), never changes afterwards, and may be
 * asked by several threads at once.
 */
#ifndef LIBSYM_SOURCE_SOURCE_H
#define LIBSYM_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/debugfile.h"
#include "libsym/error.h"
#include "libsym/image.h"
#include "libsym/precompiled.h"
#include "libsym/symbols.h"

struct debug_fetch;

/* What a source may be opened from; what it does not need is ignored. */
struct source_input {
	struct image *image;
	const char *path;                /* what the image is called; lives as long as the source */
	struct precompiled *precompiled; /* NULL when the image has no readable method tables */
	const char *const *relative_map_dirs; /* NULL terminated; may be NULL */
	struct debugfile_roots roots;         /* the image has its path below their `fd` */
	struct debug_fetch *debug_fetch;      /* who brings its debug file; may be NULL */
	/* A source that was opened before this one has some, all of them. */
	bool has_symbols, has_all_symbols;
};

struct source_match {
	uint64_t start;
	uint64_t size_bytes;      /* 0 when unknown */
	const char *name;         /* lives as long as the source */
	const char *linkage_name; /* as symbol tables have it, likewise; NULL: the same */
	const char *tier;         /* static or NULL */
	enum sym_symbol_kind kind;
	const char *reason; /* SOURCE_NAMELESS: why there is no name; static */
};

enum source_outcome {
	SOURCE_MISS, /* nothing of this source covers the position */
	SOURCE_HIT,
	SOURCE_NAMELESS, /* something covers it, and its name cannot be had */
	SOURCE_BOUNDS,   /* a function covers it of which only the bounds are known: SYM_UNNAMED */
	SOURCE_SHORT,    /* there was no memory to look; the next who asks may have it */
};

/* Where a source lists its symbols to: `base` is added to each start. */
struct source_sink {
	struct symbols_builder *builder;
	uint64_t base;
	uint32_t image_index;
	bool stubs;         /* also what is no method */
	bool unnamed;       /* also native functions without a name */
	bool linkage_names; /* as symbol tables have them, not as a person would write them */
};

struct source_ops {
	enum sym_source_kind kind;
	/* Makes up for no symbol table: an image that has only this has no symbols. */
	bool is_extra;
	/*
	 * Opens the source. One that has nothing to say about the image declines:
	 * NULL in *ret, no error, and if a person would wonder, a text in `why`.
	 */
	struct sym_error *(*open)(const struct source_input *input, struct buf *why, void **ret);
	enum source_outcome (*find)(void *source, uint64_t position, struct source_match *ret);
	/* Does it have a symbol for every function of the image? NULL: it does not. */
	bool (*is_complete)(const void *source);
	/* All symbols, aliases included, in an order in which the preferred alias comes first. */
	struct sym_error *(*list)(void *source, const struct source_sink *sink);
	void (*close)(void *source);
	/*
	 * The file with the symbol table, which need not be the image itself; NULL when it has only
	 * what it exports. Lives as long as the source. May be absent.
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

/* Sources of images, in the order in which they are asked. */
extern const struct source_ops *const source_table[SOURCE_COUNT];

/* What stands for the name of a native function without one; heap, NULL when out of memory. */
char *eh_frame_source_text(const char *image_path, uint64_t vaddr);
/* Is `name` such a text about an image of this file name? Perf maps that were merged have them. */
bool eh_frame_source_is_text(const char *name, const char *image_path);

#endif
