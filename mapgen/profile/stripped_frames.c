/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/stripped_frames.h"

#include <stdlib.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/debuginfo/symbolize_client.h"

struct sym_error *stripped_frames_add(struct stripped_frames *stripped, struct sym_image *image,
				      const struct sym_answer *answer, uint32_t frame)
{
	struct stripped_frame *added;
	struct sym_error *error;

	if (answer->status != SYM_BOUNDS_ONLY || answer->image_position == UINT64_MAX)
		return NULL;
	if (!grow_items((void **)&stripped->frames, &stripped->capacity, stripped->count,
			sizeof(*stripped->frames)))
		return &sym_error_no_memory;
	added = &stripped->frames[stripped->count];
	*added = (struct stripped_frame){ .frame = frame,
					  .identity = { .size = sizeof(added->identity) },
					  .vaddr = answer->image_position - answer->offset_bytes,
					  .size_bytes = answer->size_bytes };
	error = sym_image_identity(image, &added->identity);
	stripped->count += !error;
	return sym_error_only_no_memory(error);
}

struct sym_error *stripped_frames_name(const struct stripped_frames *stripped,
				       struct symbolize_client *client, struct frame_table *frames)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; i < stripped->count; i++)
		symbolize_client_add_code(client, &stripped->frames[i].identity,
					  stripped->frames[i].vaddr,
					  stripped->frames[i].size_bytes);
	symbolize_client_ask(client);
	for (size_t i = 0; !error && i < stripped->count; i++) {
		const struct stripped_frame *one = &stripped->frames[i];
		const char *name = symbolize_client_name_of_code(client, &one->identity, one->vaddr,
								 one->size_bytes);

		if (name)
			error = frame_table_name(frames, one->frame, name);
	}
	return error;
}

void stripped_frames_deinit(struct stripped_frames *stripped)
{
	free(stripped->frames);
	*stripped = (struct stripped_frames){ 0 };
}
