/* SPDX-License-Identifier: MIT */
/*
 * A process at one moment: who it is (process.h), what is mapped
 * (address_space.h), and which images that makes. Opens no mapped file before
 * somebody asks for what is in it; what was opened stays. What can be seen of it does
 * not change once it is open, except for sym_snapshot_perf_map().
 */
#ifndef LIBSYM_SNAPSHOT_H
#define LIBSYM_SNAPSHOT_H

#include <pthread.h>
#include <stdatomic.h>

#include "libsym/address_space.h"
#include "libsym/base/lazy.h"
#include "libsym/error.h"
#include "libsym/image_group.h"
#include "libsym/live_code.h"
#include "libsym/module.h"
#include "libsym/perf_map_place.h"
#include "libsym/process.h"
#include "libsym/runtime_info.h"
#include "libsym/source/jitdump_source.h"
#include "libsym/source/perfmap_source.h"

/* What all looks at one process share. */
struct snapshot_ground {
	_Atomic(unsigned int) users; /* beyond the first one */
	struct process *process;
	char **relative_map_dirs;    /* NULL terminated; NULL for none */
	char **debug_dirs;           /* the same */
	enum sym_jit_way jit;        /* as asked for */
	unsigned int perf_map_flags; /* of perfmap_source_open() */
	struct image_group_context context;
	struct live_code_slot live_code;
	pthread_mutex_t lock; /* of all below; held while all images are opened */
	struct sym_snapshot *newest;
	struct sym_snapshot *numbered; /* the one whose modules have an index: its user's */
};

/* Whose a mapping is, as far as somebody has asked. */
struct snapshot_line {
	_Atomic(struct sym_image *) module; /* NULL: nobody has asked */
	uint32_t group;                     /* SNAPSHOT_NO_GROUP: none */
	uint32_t number;                    /* of the line in its group */
	bool placed;                        /* as image_place.placed */
	bool shared;                        /* as image_place.shared */
};

#define SNAPSHOT_NO_GROUP UINT32_MAX

struct sym_snapshot {
	struct snapshot_ground *ground;
	struct process *process; /* the ground's */
	enum sym_jit_way jit;    /* likewise */
	struct address_space *space;
	int64_t taken_ns;                      /* when its maps were read, in ns since 1970 */
	struct snapshot_line *lines;           /* one a mapping */
	_Atomic(struct image_group *) *groups; /* NULL: nobody has asked */
	size_t group_count; /* those of space->files, then anonymous memory, then the vDSO */
	uint32_t vdso_line; /* UINT32_MAX: none */
	pthread_mutex_t group_lock; /* of making groups */
	struct lazy runtime;        /* struct runtime_info */
	struct sym_snapshot *older; /* of the same ground, in no special order */
	/* Once all images are open: */
	pthread_mutex_t open_lock;
	_Atomic(bool) all_open;
	struct sym_image **modules; /* by first mapping; borrowed from the groups */
	size_t module_count;
	bool is_users;                /* modules have the index that they have here */
	struct sym_process_info info; /* what is in it of the runtime: sym_snapshot_process() */
	_Atomic(bool) is_info_whole;
	pthread_mutex_t info_lock;
	struct perf_map_place place; /* of the last sym_snapshot_perf_map() */
	bool has_place;
	struct sym_load_check load_check; /* of the last sym_snapshot_load_check() */
};

void load_check_deinit(struct sym_load_check *check);

/* Does what was asked for include this way? */
bool snapshot_uses_runtime(const struct sym_snapshot *snapshot);
bool snapshot_uses_perf_map(const struct sym_snapshot *snapshot);

/* The image of a mapping has been asked for, and there is none. */
extern struct sym_image snapshot_no_image;

/* snapshot_image_of() for a mapping of which nobody has asked yet. */
struct sym_error *snapshot_ask_line(const struct sym_snapshot *snapshot, size_t line,
				    struct sym_image **ret) __attribute__((warn_unused_result));

/*
 * The image that a mapping shows, opening its file if nobody has; *ret is NULL for memory of no
 * image. Thread safe. Errors: NO_MEMORY.
 */
static inline struct sym_error *snapshot_image_of(const struct sym_snapshot *snapshot, size_t line,
						  struct sym_image **ret)
{
	struct sym_image *module =
		atomic_load_explicit(&snapshot->lines[line].module, memory_order_acquire);

