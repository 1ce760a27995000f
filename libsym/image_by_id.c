/* SPDX-License-Identifier: MIT */
/*
 * Symbolizing away from the process: what an address is without a name, by what
 * a mapped file is known, and the file of an identity among directories. Knows
 * how others lay their directories out; believes no path, only what is in the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/identity.h"
#include "libsym/snapshot.h"

static struct sym_error *normalize(const struct sym_snapshot *snapshot,
				   struct sym_position *position)
{
	const struct address_space *space = snapshot->space;
	size_t found = address_space_find(space, position->address);
	struct sym_error *error;

	position->status = SYM_UNMAPPED;
	if (found == ADDRESS_SPACE_NONE)
		return NULL;
	position->mapping_index = (uint32_t)found;
	position->status = SYM_NO_SYMBOLS;
	error = snapshot_image_of(snapshot, found, &position->image);
	if (error || !position->image)
		return error;
	position->status = SYM_RESOLVED;
	/* Where it is in no part, it still is in the archive. */
	snapshot_choose_part(snapshot, found, position->address, &position->image);
	position->offset = snapshot_offset(snapshot, found, position->image, position->address);
	position->image_position =
		snapshot_position(snapshot, found, position->image, position->address);
	return NULL;
}

struct sym_error *sym_snapshot_normalize(struct sym_snapshot *snapshot, const uint64_t *addresses,
					 size_t count, struct sym_position *ret)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		ret[i] = (struct sym_position){
			.address = addresses[i],
			.mapping_index = UINT32_MAX,
			.offset = UINT64_MAX,
			.image_position = UINT64_MAX,
		};
		error = normalize(snapshot, &ret[i]);
	}
	return error;
}

struct sym_error *sym_image_identity(struct sym_image *image, struct sym_identity *identity)
{
	const struct image *file = image->image;

	if (!file || file->fd < 0)
		return sym_error_create_path(SYM_ERROR_NOT_FOUND, image->path, SYM_OFFSET_UNKNOWN,
					     "the file is not open");
	return sym_error_with_path(
		identity_read_part(file->fd, file->file.offset, file->file.size_bytes, identity),
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

/* NULL in *ret for a file that is not there, not readable or not the one. Errors: NO_MEMORY, IO for
 * want of descriptors. */
static struct sym_error *try_file(const char *path, const struct sym_identity *identity,
				  struct sym_image **ret)
{
	struct sym_identity found = { .size = sizeof(found) };
	struct sym_image *image AUTO_MODULE = NULL;
	struct sym_error *error = sym_image_open(path, &image);

	if (!error)
		error = sym_image_identity(image, &found);
	if (error && (sym_error_code(error) == SYM_ERROR_NO_MEMORY || sym_error_is_shortage(error)))
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

/* The how-manieth place below `directory`; false when it does not apply. */
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

static struct sym_error *search(const struct sym_identity *identity, const char *name,
				const char *directory, struct buf *path, struct sym_image **ret)
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
	/* It is a file name, and comes from elsewhere. */
	if (name && (!*name || strchr(name, '/') || !strcmp(name, "..") || !strcmp(name, ".")))
		return sym_error_create(SYM_ERROR_ARGUMENT, "'%s' is no file name", name);
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
		error = search(identity, name, *dirs, &path, &found);
	buf_deinit(&path);
	if (error)
		return error;
	if (!found)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no file of this identity");
	*ret = found;
	return NULL;
}
