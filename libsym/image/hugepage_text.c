/* SPDX-License-Identifier: MIT */
#include "libsym/image/hugepage_text.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/path.h"
#include "libsym/image/placement.h"

enum {
	PAGE_BYTES = 4096,
	COMPARED_PAGES = 16, /* of a mapping, the first and the last one included */
	MOST_COMPARED =
		2 /* candidate offsets by the line beside it; only hostile segments have more */
};

static const uint64_t page_mask = ~(uint64_t)(PAGE_BYTES - 1);

/*
 * Code that was moved there is not written to any more; most JIT memory is writable. The kernel
 * names huge pages and memory files; a memory file may be written through another mapping.
 */
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

bool hugepage_run_next(const struct address_space *space, struct hugepage_run *run)
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
		*run = (struct hugepage_run){ i, end };
		return true;
	}
	return false;
}

static bool is_same_page(const struct process *process, const struct object_file *object,
			 uint64_t address, uint64_t offset)
{
	uint8_t memory[PAGE_BYTES], file[PAGE_BYTES];
	struct sym_error *error = process_read_memory(process, address, memory, sizeof(memory));

	if (!error && !path_read_at(object->fd, file, sizeof(file), object->file.offset + offset))
		return !memcmp(memory, file, sizeof(memory));
	sym_error_destroy(error);
	return false;
}

static bool is_code_in_line(const struct process *process, const struct object_file *object,
			    const struct sym_mapping *line, uint64_t offset)
{
	uint64_t last = (line->end_address - line->start_address) / PAGE_BYTES - 1;

	for (uint64_t i = 0; i < COMPARED_PAGES; i++) {
		uint64_t at = last * i / (COMPARED_PAGES - 1) * PAGE_BYTES;

		if (!is_same_page(process, object, line->start_address + at, offset + at))
			return false;
	}
	return true;
}

/* If the image is at this base and has code where the line is: the offset of that code. */
static bool offset_in_code(const struct object_file *object, uint64_t base,
			   const struct sym_mapping *line, uint64_t *ret)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
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

/* True when `line` contains code of the image that this line of the file places. */
static bool find_beside(const struct process *process, const struct object_file *object,
			const struct sym_mapping *found_assembly, const struct sym_mapping *line,
			uint64_t *ret)
{
	int compared = 0;
	uint64_t base;

	for (size_t i = 0; i < object->segment_count && compared < MOST_COMPARED; i++) {
		if (!placement_base(found_assembly, 0, &object->segments[i], &base) ||
		    !offset_in_code(object, base, line, ret))
			continue;
		if (is_code_in_line(process, object, line, *ret))
			return true;
		compared++;
	}
	return false;
}

/* Index of the group's first mapping that is not below the line; there is one below it. */
static size_t find_above(const struct mapped_file *group, const struct sym_mapping *line)
{
	return ascending_items_below(group->mappings, group->mapping_count,
				     sizeof(*group->mappings), line->start_address);
}

/* Finds the offset by the mappings of the file around the line. */
static bool find_offset(const struct process *process, const struct mapped_file *group,
			const struct object_file *object, const struct sym_mapping *line,
			uint64_t *ret)
{
	const struct sym_mapping *above = &group->mappings[find_above(group, line)];

	return find_beside(process, object, above - 1, line, ret) ||
	       find_beside(process, object, above, line, ret);
}

struct sym_mapping *hugepage_text_show(const struct process *process,
				       const struct mapped_file *group,
				       const struct object_file *object)
{
	size_t count = mapped_file_line_count(group);
	struct sym_mapping *shown = calloc(count, sizeof(*shown));

	if (!shown)
		return NULL;
	memcpy(shown, group->mappings, count * sizeof(*shown));
	for (size_t i = group->mapping_count; i < count; i++) {
		if (find_offset(process, group, object, &group->mappings[i], &shown[i].offset))
			continue;
		shown[i].protection = 0;
		shown[i].offset = page_mask;
	}
	return shown;
}
