/* SPDX-License-Identifier: MIT */
/*
 * A process in a core file: its identity, its mappings and its saved memory.
 * Mapped pages that the core file lacks are read from the mapped file, if they cannot have been
 * changed: never writable or relocated pages.
 * It knows no runtime.
 */
#ifndef LIBSYM_PROCESS_CORE_PROCESS_H
#define LIBSYM_PROCESS_CORE_PROCESS_H

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/elf/elf_core.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"
#include "libsym/process/remote_memory.h"

struct core {
	int fd;
	char *path;
	struct elf_core elf;
	/* files of the core by path, then by offset, then by address */
	const struct elf_core_file **by_path;
	int64_t time_ns; /* of its last change; a mapped file is not newer */
};

void core_close(struct core *core);

/*
 * `root`: where the mapped files are; NULL: this machine.
 * Errors: those of opening and of elf_core_read().
 */
struct sym_error *core_process_open(const char *path, const char *root, struct process **ret)
	__attribute__((warn_unused_result));

/*
 * Makes the mappings from the segments and the list of files.
 * A part of a file without a segment counts as executable, because the core file does not have its
 * protection.
 */
struct sym_error *core_address_space(const struct core *core, struct address_space **ret)
	__attribute__((warn_unused_result));

/*
 * Copies the bytes of [address, address + size_bytes) that are in the core.
 * Returns how many, from the start on.
 */
size_t core_read(const struct core *core, uint64_t address, void *room, size_t size_bytes);

/*
 * Checks whether a file can be the one that was mapped.
 * STALE: it is newer than the core, it differs from the bytes in the core, or it is an ELF file
 * without a page in the core to compare.
 */
struct sym_error *core_check_image(const struct process *process, const struct object_file *object,
				   uint64_t load_base) __attribute__((warn_unused_result));

struct sym_snapshot;

DEFINE_GUARD(core, struct core *, core_close)
#define AUTO_CORE GUARDED(core)

#endif
