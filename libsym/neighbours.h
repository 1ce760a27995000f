/* SPDX-License-Identifier: MIT */
/*
 * The metadata of other assemblies that an image's names refer to: found by
 * simple name among the images of the same process, beside the file, or in the bundle that the
 * process is, where those that have no code of their own are no images. What
 * was found stays in use until the asker is done. Never returns metadata whose
 * MVID is not the one asked for, and none at all when two candidates differ.
 */
#ifndef LIBSYM_NEIGHBOURS_H
#define LIBSYM_NEIGHBOURS_H

#include <pthread.h>
#include <stddef.h>

#include "libsym/format/r2r.h"
#include "libsym/image.h"

struct neighbour;

/* Who knows all images of a process. */
struct image_company {
	void *context;
	/* A heap array of images, each with a user more. Errors: NO_MEMORY. */
	struct sym_error *(*list)(void *context, struct image ***ret, size_t *count_ret);
	/* The image of its executable, with a user more: it may be a bundle. NULL: there is none.
	 */
	struct image *(*executable)(void *context);
};

struct neighbours {
	struct image_company company;     /* the images to look among; `list` NULL: none */
	const char *directory;            /* borrowed; NULL: nothing is opened from disk */
	char *const *further_directories; /* borrowed, NULL terminated; NULL: none */
	/* private */
	struct neighbour *found;
	size_t found_count;
	struct sym_error *trouble;
	pthread_mutex_t lock;
};

void neighbours_init(struct neighbours *neighbours);
/* Ends the use of all that was found. */
void neighbours_deinit(struct neighbours *neighbours);
/*
 * Why it could not be seen, since this was asked last, whether there is some assembly: NO_MEMORY,
 * or want of descriptors. Who asks for that one again has it looked for again. NULL: there was no
 * such thing.
 */
struct sym_error *neighbours_take_trouble(struct neighbours *neighbours);
/* To be handed to r2r_open(). */
struct r2r_assemblies neighbours_as_assemblies(struct neighbours *neighbours);

#endif
