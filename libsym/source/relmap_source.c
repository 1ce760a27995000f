/* SPDX-License-Identifier: MIT */
/*
 * Symbols from a relative map: rvas in, names out.
 * Different compilations of one assembly can have the same MVID, time stamp and map signature, so
 * none of them proves that a map fits.
 * A map is used only if every row is the start and the size of a method of this image.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/grow.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/file/relmap_name.h"
#include "libsym/format/dotnet/relmap.h"
#include "libsym/index/index.h"
#include "libsym/limits.h"
#include "libsym/source/source.h"

static const char tier[] = "PreJIT";
static const uint32_t newest_version = 1; /* of an r2rmap */

struct relmap {
	struct buf text;
	struct relmap_row *rows; /* by rva, then in the order of the file; names in `text` */
	size_t count, capacity;
	struct index *index; /* value: 0 */
};

static void close_map(void *source)
{
	struct relmap *relmap = source;

	if (!relmap)
		return;
	index_destroy(relmap->index);
	free(relmap->rows);
	buf_deinit(&relmap->text);
	free(relmap);
}

DEFINE_GUARD(relmap, struct relmap *, close_map)
#define AUTO_RELMAP GUARDED(relmap)

typedef void (*name_writer)(struct object_file *object, const char *path, struct buf *ret);

/* The two possible names of a map, in the order of the search. */
static const name_writer name_writers[] = { relmap_name_relative, relmap_name_r2rmap };

/* Makes the path DIR/[KEY/]NAME; NULL on failure. */
static const char *place_of_map(const struct source_input *input, const char *dir, const char *key,
				name_writer write_name, struct buf *path)
{
	struct buf name;

	buf_init(&name, LIMIT_NAME_BYTES);
	buf_clear(path);
	write_name(input->object, input->object->path, &name);
	if (buf_string(&name))
		buf_printf(path, "%s/%s%s%s", dir, key ? key : "", key ? "/" : "", name.data);
	buf_deinit(&name);
	return path->size_bytes ? buf_string(path) : NULL;
}

/* True when the file exists and was read whole. */
static bool read_map(const char *path, struct buf *text)
{
	int fd AUTO_CLOSE = foreign_file_open(-1, path, 0, NULL, NULL);

	buf_clear(text);
	return fd >= 0 && !path_read_all(fd, text);
}

/*
 * Collects the rows in the order of the file, but at most one more than `most`. The header, whose
 * rows may stand anywhere, is complete if there are not more.
 */
static struct sym_error *collect_rows(struct relmap *relmap, size_t most, struct relmap_header *ret)
{
	struct relmap_parser parser;
	struct relmap_row row;

	relmap->count = 0;
	relmap_parser_init(&parser, relmap->text.data, relmap->text.size_bytes);
	while (relmap->count <= most && relmap_parser_next(&parser, &row)) {
		if (!grow_items((void **)&relmap->rows, &relmap->capacity, relmap->count,
				sizeof(row)))
			return &sym_error_no_memory;
		relmap->rows[relmap->count++] = row;
	}
	*ret = parser.header;
	return NULL;
}

static void refuse_signature(struct buf *why, const char *path, const uint8_t *map,
			     const uint8_t *image)
{
	char map_hex[33], image_hex[33];

	hex_write_bytes(map_hex, map, 16);
	hex_write_bytes(image_hex, image, 16);
	buf_printf(why, "%s was made for another image: its signature is %s, that of the image %s",
		   path, map_hex, image_hex);
}

static bool accept_header(const struct source_input *input, const char *path,
			  const struct relmap_header *header, struct buf *why)
{
	const struct pe *pe = precompiled_pe(input->precompiled);

	if (header->has_version && header->version > newest_version) {
		buf_printf(why, "%s has version %u of the format (known: up to %u)", path,
			   header->version, newest_version);
		return false;
	}
	if (header->has_signature && pe->has_r2rmap_entry &&
	    memcmp(header->signature, pe->r2rmap_signature, sizeof(header->signature))) {
		refuse_signature(why, path, header->signature, pe->r2rmap_signature);
		return false;
	}
	return true;
}

/* True when all rows are methods of the image. */
static bool accept_rows(const struct source_input *input, const char *path,
			const struct relmap *relmap, struct buf *why)
{
	const char *mvid = object_file_mvid_text(input->object);

	for (size_t i = 0; i < relmap->count; i++) {
		const struct relmap_row *row = &relmap->rows[i];

		if (precompiled_has_method(input->precompiled, row->rva, row->size_bytes))
			continue;
		buf_printf(why,
			   "%s was made from another compilation of %s%s%s: no method of the image "
			   "begins at 0x%x and has 0x%x bytes",
			   path, input->object->path, mvid ? ", MVID " : "", mvid ? mvid : "",
			   row->rva, row->size_bytes);
		return false;
	}
	return true;
}

/* Reads the text of the map. */
static struct sym_error *accept_map(const struct source_input *input, const char *path,
				    struct relmap *relmap, struct buf *why, bool *accepted_ret)
{
	size_t most = r2r_method_count(precompiled_r2r(input->precompiled));
	struct relmap_header header;
	struct sym_error *error = collect_rows(relmap, most, &header);

	if (error)
		return error;
	/* Aliases are rows of their own. Still no image has more rows than methods. */
	if (relmap->count > most)
		buf_printf(why,
			   "%s was made for another image: it has more rows than this one has "
			   "methods (%zu)",
			   path, most);
	else
		*accepted_ret = accept_header(input, path, &header, why) &&
				accept_rows(input, path, relmap, why);
	return NULL;
}

