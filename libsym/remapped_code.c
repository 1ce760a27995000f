/* SPDX-License-Identifier: MIT */
#include "libsym/remapped_code.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/placement.h"

enum {
	PAGE_BYTES = 4096,
	COMPARED_PAGES = 16, /* of a mapping, the first and the last one among them */
	MOST_COMPARED = 2    /* offsets beside one line; only hostile segments fit more */
};

static const uint64_t page_mask = ~(uint64_t)(PAGE_BYTES - 1);

/* Whoever has moved code there does not write to it any more; most jits do. The kernel has names
 * for huge pages and memory files; what a memory file has may be written elsewhere. */
static bool is_moved_code(const struct sym_mapping *line)
{
	static const char memory_file[] = "/memfd:";
	uint32_t others = SYM_WRITE | SYM_SHARED;

	if (line->deleted && !strncmp(line->path, memory_file, sizeof(memory_file) - 1))
		others = SYM_WRITE;
	else if (*line->path && (!line->deleted || strcmp(line->path, "/anon_hugepage") != 0))
		return false;
	return (line->protection & (SYM_EXECUTE | others)) == SYM_EXECUTE;
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

		if (!is_moved_code(&lines[i]) || !touches_next(&lines[i - 1]))
			continue;
		while (end < space->mapping_count - 1 && is_moved_code(&lines[end]) &&
		       touches_next(&lines[end]))
			end++;
		if (is_moved_code(&lines[end])) {
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

/* Where this line of the file has the image: does `line` show code of that? */
static bool find_beside(const struct process *process, const struct image *image,
			const struct sym_mapping *neighbour, const struct sym_mapping *line,
			uint64_t *ret)
{
	int compared = 0;
	uint64_t base;

	for (size_t i = 0; i < image->segment_count && compared < MOST_COMPARED; i++) {
		if (!placement_base(neighbour, 0, &image->segments[i], &base) ||
		    !offset_in_code(image, base, line, ret))
			continue;
		if (shows(process, image, line, *ret))
			return true;
		compared++;
	}
	return false;
}

/* The number of the group's first mapping that is not below the line; there is one below it. */
static size_t find_above(const struct image_group *group, const struct sym_mapping *line)
{
	size_t low = 1, high = group->mapping_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (group->mappings[middle].start_address < line->start_address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* By the mappings of the file between which it lies. */
static bool find_offset(const struct process *process, const struct image_group *group,
			const struct image *image, const struct sym_mapping *line, uint64_t *ret)
{
	const struct sym_mapping *above = &group->mappings[find_above(group, line)];

	return find_beside(process, image, above - 1, line, ret) ||
	       find_beside(process, image, above, line, ret);
}

struct sym_mapping *remapped_code_show(const struct process *process,
				       const struct image_group *group, const struct image *image)
{
	size_t count = image_group_line_count(group);
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
