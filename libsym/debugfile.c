/* SPDX-License-Identifier: MIT */
#include "libsym/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"

enum {
	SUM_STEP_BYTES = 1 << 18
};

/* False where the file says nothing about itself. */
static bool read_build_id(const struct image *image, struct elf_build_id *ret)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;

	if (image->kind != SYM_IMAGE_ELF)
		return false;
	error = elf_sections_read(image, &sections);
	if (error) {
		sym_error_destroy(error);
		return false;
	}
	*ret = elf_sections_build_id(&sections);
	return ret->size_bytes > 0;
}

static bool is_same_id(const struct elf_build_id *a, const struct elf_build_id *b)
{
	return a->size_bytes == b->size_bytes && !memcmp(a->bytes, b->bytes, a->size_bytes);
}

static int open_in_tree(int root_fd, const char *tree, const struct elf_build_id *build_id,
			struct buf *path)
{
	char digits[2 * sizeof(build_id->bytes) + 1];

	hex_write_bytes(digits, build_id->bytes, build_id->size_bytes);
	buf_printf(path, "%s/%.2s/%s.debug", tree, digits, digits + 2);
	return buf_string(path) ? path_open_in_root(root_fd, path->data, PATH_REGULAR) : -ENOMEM;
}

/* Takes `fd` over. A file that cannot be used is none; only want of memory is an error. */
static struct sym_error *open_image(int fd, const char *path, struct image **ret)
{
	struct sym_error *error;

	*ret = NULL;
	if (fd < 0)
		return NULL;
	error = image_open(fd, path, 0, SPARSE_FILE_TO_END, ret);
	if (!error)
		return NULL;
	close(fd);
	if (sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	return NULL;
}

struct sym_error *debugfile_open(int root_fd, const char *tree, const struct elf_build_id *build_id,
				 struct image **ret)
{
	struct image *image AUTO_IMAGE = NULL;
	struct elf_build_id own;
	struct sym_error *error;
	struct buf path;
	int fd;

	*ret = NULL;
	if (build_id->size_bytes < 2)
		return NULL;
	buf_init(&path, PATH_MAX);
	fd = open_in_tree(root_fd, tree, build_id, &path);
	error = open_image(fd, path.data, &image);
	buf_deinit(&path);
	if (!error && image && read_build_id(image, &own) && is_same_id(&own, build_id))
		*ret = STEAL(image);
	return error;
}

/* ---- by link ----------------------------------------------------------------- */

/* A name, padded to 4 bytes, and the CRC-32 of the file. */
bool debugfile_read_link(struct elf_sections *sections, struct debugfile_link *ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".gnu_debuglink");
	struct sym_error *error;
	struct reader reader;

	if (!section)
		return false;
	error = elf_sections_bytes(sections, section, &reader);
	sym_error_destroy(error);
	if (error)
		return false;
	ret->name = reader_string(&reader);
	reader_seek(&reader, (reader.position + 3) & ~(size_t)3);
	ret->sum = reader_u32(&reader);
	return reader_ok(&reader) && *ret->name && strlen(ret->name) <= NAME_MAX &&
	       !strchr(ret->name, '/') && strcmp(ret->name, ".") != 0 &&
	       strcmp(ret->name, "..") != 0;
}

/* Nothing is read of what is no ELF file. */
static bool has_sum(int fd, uint32_t sum)
{
	uint8_t *room AUTO_FREE = malloc(SUM_STEP_BYTES);
	uLong own = crc32(0, NULL, 0);
	struct stat status;
	uint64_t size_bytes;

	if (!room || fstat(fd, &status) || status.st_size < SELFMAG ||
	    (uint64_t)status.st_size > LIMIT_IMAGE_BYTES)
		return false;
	size_bytes = (uint64_t)status.st_size;
	for (uint64_t at = 0; at < size_bytes; at += SUM_STEP_BYTES) {
		size_t step = SUM_STEP_BYTES < size_bytes - at ? SUM_STEP_BYTES
							       : (size_t)(size_bytes - at);

		if (path_read_at(fd, room, step, at) || (!at && memcmp(room, ELFMAG, SELFMAG)))
			return false;
		own = crc32(own, room, (uInt)step);
	}
	return own == sum;
}

struct link_search {
	struct elf_sections *sections;
	struct elf_build_id id;
	struct debugfile_link link;
	struct image *found;
};

