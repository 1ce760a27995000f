/* SPDX-License-Identifier: MIT */
/*
 * The images that one mapped file makes: the file itself at each place where it is
 * mapped, and the images inside it if it is a bundle or an archive. Also the vDSO, and what is in
 * memory without a file. Nothing is opened before somebody asks; then all of the group is, once,
 * and it does not change any more. Several looks at a process share the groups of what is
 * mapped as it was. Knows nothing of how images are found (snapshot_images.h, snapshot_bundle.h).
 */
#ifndef LIBSYM_IMAGE_GROUP_H
#define LIBSYM_IMAGE_GROUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/module.h"
#include "libsym/placement.h"
#include "libsym/process.h"

enum image_group_kind {
	IMAGE_GROUP_FILE,
	IMAGE_GROUP_VDSO,
	IMAGE_GROUP_MEMORY, /* all anonymous memory: a runtime may have unpacked assemblies there */
};

/* Whose a mapping is. */
struct image_place {
	struct sym_image *module; /* NULL: nobody's */
	/* A line by which the image is loaded; the others of a file only show it. */
	bool placed;
	/* It shows several images: image_group_part_at() says which. `module` is the file's. */
	bool shared;
};

/* Bytes of the file that are an image of their own. */
struct image_part {
	uint64_t start_offset, end_offset;
	struct sym_image *module; /* one of the group's */
};

struct image_group {
	enum image_group_kind kind;
	const char *path;             /* of the mappings; "" for memory */
	struct sym_mapping *mappings; /* copies, by address; image_index means nothing */
	uint32_t *lines;              /* their numbers: 0, 1, 2, ... */
	size_t mapping_count;
	/* Behind them, and as many places: anonymous memory in the middle of the file's, which may
	 * show it (remapped_code.h). */
	size_t remapped_count;
	int64_t seen_ns; /* when the mappings were, in ns since 1970 */
	/* What the same file made before other lines of it were mapped; NULL: nothing, or opened.
	 */
	struct image_group *before;
	/* Once opened: */
	struct image_place *places; /* one a mapping, remapped or not */
	struct sym_image **modules; /* in the order in which they were found */
	size_t module_count;
	struct image *host;       /* the file; NULL: it could not be opened */
	bool was_short;           /* of descriptors: it could not be opened then */
	struct image_part *parts; /* by offset, disjoint; of an archive, else none */
	size_t part_count;
	/* private */
	size_t module_capacity;
	char *owned_path;
	_Atomic(unsigned int) users; /* beyond the first one */
	_Atomic(bool) opened;
	pthread_mutex_t lock; /* of opening */
};

/* Of `mappings`, `lines` and `places`. */
static inline size_t image_group_line_count(const struct image_group *group)
{
	return group->mapping_count + group->remapped_count;
}

/* What every module of a process has. */
struct image_group_context {
	const struct process *process;
	struct module_company company;
	const char *const *relative_map_dirs;
	const char *const *debug_dirs;
	sym_fetch_fn *fetch; /* NULL: the caller brings no debug files */
	void *fetch_context;
};

/* A group while it is being opened. */
struct group_opening {
	struct image_group *group;
	const struct image_group_context *context;
};

/* `indexes` into `mappings`, ascending; all have one path, but for what lies in the middle of a
 * file, which comes last. Errors: NO_MEMORY. */
struct sym_error *image_group_create(enum image_group_kind kind, const struct sym_mapping *mappings,
				     const uint32_t *indexes, size_t count, int64_t seen_ns,
				     struct image_group **ret) __attribute__((warn_unused_result));
struct image_group *image_group_share(struct image_group *group);
/* For one user; the last one ends it. NULL is accepted. */
void image_group_release(struct image_group *group);

/* What `old` made of the same file before serves `group`, which is new, when it is opened. */
void image_group_follow(struct image_group *group, struct image_group *old);

/* Are these the lines of the group? */
bool image_group_has_lines(const struct image_group *group, const struct sym_mapping *mappings,
			   const uint32_t *indexes, size_t count);

bool image_group_is_open(const struct image_group *group);

/*
 * Opens it with `open` unless that is done. Thread safe. Errors: NO_MEMORY; then nothing is
 * opened, and who asks next tries again.
 */
struct sym_error *image_group_open(struct image_group *group,
				   const struct image_group_context *context,
				   struct sym_error *(*open)(const struct group_opening *))
	__attribute__((warn_unused_result));

/* The part that a byte of the file lies in, or NULL. */
const struct image_part *image_group_part_at(const struct image_group *group, uint64_t offset);

/* ---- for those who find images ---- */

/*
 * Adds a module of an image that is loaded at `load_base` (UINT64_MAX: nowhere), the one
 * that there was before if it is the same. `image` may be NULL.
 */
struct sym_error *image_group_add(const struct group_opening *opening, const char *path,
				  struct image *image, uint64_t load_base, struct sym_image **ret)
	__attribute__((warn_unused_result));

/* Drops all modules that were added. */
void image_group_forget(struct image_group *group);

/* The line belongs to the module. */
void image_group_give(const struct group_opening *opening, size_t line, struct sym_image *module,
		      bool placed);

/*
 * A module for each placement of the image; `lines` are those that the
 * placements were found from. What no placement explains is left as it is.
 */
struct sym_error *image_group_place(const struct group_opening *opening, const char *path,
				    struct image *image, const struct placements *placements,
				    const uint32_t *lines, size_t line_count)
	__attribute__((warn_unused_result));

DEFINE_GUARD(image_group, struct image_group *, image_group_release)
#define AUTO_IMAGE_GROUP GUARDED(image_group)

#endif
