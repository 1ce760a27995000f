/* SPDX-License-Identifier: MIT */
/*
 * The metadata of other assemblies that an image's names refer to.
 * An assembly is searched by its simple name: among the images of the process; in the directory of
 * the image; in the bundle that the process runs, where assemblies without code are not images.
 * A found assembly stays in use until the lookup ends.
 * An assembly with another MVID than the requested one is never returned. When two candidates
 * differ, neither is.
 */
#ifndef LIBSYM_IMAGE_ASSEMBLY_LOOKUP_H
#define LIBSYM_IMAGE_ASSEMBLY_LOOKUP_H

#include <pthread.h>
#include <stddef.h>

#include "libsym/file/object_file.h"
#include "libsym/format/dotnet/r2r.h"

struct found_assembly;

/* Lists the images of a process. */
struct assembly_company {
	void *context;
	/* A heap array of objects, each with one more user. Errors: NO_MEMORY. */
	struct sym_error *(*list)(void *context, struct object_file ***ret, size_t *count_ret);
	/* The object of its executable, which may be a bundle, with one more user. NULL: none. */
	struct object_file *(*executable)(void *context);
};

struct assembly_lookup {
	struct assembly_company company;  /* the images to search; `list` NULL: none */
	const char *directory;            /* borrowed; NULL: nothing is opened from disk */
	char *const *further_directories; /* borrowed, NULL terminated; NULL: none */
	struct budget *budget;            /* charged for files opened from there; NULL: none */
	/* private */
	struct found_assembly *found;
	size_t found_count;
	struct sym_error *trouble;
	pthread_mutex_t lock;
};

void assembly_lookup_init(struct assembly_lookup *assembly_lookup);
/* Releases everything that was found. */
void assembly_lookup_deinit(struct assembly_lookup *assembly_lookup);
/*
 * The error that may have hidden an assembly since the last call: NO_MEMORY, or no free
 * descriptors.
 * That assembly is searched again when it is next requested. NULL: no such error.
 */
struct sym_error *assembly_lookup_take_trouble(struct assembly_lookup *assembly_lookup);
/*
 * The PE file whose metadata was found, and its path for people (NULL: it is in the bundle); NULL:
 * not one of those found. Both live as long as the lookup.
 */
const struct pe *assembly_lookup_pe(struct assembly_lookup *assembly_lookup,
				    const struct metadata *metadata, const char **path_ret);
/* For r2r_open(). */
struct r2r_assemblies assembly_lookup_as_assemblies(struct assembly_lookup *assembly_lookup);

#endif
