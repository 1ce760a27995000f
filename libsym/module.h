/* SPDX-License-Identifier: MIT */
/*
 * A module is what the public header calls an image: a file (image.h), the
 * place it has in a process if it is mapped, and the symbol sources opened for
 * it. Sources are opened when the first position asks, once, under a lock;
 * after that look-ups take none. Knows the neighbours only through
 * r2r_assemblies, and nothing of other modules.
 */
#ifndef LIBSYM_MODULE_H
#define LIBSYM_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include "libsym/base/lazy.h"
#include "libsym/debug_fetch.h"
#include "libsym/error.h"
#include "libsym/image.h"
#include "libsym/neighbours.h"
#include "libsym/result.h"
#include "libsym/source/source.h"

struct module_sources;

/* Why nothing may be read from an image. */
struct module_trouble {
	enum sym_status status;
	char text[];
};

/* The other images of the process that a module is in; nobody for a file by itself. */
struct module_company {
	struct image_company images;
	/* Sees to it that every module has its index. NULL: there are none. */
	void (*number)(void *context);
};

struct sym_image {
	char *path;                           /* to show */
	struct image *image;                  /* NULL when the file could not be opened */
	uint64_t load_base;                   /* UINT64_MAX when unknown */
	const char *const *relative_map_dirs; /* borrowed; may be NULL */
	struct debugfile_roots roots;         /* borrowed; `path` is below their `fd` */
	char **own_debug_dirs;                /* of a file by itself; NULL: none */
	/* Where to look for other assemblies; see neighbours.h. */
	struct module_company company;
	char *neighbour_directory;
	char **assembly_dirs; /* NULL terminated; NULL: none */
	struct debug_fetch debug_fetch;
	/* private */
	struct lazy members;         /* struct archive_members; archive_member_at() */
	_Atomic(unsigned int) users; /* beyond the first one */
	_Atomic(uint32_t) index;     /* see module_index() */
	_Atomic(struct module_trouble *) trouble;
	_Atomic(char *) refused_map;
	pthread_mutex_t lock; /* of opening the sources, and of being counted */
	_Atomic(struct module_sources *) sources;
	bool was_counted;
	_Atomic(uint64_t) method_count; /* UINT64_MAX until sources were open */
};

/* `path` is copied; `image` has a user more, NULL is accepted. */
struct sym_error *module_create(const char *path, struct image *image, struct sym_image **ret)
	__attribute__((warn_unused_result));
/* For one user; the last one ends it. NULL is accepted. */
void module_destroy(struct sym_image *module);
/* One user more, who has to destroy it too. */
struct sym_image *module_share(struct sym_image *module);

/* Its number in the snapshot; UINT32_MAX for a file by itself. */
uint32_t module_index(const struct sym_image *module);

/* Records why the module is of no use, unless something is recorded already. Takes `error` over. */
void module_set_trouble(struct sym_image *module, struct sym_error *error);
/* NULL while there is none. */
const struct module_trouble *module_trouble(const struct sym_image *module);
/* What a source said about a relative map that it found and did not use; NULL: nothing. */
const char *module_refused_map(const struct sym_image *module);
enum sym_status module_status_of_error(enum sym_error_code code);

/* Could one of its sources not be opened for want of descriptors? */
bool module_was_short(const struct sym_image *module);

/* Has anything been asked of its symbols? */
bool module_was_asked(const struct sym_image *module);

/*
 * Answers for one position (rva or vaddr): fills in status, source, name, tier,
 * kind, offset, size and reason. Thread safe.
 */
void module_find(struct sym_image *module, uint64_t position, struct sym_answer *answer);

/*
 * Adds to an answer of `result` what the result wants beyond a name. After
 * module_find() of the same position. Thread safe. Errors: NO_MEMORY.
 */
struct sym_error *module_describe(struct sym_image *module, uint64_t position,
				  struct sym_result *result, size_t number)
	__attribute__((warn_unused_result));

/* The file with the symbol table of a native image; NULL when it has none. Thread safe. */
const char *module_symbol_file(struct sym_image *module);

/*
 * Adds all symbols to the sink's builder, those of sources that were asked first
 * winning over others with the same start. Of aliases the preferred one comes first.
 */
struct sym_error *module_list(struct sym_image *module, const struct source_sink *sink)
	__attribute__((warn_unused_result));

/*
 * Has `use` look at the readable method tables of the module; NULL for one without precompiled
 * code. What nobody had open is closed again afterwards.
 */
struct sym_error *module_use_precompiled(struct sym_image *module,
					 struct sym_error *(*use)(const struct precompiled *,
								  void *context),
					 void *context) __attribute__((warn_unused_result));

DEFINE_GUARD(module, struct sym_image *, module_destroy)
#define AUTO_MODULE GUARDED(module)

#endif
