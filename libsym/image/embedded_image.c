/* SPDX-License-Identifier: MIT */
#include "libsym/image/embedded_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/foreign_file.h"
#include "libsym/file/file_source.h"
#include "libsym/limits.h"

enum {
	SMALLEST_IMAGE_BYTES = 52 /* the header of a 32-bit ELF file */
};

static const char separator[] = "!/";

char *embedded_image_path(const char *host, const char *name, size_t name_bytes)
{
	struct buf path;
	char *text;

	buf_init(&path, LIMIT_NAME_BYTES * 2);
	buf_printf(&path, "%s%s%.*s", host, separator, (int)name_bytes, name);
	text = buf_steal(&path, NULL);
	buf_deinit(&path);
	return text;
}

/* Returns the object that was open before a refresh, if the host is the same; else NULL. */
static struct object_file *embedded_image_reopen(const struct group_opening *opening,
						 const struct object_file *host, const char *path,
						 uint64_t offset)
{
	const struct mapped_file *before = opening->group->before;

	if (!before || before->host != host)
		return NULL;
	for (size_t i = 0; i < before->image_count; i++) {
		struct object_file *object = before->images[i]->object;

		if (object && object->file.offset == offset &&
		    !strcmp(before->images[i]->path, path))
			return object_file_share(object);
	}
	return NULL;
}

struct sym_error *embedded_image_open_part(struct budget_account *account, int fd, const char *path,
					   uint64_t offset, uint64_t size_bytes,
					   struct object_file **ret)
{
	int own AUTO_CLOSE = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct sym_error *error;

	if (own < 0)
		return &sym_error_no_memory;
	error = object_file_open(account, own, path, offset, size_bytes, ret);
	if (!error)
		steal_fd(&own);
	return error;
}

bool embedded_image_begins_at(const struct byte_source *source, uint64_t offset,
			      uint64_t size_bytes)
{
	char start[SELFMAG];

	return size_bytes >= SMALLEST_IMAGE_BYTES &&
	       byte_source_read(source, start, sizeof(start), offset) &&
	       (!memcmp(start, ELFMAG, SELFMAG) || !memcmp(start, "MZ", 2));
}

struct sym_error *embedded_image_open(const struct group_opening *opening,
				      const struct object_file *host, const char *path,
				      uint64_t offset, uint64_t size_bytes,
				      struct object_file **ret)
{
	*ret = embedded_image_reopen(opening, host, path, offset);
	return *ret ? NULL
		    : embedded_image_open_part(object_file_account(host), host->fd, path, offset,
					       size_bytes, ret);
}

struct sym_error *embedded_image_read_archive(int fd, const char *path,
					      struct byte_source *source_ret, struct zip *ret,
					      bool *is_zip_ret)
{
	struct sym_error *error = file_source_over(fd, 0, UINT64_MAX, source_ret);

	*is_zip_ret = false;
	if (!error)
		error = zip_read(source_ret, ret, is_zip_ret);
	return sym_error_with_path(error, path);
}

static struct sym_error *open_member(struct budget *budget, int fd, const char *path,
				     const char *archive, const char *name,
				     struct object_file **ret)
{
	struct zip zip AUTO_ZIP = { 0 };
	const struct zip_member *member;
	struct byte_source source;
	struct sym_error *error;
	uint64_t offset;
	bool is_zip;

	error = embedded_image_read_archive(fd, archive, &source, &zip, &is_zip);
	if (error || !is_zip)
		return error;
	error = zip_find(&zip, name, strlen(name), &member);
	if (!error)
		error = zip_locate(&source, &zip, member, &offset);
	if (error)
		return sym_error_with_path(error, path);
	return embedded_image_open_part(budget_account_of_file(budget, fd), fd, path, offset,
					member->size_bytes, ret);
}

/* The name of a directory may end with "!" too. */
struct sym_error *embedded_image_open_path(struct budget *budget, const char *path,
					   struct object_file **ret)
{
	struct sym_error *error = NULL;
	const char *at = path;

	*ret = NULL;
	while (!error && !*ret && (at = strstr(at, separator))) {
		char *archive AUTO_FREE = strndup(path, (size_t)(at - path));
		int fd AUTO_CLOSE = -1;

		if (!archive)
			return &sym_error_no_memory;
		at += strlen(separator);
		fd = *archive ? foreign_file_open(-1, archive, 0, NULL, NULL) : -ENOENT;
		if (fd >= 0)
			error = open_member(budget, fd, path, archive, at, ret);
	}
	return error;
}
