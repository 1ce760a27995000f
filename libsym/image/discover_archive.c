/* SPDX-License-Identifier: MIT */
/*
 * How the members of an archive become images.
 *
 * 1. The executable mappings of the archive are sorted by offset.
 * 2. The directory of the archive is read.
 * 3. A member is opened only if such a mapping contains some of its bytes.
 * 4. Its segments are placed as those of a file (placement.h), with the member's offset as base.
 * 5. Lines that no placement explains belong to the one member that contains them, or are shared.
 */
#include "libsym/image/discover_archive.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/image/embedded_image.h"
#include "libsym/image/mapped_file_check.h"

enum {
	PAGE_BYTES = 4096,
	/*
	 * Members of one archive. An application has some dozens of libraries. Members beyond this
	 * have no names.
	 */
	MAX_PARTS = 1024
};

/*
 * An executable mapping: the first byte of the file that it contains, and the end of it or of a
 * mapping before it, whichever is later.
 */
struct shown {
	uint64_t offset, reach;
};

/* State of searching one archive. */
struct archive {
	const struct group_opening *opening;
	struct object_file *host;
	struct zip zip;
	struct byte_source source;
	uint32_t *lines;    /* room for all line numbers */
	struct shown *code; /* by offset */
	size_t code_count;
};

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

