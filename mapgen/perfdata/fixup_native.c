/* SPDX-License-Identifier: MIT */
/*
 * Names for native images that are stripped, such as libcoreclr.so. perf reads native symbols
 * itself. Where an image has few, perf prints a number for each address, so that no two samples of
 * one function come together. Such an image gets a copy of itself as symbol file, with the bounds
 * of its functions as symbols.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"
#include "mapgen/symfile/symfile_native.h"

enum {
	MOST_NATIVE_BYTES = 256 << 20
};

/* A build-id of the same length, or none. */
static bool is_alike(int fd, const struct sym_identity *wanted)
{
	struct sym_identity there = { .size = sizeof(there) };
	struct sym_error *error = sym_identity_read(fd, UINT64_MAX, &there);

	sym_error_destroy(error);
	return !error && wanted->id_size_bytes == there.id_size_bytes &&
	       wanted->file_size_bytes == there.file_size_bytes &&
	       !memcmp(wanted->id, there.id, there.id_size_bytes);
}

static bool has_identity(int fd, const struct sym_identity *wanted,
			 const struct recorded_mapping *mapping)
{
	struct stat status;

	if (!is_alike(fd, wanted) || fstat(fd, &status))
		return false;
	return wanted->id_size_bytes || (!mapping->has_build_id && status.st_ino == mapping->inode);
}

static int open_by_path(const struct process_fixup *process_fixup, const struct sym_image *image)
{
	return foreign_file_open(process_fixup->root_fd, sym_image_path(image), 0,
				 process_fixup->rights, NULL);
}

/* Opens the file that the process has mapped there, even if the file was deleted or replaced. Only
 * root may open it. */
static int open_as_mapped(const struct process_fixup *process_fixup,
			  const struct recorded_mapping *mapping)
{
	char path[64];
	DIR *directory GUARDED(dir) = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/map_files", process_fixup->process->pid);
	if (process_fixup->process->lives)
		directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		uint64_t start, end;

		if (sscanf(entry->d_name, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		    start <= mapping->start_address && mapping->start_address < end)
			return foreign_file_open(dirfd(directory), entry->d_name,
						 FOREIGN_KERNEL_LINK, NULL, NULL);
	}
	return -1;
}

/* The file of an image. */
struct native_file_found {
	int fd;       /* negative: there is none */
	bool is_lost; /* its path leads to another file, so perf cannot read it */
};

static struct native_file_found open_native(const struct process_fixup *process_fixup,
					    struct sym_image *image,
					    const struct recorded_mapping *mapping)
{
	struct sym_identity wanted = { .size = sizeof(wanted) };
	struct sym_error *error = sym_image_identity(image, &wanted);
	struct native_file_found found = { .fd = -1 };

	for (int way = 0; !error && way < 2; way++) {
		found.is_lost = way == 1;
		found.fd = found.is_lost ? open_as_mapped(process_fixup, mapping)
					 : open_by_path(process_fixup, image);
		if (found.fd >= 0 && has_identity(found.fd, &wanted, mapping))
			return found;
		if (found.fd >= 0)
			close(found.fd);
		found.fd = -1;
	}
	sym_error_destroy(error);
	return found;
}

/* A function without a size ends where the next begins, as perf assumes. Counts those without a
 * name. */
static size_t add_symbols(struct symfile *elf, const struct sym_symbols *symbols)
{
	size_t count = sym_symbols_count(symbols), unnamed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);
		const struct sym_symbol *next = sym_symbols_at(symbols, i + 1);
		uint64_t size_bytes = symbol->size_bytes;

		if (!size_bytes && next)
			size_bytes = next->start - symbol->start;
		symfile_add(elf, symbol->start, size_bytes, symbol->name, NULL);
		unnamed += symbol->kind == SYM_SYMBOL_UNNAMED;
	}
	return unnamed;
}

static struct sym_error *make_symfile(struct process_fixup *process_fixup, struct sym_image *image,
				      const struct native_file_found *found,
				      const struct sym_symbols *symbols, uint32_t *index_ret)
{
	const char *label = path_file_name(sym_image_path(image));
	struct planned_symfile standin = { .label = (char *)label };
	struct symfile elf;
	struct buf file;
	const char *hindrance;
	struct sym_error *failure = NULL;

	buf_init(&file, MOST_NATIVE_BYTES);
	symfile_init(&elf);
	standin.unnamed = add_symbols(&elf, symbols);
	standin.symbols = elf.count;
	hindrance = elf.count ? symfile_native_finish(&elf, found->fd, found->is_lost, &file,
						      standin.id, &standin.native_bytes)
			      : NULL;
	/* A file that was replaced and cannot be used stays as it is; perf prints what it has. */
	if (hindrance && found->is_lost)
		failure = sym_error_create(
			SYM_ERROR_IO,
			"perf can no longer read it, and there is no symbol file for it: %s",
			hindrance);
	else if (elf.count && !hindrance)
		failure = fixup_keep_symfile(process_fixup->plan, &standin, &file, index_ret);
	symfile_deinit(&elf);
	buf_deinit(&file);
	return failure;
}

