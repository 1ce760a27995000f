/* SPDX-License-Identifier: MIT */
/*
 * A process at one moment: its identity (process.h), its mappings (address_space.h) and the images
 * that they make.
 * A mapped file is opened when it is first needed, then stays open.
 * An open snapshot does not change, except for sym_snapshot_perf_map().
 */
#ifndef LIBSYM_SNAPSHOT_SNAPSHOT_H
#define LIBSYM_SNAPSHOT_SNAPSHOT_H

#include <pthread.h>
#include <stdatomic.h>

#include "libsym/base/lazy.h"
#include "libsym/budget_api.h"
#include "libsym/clr/jitted_code.h"
#include "libsym/clr/jitted_lines.h"
#include "libsym/clr/runtime_info.h"
#include "libsym/error.h"
#include "libsym/image/image.h"
#include "libsym/image/mapped_file.h"
#include "libsym/perf/jitdump_source.h"
#include "libsym/perf/perfmap_location.h"
#include "libsym/perf/perfmap_source.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"

/* State shared by all snapshots of one process. */
struct snapshot_shared {
	_Atomic(unsigned int) users; /* beyond the first one */
	struct process *process;
	struct budget *budget;       /* the caller's; NULL: none */
	char **relative_map_dirs;    /* NULL terminated; NULL: none */
	char **debug_dirs;           /* NULL terminated; NULL: none */
	enum sym_jit_method jit;     /* as requested */
	unsigned int perf_map_flags; /* of perfmap_source_open() */
	struct mapped_file_context context;
	struct jitted_code_slot jitted_code;
	struct jitted_lines jitted_lines;
	pthread_mutex_t lock; /* protects the rest; held while all images are opened */
	struct sym_snapshot *newest;
	struct sym_snapshot *numbered; /* the snapshot whose indexes the images have: the user's */
};

/* The image of a mapping, if it was looked up. */
struct snapshot_line {
	_Atomic(struct sym_image *) image; /* NULL: not looked up */
	uint32_t group;                    /* SNAPSHOT_NO_GROUP: none */
	uint32_t number;                   /* of the line in its group */
	bool placed;                       /* as mapping_owner.placed */
	bool shared;                       /* as mapping_owner.shared */
};

#define SNAPSHOT_NO_GROUP UINT32_MAX

struct sym_snapshot {
	struct snapshot_shared *ground;
	struct process *process; /* owned by `ground` */
	enum sym_jit_method jit; /* of `ground` */
	struct address_space *space;
	int64_t taken_ns;                      /* when its maps were read, in ns since 1970 */
	struct snapshot_line *lines;           /* one for each mapping */
	_Atomic(struct mapped_file *) *groups; /* NULL: not looked up */
	size_t group_count; /* those of space->files, then anonymous memory, then the vDSO */
	uint32_t vdso_line; /* UINT32_MAX: none */
	pthread_mutex_t group_lock; /* of creating groups */
	struct lazy runtime;        /* struct runtime_info */
	struct sym_snapshot *older; /* of the same `ground`, in any order */
	/* Once all images are open: */
	pthread_mutex_t open_lock;
	_Atomic(bool) all_open;
	struct sym_image **images; /* by first mapping; borrowed from the groups */
	size_t image_count;
	bool is_users;                /* the images have the indexes of this snapshot */
	struct sym_process_info info; /* runtime fields: see sym_snapshot_process() */
	_Atomic(bool) is_info_whole;
	pthread_mutex_t info_lock;
	struct perfmap_location place; /* of the last sym_snapshot_perf_map() */
	bool has_place;
	struct sym_load_check load_check; /* of the last sym_snapshot_load_check() */
};

void load_check_deinit(struct sym_load_check *check);

/* True when the requested method includes this one. */
bool snapshot_uses_runtime(const struct sym_snapshot *snapshot);
bool snapshot_uses_perf_map(const struct sym_snapshot *snapshot);

/* Stands for "looked up, no image". */
extern struct sym_image snapshot_no_image;

/* snapshot_image_of() for a mapping that was not looked up yet. */
struct sym_error *snapshot_ask_line(const struct sym_snapshot *snapshot, size_t line,
				    struct sym_image **ret) __attribute__((warn_unused_result));

/*
 * The image of a mapping; opens its file if necessary. *ret is NULL for memory outside images.
 * Thread safe. Errors: NO_MEMORY.
 */