/* Lists the executable mappings. False when out of memory. */
static bool find_code(struct archive *archive)
{
	const struct mapped_file *group = archive->opening->group;
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

/* Number of executable mappings that start before this byte. */
static size_t begun_before(const struct archive *archive, uint64_t offset)
{
	return ascending_items_below(archive->code, archive->code_count, sizeof(*archive->code),
				     offset);
}

/* True when an executable mapping contains one of these bytes. */
static bool is_shown(const struct archive *archive, uint64_t start, uint64_t end)
{
	size_t count = begun_before(archive, end);

	return count && archive->code[count - 1].reach > start;
}

/* True when an executable mapping starts in the pages of these bytes. */
static bool is_begun(const struct archive *archive, uint64_t start, uint64_t end)
{
	return begun_before(archive, end) > begun_before(archive, page_of(start));
}

/* ---- a member that is an image --------------------------------------------------- */

/* Collects the lines that start in its pages and belong to no image yet. */
static size_t lines_of_part(const struct mapped_file *group, uint64_t start, uint64_t end,
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

static struct sym_error *note_part(struct mapped_file *group, uint64_t start, uint64_t end,
				   struct sym_image *image)
{
	if (!group->parts)
		group->parts = calloc(MAX_PARTS, sizeof(*group->parts));
	if (!group->parts)
		return &sym_error_no_memory;
	group->parts[group->part_count++] = (struct image_part){ start, end, image };
	return NULL;
}

/*
 * Adds an image for each placement. Without a placement, one image without an address, for mappings
 * that contain the file as it is.
 */
static struct sym_error *add_images(const struct archive *archive, const char *path,
				    struct object_file *object, uint64_t end)
{
	const struct group_opening *opening = archive->opening;
	struct mapped_file *group = opening->group;
	uint64_t start = object->file.offset;
	size_t first = group->image_count,
	       line_count = lines_of_part(group, start, end, archive->lines);
	struct placements placements;
	struct sym_image *image;
	struct sym_error *error = placement_find(object, start, group->mappings, archive->lines,
						 line_count, &placements);

	if (error)
		return error;
	error = mapped_file_place(opening, path, object, &placements, archive->lines, line_count);
	placements_deinit(&placements);
	if (!error && group->image_count == first)
		error = mapped_file_add(opening, path, object, UINT64_MAX, &image);
	for (size_t i = first; !error && i < group->image_count; i++) {
		struct sym_error *trouble = mapped_file_check(opening->context->process, object,
							      group->images[i]->load_base, group);

		if (trouble)
			image_set_trouble(group->images[i], trouble);
	}
	return error ? error : note_part(group, start, end, group->images[first]);
}

/*
 * Adds an image with a problem, for a member whose bytes are mapped as code but cannot be used.
 * Takes ownership of `why`.
 */
static struct sym_error *add_trouble(const struct archive *archive, const char *path,
				     uint64_t start, uint64_t end, struct sym_error *why)
{
	struct sym_image *image;
	struct sym_error *error = mapped_file_add(archive->opening, path, NULL, UINT64_MAX, &image);

	if (error) {
		sym_error_destroy(why);
		return error;
	}
	image_set_trouble(image, why);
	return note_part(archive->opening->group, start, end, image);
}

/* A member whose position is unknown extends at most from its header to the next one. */
static struct sym_error *add_unlocated(const struct archive *archive,
				       const struct zip_member *member, struct sym_error *why)
{
	const struct mapped_file *group = archive->opening->group;
	uint64_t start = member->header_offset, end = start + member->packed_bytes;
	struct sym_error *error;
	char *path;

	if (group->part_count && start < group->parts[group->part_count - 1].end_offset)
		start = group->parts[group->part_count - 1].end_offset;
	if (start >= end || !is_begun(archive, start, end)) {
		sym_error_destroy(why);
		return NULL;
	}
	path = embedded_image_path(group->path, member->name, member->name_bytes);
	error = path ? add_trouble(archive, path, start, end, why) : &sym_error_no_memory;
	if (!path)
		sym_error_destroy(why);
	free(path);
	return error;
}

static struct sym_error *add_member(const struct archive *archive, const struct zip_member *member)
{
	const struct mapped_file *group = archive->opening->group;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_error *error;
	uint64_t offset, end;

	error = zip_locate(&archive->source, &archive->zip, member, &offset);
	if (sym_error_is_no_memory(error))
		return error;
	if (error)
		return add_unlocated(archive, member, error);
	end = offset + member->size_bytes;
	if (!is_shown(archive, offset, end) ||
	    !embedded_image_begins_at(&archive->source, offset, member->size_bytes))
		return NULL;
	path = embedded_image_path(group->path, member->name, member->name_bytes);
	if (!path)
		return &sym_error_no_memory;
	error = embedded_image_open(archive->opening, archive->host, path, offset,
				    member->size_bytes, &object);
	if (sym_error_is_no_memory(error))
		return error;
	if (error)
		return add_trouble(archive, path, offset, end, error);
	return add_images(archive, path, object, end);
}

/* ---- all of them -------------------------------------------------------------------- */

/* Gives lines without a placement to the one member that contains them, or marks them as shared. */
static void share_lines(const struct archive *archive)
{
	struct mapped_file *group = archive->opening->group;

	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];
		const struct image_part *part = mapped_file_part_at(group, line->offset);

		if (group->places[i].placed || !group->part_count)
			continue;
		if (part && end_of(line) <= page_of(part->end_offset + PAGE_BYTES - 1))
			mapped_file_give(archive->opening, i, part->image, false);
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
	const struct mapped_file *group = archive->opening->group;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < archive->zip.count && group->part_count < MAX_PARTS; i++)
		if (may_be_shown(archive, &archive->zip.members[i]))
			error = add_member(archive, &archive->zip.members[i]);
	if (!error)
		share_lines(archive);
	return error;
}

/* The file may be truncated or rebuilt from memory, where the directory is not needed. */
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
	struct mapped_file *group = archive->opening->group;
	struct sym_error *error;
	bool is_zip;

	archive->lines = calloc(group->mapping_count + 1, sizeof(*archive->lines));
	if (!archive->lines || !find_code(archive))
		return &sym_error_no_memory;
	if (!archive->code_count)
		return NULL;
	error = embedded_image_read_archive(archive->host->fd, group->path, &archive->source,
					    &archive->zip, &is_zip);
	if (!error && is_zip)
		return add_members(archive);
	if (!error)
		error = check_start(archive);
	if (error && !sym_error_is_no_memory(error)) {
		image_set_trouble(group->images[0], error);
		error = NULL;
	}
	return error;
}

struct sym_error *snapshot_add_archive(const struct group_opening *opening,
				       struct object_file *host)
{
	struct archive archive = { .opening = opening, .host = host };
	struct sym_error *error = add_archive(&archive);

	free(archive.code);
	free(archive.lines);
	zip_deinit(&archive.zip);
	return error;
}
