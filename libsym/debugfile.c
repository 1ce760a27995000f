/* SPDX-License-Identifier: MIT */
#include "libsym/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"

static bool has_build_id(const struct image *image, const struct elf_build_id *build_id)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;
	struct elf_build_id own;

	if (image->kind != SYM_IMAGE_ELF)
		return false;
	error = elf_sections_read(image, &sections);
	if (error) {
		sym_error_destroy(error);
		return false;
	}
	own = elf_sections_build_id(&sections);
	return own.size_bytes == build_id->size_bytes &&
	       !memcmp(own.bytes, build_id->bytes, own.size_bytes);
}

static int open_in_tree(const char *tree, const struct elf_build_id *build_id, struct buf *path)
{
	char digits[2 * sizeof(build_id->bytes) + 1];

	hex_write_bytes(digits, build_id->bytes, build_id->size_bytes);
	buf_printf(path, "%s/%.2s/%s.debug", tree, digits, digits + 2);
	return buf_string(path) ? path_open_in_root(-1, path->data, PATH_REGULAR) : -ENOMEM;
}

struct sym_error *debugfile_open(const char *tree, const struct elf_build_id *build_id,
				 struct image **ret)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error = NULL;
	int fd AUTO_CLOSE = -1;
	struct buf path;

	*ret = NULL;
	if (build_id->size_bytes < 2)
		return NULL;
	buf_init(&path, PATH_MAX);
	fd = open_in_tree(tree, build_id, &path);
	if (fd >= 0)
		error = image_open(fd, path.data, 0, SPARSE_FILE_TO_END, &image);
	buf_deinit(&path);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	if (!image)
		return NULL;
	steal_fd(&fd);
	if (has_build_id(image, build_id))
		*ret = STEAL(image);
	return NULL;
}
