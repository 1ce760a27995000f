/* SPDX-License-Identifier: MIT */
#include "mapgen/receipt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/debug_places.h"
#include "mapgen/target.h"

static const char directory_name[] = "receipts";

DEFINE_GUARD(hash_state, XXH3_state_t *, XXH3_freeState)

static void add(XXH3_state_t *state, const void *bytes, size_t count)
{
	XXH3_128bits_update(state, bytes, count);
}

static void add_text(XXH3_state_t *state, const char *text)
{
	text = text ? text : "";
	add(state, text, strlen(text) + 1);
}

static void add_number(XXH3_state_t *state, uint64_t number)
{
	add(state, &number, sizeof(number));
}

static void add_options(XXH3_state_t *state, const struct options *options)
{
	add_text(state, sym_version());
	add_number(state, (uint64_t)options->mode);
	add_number(state, (uint64_t)options->names);
	add_number(state, (uint64_t)options->tiers);
	add_number(state, (uint64_t)options->jit);
}

static void add_process(XXH3_state_t *state, const struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	add_number(state, (uint64_t)process->pid);
	add_number(state, process->start_time_ticks);
	add_number(state, process->uid);
}

/* Code and images: what the heap does says nothing about names. */
static void add_mappings(XXH3_state_t *state, const struct sym_snapshot *snapshot)
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

/* A file that was changed in place has the same mapping and another content. */
static void add_images(XXH3_state_t *state, const struct sym_snapshot *snapshot)
{
	size_t count = sym_snapshot_image_count(snapshot);

	for (size_t i = 0; i < count; i++) {
		const struct sym_image *image = sym_snapshot_image_at(snapshot, i);

		if (!target_is_assembly(image))
			continue;
		add_text(state, sym_image_content_key(image));
		add_text(state, sym_image_trouble(image));
	}
}

/* Native functions are named by debug files, which somebody may install at any time. */
static bool add_debug_files(XXH3_state_t *state, struct sym_snapshot *snapshot)
{
	char path[64];
	int root_fd AUTO_CLOSE = -1;
	struct buf text;
	bool whole;

	snprintf(path, sizeof(path), "/proc/%d/root", sym_snapshot_process(snapshot)->pid);
	root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return false;
	buf_init(&text, 1 << 24);
	debug_places_append(snapshot, root_fd, &text);
	whole = buf_string(&text);
	if (whole)
		add(state, text.data, text.size_bytes);
	buf_deinit(&text);
	return whole;
}

static bool add_jitted(XXH3_state_t *state, struct sym_snapshot *snapshot)
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

static void add_status(XXH3_state_t *state, const struct stat *status)
{
	add_number(state, status->st_dev);
	add_number(state, status->st_ino);
	add_number(state, (uint64_t)status->st_size);
	add_number(state, status->st_uid);
	add_number(state, status->st_mode);
	add(state, &status->st_mtim, sizeof(status->st_mtim));
	add(state, &status->st_ctim, sizeof(status->st_ctim));
}

