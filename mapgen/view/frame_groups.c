/* SPDX-License-Identifier: MIT */
#include "mapgen/view/frame_groups.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"

struct named {
	const struct profile_frame *frame;
	uint32_t number;
};

/* The full name of a managed method has its assembly. Its code is in the image, and in memory when
 * it was compiled again. */
static const char *image_of_function(const struct profile_frame *frame)
{
	return frame_kind_is_managed(frame->kind) ? "" : frame->image;
}

static int compare_functions(const struct named *a, const struct named *b)
{
	int order = strcmp(a->frame->name, b->frame->name);

	return order ? order : strcmp(image_of_function(a->frame), image_of_function(b->frame));
}

static int compare(const void *left, const void *right)
{
	const struct named *a = left, *b = right;
	int order = compare_functions(a, b);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

uint32_t *frame_groups_make(const struct frame_table *frames)
{
	size_t count = frame_table_count(frames);
	struct named *named AUTO_FREE = calloc(count + 1, sizeof(*named));
	uint32_t *groups = calloc(count + 1, sizeof(*groups));
	size_t first = 0;

	if (!named || !groups) {
		free(groups);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		named[i] = (struct named){ frame_table_at(frames, (uint32_t)i), (uint32_t)i };
	if (count)
		qsort(named, count, sizeof(*named), compare);
	for (size_t i = 0; i < count; i++) {
		if (compare_functions(&named[first], &named[i]))
			first = i;
		groups[named[i].number] = named[first].number;
	}
	return groups;
}