/* Names are parts of one text, so their addresses have the order of the rows. */
static int compare_rows(const void *left, const void *right)
{
	const struct relmap_row *a = left, *b = right;

	if (a->rva != b->rva)
		return a->rva < b->rva ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* In reverse order: of aliases the first in the file is added last, and so stays. */
static struct sym_error *index_rows(struct relmap *relmap)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);

	if (error)
		return error;
	if (relmap->count)
		qsort(relmap->rows, relmap->count, sizeof(*relmap->rows), compare_rows);
	for (size_t i = relmap->count; i-- > 0;)
		index_builder_add(builder, relmap->rows[i].rva, relmap->rows[i].size_bytes,
				  relmap->rows[i].name, relmap->rows[i].name_bytes, 0);
	return index_freeze(builder, &relmap->index);
}

/*
 * Searches one directory: below the content key, which only this image has, then in the directory
 * itself.
 */
static struct sym_error *find_in(const struct source_input *input, const char *dir,
				 struct relmap *relmap, struct buf *path, struct buf *why,
				 bool *found_ret)
{
	const size_t writers = sizeof(name_writers) / sizeof(name_writers[0]);
	const char *key = object_file_content_key(input->object);
	struct sym_error *error = NULL;

	for (size_t i = key ? 0 : writers; !error && !*found_ret && i < 2 * writers; i++) {
		const char *place = place_of_map(input, dir, i < writers ? key : NULL,
						 name_writers[i % writers], path);

		if (place && read_map(place, &relmap->text))
			error = accept_map(input, place, relmap, why, found_ret);
	}
	return error;
}

/* True for "STEM{MVID}.map" with another MVID. */
static bool is_of_another(const char *file, const char *stem, const char *mvid)
{
	size_t stem_bytes = strlen(stem);

	return !strncmp(file, stem, stem_bytes) && strlen(file) == stem_bytes + 42 &&
	       file[stem_bytes] == '{' && !strcmp(file + stem_bytes + 37, "}.map") &&
	       strncmp(file + stem_bytes + 1, mvid, 36) != 0;
}

DEFINE_GUARD(directory, DIR *, closedir)

/*
 * Reports a map for another build of the assembly, so that its owner finds out why it is not used.
 */
static void look_for_others(const struct source_input *input, const char *dir, struct buf *why)
{
	const char *name = object_file_assembly_name(input->object);
	const char *mvid = object_file_mvid_text(input->object);
	DIR *directory GUARDED(directory) = NULL;
	const struct dirent *entry;
	struct buf stem;

	if (!name || !mvid || why->size_bytes || !(directory = opendir(dir)))
		return;
	buf_init(&stem, LIMIT_NAME_BYTES);
	buf_printf(&stem, "%s.ni.", name);
	while (buf_string(&stem) && (entry = readdir(directory)))
		if (is_of_another(entry->d_name, stem.data, mvid)) {
			buf_printf(why, "%s/%s was made for another image: that of %s has MVID %s",
				   dir, entry->d_name, name, mvid);
			break;
		}
	buf_deinit(&stem);
}

static struct sym_error *find_map(const struct source_input *input, struct relmap *relmap,
				  struct buf *path, struct buf *why, bool *found_ret)
{
	struct sym_error *error = NULL;
	const char *const *dir;

	for (dir = input->relative_map_dirs; *dir && !error && !*found_ret; dir++)
		error = find_in(input, *dir, relmap, path, why, found_ret);
	if (error || *found_ret)
		return error ? error : index_rows(relmap);
	for (dir = input->relative_map_dirs; *dir; dir++)
		look_for_others(input, *dir, why);
	return NULL;
}

static struct sym_error *open_map(const struct source_input *input, struct buf *why, void **ret)
{
	struct relmap *relmap AUTO_RELMAP = NULL;
	struct sym_error *error;
	bool found = false;
	struct buf path;

	if (!input->relative_map_dirs || !input->precompiled)
		return NULL;
	relmap = calloc(1, sizeof(*relmap));
	if (!relmap)
		return &sym_error_no_memory;
	buf_init(&relmap->text, LIMIT_RELATIVE_MAP_BYTES);
	buf_init(&path, LIMIT_NAME_BYTES);
	error = find_map(input, relmap, &path, why, &found);
	buf_deinit(&path);
	if (!error && found)
		*ret = STEAL(relmap);
	return error;
}

static enum source_outcome find_row(void *source, uint64_t position, struct source_match *ret)
{
	const struct relmap *relmap = source;
	struct index_entry entry;

	if (index_look_up(relmap->index, position, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.tier = tier,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	return SOURCE_HIT;
}

static struct sym_error *list_rows(void *source, const struct source_sink *sink)
{
	const struct relmap *relmap = source;

	for (size_t i = 0; i < relmap->count; i++) {
		const struct relmap_row *row = &relmap->rows[i];
		struct sym_symbol symbol = {
			.start = sink->base + row->rva,
			.size_bytes = row->size_bytes,
			.tier = tier,
			.kind = SYM_SYMBOL_FUNCTION,
			.source = SYM_SOURCE_RELATIVE_MAP,
			.image_index = sink->image_index,
		};

		symbols_builder_add(sink->builder, &symbol, row->name, row->name_bytes);
	}
	return NULL;
}

const struct source_ops source_relmap = {
	.kind = SYM_SOURCE_RELATIVE_MAP,
	.open = open_map,
	.find = find_row,
	.list = list_rows,
	.close = close_map,
};
