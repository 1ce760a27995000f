/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_archive.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/ident.h"
#include "libsym/inner_image.h"

enum {
	PAGE_BYTES = 4096,
	/* Of one archive. An application has some dozens of libraries; what is beyond has no names.
	 */
	MAX_PARTS = 1024
};

/* A mapping of code: the first byte of the file that it shows, and the end of what it or one that
 * begins before it does. */
struct shown {
	uint64_t offset, reach;
};

/* One archive while its members are looked through. */
struct archive {
	const struct group_opening *opening;
	struct image *host;
	struct zip zip;
	struct byte_source source;
	uint32_t *lines;    /* room for the numbers of all */
	struct shown *code; /* by offset */
	size_t code_count;
};

static bool is_no_memory(const struct sym_error *error)
{
	return error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
}

static uint64_t page_of(uint64_t offset)
{
	return offset & ~(uint64_t)(PAGE_BYTES - 1);
}

static uint64_t end_of(const struct sym_mapping *line)
{
	return line->offset + (line->end_address - line->start_address);
}

static int by_offset(const void *left, const void *right)
{
	const struct shown *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* False for want of memory. */
static bool find_code(struct archive *archive)
{
	const struct image_group *group = archive->opening->group;
	uint64_t reach = 0;

	archive->code = calloc(group->mapping_count + 1, sizeof(*archive->code));
	if (!archive->code)
		return false;
	for (size_t i = 0; i < group->mapping_count; i++)
		if (group->mappings[i].protection & SYM_EXECUTE)
			archive->code[archive->code_count++] =
				(struct shown){ group->mappings[i].offset,
						end_of(&group->mappings[i]) };
	qsort(archive->code, archive->code_count, sizeof(*archive->code), by_offset);
	for (size_t i = 0; i < archive->code_count; i++) {
		if (archive->code[i].reach > reach)
			reach = archive->code[i].reach;
		archive->code[i].reach = reach;
	}
	return true;
}

/* How many mappings of code begin before this byte. */
static size_t begun_before(const struct archive *archive, uint64_t offset)
{
	size_t low = 0, high = archive->code_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (archive->code[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Does a mapping of code show any of these bytes? */
static bool is_shown(const struct archive *archive, uint64_t start, uint64_t end)
{
	size_t count = begun_before(archive, end);

	return count && archive->code[count - 1].reach > start;
}

/* Does one begin in their pages? */
static bool is_begun(const struct archive *archive, uint64_t start, uint64_t end)
{
	return begun_before(archive, end) > begun_before(archive, page_of(start));
}

/* ---- a member that is an image --------------------------------------------------- */

/* All lines that begin in pages of it and are nobody's yet. */
static size_t lines_of_part(const struct image_group *group, uint64_t start, uint64_t end,
			    uint32_t *lines)
{
	size_t count = 0;

	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];

		if (line->offset >= page_of(start) && line->offset < end &&
		    !group->places[i].placed)
			lines[count++] = (uint32_t)i;
	}
	return count;
}

static struct sym_error *note_part(struct image_group *group, uint64_t start, uint64_t end,
				   struct sym_image *module)
{
	if (!group->parts)
		group->parts = calloc(MAX_PARTS, sizeof(*group->parts));
	if (!group->parts)
		return &sym_error_no_memory;
	group->parts[group->part_count++] = (struct image_part){ start, end, module };
	return NULL;
}

/* The modules of its placements; one without a place when it has none, for what shows it flatly. */
static struct sym_error *add_modules(const struct archive *archive, const char *path,
				     struct image *image, uint64_t end)
{
	const struct group_opening *opening = archive->opening;
	struct image_group *group = opening->group;
	uint64_t start = image->file.offset;
	size_t first = group->module_count,
	       line_count = lines_of_part(group, start, end, archive->lines);
	struct placements placements;
	struct sym_image *module;
	struct sym_error *error = placement_find(image, start, group->mappings, archive->lines,
						 line_count, &placements);

	if (error)
		return error;
	error = image_group_place(opening, path, image, &placements, archive->lines, line_count);
	placements_deinit(&placements);
	if (!error && group->module_count == first)
		error = image_group_add(opening, path, image, UINT64_MAX, &module);
	for (size_t i = first; !error && i < group->module_count; i++) {
		struct sym_error *trouble = ident_check(opening->context->process, image,
							group->modules[i]->load_base, group);

		if (trouble)
			module_set_trouble(group->modules[i], trouble);
	}
	return error ? error : note_part(group, start, end, group->modules[first]);
}

/* A member of which a mapping of code shows bytes that nothing can be made of. Takes `why` over. */
static struct sym_error *add_trouble(const struct archive *archive, const char *path,
				     uint64_t start, uint64_t end, struct sym_error *why)
{
	struct sym_image *module;
	struct sym_error *error =
		image_group_add(archive->opening, path, NULL, UINT64_MAX, &module);

	if (error) {
		sym_error_destroy(why);
		return error;
	}
	module_set_trouble(module, why);
	return note_part(archive->opening->group, start, end, module);
}

/* A member that cannot be located lies, at the most, from its header to the next one. */
static struct sym_error *add_unlocated(const struct archive *archive,
				       const struct zip_member *member, struct sym_error *why)
{
	const struct image_group *group = archive->opening->group;
	uint64_t start = member->header_offset, end = start + member->packed_bytes;
	struct sym_error *error;
	char *path;

	if (group->part_count && start < group->parts[group->part_count - 1].end_offset)
		start = group->parts[group->part_count - 1].end_offset;
	if (start >= end || !is_begun(archive, start, end)) {
		sym_error_destroy(why);
		return NULL;
	}
	path = inner_image_path(group->path, member->name, member->name_bytes);
	error = path ? add_trouble(archive, path, start, end, why) : &sym_error_no_memory;
	if (!path)
		sym_error_destroy(why);
	free(path);
	return error;
}

static struct sym_error *add_member(const struct archive *archive, const struct zip_member *member)
{
	const struct image_group *group = archive->opening->group;
	struct image *image AUTO_IMAGE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_error *error;
	uint64_t offset, end;

	error = zip_locate(&archive->source, &archive->zip, member, &offset);
	if (is_no_memory(error))
		return error;
	if (error)
		return add_unlocated(archive, member, error);
	end = offset + member->size_bytes;
	if (!is_shown(archive, offset, end) ||
	    !inner_image_begins_at(&archive->source, offset, member->size_bytes))
		return NULL;
	path = inner_image_path(group->path, member->name, member->name_bytes);
	if (!path)
		return &sym_error_no_memory;
	error = inner_image_open(archive->opening, archive->host, path, offset, member->size_bytes,
				 &image);
	if (is_no_memory(error))
		return error;
	if (error)
		return add_trouble(archive, path, offset, end, error);
	return add_modules(archive, path, image, end);
}

/* ---- all of them -------------------------------------------------------------------- */

/* What no placement explains: of one part whose pages it stays in, or of whichever an address is
 * in. */
static void share_lines(const struct archive *archive)
{
	struct image_group *group = archive->opening->group;

	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];
		const struct image_part *part = image_group_part_at(group, line->offset);

		if (group->places[i].placed || !group->part_count)
			continue;
		if (part && end_of(line) <= page_of(part->end_offset + PAGE_BYTES - 1))
			image_group_give(archive->opening, i, part->module, false);
		else
			group->places[i].shared = true;
	}
}

