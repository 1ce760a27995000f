/* SPDX-License-Identifier: MIT */
/*
 * The stamp is one line in the cache: a digest of all inputs, and the counts of that merge. The
 * inputs are read without opening images: mappings of /proc/PID/maps with the times of their
 * files, the jitted code that the runtime lists, debug files, options, and the map itself.
 * merge_stamp_holds() compares; merge_stamp_leave() writes it after a complete merge.
 */
#include "mapgen/perfmap/merge_stamp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfmap/debug_paths.h"

static const char directory_name[] = "receipts";

static void merge_stamp_add(SHA2_CTX *state, const void *bytes, size_t count)
{
	SHA512Update(state, bytes, count);
}

static void add_text(SHA2_CTX *state, const char *text)
{
	text = text ? text : "";
	merge_stamp_add(state, text, strlen(text) + 1);
}

static void add_number(SHA2_CTX *state, uint64_t number)
{
	merge_stamp_add(state, &number, sizeof(number));
}

static void add_options(SHA2_CTX *state, const struct options *options)
{
	add_text(state, sym_version());
	add_number(state, (uint64_t)options->mode);
	add_number(state, (uint64_t)options->names);
	add_number(state, (uint64_t)options->tiers);
	add_number(state, (uint64_t)options->jit);
}

static void add_process(SHA2_CTX *state, const struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	add_number(state, (uint64_t)process->pid);
	add_number(state, process->start_time_ticks);
	add_number(state, process->uid);
}

/* Code and images only: the heap does not change names. */
static void add_mappings(SHA2_CTX *state, const struct sym_snapshot *snapshot)
{
	size_t count = sym_snapshot_mapping_count(snapshot);

	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (mapping->image_index == UINT32_MAX && !(mapping->protection & SYM_EXECUTE))
			continue;
		add_number(state, mapping->start_address);
		add_number(state, mapping->end_address);
		add_number(state, mapping->offset);
		add_number(state, mapping->inode);
		add_number(state, (uint64_t)mapping->device_major << 32 | mapping->device_minor);
		add_number(state, mapping->protection);
		add_number(state, mapping->deleted);
		add_text(state, mapping->path);
	}
}

static void add_status(SHA2_CTX *state, const struct stat *status)
{
	add_number(state, status->st_dev);
	add_number(state, status->st_ino);
	add_number(state, (uint64_t)status->st_size);
	add_number(state, status->st_uid);
	add_number(state, status->st_mode);
	merge_stamp_add(state, &status->st_mtim, sizeof(status->st_mtim));
	merge_stamp_add(state, &status->st_ctim, sizeof(status->st_ctim));
}

/* Root of the paths of the process, and the rights to use them. */
struct process_root {
	int fd;
	struct rights rights;
};

/* A file that was changed in place has the same mapping but other times, which are cheaper than its
 * content. For a file that was deleted only the mapping counts. */
static void add_image(SHA2_CTX *state, const struct process_root *root,
		      const struct sym_mapping *mapping, const struct sym_image *image)
{
	struct stat status;

	if (!mapping->deleted &&
	    !foreign_file_examine(root->fd, mapping->path, 0, &root->rights, &status) &&
	    status.st_ino == mapping->inode)
		add_status(state, &status);
	else
		add_text(state, sym_image_content_key(image));
	add_text(state, sym_image_problem(image));
}

static void add_images(SHA2_CTX *state, const struct sym_snapshot *snapshot,
		       const struct process_root *root)
{
	size_t count = sym_snapshot_mapping_count(snapshot);
	uint32_t before = UINT32_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);
		const struct sym_image *image;

		if (mapping->image_index == UINT32_MAX || mapping->image_index == before)
			continue;
		before = mapping->image_index;
		image = sym_snapshot_image_at(snapshot, before);
		if (target_is_assembly(image))
			add_image(state, root, mapping, image);
	}
}

/* Debug files name native functions and may be installed at any time. */
static bool add_debug_files(SHA2_CTX *state, struct sym_snapshot *snapshot,
			    const struct process_root *root)
{
	struct buf text;
	bool whole;

	buf_init(&text, 1 << 24);
	debug_paths_append(snapshot, root->fd, &root->rights, &text);
	whole = buf_string(&text);
	if (whole)
		merge_stamp_add(state, text.data, text.size_bytes);
	buf_deinit(&text);
	return whole;
}

static bool add_jitted(SHA2_CTX *state, struct sym_snapshot *snapshot)
{
	struct sym_symbols *symbols GUARDED(symbols) = NULL;
	struct sym_error *error = sym_snapshot_symbols(snapshot, SYM_SYMBOLS_RUNTIME, &symbols);

	if (error) {
		sym_error_destroy(error);
		return false;
	}
	for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		add_number(state, symbol->start);
		add_number(state, symbol->size_bytes);
		add_text(state, symbol->name);
		add_text(state, symbol->tier);
	}
	return true;
}

