/* SPDX-License-Identifier: MIT */
/*
 * Images that are no file any more, or never were one, out of the memory of a
 * live process: the vDSO, assemblies that a compressed single-file application
 * unpacked, files that were deleted. The bytes are copied to an anonymous file laid out as the
 * image's own file was, so that everybody behind image.h reads it like any other.
 */
#ifndef LIBSYM_MEMORY_IMAGE_H
#define LIBSYM_MEMORY_IMAGE_H

#include "libsym/image.h"
#include "libsym/process.h"

/* The bytes of [address, address + size_bytes) as they are. Errors: those of process_read_memory()
 * and image_open(). */
struct sym_error *memory_image_open(const struct process *process, uint64_t address,
				    size_t size_bytes, const char *path, struct image **ret)
	__attribute__((warn_unused_result));

/*
 * A PE image that was loaded section by section at `base`, put back into the
 * layout of its file. Relocated words stay as the loader left them: its content
 * key says nothing and is not given. FORMAT when no PE image is there.
 */
struct sym_error *memory_image_open_pe(const struct process *process, uint64_t base,
				       const char *path, struct image **ret)
	__attribute__((warn_unused_result));

/*
 * A file to which no way is left (deleted or replaced, its container gone, and
 * map_files not permitted), put together from what is mapped of it: every line
 * at its own offset, bytes that nobody may change last; of a 64-bit ELF file the dynamic
 * segment as it was before the dynamic linker. *fd_ret is an anonymous file of that content. Parts
 * that are not mapped are zeros: of an ELF file its section headers, say. UNSUPPORTED for a
 * recorded process.
 */
struct sym_error *memory_image_collect(const struct process *process,
				       const struct sym_mapping *mappings, const uint32_t *lines,
				       size_t line_count, const char *path, int *fd_ret)
	__attribute__((warn_unused_result));

#endif
