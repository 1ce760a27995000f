/* SPDX-License-Identifier: MIT */
/*
 * Symbolizing on another machine: the identity of a mapped file, and the search for the file with
 * an identity.
 * It knows the layouts of several kinds of stores. A path proves nothing; the content of the file
 * decides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/file/file_identity.h"
#include "libsym/image/image.h"

struct sym_error *sym_image_identity(struct sym_image *image, struct sym_identity *identity)
{
	const struct object_file *file = image->object;

	if (!file || file->fd < 0)
		return sym_error_create_path(SYM_ERROR_NOT_FOUND, image->path, SYM_OFFSET_UNKNOWN,
					     "the file is not open");
	return sym_error_with_path(file_identity_read_part(file->fd, file->file.offset,
							   file->file.size_bytes, identity),
				   image->path);
}

/* ---- the file of an identity ------------------------------------------------------- */

static bool is_same(const struct sym_identity *left, const struct sym_identity *right)
{
	if (left->kind != right->kind)
		return false;
	if (left->kind == SYM_IDENTITY_PE)
		return left->timestamp == right->timestamp &&
		       left->image_size_bytes == right->image_size_bytes;
	return left->id_size_bytes == right->id_size_bytes &&
	       !memcmp(left->id, right->id, left->id_size_bytes);
}

/*
 * *ret is NULL when the file does not exist, cannot be read, or has another identity.
 * Errors: NO_MEMORY; IO for lack of descriptors.
 */
static struct sym_error *try_file(const char *path, const struct sym_identity *identity,
				  struct sym_image **ret)
{
	struct sym_identity found = { .size = sizeof(found) };
	struct sym_image *image AUTO_IMAGE = NULL;
	struct sym_error *error = sym_image_open(path, &image);

	if (!error)
		error = sym_image_identity(image, &found);
	if (sym_error_is_no_memory(error) || sym_error_is_shortage(error))
		return error;
	if (!error && is_same(&found, identity))
		*ret = STEAL(image);
	sym_error_destroy(error);
	return NULL;
}

enum {
	FORMS = 7,
	HEX_BYTES = 2 * sizeof(((struct sym_identity *)NULL)->id) + 1
};

/* Writes the path number `form` below `directory`; false when it does not apply. */
static bool write_path(struct buf *path, unsigned int form, const char *directory,
		       const struct sym_identity *identity, const char *name)
{
	char hex[HEX_BYTES] = "";
	bool is_elf = identity->kind == SYM_IDENTITY_ELF;

	buf_clear(path);
	if (is_elf)
		hex_write_bytes(hex, identity->id, identity->id_size_bytes);
	switch (form) {
	case 0:
	case 1:
		return is_elf && buf_printf(path, "%s/.build-id/%.2s/%s%s", directory, hex, hex + 2,
					    form ? ".debug" : "");
	case 2:
	case 3:
		return is_elf && buf_printf(path, "%s/%s/%s", directory, hex,
					    form == 2 ? "executable" : "debuginfo");
	case 4:
		return name && buf_printf(path, "%s/%s", directory, name);
	default:
		return !is_elf && name &&
		       buf_printf(path, form == 5 ? "%s/%s/%08X%x/%s" : "%s/%s/%08x%x/%s",
				  directory, name, identity->timestamp, identity->image_size_bytes,
				  name);
	}
}

static struct sym_error *image_by_id_search(const struct sym_identity *identity, const char *name,
					    const char *directory, struct buf *path,
					    struct sym_image **ret)
{
	struct sym_error *error = NULL;

	for (unsigned int form = 0; !error && !*ret && form < FORMS; form++) {
		if (write_path(path, form, directory, identity, name))
			error = buf_string(path) ? try_file(path->data, identity, ret)
						 : sym_error_from_buf(path, "path");
	}
	return error;
}

static struct sym_error *check_identity(const struct sym_identity *identity, const char *name)
{
	bool known = identity->kind == SYM_IDENTITY_PE ||
		     (identity->kind == SYM_IDENTITY_ELF && identity->id_size_bytes > 1 &&
		      identity->id_size_bytes <= sizeof(identity->id));

	if (identity->size < sizeof(*identity))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_identity.size is not set");
	if (!known)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"no build-id, nor time stamp and size of a PE file");
	/* It is a file name, from an untrusted source. */
	if (name && (!*name || strchr(name, '/') || !strcmp(name, "..") || !strcmp(name, ".")))
		return sym_error_create(SYM_ERROR_ARGUMENT, "'%s' is not a file name", name);
	return NULL;
}

struct sym_error *sym_image_open_by_id(const struct sym_identity *identity, const char *name,
				       const char *const *dirs, struct sym_image **ret)
{
	struct sym_error *error = check_identity(identity, name);
	struct sym_image *found = NULL;
	struct buf path;

	buf_init(&path, 1 << 16);
	for (; !error && !found && *dirs; dirs++)
		error = image_by_id_search(identity, name, *dirs, &path, &found);
	buf_deinit(&path);
	if (error)
		return error;
	if (!found)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no file of this identity");
	*ret = found;
	return NULL;
}