static struct sym_error *make_from_image(struct process_fixup *process_fixup,
					 struct sym_image *image,
					 const struct recorded_mapping *mapping,
					 uint32_t *index_ret)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct native_file_found found = open_native(process_fixup, image, mapping);
	int fd AUTO_CLOSE = found.fd;
	struct sym_error *error;

	if (fd < 0)
		return process_fixup->process->lives
			       ? sym_error_create(SYM_ERROR_IO,
						  "its file was deleted or replaced, and "
						  "/proc/%d/map_files does not lead to it",
						  process_fixup->process->pid)
			       : NULL;
	error = sym_image_symbols(image,
				  SYM_IMAGE_SYMBOLS_UNNAMED | SYM_IMAGE_SYMBOLS_STUBS |
					  SYM_IMAGE_SYMBOLS_LINKAGE_NAMES,
				  &symbols);
	if (!error)
		return make_symfile(process_fixup, image, &found, symbols, index_ret);
	sym_error_destroy(error);
	return NULL;
}

/* The vDSO has no file. */
static bool is_native_file(const struct sym_image *image)
{
	return sym_image_kind(image) == SYM_IMAGE_ELF && sym_image_path(image)[0] == '/';
}

static bool is_same_file(const struct recorded_mapping *one, const struct recorded_mapping *other)
{
	return !strcmp(one->name, other->name) && other->has_room &&
	       one->has_build_id == other->has_build_id && one->inode == other->inode &&
	       one->device_major == other->device_major && one->device_minor == other->device_minor;
}

/*
 * Also data mappings: perf takes a mapping with another build-id for another file, and looks for
 * unwind tables from the lowest mapping of a file on.
 */
static void fix_with_data(struct process_fixup *process_fixup, struct recorded_mapping *mapping,
			  uint32_t standin)
{
	struct recorded_mapping *data = process_fixup->mappings + process_fixup->count;
	uint64_t end = process_fixup->plan->symfiles[standin].native_bytes;

	/* The assemblies of a single-file application lie behind its code. */
	if (mapping->offset >= end)
		return;
	process_fixup_fix(process_fixup, mapping, RECORDED_BUILD_ID, standin);
	for (size_t i = 0; i < process_fixup->data_count; i++)
		if (data[i].offset < end && is_same_file(mapping, &data[i]))
			process_fixup_fix(process_fixup, &data[i], RECORDED_BUILD_ID, standin);
}

/* In /usr/lib/debug or beside the image, but not in directories of --debug-dir. */
static bool perf_has_symbols(const struct fixup_plan *plan, struct sym_image *image)
{
	const char *path = sym_image_symbol_file(image);
	const struct text_list *told = &plan->options->debug_dirs;

	for (size_t i = 0; path && i < told->count; i++) {
		size_t length = strlen(told->items[i]);

		while (length && told->items[i][length - 1] == '/')
			length--;
		if (!strncmp(path, told->items[i], length) && path[length] == '/')
			return false;
	}
	return path != NULL;
}

/* Whether the path of the image leads perf to another file, or to none. */
static bool is_lost(const struct process_fixup *process_fixup, struct sym_image *image)
{
	struct sym_identity wanted = { .size = sizeof(wanted) };
	struct sym_error *error;
	int fd AUTO_CLOSE = -1;

	if (!process_fixup->process->lives)
		return false;
	error = sym_image_identity(image, &wanted);
	sym_error_destroy(error);
	if (!error)
		fd = open_by_path(process_fixup, image);
	return !error && (fd < 0 || !is_alike(fd, &wanted));
}

/* Only a symbol file could name it, and with perf maps there are none. */
static void complain_of_lost(struct process_fixup *process_fixup, struct sym_image *image,
			     const struct recorded_mapping *mapping)
{
	if (process_fixup_is_hit(process_fixup, mapping) && is_lost(process_fixup, image))
		process_fixup_complain(process_fixup, mapping->name,
				       message_format("perf does not find this file by its path; "
						      "--via=build-id names its functions"));
}

void name_native(struct process_fixup *process_fixup, struct sym_image *image, const char *key,
		 struct recorded_mapping *mapping)
{
	struct fixup_plan *plan = process_fixup->plan;
	uint32_t standin = NO_SYMFILE;
	struct sym_error *failure = NULL;

	if (plan->options->native == NATIVE_NONE || !is_native_file(image))
		return;
	if (plan->anonymous) {
		complain_of_lost(process_fixup, image, mapping);
		return;
	}
	if (!mapping->has_room)
		return;
	if (!fixup_known_file(plan, key, &standin)) {
		/* A file without symbols at an earlier perf-fix may have them now. */
		if (is_fixed_already(mapping) || !perf_has_symbols(plan, image) ||
		    is_lost(process_fixup, image))
			failure = make_from_image(process_fixup, image, mapping, &standin);
		/* Another process may still reach a file that this one does not. */
		if (!failure)
			fixup_remember_file(plan, key, standin);
	}
	if (failure)
		process_fixup_fail(process_fixup, mapping->name, failure);
	if (standin != NO_SYMFILE)
		fix_with_data(process_fixup, mapping, standin);
}
