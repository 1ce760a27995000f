/* SPDX-License-Identifier: MIT */
/*
 * Compares the places of images with the list that the runtime has written.
 * An image that was unloaded and loaded again has several lines.
 * So a line contradicts only if no other line has the place of an image with its path.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/dotnet/perfinfo.h"
#include "libsym/limits.h"
#include "libsym/snapshot/snapshot.h"

/* Path of a file inside a single-file application: HOST!/NAME. */
static const char bundle_mark[] = "!/";

/* The runtime writes the path of a file inside a bundle as if it were beside the host. */
static bool is_in_bundle(const char *path, const struct perfinfo_line *line)
{
	const char *mark = strstr(path, bundle_mark), *name;
	size_t directory_bytes, name_bytes;

	if (!mark)
		return false;
	name = mark + sizeof(bundle_mark) - 1;
	name_bytes = strlen(name);
	while (mark > path && mark[-1] != '/')
		mark--;
	directory_bytes = (size_t)(mark - path);
	return line->path_bytes == directory_bytes + name_bytes &&
	       !memcmp(line->path, path, directory_bytes) &&
	       !memcmp(line->path + directory_bytes, name, name_bytes);
}

static bool is_of(const struct sym_image *image, const struct perfinfo_line *line)
{
	size_t path_bytes = strlen(image->path);

	return (path_bytes == line->path_bytes && !memcmp(image->path, line->path, path_bytes)) ||
	       is_in_bundle(image->path, line);
}

/* The result of comparing a line with the images of its path. */
struct verdict {
	const struct sym_image *image; /* one with that path; NULL: none is mapped */
	bool agrees;
	bool has_other_mvid;
	bool is_past; /* another line has the place of an image with that path */
};

/* `confirmed`: one byte for each image, set when a line has its place. */
static struct verdict load_check_compare_line(const struct sym_snapshot *snapshot,
					      const struct perfinfo_line *line, uint8_t *confirmed)
{
	struct verdict verdict = { 0 };

	for (size_t i = 0; i < snapshot->image_count && !verdict.agrees; i++) {
		struct sym_image *image = snapshot->images[i];
		const char *mvid;

		/* An unreadable image cannot be compared. */
		if (!image->object || image_trouble(image) || !is_of(image, line))
			continue;
		mvid = sym_image_mvid(image);
		verdict.image = image;
		verdict.is_past |= confirmed[i];
		verdict.has_other_mvid = mvid && strcmp(mvid, line->mvid) != 0;
		verdict.agrees = !verdict.has_other_mvid &&
				 (!line->has_base || image->load_base == UINT64_MAX ||
				  image->load_base == line->base_address);
		if (verdict.agrees && line->has_base)
			confirmed[i] = 1;
	}
	return verdict;
}

static bool load_check_describe(struct sym_load_check *check, const struct verdict *verdict,
				const struct perfinfo_line *line)
{
	const char *path = verdict->image->path;
	char *text;
	int length;

	if (verdict->has_other_mvid)
		length = asprintf(&text, "%s has MVID %s, and the runtime loaded %s", path,
				  sym_image_mvid(verdict->image), line->mvid);
	else
		length = asprintf(&text,
				  "%s is mapped at 0x%" PRIx64
				  ", and the runtime loaded it at 0x%" PRIx64,
				  path, verdict->image->load_base, line->base_address);
	if (length >= 0)
		check->contradiction = text;
	return length >= 0;
}

/* The lines that agree come first. Then it is known which others are outdated. */
static bool check_lines(const struct sym_snapshot *snapshot, const struct buf *text,
			struct sym_load_check *check)
{
	uint8_t *confirmed AUTO_FREE = calloc(snapshot->image_count + 1, 1);
	struct perfinfo_parser parser;
	struct perfinfo_line line;

	if (!confirmed)
		return false;
	perfinfo_parser_init(&parser, text->data, text->size_bytes);
	while (perfinfo_parser_next(&parser, &line))
		load_check_compare_line(snapshot, &line, confirmed);
	check->line_count = parser.good_lines;
	check->bad_line_count = parser.bad_lines;
	perfinfo_parser_init(&parser, text->data, text->size_bytes);
	while (perfinfo_parser_next(&parser, &line)) {
		struct verdict verdict = load_check_compare_line(snapshot, &line, confirmed);

		if (!verdict.image)
			continue;
		check->mapped_count++;
		check->base_count += line.has_base && verdict.image->load_base != UINT64_MAX;
		if (verdict.agrees || verdict.is_past)
			continue;
		check->contradiction_count++;
		if (!check->contradiction && !load_check_describe(check, &verdict, &line))
			return false;
	}
	return true;
}

static struct sym_error *read_and_check(const struct sym_snapshot *snapshot,
					const struct perfmap_file *file,
					struct sym_load_check *check)
{
	struct sym_error *error = snapshot_open_all(snapshot);
	struct buf text;
	int result;

	if (error)
		return error;
	buf_init(&text, LIMIT_PERFINFO_BYTES);
	result = path_read_all(file->fd, &text);
	if (result)
		error = sym_error_from_errno(-result, file->path, "cannot read");
	else if (!(check->path = strdup(file->path)) || !check_lines(snapshot, &text, check))
		error = &sym_error_no_memory;
	buf_deinit(&text);
	return error;
}

struct sym_error *sym_snapshot_load_check(struct sym_snapshot *snapshot,
					  const struct sym_load_check **ret)
{
	struct sym_load_check check = { 0 };
	struct perfmap_location place;
	struct sym_error *error = perfmap_location_find_perfinfo(snapshot->process, &place);

	if (error)
		return error;
	/* The file that the process itself writes comes last. */
	if (place.file_count)
		error = read_and_check(snapshot, &place.files[place.file_count - 1], &check);
	perfmap_location_deinit(&place);
	if (error) {
		load_check_deinit(&check);
		return error;
	}
	load_check_deinit(&snapshot->load_check);
	snapshot->load_check = check;
	*ret = &snapshot->load_check;
	return NULL;
}
