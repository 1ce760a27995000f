/* SPDX-License-Identifier: MIT */
/*
 * Sources of a version, as seen in runtimes 2.1.8, 3.1.2, 3.1.3, 8.0.33, 9.0.22 and 10.0.12:
 * - The directory of a shared framework has the version as its name.
 * - Every runtime contains "@(#)Version 10.0.1226.42308 @Commit: ...". From 5.0 on that is
 *   MAJOR.MINOR.(PATCH * 100 + YEAR).BUILD. 3.x has 4.700.YEAR.BUILD and 2.x has 4.6.BUILD, without
 *   the patch.
 * - NAME.deps.json of an executable NAME, beside its own runtime, names the runtime pack with its
 *   version.
 */
#include "libsym/clr/runtime_info.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/format/elf/elf_brief.h"
#include "libsym/limits.h"
#include "libsym/process/memory_image.h"

static const char coreclr_name[] = "/libcoreclr.so";
static const char framework_directory[] = "/shared/Microsoft.NETCore.App/";

/* At most this much of a string table or of data is searched. The 10.0 host has 8 KB and 6 MB. */
static const uint64_t most_searched_bytes = (uint64_t)64 << 20;
enum {
	CHUNK_BYTES = 1 << 14
};

/* State of examining one process. */
struct look {
	const struct process *process;
	const struct address_space *space;
	struct runtime_info *info;
	bool no_memory;
};

static size_t version_length(const char *text, size_t size_bytes)
{
	size_t length = 0;

	if (!size_bytes || !isdigit((unsigned char)*text))
		return 0;
	while (length < size_bytes &&
	       (isalnum((unsigned char)text[length]) || text[length] == '.' || text[length] == '-'))
		length++;
	return length;
}

/* Accepts a version that is exactly [text, text + size_bytes). */
static bool take_version(struct runtime_info *info, const char *text, size_t size_bytes)
{
	if (!size_bytes || size_bytes >= sizeof(info->version) ||
	    version_length(text, size_bytes) != size_bytes)
		return false;
	memcpy(info->version, text, size_bytes);
	info->version[size_bytes] = '\0';
	return true;
}

/* ".../shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so" */
static bool version_of_directory(struct runtime_info *info, const char *path)
{
	size_t length = strlen(path) - (sizeof(coreclr_name) - 1);
	const char *end = path + length, *start = end;
	const size_t directory_bytes = sizeof(framework_directory) - 1;

	while (start > path && start[-1] != '/')
		start--;
	if ((size_t)(start - path) < directory_bytes ||
	    memcmp(start - directory_bytes, framework_directory, directory_bytes))
		return false;
	return take_version(info, start, (size_t)(end - start));
}

/*
 * Searches a range of a file for `wanted`.
 * On success `room` receives at least `wanted_bytes` and at most `room_bytes` from the match on.
 * Returns how many.
 */
static size_t runtime_info_search_file(int fd, struct elf_range range, const char *wanted,
				       size_t wanted_bytes, char *room, size_t room_bytes)
{
	char chunk[CHUNK_BYTES];
	uint64_t done = 0;

	if (range.size_bytes > most_searched_bytes)
		range.size_bytes = most_searched_bytes;
	while (done < range.size_bytes) {
		uint64_t left = range.size_bytes - done;
		size_t size_bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		const char *found;

		if (path_read_at(fd, chunk, size_bytes, range.offset + done))
			return 0;
		found = memmem(chunk, size_bytes, wanted, wanted_bytes);
		if (found) {
			size_t rest = size_bytes - (size_t)(found - chunk);

			/*
			 * The following bytes may be in the next chunk: read once more from the
			 * match on.
			 */
			if (rest >= room_bytes || rest == left || found == chunk) {
				rest = rest < room_bytes ? rest : room_bytes;
				memcpy(room, found, rest);
				return rest;
			}
			done += (uint64_t)(found - chunk);
		} else if (size_bytes == left || size_bytes < wanted_bytes) {
			return 0;
		} else {
			done += size_bytes - (wanted_bytes - 1);
		}
	}
	return 0;
}

static bool read_brief(int fd, struct elf_brief *ret)
{
	char head[ELF_BRIEF_HEAD_BYTES];
	ssize_t size_bytes = pread(fd, head, sizeof(head), 0);

	return size_bytes > 0 && elf_brief_parse(head, (size_t)size_bytes, ret);
}

