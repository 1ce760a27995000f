/* SPDX-License-Identifier: MIT */
#include "mapgen/symfile/symfile_viewers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/linux/maps.h"
#include "libsym/libsym.h"

enum {
	LONGEST_MAPS_BYTES = 64 << 20
};

static const struct mapped_identity *symfile_viewers_find_file(const struct mapped_identity *files,
							       size_t count,
							       const struct maps_line *mapped)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(files[i].path) == mapped->path_bytes &&
		    !memcmp(files[i].path, mapped->path, mapped->path_bytes))
			return &files[i];
	return NULL;
}

static bool read_maps(int32_t pid, struct buf *buf)
{
	char path[64];
	int fd AUTO_CLOSE = -1;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_clear(buf);
	return fd >= 0 && !path_read_all(fd, buf) && buf->size_bytes;
}

static bool shares_mounts(int32_t pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat("/proc/self/ns/mnt", &own) || stat(path, &other) ||
	       path_is_same_file(&own, &other);
}

/* False when it maps none of them. A different file with the path matters more than the same one.
 */
static bool look_at(int32_t pid, const struct mapped_identity *files, size_t count, struct buf *buf,
		    struct symfile_viewer *ret)
{
	struct maps_parser parser;
	struct maps_line mapped;
	bool found = false;

	if (!read_maps(pid, buf))
		return false;
	*ret = (struct symfile_viewer){ .pid = pid };
	maps_parser_init(&parser, buf->data, buf->size_bytes);
	while (maps_parser_next(&parser, &mapped)) {
		const struct mapped_identity *file = NULL;

		if (mapped.protection & SYM_EXECUTE)
			file = symfile_viewers_find_file(files, count, &mapped);
		if (!file || (found && ret->other_file))
			continue;
		found = true;
		ret->path = file->path;
		ret->other_file = mapped.inode != file->inode ||
				  mapped.device_major != file->device_major ||
				  mapped.device_minor != file->device_minor;
	}
	if (found)
		ret->other_namespace = !shares_mounts(pid);
	return found;
}

bool symfile_viewers_find(const struct mapped_identity *files, size_t count, int32_t own_pid,
			  struct symfile_viewer **ret, size_t *count_ret)
{
	int32_t *pids AUTO_FREE = NULL;
	size_t pid_count = 0, found = 0;
	struct symfile_viewer *viewers;
	struct sym_error *error = sym_process_ids(NULL, &pids, &pid_count);
	struct buf buf;

	sym_error_destroy(error);
	viewers = calloc(pid_count + 1, sizeof(*viewers));
	if (!viewers)
		return false;
	buf_init(&buf, LONGEST_MAPS_BYTES);
	for (size_t i = 0; i < pid_count; i++)
		if (pids[i] != own_pid && look_at(pids[i], files, count, &buf, &viewers[found]))
			found++;
	buf_deinit(&buf);
	*ret = viewers;
	*count_ret = found;
	return true;
}