static bool status_of(const struct map_location *location, struct stat *ret)
{
	return !fstatat(location->directory_fd, location->name, ret, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(ret->st_mode);
}

/*
 * A map that is read. The map that is written has the stamp instead, once a first merge has made
 * it.
 */
static void add_source_map(SHA2_CTX *state, const char *path, unsigned int flags,
			   const struct process_root *root, const struct map_location *location)
{
	struct stat source, target;
	bool is_another = path && !foreign_file_examine(-1, path, flags, &root->rights, &source) &&
			  (!status_of(location, &target) || !path_is_same_file(&source, &target));

	add_text(state, is_another ? path : NULL);
	if (is_another)
		add_status(state, &source);
}

static void add_source_maps(SHA2_CTX *state, const struct sym_snapshot *snapshot,
			    const struct sym_perf_map_info *info, const struct process_root *root,
			    const struct map_location *location)
{
	char written[64];

	add_source_map(state, info->path, 0, root, location);
	add_source_map(state, info->host_path, 0, root, location);
	add_source_map(state, info->target_path, 0, root, location);
	add_text(state, info->rejected_path);
	add_number(state, (uint64_t)info->writer_fd);
	if (info->writer_fd < 0)
		return;
	/* Our map may have replaced it. */
	snprintf(written, sizeof(written), "/proc/%d/fd/%d", sym_snapshot_process(snapshot)->pid,
		 info->writer_fd);
	add_source_map(state, written, FOREIGN_KERNEL_LINK, root, location);
}

static int open_root(const struct sym_snapshot *snapshot)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", sym_snapshot_process(snapshot)->pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct merge_stamp merge_stamp_of_inputs(struct sym_snapshot *snapshot,
					 const struct options *options,
					 const struct sym_perf_map_info *info,
					 const struct map_location *location)
{
	struct merge_stamp merge_stamp = { 0 };
	int root_fd AUTO_CLOSE = -1;
	struct process_root root;
	SHA2_CTX state;

	/* The directories of --maps are not read here, and a recording does not need speed. */
	if (options->relmap_dirs.count || options->root)
		return merge_stamp;
	root.fd = root_fd = open_root(snapshot);
	if (root_fd < 0 || !target_rights(snapshot, options, &root.rights))
		return merge_stamp;
	SHA512Init(&state);
	add_options(&state, options);
	add_process(&state, snapshot);
	add_mappings(&state, snapshot);
	add_images(&state, snapshot, &root);
	add_source_maps(&state, snapshot, info, &root, location);
	if (!add_debug_files(&state, snapshot, &root) || !add_jitted(&state, snapshot))
		return merge_stamp;
	SHA512Final(merge_stamp.digest, &state);
	merge_stamp.usable = true;
	return merge_stamp;
}

/* The digest over the inputs and the present file; false when there is none. */
static bool merge_stamp_seal(const struct merge_stamp *inputs, const struct map_location *location,
			     char room[RECEIPT_DIGITS + 1])
{
	uint8_t digest[SHA512_DIGEST_LENGTH];
	struct stat status;
	SHA2_CTX state;

	if (!inputs->usable || !status_of(location, &status))
		return false;
	SHA512Init(&state);
	merge_stamp_add(&state, inputs->digest, sizeof(inputs->digest));
	add_text(&state, location->path);
	add_status(&state, &status);
	SHA512Final(digest, &state);
	hex_write_bytes(room, digest, RECEIPT_DIGITS / 2);
	return true;
}

static int open_directory(int cache_fd)
{
	if (mkdirat(cache_fd, directory_name, 0700) && errno != EEXIST)
		return -1;
	return openat(cache_fd, directory_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool merge_stamp_holds(const struct merge_stamp *inputs, int cache_fd, int32_t pid,
		       const struct map_location *location, struct merge_counts *ret)
{
	char now[RECEIPT_DIGITS + 1], then[RECEIPT_DIGITS + 1], name[16], text[256] = "";
	int directory_fd AUTO_CLOSE = open_directory(cache_fd);
	int fd AUTO_CLOSE = -1;
	struct merge_counts counts = { 0 };

	if (directory_fd < 0 || !merge_stamp_seal(inputs, location, now))
		return false;
	snprintf(name, sizeof(name), "%d", pid);
	fd = foreign_file_open(directory_fd, name, FOREIGN_NO_LINKS, NULL, NULL);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%64s %zu %zu %zu %zu %zu %zu %zu", then, &counts.images,
		   &counts.precompiled, &counts.runtime, &counts.jitted, &counts.unnamed,
		   &counts.linkage, &counts.ahead) != 8 ||
	    strcmp(now, then) != 0)
		return false;
	*ret = counts;
	return true;
}

static void forget_the_gone(int directory_fd)
{
	int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
	DIR *entries GUARDED(dir) = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int32_t pid;

	while (entries && (entry = readdir(entries)))
		if (options_read_pid(entry->d_name, &pid) && kill(pid, 0) && errno == ESRCH)
			unlinkat(directory_fd, entry->d_name, 0);
	if (fd >= 0 && !entries)
		close(fd);
}

void merge_stamp_leave(const struct merge_stamp *inputs, int cache_fd, int32_t pid,
		       const struct map_location *location, const struct merge_counts *counts)
{
	int directory_fd AUTO_CLOSE = open_directory(cache_fd);
	char sealed[RECEIPT_DIGITS + 1], name[16], text[256];
	struct path_output output;
	int length;

	if (directory_fd < 0 || !merge_stamp_seal(inputs, location, sealed))
		return;
	forget_the_gone(directory_fd);
	snprintf(name, sizeof(name), "%d", pid);
	length = snprintf(text, sizeof(text), "%s %zu %zu %zu %zu %zu %zu %zu\n", sealed,
			  counts->images, counts->precompiled, counts->runtime, counts->jitted,
			  counts->unnamed, counts->linkage, counts->ahead);
	if (!path_output_open_at(&output, directory_fd, name))
		(void)!path_output_finish(&output, text, (size_t)length, 0600);
}
