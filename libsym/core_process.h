/* SPDX-License-Identifier: MIT */
/*
 * A process that is in a core file: who it was, what was mapped, and the memory that was written
 * down. What of a mapped file was left out is read from the file, where that cannot be wrong: never
 * what may have been written to or relocated. Knows no runtime.
 */
#ifndef LIBSYM_CORE_PROCESS_H
#define LIBSYM_CORE_PROCESS_H

#include "libsym/address_space.h"
#include "libsym/clr/remote_memory.h"
#include "libsym/error.h"
#include "libsym/format/elf_core.h"
#include "libsym/image.h"
#include "libsym/process.h"

struct core {
	int fd;
	char *path;
	struct elf_core elf;
	/* Its files by path; those of one path by offset, then by address. */
	const struct elf_core_file **by_path;
	int64_t time_ns; /* of its last change: what was mapped is not younger */
};

void core_close(struct core *core);

/* `root`: where the mapped files are, NULL for this machine. Errors: those of opening and
 * elf_core_read(). */
struct sym_error *core_process_open(const char *path, const char *root, struct process **ret)
	__attribute__((warn_unused_result));

/* What was mapped, by segments and list of files. A piece of a file that is in no segment is taken
 * as executable: nothing tells. */
struct sym_error *core_address_space(const struct core *core, struct address_space **ret)
	__attribute__((warn_unused_result));

/* How many bytes of [address, address + size_bytes) are in the core, counted from the start. */
size_t core_read(const struct core *core, uint64_t address, void *room, size_t size_bytes);

/*
 * NULL: nothing speaks against the file. STALE: it is younger than the core, or what the core has
 * of it is otherwise; also where the core has nothing of an ELF file to know it by.
 */
struct sym_error *core_check_image(const struct process *process, const struct image *image,
				   uint64_t load_base) __attribute__((warn_unused_result));

struct sym_snapshot;

/* The memory of a snapshot that was opened from a core; must not outlive it. */
struct sym_error *core_memory_open(const struct sym_snapshot *snapshot, struct remote_memory **ret)
	__attribute__((warn_unused_result));

DEFINE_GUARD(core, struct core *, core_close)
#define AUTO_CORE GUARDED(core)

#endif
