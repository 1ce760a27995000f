/* SPDX-License-Identifier: MIT */
#include "libsym/image/archive_images.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/image/embedded_image.h"

struct archive_images {
	struct image_part *parts; /* by offset, disjoint */
	size_t count;
};

enum {
	MAX_PARTS = 1024 /* as for a mapped archive */
};

static void archive_members_destroy(struct archive_images *members)
{
	if (!members)
		return;
	for (size_t i = 0; i < members->count; i++)
		image_destroy(members->parts[i].image);
	free(members->parts);
	free(members);
}

/* A member that cannot be used is left out. Errors: NO_MEMORY only. */
static struct sym_error *add_member(const struct sym_image *archive,
				    const struct byte_source *source, const struct zip *zip,
				    const struct zip_member *member, struct archive_images *members)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_image *image = NULL;
	uint64_t offset;
	struct sym_error *error = zip_locate(source, zip, member, &offset);

	if (!error && !embedded_image_begins_at(source, offset, member->size_bytes))
		return NULL;
	path = embedded_image_path(archive->path, member->name, member->name_bytes);
	if (!error && !path)
		error = &sym_error_no_memory;
	if (!error)
		error = embedded_image_open_part(object_file_account(archive->object), source->fd,
						 path, offset, member->size_bytes, &object);
	if (!error)
		error = image_create(path, object, &image);
	if (!error) {
		image->roots = archive->roots;
		image->debug_fetch.fetch = archive->debug_fetch.fetch;
		image->debug_fetch.context = archive->debug_fetch.context;
		image->forks_for_dwarf = archive->forks_for_dwarf;
		members->parts[members->count++] =
			(struct image_part){ offset, offset + member->size_bytes, image };
	}
	return sym_error_only_no_memory(error);
}

static struct sym_error *find_members(const struct sym_image *archive,
				      struct archive_images *members)
{
	struct zip zip AUTO_ZIP = { 0 };
	struct byte_source source;
	bool is_zip;
	struct sym_error *error = embedded_image_read_archive(archive->object->fd, archive->path,
							      &source, &zip, &is_zip);

	members->parts = calloc(MAX_PARTS, sizeof(*members->parts));
	if (!error && !members->parts)
		error = &sym_error_no_memory;
	for (size_t i = 0; !error && i < zip.count && members->count < MAX_PARTS; i++)
		error = add_member(archive, &source, &zip, &zip.members[i], members);
	return error;
}

static void *make_members(const void *context)
{
	struct archive_images *members = calloc(1, sizeof(*members));
	struct sym_error *error = members ? find_members(context, members) : NULL;

	if (sym_error_is_no_memory(error)) {
		archive_members_destroy(members);
		members = NULL;
	}
	sym_error_destroy(error);
	return members;
}

static void destroy_members(void *made)
{
	archive_members_destroy(made);
}

struct sym_image *archive_image_at(struct sym_image *archive, uint64_t offset, uint64_t *inside_ret)
{
	const struct archive_images *members;

	if (!archive->object || archive->object->kind != SYM_IMAGE_UNKNOWN ||
	    archive->object->fd < 0 || image_trouble(archive))
		return NULL;
	members = lazy_get(&archive->members, make_members, destroy_members, archive);
	for (size_t i = 0; members && i < members->count; i++)
		if (offset >= members->parts[i].start_offset &&
		    offset < members->parts[i].end_offset) {
			*inside_ret = offset - members->parts[i].start_offset;
			return members->parts[i].image;
		}
	return NULL;
}
