/* SPDX-License-Identifier: MIT */
#include "libsym/remapped_code.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/placement.h"

enum {
	PAGE_BYTES = 4096,
	COMPARED_PAGES = 16, /* of a mapping, the first and the last one among them */
	MOST_COMPARED = 8    /* offsets of one mapping; only hostile segments fit more */
};

static const uint64_t page_mask = ~(uint64_t)(PAGE_BYTES - 1);

/* Whoever has moved code there does not write to it any more; most jits do. */
static bool is_anonymous_code(const struct sym_mapping *line)
{
	return !*line->path &&
	       (line->protection & (SYM_EXECUTE | SYM_WRITE | SYM_SHARED)) == SYM_EXECUTE;
}

static bool touches_next(const struct sym_mapping *line)
{
	return line[0].end_address == line[1].start_address;
}

bool remapped_run_next(const struct address_space *space, struct remapped_run *run)
{
	const struct sym_mapping *lines = space->mappings;

	for (size_t i = run->end ? run->end : 1; i + 1 < space->mapping_count; i++) {
		size_t end = i;

		if (!is_anonymous_code(&lines[i]) || !touches_next(&lines[i - 1]))
			continue;
		while (end < space->mapping_count - 1 && is_anonymous_code(&lines[end]) &&
		       touches_next(&lines[end]))
			end++;
		if (is_anonymous_code(&lines[end])) {
			i = end;
			continue;
		}
		*run = (struct remapped_run){ i, end };
		return true;
	}
	return false;
}

static bool is_same_page(const struct process *process, const struct image *image, uint64_t address,
			 uint64_t offset)
{
	uint8_t memory[PAGE_BYTES], file[PAGE_BYTES];
	struct sym_error *error = process_read_memory(process, address, memory, sizeof(memory));

	if (!error && !path_read_at(image->fd, file, sizeof(file), image->file.offset + offset))
		return !memcmp(memory, file, sizeof(memory));
	sym_error_destroy(error);
	return false;
}

static bool shows(const struct process *process, const struct image *image,
		  const struct sym_mapping *line, uint64_t offset)
{
	uint64_t last = (line->end_address - line->start_address) / PAGE_BYTES - 1;

	for (uint64_t i = 0; i < COMPARED_PAGES; i++) {
		uint64_t at = last * i / (COMPARED_PAGES - 1) * PAGE_BYTES;

		if (!is_same_page(process, image, line->start_address + at, offset + at))
			return false;
	}
	return true;
}

/* If the image is at this base and code of it where the line is: the offset of that. */
static bool offset_in_code(const struct image *image, uint64_t base, const struct sym_mapping *line,
			   uint64_t *ret)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];
		uint64_t start = base + segment->position;
		uint64_t end = (start + segment->size_bytes + PAGE_BYTES - 1) & page_mask;

		if (!segment->executable || line->start_address < (start & page_mask) ||
		    line->end_address > end)
			continue;
		*ret = (segment->offset & page_mask) + line->start_address - (start & page_mask);
		return true;
	}
	return false;
}

/* By where the other lines of the file are. */
static bool find_offset(const struct process *process, const struct image_group *group,
			const struct image *image, const struct sym_mapping *line, uint64_t *ret)
{
	uint64_t base, last = UINT64_MAX;
	int compared = 0;

	for (size_t i = 0; i < group->mapping_count; i++)
		for (size_t j = 0; j < image->segment_count; j++) {
			if (!placement_base(&group->mappings[i], 0, &image->segments[j], &base) ||
			    !offset_in_code(image, base, line, ret) || *ret == last)
				continue;
			last = *ret;
			if (shows(process, image, line, last))
				return true;
			if (++compared == MOST_COMPARED)
				return false;
		}
	return false;
}

struct sym_mapping *remapped_code_show(const struct process *process,
				       const struct image_group *group, const struct image *image)
{
	size_t count = group->mapping_count + group->remapped_count;
	struct sym_mapping *shown = calloc(count, sizeof(*shown));

	if (!shown)
		return NULL;
	memcpy(shown, group->mappings, count * sizeof(*shown));
	for (size_t i = group->mapping_count; i < count; i++) {
		if (find_offset(process, group, image, &group->mappings[i], &shown[i].offset))
			continue;
		shown[i].protection = 0;
		shown[i].offset = page_mask;
	}
	return shown;
}