	if (!module)
		return snapshot_ask_line(snapshot, line, ret);
	*ret = module == &snapshot_no_image ? NULL : module;
	return NULL;
}

/* Has it turned out that a mapping is memory of no image? */
static inline bool snapshot_is_memory(const struct sym_snapshot *snapshot, size_t line)
{
	return atomic_load_explicit(&snapshot->lines[line].module, memory_order_relaxed) ==
	       &snapshot_no_image;
}

/*
 * Of a mapping that shows several images, the one that an address lies in; *image is that of
 * snapshot_image_of(), and stays when it shows one. False: the address lies in none of several.
 */
bool snapshot_choose_part(const struct sym_snapshot *snapshot, size_t line, uint64_t address,
			  struct sym_image **image);

/* Offset of an address into the image's bytes; UINT64_MAX for what lies before them. */
uint64_t snapshot_offset(const struct sym_snapshot *snapshot, size_t line,
			 const struct sym_image *module, uint64_t address);

/* rva or vaddr of an address in a mapping of this image; UINT64_MAX when it is loaded from nowhere.
 */
uint64_t snapshot_position(const struct sym_snapshot *snapshot, size_t line,
			   const struct sym_image *module, uint64_t address);

/* Opens all images: from then on there are snapshot->modules. Thread safe. Errors: NO_MEMORY. */
struct sym_error *snapshot_open_all(const struct sym_snapshot *snapshot)
	__attribute__((warn_unused_result));

/* What runtime the process hosts. Looks when first asked. Thread safe. NULL for want of memory. */
const struct runtime_info *snapshot_runtime(const struct sym_snapshot *snapshot);

/*
 * Another look at the same process: over `space`, which it takes over on success, with everything
 * that was opened and is mapped as it was. Its modules have no index before it is
 * made the user's.
 */
struct sym_error *snapshot_look_again(const struct sym_snapshot *before,
				      struct address_space *space, struct sym_snapshot **ret)
	__attribute__((warn_unused_result));

/* False when a file was written since an image of it was opened. It may be mapped anew at the same
 * place: what is mapped reads as before then. */
bool snapshot_is_as_opened(const struct sym_snapshot *snapshot);

/* Do both have the same files mapped at the same places? `fresh` was made from `before`. */
bool snapshot_has_same_files(const struct sym_snapshot *before, const struct sym_snapshot *fresh);

/* Everything but the user's options and the process itself; it is to be enlisted. Takes `space`
 * over on success. */
struct sym_error *snapshot_create(struct snapshot_ground *ground, struct address_space *space,
				  struct sym_snapshot **ret) __attribute__((warn_unused_result));

/* Those who look for an assembly among all images of the process see it from now on. */
void snapshot_enlist(struct sym_snapshot *snapshot);

/* From now on modules have the index that they have in this snapshot. */
void snapshot_make_users(struct sym_snapshot *snapshot);

/* For one user; the last one ends it. NULL is accepted. */
void snapshot_ground_release(struct snapshot_ground *ground);

/*
 * The first mapping of the runtime's own ELF image, NULL when there is none. In a single-file
 * application other mappings of the same file may lie below it.
 */
const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot);

/* Image of the process's executable, the snapshot's; NULL when there is none, or when it is not
 * what is mapped. After snapshot_open_all(). */
struct image *snapshot_executable(const struct sym_snapshot *snapshot);

/*
 * Finds and reads the perf maps that may be believed; `flags` of perfmap_source_open(). *ret is
 * NULL when there is none; then `why` may say what is wrong with one that is there.
 */
struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, unsigned int flags,
					 struct buf *why, struct perfmap_source **ret)
	__attribute__((warn_unused_result));

/* The mapping of the jitdump that the process writes; ADDRESS_SPACE_NONE when there is none. */
size_t snapshot_find_jitdump(const struct sym_snapshot *snapshot);

/*
 * Opens the jitdump that the process writes: the one whose first page it has mapped, as jits
 * do to tell perf. *ret is NULL when there is none; then `why` may say what is wrong with one
 * that is there.
 */
struct sym_error *snapshot_read_jitdump(const struct sym_snapshot *snapshot, struct buf *why,
					struct jitdump_source **ret)
	__attribute__((warn_unused_result));

#endif