/* Range of the dynamic string table. */
static bool read_dynamic_strings(int fd, const struct elf_brief *brief, struct elf_range *ret)
{
	char dynamic[4096];
	size_t size_bytes = brief->dynamic.size_bytes < sizeof(dynamic)
				    ? (size_t)brief->dynamic.size_bytes
				    : sizeof(dynamic);

	return size_bytes && !path_read_at(fd, dynamic, size_bytes, brief->dynamic.offset) &&
	       elf_brief_strings(brief, dynamic, size_bytes, ret);
}

/* "@(#)Version MAJOR.MINOR.(PATCH * 100 + YEAR).BUILD " */
static bool version_of_ident(struct runtime_info *info, const char *text, size_t size_bytes)
{
	unsigned int major, minor, patch_and_year;
	char copy[64];

	if (size_bytes >= sizeof(copy))
		size_bytes = sizeof(copy) - 1;
	memcpy(copy, text, size_bytes);
	copy[size_bytes] = '\0';
	if (sscanf(copy, "@(#)Version %3u.%3u.%7u.", &major, &minor, &patch_and_year) != 3)
		return false;
	if (major < 5)
		return false;
	snprintf(info->version, sizeof(info->version), "%u.%u.%u", major, minor,
		 patch_and_year / 100);
	return true;
}

static bool version_of_file(struct runtime_info *info, int fd, const struct elf_brief *brief)
{
	static const char mark[] = "@(#)Version ";
	char text[64];
	size_t i;

	for (i = 0; i < brief->load_count; i++) {
		size_t size_bytes;

		if (!brief->loads[i].writable)
			continue;
		size_bytes = runtime_info_search_file(fd, brief->loads[i].file, mark,
						      sizeof(mark) - 1, text, sizeof(text));
		if (size_bytes && version_of_ident(info, text, size_bytes))
			return true;
	}
	return false;
}

/* The runtime pack of a deps.json: "Microsoft.NETCore.App.Runtime.linux-x64/3.1.3" or
 * "runtime.linux-x64.Microsoft.NETCore.App/2.1.8". */
static bool version_of_dependencies(struct runtime_info *info, const char *text, size_t size_bytes)
{
	static const char mark[] = "Microsoft.NETCore.App";
	const char *end = text + size_bytes, *found = text;

	while ((found = memmem(found, (size_t)(end - found), mark, sizeof(mark) - 1))) {
		found += sizeof(mark) - 1;
		while (found < end && (isalnum((unsigned char)*found) || strchr(".-_", *found)) &&
		       *found)
			found++;
		if (found < end && *found == '/' &&
		    take_version(info, found + 1,
				 version_length(found + 1, (size_t)(end - found - 1))))
			return true;
	}
	return false;
}

/*
 * Opening failed. Only a lack of memory is reported; otherwise there is no runtime, or an unknown
 * version.
 */
static void runtime_info_ignore_error(struct look *look, struct sym_error *error)
{
	look->no_memory |= sym_error_is_no_memory(error);
	sym_error_destroy(error);
}

/* Length of the path's directory, with the slash. */
static int directory_bytes(const char *path)
{
	return (int)(path_file_name(path) - path);
}

/*
 * Up to 3.x the host of a single-file application unpacks everything, the runtime included, to
 * .../NAME-OF-THE-EXECUTABLE/ID/ (src/corehost/cli/apphost/bundle/extractor.cpp of 3.1).
 */
static bool is_unpacked(const struct look *look, const char *path)
{
	const char *executable = look->process->executable;
	const char *name = path_file_name(executable);
	size_t name_bytes = strlen(name);
	const char *id = path + directory_bytes(path) - 1;

	if (!name_bytes || id <= path || !strncmp(executable, path, (size_t)directory_bytes(path)))
		return false;
	while (id > path && id[-1] != '/')
		id--;
	/* "/NAME/" before the id. */
	return (size_t)(id - path) >= name_bytes + 2 && id[-1] == '/' &&
	       !memcmp(id - 1 - name_bytes, name, name_bytes) &&
	       id[-(ptrdiff_t)name_bytes - 2] == '/';
}

