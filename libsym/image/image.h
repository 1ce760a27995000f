/* SPDX-License-Identifier: MIT */
/*
 * An image: an object file (object_file.h), its place in a process if it is mapped, and its symbol
 * sources.
 * Sources are opened once, under a lock, when the first position is looked up. Later look-ups take
 * no lock.
 * Other images are reached through r2r_assemblies only.
 */
#ifndef LIBSYM_IMAGE_IMAGE_H
#define LIBSYM_IMAGE_IMAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "libsym/base/lazy.h"
#include "libsym/elf/debug_fetch.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/image/assembly_lookup.h"
#include "libsym/source/source.h"
#include "libsym/symbols/result.h"

struct image_sources;

/* Why an image cannot be used. */
struct image_trouble {
	enum sym_status status;
	char text[];
};

/* The other images of the process; empty for a file that was opened by its path. */
struct image_company {
	struct assembly_company images;
	/* Gives every image its index. NULL: there are none. */
	void (*number)(void *context);
};

struct sym_image {
	char *path;                           /* for output */
	struct object_file *object;           /* NULL when the file could not be opened */
	uint64_t load_base;                   /* UINT64_MAX when unknown */
	const char *const *relative_map_dirs; /* borrowed; may be NULL */
	struct debugfile_roots roots;         /* borrowed; `path` is below their `fd` */
	char **own_debug_dirs;                /* of a file opened by its path; NULL: none */
	/* Where other assemblies are searched; see assembly_lookup.h. */
	struct image_company company;
	char *assembly_directory;
	char **assembly_dirs; /* NULL terminated; NULL: none */
	struct debug_fetch debug_fetch;
	bool forks_for_dwarf;
	/* private */
	struct lazy members;            /* struct archive_images; archive_image_at() */
	struct lazy pdb_reference;      /* struct image_reference; pdb_search.c */
	struct lazy pdb;                /* struct image_pdb; image_pdb_file() */
	pthread_mutex_t foreign_lock;   /* protects `foreign` */
	struct foreign_module *foreign; /* see image_lines.h */
	void (*destroy_foreign)(struct foreign_module *modules);
	_Atomic(unsigned int) users; /* beyond the first one */
	_Atomic(uint32_t) index;     /* see image_index() */
	_Atomic(struct image_trouble *) trouble;
	_Atomic(char *) refused_map;
	pthread_mutex_t lock; /* protects the opening of sources, and the method count */
	_Atomic(struct image_sources *) sources;
	bool was_counted;
	_Atomic(uint64_t) method_count; /* UINT64_MAX until the sources were open */
};

/* `path` is copied; the object gets one more user; it may be NULL. */
struct sym_error *image_create(const char *path, struct object_file *object, struct sym_image **ret)
	__attribute__((warn_unused_result));
/* Releases one user; the last one frees it. NULL is accepted. */
void image_destroy(struct sym_image *image);
/* Adds a user, who must destroy it too. */
struct sym_image *image_share(struct sym_image *image);

/* Its index in the snapshot; UINT32_MAX for a file opened by its path. */
uint32_t image_index(const struct sym_image *image);

/* Records why the image cannot be used; the first reason stays. Takes ownership of `error`. */
void image_set_trouble(struct sym_image *image, struct sym_error *error);
/* NULL when it can be used. */
const struct image_trouble *image_trouble(const struct sym_image *image);
/* Why a relative map that was found is not used; NULL: nothing to report. */
const char *image_refused_map(const struct sym_image *image);
enum sym_status image_status_of_error(enum sym_error_code code);

/* True when a source could not be opened for lack of descriptors. */
bool image_was_short(const struct sym_image *image);

/* True when its symbols were used. */
bool image_was_asked(const struct sym_image *image);

/*
 * Resolves one position (rva or vaddr): sets status, source, name, tier, kind, offset, size and
 * reason. Thread safe.
 */
void image_find_symbol(struct sym_image *image, uint64_t position, struct sym_answer *answer);

/*
 * Adds the fields that `result` requests beyond a name, except lines of managed code
 * (image_lines.h).
 * Call it after the look-up of the same position. Thread safe. Errors: NO_MEMORY.
 */
struct sym_error *image_describe(struct sym_image *image, uint64_t position,
				 struct sym_result *result, size_t number)
	__attribute__((warn_unused_result));

/*
 * The method tables, opened if necessary; NULL: the image has none. *lookup_ret has found the
 * metadata of other modules. Both live as long as the image. Thread safe.
 */
const struct precompiled *image_precompiled(struct sym_image *image,
					    struct assembly_lookup **lookup_ret);

/*
 * The path of the file with the symbol table of a native image; NULL when there is none. Thread
 * safe.
 */
const char *image_symbol_file(struct sym_image *image);

/*
 * Adds all symbols to the sink's builder.
 * If symbols have the same start, those of an earlier source win. The preferred alias comes first.
 */
struct sym_error *image_list_symbols(struct sym_image *image, const struct source_sink *sink)
	__attribute__((warn_unused_result));

/*
 * Calls `use` with the method tables of the image; NULL for an image without precompiled code.
 * Tables that were opened for this are closed again.
 */
struct sym_error *image_use_precompiled(struct sym_image *image,
					struct sym_error *(*use)(const struct precompiled *,
								 void *context),
					void *context) __attribute__((warn_unused_result));

DEFINE_GUARD(image, struct sym_image *, image_destroy)
#define AUTO_IMAGE GUARDED(image)

#endif
