/* SPDX-License-Identifier: MIT */
/*
 * The images that one mapped file makes.
 *
 * They are the file at each place where it is mapped, and the images inside it if it is a bundle or
 * an archive.
 * The vDSO and memory without a file are groups too.
 * A group is opened as a whole when it is first needed, and never changes afterwards.
 * Several snapshots of a process share the groups of unchanged mappings.
 * discover_file.h, discover_bundle.h and discover_archive.h find the images.
 */
#ifndef LIBSYM_IMAGE_MAPPED_FILE_H
#define LIBSYM_IMAGE_MAPPED_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image/image.h"
#include "libsym/image/placement.h"
#include "libsym/process/process.h"

enum mapped_file_kind {
	MAPPED_FILE_FILE,
	MAPPED_FILE_VDSO,
	MAPPED_FILE_MEMORY, /* all anonymous memory: a runtime may have unpacked assemblies there */
};

/* The image of a mapping. */
struct mapping_owner {
	struct sym_image *image; /* NULL: none */
	/* The image is loaded by this line. Other lines just contain bytes of the file. */
	bool placed;
	/*
	 * It contains several images; mapped_file_part_at() selects one. `image` is the file's
	 * image.
	 */
	bool shared;
};

/* Bytes of the file that are an image of their own. */
struct image_part {
	uint64_t start_offset, end_offset;
	struct sym_image *image; /* one of the group's */
};

struct mapped_file {
	enum mapped_file_kind kind;
	const char *path;             /* of the mappings; "" for memory */
	struct sym_mapping *mappings; /* copies, by address; image_index is unused */
	uint32_t *lines;              /* their numbers: 0, 1, 2, ... */
	size_t mapping_count;
	/*
	 * After these lines (and places): anonymous memory between the lines of the file, which may
	 * contain its code (hugepage_text.h).
	 */
	size_t hugepage_run_count;
	int64_t seen_ns; /* when the mappings were read, in ns since 1970 */
	/* The group of the same file with other lines, before; NULL: none, or already opened. */
	struct mapped_file *before;
	/* Once opened: */
	struct mapping_owner *places; /* by mapping, remapped ones included */
	struct sym_image **images;    /* in the order of discovery */
	size_t image_count;
	struct object_file *host; /* the file; NULL: it could not be opened */
	bool was_short;           /* of descriptors when it was opened */
	struct image_part *parts; /* of an archive, by offset, disjoint */
	size_t part_count;
	/* private */
	size_t image_capacity;
	char *owned_path;
	_Atomic(unsigned int) users; /* beyond the first one */
	_Atomic(bool) opened;
	pthread_mutex_t lock; /* of opening */
};

/* Number of `mappings`, `lines` and `places`. */
static inline size_t mapped_file_line_count(const struct mapped_file *group)
{
	return group->mapping_count + group->hugepage_run_count;
}

/* Shared by all images of a process. */
struct mapped_file_context {
	const struct process *process;
	struct image_company company;
	const char *const *relative_map_dirs;
	const char *const *debug_dirs;
	sym_fetch_fn *fetch; /* NULL: debug files are not fetched */
	void *fetch_context;
	bool forks_for_dwarf;
};

/* State of opening a group. */
struct group_opening {
	struct mapped_file *group;
	const struct mapped_file_context *context;
};

/*
 * `indexes` into `mappings`, ascending. All have one path, except the anonymous memory between the
 * lines of the file, which comes last.
 * Errors: NO_MEMORY.
 */
struct sym_error *mapped_file_create(enum mapped_file_kind kind, const struct sym_mapping *mappings,
				     const uint32_t *indexes, size_t count, int64_t seen_ns,
				     struct mapped_file **ret) __attribute__((warn_unused_result));
struct mapped_file *mapped_file_share(struct mapped_file *group);
/* Releases one user; the last one frees it. NULL is accepted. */
void mapped_file_release(struct mapped_file *group);

/* `group` uses the images of `old`, an earlier group of the same file, when it is opened. */
void mapped_file_follow(struct mapped_file *group, struct mapped_file *old);

/* True when these are the lines of the group. */
bool mapped_file_has_lines(const struct mapped_file *group, const struct sym_mapping *mappings,
			   const uint32_t *indexes, size_t count);

bool mapped_file_is_open(const struct mapped_file *group);

/*
 * Opens the group with `open`, once. Thread safe.
 * Errors: NO_MEMORY; then nothing is open, and the next call tries again.
 */
struct sym_error *mapped_file_open(struct mapped_file *group,
				   const struct mapped_file_context *context,
				   struct sym_error *(*open)(const struct group_opening *))
	__attribute__((warn_unused_result));

/* The part that contains a byte of the file; NULL: none. */
const struct image_part *mapped_file_part_at(const struct mapped_file *group, uint64_t offset);

/* ---- for those who find images ---- */

/*
 * Adds an image loaded at `load_base` (UINT64_MAX: nowhere). If an earlier group has the same
 * image, that one is used. The object may be NULL.
 */
struct sym_error *mapped_file_add(const struct group_opening *opening, const char *path,
				  struct object_file *object, uint64_t load_base,
				  struct sym_image **ret) __attribute__((warn_unused_result));

/* Drops all added images. */
void mapped_file_forget(struct mapped_file *group);

/* Assigns a line to an image. */
void mapped_file_give(const struct group_opening *opening, size_t line, struct sym_image *image,
		      bool placed);

/*
 * Adds an image for each placement of the object; `lines` are those of the placements. Lines
 * without a placement are left unassigned.
 */
struct sym_error *mapped_file_place(const struct group_opening *opening, const char *path,
				    struct object_file *object, const struct placements *placements,
				    const uint32_t *lines, size_t line_count)
	__attribute__((warn_unused_result));

DEFINE_GUARD(mapped_file, struct mapped_file *, mapped_file_release)
#define AUTO_MAPPED_FILE GUARDED(mapped_file)

#endif
