/* SPDX-License-Identifier: MIT */
/* Symbolizing on another machine: the image and position of an address, without a name. */
#include "libsym/snapshot/snapshot.h"

static struct sym_error *snapshot_normalize_one(const struct sym_snapshot *snapshot,
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
	/* An address outside all members is still in the archive. */
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
		error = snapshot_normalize_one(snapshot, &ret[i]);
	}
	return error;
}
