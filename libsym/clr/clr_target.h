/* SPDX-License-Identifier: MIT */
/*
 * The process whose runtime is read: its mappings, and functions of its snapshot (images, memory of
 * a core file, metadata of assemblies).
 * So the readers of a runtime do not depend on snapshots.
 */
#ifndef LIBSYM_CLR_CLR_TARGET_H
#define LIBSYM_CLR_CLR_TARGET_H

#include "libsym/clr/reported_methods.h"
#include "libsym/clr/runtime_info.h"
#include "libsym/error.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"
#include "libsym/process/remote_memory.h"

struct bundled_assembly;

typedef struct sym_error *clr_assemblies_fn(void *context,
					    const struct runtime_assemblies *assemblies);

struct clr_target_ops {
	/* NULL when out of memory. */
	const struct runtime_info *(*runtime)(const struct sym_snapshot *snapshot);
	/* First mapping of the runtime's own ELF image; NULL when there is none. */
	const struct sym_mapping *(*runtime_mapping)(const struct sym_snapshot *snapshot);
	/* The image of a mapping; *ret is NULL for memory outside images. */
	struct sym_error *(*image_of)(const struct sym_snapshot *snapshot, size_t line,
				      struct sym_image **ret);
	/*
	 * The assembly that the runtime loaded from a path: an image, or a part of the bundle that
	 * the process runs, which the caller closes. Both NULL: not found.
	 */
	struct sym_error *(*image_by_path)(const struct sym_snapshot *snapshot, const char *path,
					   struct sym_image **image_ret,
					   struct bundled_assembly **bundled_ret);
	/* For a core file only. */
	struct sym_error *(*open_core)(const struct sym_snapshot *snapshot,
				       struct remote_memory **ret);
	/* Calls `use` while the metadata of assemblies is loaded, and returns its result. */
	struct sym_error *(*use_assemblies)(const struct sym_snapshot *snapshot,
					    clr_assemblies_fn *use, void *context);
};

struct clr_target {
	const struct process *process;
	const struct address_space *space;
	enum sym_jit_method jit; /* as requested */
	const struct sym_snapshot *snapshot;
	const struct clr_target_ops *ops;
};

static inline const struct runtime_info *clr_target_runtime(const struct clr_target *target)
{
	return target->ops->runtime(target->snapshot);
}

static inline const struct sym_mapping *clr_target_runtime_mapping(const struct clr_target *target)
{
	return target->ops->runtime_mapping(target->snapshot);
}

static inline struct sym_error *clr_target_image_of(const struct clr_target *target, size_t line,
						    struct sym_image **ret)
{
	return target->ops->image_of(target->snapshot, line, ret);
}

/* The memory of the process, or of its core file. Reading it is charged to the process's account.
 */
static inline struct sym_error *clr_target_open_memory(const struct clr_target *target,
						       struct remote_memory **ret)
{
	struct sym_error *error = target->process->core
					  ? target->ops->open_core(target->snapshot, ret)
					  : remote_memory_open_process(target->process->pid, ret);

	if (!error)
		remote_memory_charge(*ret, process_account(target->process));
	return error;
}

#endif