/* The file at DIRECTORY MIDDLE/NAME, if it is the one that is meant. */
static struct sym_error *try_link(struct link_search *search, int root_fd, const char *directory,
				  const char *middle)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error = NULL;
	struct elf_build_id id;
	struct buf path;
	int fd = -1;

	if (search->found)
		return NULL;
	buf_init(&path, PATH_MAX);
	buf_printf(&path, "%s%s/%s", directory, middle, search->link.name);
	if (buf_string(&path))
		fd = path_open_in_root(root_fd, path.data, PATH_REGULAR);
	if (fd >= 0 && !has_sum(fd, search->link.sum)) {
		close(fd);
		fd = -1;
	}
	error = open_image(fd, path.data, &image);
	buf_deinit(&path);
	if (error || !image || image->kind != SYM_IMAGE_ELF)
		return error;
	if (!search->id.size_bytes || !read_build_id(image, &id) || is_same_id(&id, &search->id))
		search->found = STEAL(image);
	return NULL;
}

static struct sym_error *try_places(struct link_search *search, int root_fd, const char *directory,
				    const char *own)
{
	struct sym_error *error = try_link(search, root_fd, own, "");

	if (!error)
		error = try_link(search, root_fd, own, "/.debug");
	return error ? error : try_link(search, root_fd, directory, own);
}

/* Of the image, absolute where that can be had. */
static char *directory_of(const struct image *image, int root_fd)
{
	char *path = root_fd < 0 ? realpath(image->path, NULL) : NULL;
	char *slash;

	if (!path)
		path = strdup(image->path);
	slash = path ? strrchr(path, '/') : NULL;
	if (!slash) {
		free(path);
		return path ? strdup(".") : NULL;
	}
	*slash = '\0';
	return path;
}

struct sym_error *debugfile_open_linked(struct elf_sections *sections, int root_fd,
					const char *directory, struct image **ret)
{
	struct link_search search = { .sections = sections, .id = elf_sections_build_id(sections) };
	char *own AUTO_FREE = NULL;
	struct sym_error *error;

	*ret = NULL;
	if (!debugfile_read_link(sections, &search.link))
		return NULL;
	own = directory_of(sections->image, root_fd);
	if (!own)
		return &sym_error_no_memory;
	error = try_places(&search, root_fd, directory, own);
	/* A process that has only changed its root is shown with the paths of this machine. */
	if (!error && root_fd >= 0)
		error = try_places(&search, -1, directory, own);
	*ret = search.found;
	return error;
}

struct sym_error *debugfile_find(struct elf_sections *sections, int root_fd, struct image **ret)
{
	struct elf_build_id id = elf_sections_build_id(sections);
	struct sym_error *error = debugfile_open(-1, DEBUGFILE_TREE, &id, ret);

	if (!error && !*ret && root_fd >= 0)
		error = debugfile_open(root_fd, DEBUGFILE_TREE, &id, ret);
	if (!error && !*ret)
		error = debugfile_open_linked(sections, root_fd, DEBUGFILE_DIRECTORY, ret);
	return error;
}

/* ---- what somebody brings ------------------------------------------------------- */

static void append_id(struct buf *text, const struct elf_build_id *id)
{
	char digits[2 * sizeof(id->bytes) + 1];

	hex_write_bytes(digits, id->bytes, id->size_bytes);
	buf_append_string(text, id->size_bytes ? digits : "none");
}

/* False: it is another file, and `why` says which. */
static bool is_debug_file_of(struct elf_sections *sections, const struct image *image, int fd,
			     struct buf *why)
{
	struct elf_build_id wanted = elf_sections_build_id(sections), found = { .size_bytes = 0 };
	struct debugfile_link link;

	if (image->kind != SYM_IMAGE_ELF) {
		buf_printf(why, "%s was brought as its debug file and is no ELF file", image->path);
		return false;
	}
	read_build_id(image, &found);
	if (wanted.size_bytes && is_same_id(&found, &wanted))
		return true;
	if (!(wanted.size_bytes && found.size_bytes) && debugfile_read_link(sections, &link) &&
	    has_sum(fd, link.sum))
		return true;
	buf_printf(why, "%s was brought as its debug file and has build-id ", image->path);
	append_id(why, &found);
	buf_append_string(why, ", the image has ");
	append_id(why, &wanted);
	return false;
}

struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct image **ret)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error;
	int fd = path_open_in_root(-1, path, PATH_REGULAR);

	*ret = NULL;
	if (fd < 0) {
		buf_printf(why, "%s was brought as its debug file and cannot be opened: %s", path,
			   strerror(-fd));
		return NULL;
	}
	error = open_image(fd, path, &image);
	if (error)
		return error;
	if (!image)
		buf_printf(why, "%s was brought as its debug file and cannot be read", path);
	else if (is_debug_file_of(sections, image, image->fd, why))
		*ret = STEAL(image);
	return NULL;
}
