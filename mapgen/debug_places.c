/* SPDX-License-Identifier: MIT */
#include "mapgen/debug_places.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"

static const char debug_directory[] = "/usr/lib/debug";

static void append_file(int root_fd, const char *path, struct buf *text)
{
	int fd AUTO_CLOSE = path_open_in_root(root_fd, path, PATH_REGULAR);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return;
	buf_printf(text, "%s %ju:%ju %jd %jd.%09ld\n", path, (uintmax_t)status.st_dev,
		   (uintmax_t)status.st_ino, (intmax_t)status.st_size,
		   (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

/* On this machine and in the process's root. */
static void append_place(int root_fd, struct buf *path, struct buf *text)
{
	if (buf_string(path)) {
		append_file(-1, path->data, text);
		append_file(root_fd, path->data, text);
	}
	buf_clear(path);
}

/* The name in .gnu_debuglink of the file at `image_path`; false when there is none. */
static bool read_link(int root_fd, const char *image_path, char name[NAME_MAX + 1])
{
	int fd AUTO_CLOSE = path_open_in_root(root_fd, image_path, PATH_REGULAR);
	uint64_t offset, size_bytes;
	struct sym_error *error;

	if (fd < 0)
		return false;
	error = sym_elf_section_find(fd, UINT64_MAX, ".gnu_debuglink", &offset, &size_bytes);
	if (error) {
		sym_error_destroy(error);
		return false;
	}
	memset(name, 0, NAME_MAX + 1);
	return size_bytes &&
	       !path_read_at(fd, name, size_bytes < NAME_MAX ? size_bytes : NAME_MAX, offset);
}

static void append_links(int root_fd, const char *image_path, struct buf *path, struct buf *text)
{
	int directory_bytes = (int)(path_file_name(image_path) - image_path);
	char name[NAME_MAX + 1];

	if (!read_link(root_fd, image_path, name))
		return;
	buf_printf(path, "%.*s%s", directory_bytes, image_path, name);
	append_place(root_fd, path, text);
	buf_printf(path, "%.*s.debug/%s", directory_bytes, image_path, name);
	append_place(root_fd, path, text);
	buf_printf(path, "%s%.*s%s", debug_directory, directory_bytes, image_path, name);
	append_place(root_fd, path, text);
}

static void append_image(struct sym_image *image, int root_fd, struct buf *path, struct buf *text)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_error *error = sym_image_identity(image, &identity);
	char digits[2 * sizeof(identity.id) + 1];

	if (error) {
		sym_error_destroy(error);
		return;
	}
	if (identity.contents & SYM_CONTENT_SYMBOL_TABLE)
		return;
	if (identity.id_size_bytes > 1) {
		hex_write_bytes(digits, identity.id, identity.id_size_bytes);
		buf_printf(path, "%s/.build-id/%.2s/%s.debug", debug_directory, digits, digits + 2);
		append_place(root_fd, path, text);
	}
	append_links(root_fd, sym_image_path(image), path, text);
}

void debug_places_append(struct sym_snapshot *snapshot, int root_fd, struct buf *text)
{
	size_t count = sym_snapshot_image_count(snapshot);
	struct buf path;

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);

		if (sym_image_kind(image) == SYM_IMAGE_ELF)
			append_image(image, root_fd, &path, text);
	}
	buf_deinit(&path);
}