/* NAME.deps.json of an executable NAME is beside the runtime of a self-contained application. */
static void version_of_application(struct look *look, const char *coreclr_path)
{
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;
	struct buf text;
	int result;

	if (asprintf(&path, "%.*s%s.deps.json", directory_bytes(coreclr_path), coreclr_path,
		     path_file_name(look->process->executable)) < 0) {
		path = NULL;
		look->no_memory = true;
		return;
	}
	error = process_open_path(look->process, path, 0, &fd);
	if (error) {
		runtime_info_ignore_error(look, error);
		return;
	}
	buf_init(&text, LIMIT_PROC_FILE_BYTES);
	result = path_read_all(fd, &text);
	if (!result)
		version_of_dependencies(look->info, text.data, text.size_bytes);
	look->no_memory |= result == -ENOMEM;
	buf_deinit(&text);
}

static int open_mapped(struct look *look, const struct address_space_file *file)
{
	uint64_t charged_bytes = 0;
	struct sym_error *error;
	struct stat status;
	int fd = -1;

	error = process_open_mapped(look->process, &look->space->mappings[file->mapping_indexes[0]],
				    &fd, &status);
	if (error) {
		runtime_info_ignore_error(look, error);
		error = memory_image_collect(look->process, look->space->mappings,
					     file->mapping_indexes, file->mapping_count, file->path,
					     &fd, &charged_bytes);
		/* The file is closed before anything else is read. */
		budget_release(process_account(look->process), charged_bytes);
	}
	if (error)
		runtime_info_ignore_error(look, error);
	return fd;
}

static void describe_coreclr(struct look *look, const struct address_space_file *file)
{
	struct runtime_info *info = look->info;
	struct elf_brief brief;
	int fd AUTO_CLOSE = -1;

	info->mapping_index = file->mapping_indexes[0];
	if (version_of_directory(info, file->path)) {
		info->shape = "framework-dependent";
		return;
	}
	info->shape = is_unpacked(look, file->path) ? "single-file" : "self-contained";
	fd = open_mapped(look, file);
	/* If the runtime was replaced, so were the files beside it. */
	if (fd >= 0 && read_brief(fd, &brief) && !version_of_file(info, fd, &brief))
		version_of_application(look, file->path);
}

/* A runtime inside the executable is recognised by its exports for debuggers. */
static void describe_executable(struct look *look, const struct address_space_file *file)
{
	static const char table[] = "\0g_dacTable";
	static const char header[] = "\0DotNetRuntimeDebugHeader";
	int fd AUTO_CLOSE = open_mapped(look, file);
	char room[sizeof(header)];
	struct elf_range strings;
	struct elf_brief brief;

	if (fd < 0 || !read_brief(fd, &brief) || !read_dynamic_strings(fd, &brief, &strings))
		return;
	if (runtime_info_search_file(fd, strings, table, sizeof(table), room, sizeof(table)))
		look->info->shape = "single-file";
	else if (runtime_info_search_file(fd, strings, header, sizeof(header), room,
					  sizeof(header)))
		look->info->shape = "nativeaot";
	else
		return;
	look->info->mapping_index = file->mapping_indexes[0];
	version_of_file(look->info, fd, &brief);
}

/* The runtime's library, or the executable when there is none; NULL for a process without files. */
static const struct address_space_file *choose_file(const struct look *look, bool *is_coreclr_ret)
{
	const char *executable = look->process->executable;
	const struct address_space_file *chosen = NULL;
	size_t i;

	for (i = 0; i < look->space->file_count; i++) {
		const struct address_space_file *file = &look->space->files[i];

		/* A debugger maps such files too, but not executable. */
		if (!file->executable || file->memory)
			continue;
		*is_coreclr_ret = path_ends_with(file->path, coreclr_name);
		if (*is_coreclr_ret)
			return file;
		if (!chosen && (!*executable || !strcmp(file->path, executable)))
			chosen = file;
	}
	*is_coreclr_ret = false;
	return chosen;
}

struct sym_error *runtime_info_read(const struct process *process,
				    const struct address_space *space, struct runtime_info *ret)
{
	struct runtime_info info = { .mapping_index = ADDRESS_SPACE_NONE };
	struct look look = { .process = process, .space = space, .info = &info };
	const struct address_space_file *file;
	bool is_coreclr;

	file = choose_file(&look, &is_coreclr);
	if (file && is_coreclr)
		describe_coreclr(&look, file);
	else if (file)
		describe_executable(&look, file);
	if (look.no_memory)
		return &sym_error_no_memory;
	*ret = info;
	return NULL;
}

int runtime_info_major(const struct runtime_info *info)
{
	return info->shape ? (int)strtol(info->version, NULL, 10) : 0;
}