static bool status_of(const struct map_location *location, struct stat *ret)
{
	return !fstatat(location->directory_fd, location->name, ret, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(ret->st_mode);
}

/*
 * A map that is read. The one that is written is none: it is sealed as it was left, and
 * a first merge has made it.
 */
static void add_source_map(XXH3_state_t *state, const char *path,
			   const struct map_location *location)
{
	struct stat source, target;
	bool is_another = path && !stat(path, &source) &&
			  (!status_of(location, &target) || !path_is_same_file(&source, &target));

	add_text(state, is_another ? path : NULL);
	if (is_another)
		add_status(state, &source);
}

static void add_source_maps(XXH3_state_t *state, const struct sym_snapshot *snapshot,
			    const struct sym_perf_map_info *info,
			    const struct map_location *location)
{
	char written[64];

	add_source_map(state, info->path, location);
	add_source_map(state, info->host_path, location);
	add_source_map(state, info->target_path, location);
	add_text(state, info->refused_path);
	add_number(state, (uint64_t)info->writer_fd);
	if (info->writer_fd < 0)
		return;
	/* Ours may have taken its name. */
	snprintf(written, sizeof(written), "/proc/%d/fd/%d", sym_snapshot_process(snapshot)->pid,
		 info->writer_fd);
	add_source_map(state, written, location);
}

struct receipt receipt_of_inputs(struct sym_snapshot *snapshot, const struct options *options,
				 const struct sym_perf_map_info *info,
				 const struct map_location *location)
{
	XXH3_state_t *state GUARDED(hash_state) = XXH3_createState();
	struct receipt receipt = { 0 };
	XXH128_hash_t digest;

	/* Directories of maps are not looked through here; a recording is nobody's hurry. */
	if (!state || options->map_dirs.count || options->root)
		return receipt;
	XXH3_128bits_reset(state);
	add_options(state, options);
	add_process(state, snapshot);
	add_mappings(state, snapshot);
	add_images(state, snapshot);
	add_source_maps(state, snapshot, info, location);
	if (!add_debug_files(state, snapshot) || !add_jitted(state, snapshot))
		return receipt;
	digest = XXH3_128bits_digest(state);
	return (struct receipt){ true, digest.low64, digest.high64 };
}

/* The digest over the inputs and the file as it is now; false when there is none. */
static bool seal(const struct receipt *inputs, const struct map_location *location,
		 char room[RECEIPT_DIGITS + 1])
{
	XXH3_state_t *state GUARDED(hash_state) = XXH3_createState();
	XXH128_hash_t digest;
	struct stat status;

	if (!state || !inputs->usable || !status_of(location, &status))
		return false;
	XXH3_128bits_reset(state);
	add_number(state, inputs->low);
	add_number(state, inputs->high);
	add_text(state, location->path);
	add_status(state, &status);
	digest = XXH3_128bits_digest(state);
	snprintf(room, RECEIPT_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, (uint64_t)digest.high64,
		 (uint64_t)digest.low64);
	return true;
}

static int open_directory(int cache_fd)
{
	if (mkdirat(cache_fd, directory_name, 0700) && errno != EEXIST)
		return -1;
	return openat(cache_fd, directory_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool receipt_holds(const struct receipt *inputs, int cache_fd, int32_t pid,
		   const struct map_location *location, struct merge_counts *ret)
{
	char now[RECEIPT_DIGITS + 1], then[RECEIPT_DIGITS + 1], name[16], text[192] = "";
	int directory_fd AUTO_CLOSE = open_directory(cache_fd);
	int fd AUTO_CLOSE = -1;
	struct merge_counts counts = { 0 };

	if (directory_fd < 0 || !seal(inputs, location, now))
		return false;
	snprintf(name, sizeof(name), "%d", pid);
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%32s %zu %zu %zu %zu %zu %zu %zu", then, &counts.images,
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

void receipt_leave(const struct receipt *inputs, int cache_fd, int32_t pid,
		   const struct map_location *location, const struct merge_counts *counts)
{
	int directory_fd AUTO_CLOSE = open_directory(cache_fd);
	char sealed[RECEIPT_DIGITS + 1], name[16], text[192];
	struct path_output output;
	int length;

	if (directory_fd < 0 || !seal(inputs, location, sealed))
		return;
	forget_the_gone(directory_fd);
	snprintf(name, sizeof(name), "%d", pid);
	length = snprintf(text, sizeof(text), "%s %zu %zu %zu %zu %zu %zu %zu\n", sealed,
			  counts->images, counts->precompiled, counts->runtime, counts->jitted,
			  counts->unnamed, counts->linkage, counts->ahead);
	if (!path_output_open_at(&output, directory_fd, name))
		(void)!path_output_finish(&output, text, (size_t)length, 0600);
}