static inline struct sym_error *snapshot_image_of(const struct sym_snapshot *snapshot, size_t line,
						  struct sym_image **ret)
{
	struct sym_image *image =
		atomic_load_explicit(&snapshot->lines[line].image, memory_order_acquire);

	if (!image)
		return snapshot_ask_line(snapshot, line, ret);
	*ret = image == &snapshot_no_image ? NULL : image;
	return NULL;
}

/*
 * For a mapping of several images: selects the one that contains an address. *image is that of
 * snapshot_image_of(), and stays for a mapping of one image. False: no image contains the address.
 */
bool snapshot_choose_part(const struct sym_snapshot *snapshot, size_t line, uint64_t address,
			  struct sym_image **image);

/* Offset of an address into the image's bytes; UINT64_MAX before them. */
uint64_t snapshot_offset(const struct sym_snapshot *snapshot, size_t line,
			 const struct sym_image *image, uint64_t address);

/*
 * rva or vaddr of an address in a mapping of this image; UINT64_MAX when that part of the file is
 * not loaded.
 */
uint64_t snapshot_position(const struct sym_snapshot *snapshot, size_t line,
			   const struct sym_image *image, uint64_t address);

/* Opens all images, and fills snapshot->images. Thread safe. Errors: NO_MEMORY. */
struct sym_error *snapshot_open_all(const struct sym_snapshot *snapshot)
	__attribute__((warn_unused_result));

/*
 * The runtime in the process, found when it is first needed. Thread safe. NULL when out of memory.
 */
const struct runtime_info *snapshot_runtime(const struct sym_snapshot *snapshot);

/*
 * Takes another snapshot of the same process over `space`, whose ownership is taken on success.
 * Unchanged mappings keep what was opened.
 * Its images have no index before snapshot_make_users().
 */
struct sym_error *snapshot_look_again(const struct sym_snapshot *before,
				      struct address_space *space, struct sym_snapshot **ret)
	__attribute__((warn_unused_result));

/*
 * False when a file was written since its image was opened. It may be mapped again at the same
 * place, and its line is unchanged then.
 */
bool snapshot_is_as_opened(const struct sym_snapshot *snapshot);

/* True when both have the same files mapped at the same places. `fresh` was made from `before`. */
bool snapshot_has_same_files(const struct sym_snapshot *before, const struct sym_snapshot *fresh);

/*
 * Creates a snapshot without the user's options and the process; call snapshot_enlist() next. Takes
 * ownership of `space` on success.
 */
struct sym_error *snapshot_create(struct snapshot_shared *ground, struct address_space *space,
				  struct sym_snapshot **ret) __attribute__((warn_unused_result));

/* Makes a snapshot visible to the search for assemblies. */
void snapshot_enlist(struct sym_snapshot *snapshot);

/* Gives the images the indexes of this snapshot. */
void snapshot_make_users(struct sym_snapshot *snapshot);

/* Releases one user; the last one frees it. NULL is accepted. */
void snapshot_shared_release(struct snapshot_shared *ground);

/*
 * The first mapping of the runtime's own ELF image; NULL when there is none. In a single-file
 * application other mappings of the same file may be below it.
 */
const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot);

/*
 * The object of the process's executable; NULL when there is none, or when it is not the mapped
 * one. Call snapshot_open_all() before.
 */
struct object_file *snapshot_executable(const struct sym_snapshot *snapshot);

/*
 * Finds and reads the perf maps that may be used; `flags` of perfmap_source_open().
 * *ret is NULL when there is none. `why` then explains why an existing one is not used.
 */
struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, unsigned int flags,
					 struct buf *why, struct perfmap_source **ret)
	__attribute__((warn_unused_result));

/*
 * Index of the mapping of the jitdump that the process writes; ADDRESS_SPACE_NONE when there is
 * none.
 */
size_t snapshot_find_jitdump(const struct sym_snapshot *snapshot);

/*
 * Opens the jitdump that the process writes. A JIT maps its first page, as a mark for perf.
 * *ret is NULL when there is none. `why` then explains why an existing one is not used.
 */
struct sym_error *snapshot_read_jitdump(const struct sym_snapshot *snapshot, struct buf *why,
					struct jitdump_source **ret)
	__attribute__((warn_unused_result));

#endif
