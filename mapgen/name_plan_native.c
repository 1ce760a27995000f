/* SPDX-License-Identifier: MIT */
/*
 * The part of name_plan.c for native images that are stripped, such as libcoreclr.so. perf reads
 * native symbols itself; where there are few it shows a number for each address, so that no two
 * samples of one function come together. Such an image gets a stand-in that is the image itself
 * with the bounds of its functions as symbols.
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
#include "libsym/base/path.h"
#include "mapgen/name_plan_internal.h"
#include "mapgen/standin_native.h"
#include "mapgen/target.h"

enum {
	MOST_NATIVE_BYTES = 256 << 20
};

/* Of the same length and build-id, or none. */
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

static int open_by_path(const struct deciding *deciding, const struct sym_image *image)
{
	return path_open_in_root(deciding->root_fd, sym_image_path(image), PATH_REGULAR);
}

/* What the process has mapped there, whatever became of its name. The kernel permits it to root. */
static int open_as_mapped(const struct deciding *deciding, const struct recorded_mapping *mapping)
{
	char path[64];
	DIR *directory GUARDED(dir) = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/map_files", deciding->process->pid);
	if (deciding->process->lives)
		directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		uint64_t start, end;

		if (sscanf(entry->d_name, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		    start <= mapping->start_address && mapping->start_address < end)
			return openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);
	}
	return -1;
}

/* The file of an image. */
struct native_file_found {
	int fd;       /* negative: it is not there */
	bool is_lost; /* its path leads to it no more, so perf cannot read it */
};

static struct native_file_found open_native(const struct deciding *deciding,
					    struct sym_image *image,
					    const struct recorded_mapping *mapping)
{
	struct sym_identity wanted = { .size = sizeof(wanted) };
	struct sym_error *error = sym_image_identity(image, &wanted);
	struct native_file_found found = { .fd = -1 };

	for (int way = 0; !error && way < 2; way++) {
		found.is_lost = way == 1;
		found.fd = found.is_lost ? open_as_mapped(deciding, mapping)
					 : open_by_path(deciding, image);
		if (found.fd >= 0 && has_identity(found.fd, &wanted, mapping))
			return found;
		if (found.fd >= 0)
			close(found.fd);
		found.fd = -1;
	}
	sym_error_destroy(error);
	return found;
}

/* One that has no size ends where the next begins, as perf takes it. How many have no name. */
static size_t add_symbols(struct standin_elf *elf, const struct sym_symbols *symbols)
{
	size_t count = sym_symbols_count(symbols), unnamed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);
		const struct sym_symbol *next = sym_symbols_at(symbols, i + 1);
		uint64_t size_bytes = symbol->size_bytes;

		if (!size_bytes && next)
			size_bytes = next->start - symbol->start;
		standin_elf_add(elf, symbol->start, size_bytes, symbol->name, NULL);
		unnamed += symbol->kind == SYM_SYMBOL_UNNAMED;
	}
	return unnamed;
}

static char *make_standin(struct deciding *deciding, struct sym_image *image,
			  const struct native_file_found *found, const struct sym_symbols *symbols,
			  uint32_t *index_ret)
{
	const char *label = path_file_name(sym_image_path(image));
	struct planned_standin standin = { .label = (char *)label };
	struct standin_elf elf;
	struct buf file;
	const char *hindrance;
	char *failure = NULL;

	buf_init(&file, MOST_NATIVE_BYTES);
	standin_elf_init(&elf);
	standin.unnamed = add_symbols(&elf, symbols);
	standin.symbols = elf.count;
	hindrance = elf.count ? standin_native_finish(&elf, found->fd, found->is_lost, &file,
						      standin.id, &standin.native_bytes)
			      : NULL;
	/* Another file that cannot serve stays what it is, and perf shows what it knows of it. */
	if (hindrance && found->is_lost)
		failure = message_format("perf cannot read it any more, and there is no stand-in "
					 "for it: %s",
					 hindrance);
	else if (elf.count && !hindrance)
		failure = plan_keep_standin(deciding->plan, &standin, &file, index_ret);
	standin_elf_deinit(&elf);
	buf_deinit(&file);
	return failure;
}

static char *make_from_image(struct deciding *deciding, struct sym_image *image,
			     const struct recorded_mapping *mapping, uint32_t *index_ret)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct native_file_found found = open_native(deciding, image, mapping);
	int fd AUTO_CLOSE = found.fd;
	struct sym_error *error;

	if (fd < 0)
		return deciding->process->lives
			       ? message_format("its file is gone or is another one now, and "
						"/proc/%d/map_files does not lead to it",
						deciding->process->pid)
			       : NULL;
	error = sym_image_symbols(image,
				  SYM_IMAGE_SYMBOLS_UNNAMED | SYM_IMAGE_SYMBOLS_STUBS |
					  SYM_IMAGE_SYMBOLS_LINKAGE_NAMES,
				  &symbols);
	if (!error)
		return make_standin(deciding, image, &found, symbols, index_ret);
	sym_error_destroy(error);
	return NULL;
}

/* The kernel's own page has no file. */
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
 * Also where it shows no code: perf takes what has another build-id for another file, and looks
 * for unwind tables from the lowest mapping of a file on.
 */
static void fix_with_data(struct deciding *deciding, struct recorded_mapping *mapping,
			  uint32_t standin)
{
	struct recorded_mapping *data = deciding->mappings + deciding->count;
	uint64_t end = deciding->plan->standins[standin].native_bytes;

	/* The assemblies of a single-file application lie behind its code. */
	if (mapping->offset >= end)
		return;
	deciding_fix(deciding, mapping, RECORDED_BUILD_ID, standin);
	for (size_t i = 0; i < deciding->data_count; i++)
		if (data[i].offset < end && is_same_file(mapping, &data[i]))
			deciding_fix(deciding, &data[i], RECORDED_BUILD_ID, standin);
}

/* In /usr/lib/debug or beside the image, but not in directories that we were told of. */
static bool perf_has_symbols(const struct name_plan *plan, struct sym_image *image)
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

/* Does the path of the image lead perf to another file, or to none? */
static bool is_lost(const struct deciding *deciding, struct sym_image *image)
{
	struct sym_identity wanted = { .size = sizeof(wanted) };
	struct sym_error *error;
	int fd AUTO_CLOSE = -1;

	if (!deciding->process->lives)
		return false;
	error = sym_image_identity(image, &wanted);
	sym_error_destroy(error);
	if (!error)
		fd = open_by_path(deciding, image);
	return !error && (fd < 0 || !is_alike(fd, &wanted));
}

void name_native(struct deciding *deciding, struct sym_image *image, const char *key,
		 struct recorded_mapping *mapping)
{
	struct name_plan *plan = deciding->plan;
	uint32_t standin = NO_STANDIN;
	char *failure = NULL;

	if (plan->anonymous || plan->options->native == NATIVE_NONE || !is_native_file(image) ||
	    !mapping->has_room)
		return;
	if (!plan_known_file(plan, key, &standin)) {
		/* What had no symbols when it was fixed may have them now. */
		if (is_fixed_already(mapping) || !perf_has_symbols(plan, image) ||
		    is_lost(deciding, image))
			failure = make_from_image(deciding, image, mapping, &standin);
		/* Another process may lead to what this one does not, or not any more. */
		if (!failure)
			plan_remember_file(plan, key, standin);
	}
	if (failure)
		deciding_complain(deciding, mapping->name, failure);
	if (standin != NO_STANDIN)
		fix_with_data(deciding, mapping, standin);
}