/* The extra field of a header may have 64 KiB, and so may the name before it. */
static bool may_be_shown(const struct archive *archive, const struct zip_member *member)
{
	return is_shown(archive, member->header_offset,
			member->header_offset + member->packed_bytes + (1 << 18));
}

static struct sym_error *add_members(struct archive *archive)
{
	const struct image_group *group = archive->opening->group;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < archive->zip.count && group->part_count < MAX_PARTS; i++)
		if (may_be_shown(archive, &archive->zip.members[i]))
			error = add_member(archive, &archive->zip.members[i]);
	if (!error)
		share_lines(archive);
	return error;
}

/* Cut, or put together from memory, where nobody needs the directory. */
static struct sym_error *check_start(const struct archive *archive)
{
	static const char member[] = "PK\3\4";
	char start[sizeof(member) - 1];

	if (!byte_source_read(&archive->source, start, sizeof(start), 0) ||
	    memcmp(start, member, sizeof(start)) != 0)
		return NULL;
	return sym_error_create_path(SYM_ERROR_FORMAT, archive->opening->group->path,
				     SYM_OFFSET_UNKNOWN,
				     "it begins like a zip archive and does not end with the "
				     "directory of one");
}

static struct sym_error *add_archive(struct archive *archive)
{
	struct image_group *group = archive->opening->group;
	struct sym_error *error;
	bool is_zip;

	archive->lines = calloc(group->mapping_count + 1, sizeof(*archive->lines));
	if (!archive->lines || !find_code(archive))
		return &sym_error_no_memory;
	if (!archive->code_count)
		return NULL;
	error = inner_image_read_archive(archive->host->fd, group->path, &archive->source,
					 &archive->zip, &is_zip);
	if (!error && is_zip)
		return add_members(archive);
	if (!error)
		error = check_start(archive);
	if (error && !is_no_memory(error)) {
		module_set_trouble(group->modules[0], error);
		error = NULL;
	}
	return error;
}

struct sym_error *snapshot_add_archive(const struct group_opening *opening, struct image *host)
{
	struct archive archive = { .opening = opening, .host = host };
	struct sym_error *error = add_archive(&archive);

	free(archive.code);
	free(archive.lines);
	zip_deinit(&archive.zip);
	return error;
}
