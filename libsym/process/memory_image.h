/* SPDX-License-Identifier: MIT */
/*
 * Files rebuilt from the memory of a live process: the vDSO, assemblies unpacked by a compressed
 * single-file application, deleted files.
 * The bytes are copied to an anonymous file with the layout of the original file, so object_file.h
 * can read it.
 */
#ifndef LIBSYM_PROCESS_MEMORY_IMAGE_H
#define LIBSYM_PROCESS_MEMORY_IMAGE_H

#include "libsym/file/object_file.h"
#include "libsym/process/process.h"

/*
 * Opens the bytes of [address, address + size_bytes) as an object file.
 * Errors: those of process_read_memory() and object_file_open().
 */
struct sym_error *memory_image_open(const struct process *process, uint64_t address,
				    size_t size_bytes, const char *path, struct object_file **ret)
	__attribute__((warn_unused_result));

/*
 * Rebuilds the file of a PE image that was loaded section by section at `base`.
 * Relocated words stay relocated, so the image has no content key.
 * Errors: FORMAT when there is no PE image.
 */
struct sym_error *memory_image_open_pe(const struct process *process, uint64_t base,
				       const char *path, struct object_file **ret)
	__attribute__((warn_unused_result));

/*
 * Rebuilds a file from its mappings, when neither its path nor map_files leads to it.
 * Each line is copied to its own offset, read-only lines last.
 * The dynamic segment of a 64-bit ELF file is restored to what it was before the dynamic linker
 * changed it.
 * Parts that are not mapped, such as the section headers of an ELF file, are zero.
 * *fd_ret is an anonymous file.
 * *charged_ret bytes were charged to the account of the process, also after an error. The caller
 * gives them back.
 * Errors: UNSUPPORTED for a recorded process.
 */
struct sym_error *memory_image_collect(const struct process *process,
				       const struct sym_mapping *mappings, const uint32_t *lines,
				       size_t line_count, const char *path, int *fd_ret,
				       uint64_t *charged_ret) __attribute__((warn_unused_result));

#endif
