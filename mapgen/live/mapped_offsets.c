/* SPDX-License-Identifier: MIT */
#include "mapgen/live/mapped_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/format/linux/mapping_name.h"
#include "libsym/libsym.h"

static int compare(const void *left, const void *right)
{
	const struct sym_mapping *one = *(const struct sym_mapping *const *)left;
	const struct sym_mapping *other = *(const struct sym_mapping *const *)right;
	int order = strcmp(one->path, other->path);

	if (order)
		return order;
	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return one->start_address < other->start_address ? -1 : 1;
}

bool mapped_offsets_init(struct mapped_offsets *places, const struct sym_snapshot *snapshot)
{
	size_t count = sym_snapshot_mapping_count(snapshot);

	*places = (struct mapped_offsets){ 0 };
	places->mappings = calloc(count ? count : 1, sizeof(*places->mappings));
	if (!places->mappings)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if ((mapping->protection & SYM_EXECUTE) && *mapping->path)
			places->mappings[places->count++] = mapping;
	}
	qsort(places->mappings, places->count, sizeof(*places->mappings), compare);
	return true;
}

void mapped_offsets_deinit(struct mapped_offsets *places)
{
	free(places->mappings);
	*places = (struct mapped_offsets){ 0 };
}

static bool begins(const char *text, size_t size_bytes, const char *start)
{
	size_t length = strlen(start);

	return size_bytes >= length && !memcmp(text, start, length);
}

static bool ends(const char *text, size_t size_bytes, const char *end)
{
	size_t length = strlen(end);

	return size_bytes >= length && !memcmp(text + size_bytes - length, end, length);
}

/* Beside jitted code perf prints the path of the perf map. It treats the vDSO as a file. */
bool names_memory(const char *image, size_t image_bytes)
{
	switch (mapping_name_kind(image, image_bytes)) {
	case MAPPING_NAME_MEMORY:
		return true;
	case MAPPING_NAME_KERNEL:
		return !begins(image, image_bytes, "[vdso]");
	default:
		return begins(image, image_bytes, "/tmp/") && ends(image, image_bytes, ".map");
	}
}

/* strcmp() of a path and a text without a terminator. perf prints paths as /proc/PID/maps does,
 * with a newline as "\\012". */
static int compare_path(const char *path, const char *image, size_t image_bytes)
{
	const char *end = image + image_bytes;

	for (; image < end; path++) {
		bool is_newline = begins(image, (size_t)(end - image), "\\012");
		unsigned char byte = is_newline ? '\n' : (unsigned char)*image;

		if ((unsigned char)*path != byte || !*path)
			return (unsigned char)*path < byte ? -1 : 1;
		image += is_newline ? sizeof("\\012") - 1 : 1;
	}
	return *path != '\0';
}

/* Finds the range of mappings of an image. */
static void find_image(struct mapped_offsets *places, const char *image, size_t image_bytes)
{
	if (places->first < places->last &&
	    !compare_path(places->mappings[places->first]->path, image, image_bytes))
		return;
	places->first = places->last = ASCENDING_COUNT(
		places->count, i, compare_path(places->mappings[i]->path, image, image_bytes) < 0);
	while (places->last < places->count &&
	       !compare_path(places->mappings[places->last]->path, image, image_bytes))
		places->last++;
}

enum offset_kind mapped_offsets_find(struct mapped_offsets *places, const char *image,
				     size_t image_bytes, uint64_t value, uint64_t *address_ret)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_bytes = sizeof(deleted) - 1;
	enum offset_kind meaning = OFFSET_KIND_NOTHING;

	if (image_bytes > deleted_bytes &&
	    !memcmp(image + image_bytes - deleted_bytes, deleted, deleted_bytes))
		image_bytes -= deleted_bytes;
	find_image(places, image, image_bytes);
	for (size_t i = places->first; i < places->last; i++) {
		const struct sym_mapping *mapping = places->mappings[i];
		uint64_t size_bytes = mapping->end_address - mapping->start_address;

		if (value - mapping->start_address < size_bytes)
			meaning |= OFFSET_KIND_ADDRESS;
		/* A file that is mapped twice: both places have the same methods. */
		if (!(meaning & OFFSET_KIND_OFFSET) && value - mapping->offset < size_bytes) {
			meaning |= OFFSET_KIND_OFFSET;
			*address_ret = mapping->start_address + (value - mapping->offset);
		}
	}
	return meaning;
}
