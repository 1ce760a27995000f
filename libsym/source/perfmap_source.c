/* SPDX-License-Identifier: MIT */
#include "libsym/source/perfmap_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_tier.h"
#include "libsym/format/perfmap_usual.h"
#include "libsym/index.h"
#include "libsym/index_levels.h"
#include "libsym/limits.h"
#include "libsym/source/perfmap_first.h"
#include "libsym/source/perfmap_names.h"
#include "libsym/source/written_file.h"

enum {
	/* Bytes read at a time, behind a line whose end has not been read yet. */
	STEP_BYTES = 1 << 16,
	/* The same of so much text that it pays to touch the memory: the kernel copies faster to
	 * where it last wrote long ago. */
	LARGE_STEP_BYTES = 1 << 20,
	LARGE_TEXT_BYTES = 1 << 25,
	LINES_AT_ONCE = 64
};

/* Beyond this a line without an end is given up: 2 numbers and a name have less. */
static const size_t longest_line_bytes = (1 << 16) + 64;

static const size_t line_bytes_guess = 64;

/* What of a file has been read. */
struct perfmap_file {
	struct written_file *text; /* as of the last look, which may have been in vain */
	char *path;
	struct stat status; /* as of the last reading, and with what was held back: */
	uint64_t size_bytes;
	uint64_t next_offset; /* first byte that has not been taken: a line that is torn, or the end
			       */
	bool skipping;        /* it is inside a line that is too long */
	/* The bytes before it, and the first ones: when they are others, the file was written anew.
	 */
	char mark[64], head[64];
	size_t mark_bytes;          /* of both */
	struct address_ranges only; /* as of perfmap_input; no items: NULL */
};

struct perfmap_source {
	struct index_levels levels; /* values: see perfmap_first.h */
	struct perfmap_first first; /* the only level of the first view */
	struct perfmap_names *names;
	uint64_t bad_lines;
	struct perfmap_file *files;
	size_t file_count;
};

struct perfmap_builder {
	struct perfmap_source *source;
	struct index_builder *symbols;
	const struct address_ranges *only; /* of the file that is read; NULL: all lines hold */
	char *room;                        /* step_bytes + longest_line_bytes */
	size_t step_bytes;                 /* read at a time */
	size_t kept_bytes;                 /* of a line whose end has not been read yet */
	bool skipping;                     /* until the end of a line that is too long */
	uint64_t bad_lines;
	enum perfmap_names_outcome outcome; /* of the names, the first that was not added */
};

void perfmap_source_close(struct perfmap_source *source)
{
	if (!source)
		return;
	index_levels_deinit(&source->levels);
	for (size_t i = 0; i < source->file_count; i++) {
		written_file_deinit(source->files[i].text);
		free(source->files[i].text);
		free(source->files[i].path);
		address_ranges_deinit(&source->files[i].only);
	}
	free(source->files);
	perfmap_names_destroy(source->names);
	free(source);
}

static bool is_wanted(const struct perfmap_builder *builder, uint64_t start, uint64_t size_bytes)
{
	return !builder->only || address_ranges_have(builder->only, start, size_bytes);
}

/* A line that is not usual; false, with the outcome set, when no more names are to be had. */
static bool add_line(struct perfmap_builder *builder, const struct perfmap_line *line)
{
	struct perfmap_names *names = builder->source->names;
	struct numbered_range range = { line->start_address, line->size_bytes, 0, 0 };

	if (!is_wanted(builder, range.start, range.size_bytes))
		return true;
	builder->outcome = perfmap_names_add(
		names, line->name, names->tier_in_name ? line->name_bytes : line->bare_bytes,
		line->name_bytes, &range.number);
	if (builder->outcome != PERFMAP_NAMES_ADDED)
		return false;
	range.value = names->tier_in_name ? 0 : line->tier;
	if (perfmap_is_stub(line->name, line->name_bytes))
		range.value |= PERFMAP_STUB_BIT;
	index_builder_add_numbers(builder->symbols, &range, 1);
	return true;
}

/* How many there are of those that are wanted, which follow one another then. */
static size_t keep_wanted(const struct perfmap_builder *builder, struct numbered_range *ranges,
			  uint32_t *ends, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_wanted(builder, ranges[i].start, ranges[i].size_bytes)) {
			ranges[kept] = ranges[i];
			ends[kept++] = ends[i];
		}
	return kept;
}

/* Usual lines from *next on. */
static void add_usual(struct perfmap_builder *builder, struct perfmap_usual *usual,
		      const char **next)
{
	struct perfmap_names *names = builder->source->names;
	struct numbered_range ranges[LINES_AT_ONCE];
	uint32_t ends[LINES_AT_ONCE];
	size_t count;

	while ((count = perfmap_usual_take(usual, next, ranges, ends, LINES_AT_ONCE))) {
		if (builder->only)
			count = keep_wanted(builder, ranges, ends, count);
		perfmap_names_add_lines(names, ranges, ends, count);
		for (size_t i = 0; names->tier_in_name && i < count; i++)
			ranges[i].value &= PERFMAP_STUB_BIT;
		index_builder_add_numbers(builder->symbols, ranges, count);
	}
}

/* The text has a line. */
static void parse_lines(struct perfmap_builder *builder, struct perfmap_parser *parser)
{
	const bool quickly = perfmap_usual_works();
	struct perfmap_usual usual;
	struct perfmap_line line;
	uint32_t number;

	builder->outcome = perfmap_names_number(builder->source->names, &number);
	if (builder->outcome != PERFMAP_NAMES_ADDED)
		return;
	perfmap_usual_init(&usual, parser->next, (size_t)(parser->end - parser->next), number);
	do {
		if (quickly && !parser->newline)
			add_usual(builder, &usual, &parser->next);
	} while (perfmap_parser_next(parser, &line) && add_line(builder, &line));
	perfmap_names_end(builder->source->names);
	builder->bad_lines += parser->bad_lines;
}

/* Takes the whole lines out of the first `size_bytes` of the room, which are at `offset` of the
 * file; the rest of a line moves to its front. */
static void parse_room(struct perfmap_builder *builder, const struct written_file *file,
		       uint64_t offset, size_t size_bytes)
{
	const bool is_held =
		file->held.size_bytes && offset + size_bytes > (uint64_t)file->status.st_size;
	const char *text = builder->room;
	struct perfmap_parser parser;

	if (builder->skipping) {
		const char *end = memchr(text, '\n', size_bytes);

		builder->kept_bytes = 0;
		if (!end)
			return;
		builder->skipping = false;
		size_bytes -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	perfmap_parser_init(&parser, text, size_bytes);
	perfmap_names_begin(builder->source->names, file->fd,
			    offset + (uint64_t)(text - builder->room), text, size_bytes, is_held);
	if (memrchr(text, '\n', size_bytes))
		parse_lines(builder, &parser);
	builder->kept_bytes = (size_t)(parser.end - parser.next);
	memmove(builder->room, parser.next, builder->kept_bytes);
	if (builder->kept_bytes > longest_line_bytes) {
		builder->bad_lines++;
		builder->skipping = true;
		builder->kept_bytes = 0;
	}
}

static struct sym_error *names_error(const struct perfmap_names *names,
				     enum perfmap_names_outcome outcome, const char *path)
{
	switch (outcome) {
	case PERFMAP_NAMES_ADDED:
		return NULL;
	case PERFMAP_NAMES_FULL:
		return sym_error_create_path(SYM_ERROR_LIMIT, path, SYM_OFFSET_UNKNOWN,
					     "more than %llu bytes of names",
					     (unsigned long long)names->reserved_bytes);
	case PERFMAP_NAMES_NO_MEMORY:
		break;
	}
	return &sym_error_no_memory;
}

/* From where the file was left to its end. */
static struct sym_error *read_file(struct perfmap_builder *builder, struct perfmap_file *file)
{
	uint64_t offset = file->next_offset;

	builder->kept_bytes = 0;
	builder->skipping = file->skipping;
	builder->only = file->only.items ? &file->only : NULL;
	for (;;) {
		ssize_t got = written_file_read(file->text, builder->room + builder->kept_bytes,
						builder->step_bytes, offset);

		if (got < 0)
			return sym_error_from_errno((int)-got, file->path, "cannot read");
		if (!got)
			break;
		offset += (uint64_t)got;
		if (offset > LIMIT_PERF_MAP_BYTES)
			return sym_error_create_path(SYM_ERROR_LIMIT, file->path,
						     SYM_OFFSET_UNKNOWN,
						     "more than %llu bytes (LIMIT_PERF_MAP_BYTES)",
						     (unsigned long long)LIMIT_PERF_MAP_BYTES);
		parse_room(builder, file->text, offset - (uint64_t)got - builder->kept_bytes,
			   builder->kept_bytes + (size_t)got);
		if (builder->outcome != PERFMAP_NAMES_ADDED)
			return names_error(builder->source->names, builder->outcome, file->path);
	}
	file->next_offset = offset - builder->kept_bytes;
	file->skipping = builder->skipping;
	return NULL;
}

static bool read_marks(const struct perfmap_file *file, size_t bytes, char *mark, char *head)
{
	return written_file_read(file->text, mark, bytes, file->next_offset - bytes) ==
		       (ssize_t)bytes &&
	       written_file_read(file->text, head, bytes, 0) == (ssize_t)bytes;
}

static void set_marks(struct perfmap_file *file)
{
	file->mark_bytes = file->next_offset < sizeof(file->mark) ? (size_t)file->next_offset
								  : sizeof(file->mark);
	if (!read_marks(file, file->mark_bytes, file->mark, file->head))
		file->mark_bytes = 0;
}

static uint64_t bytes_to_read(const struct perfmap_source *source)
{
	uint64_t total_bytes = 0;

	for (size_t i = 0; i < source->file_count; i++)
		if (source->files[i].size_bytes > source->files[i].next_offset)
			total_bytes += source->files[i].size_bytes - source->files[i].next_offset;
	return total_bytes;
}

/*
 * Lines of runtimes have 80 bytes and more; where they are shorter, the index grows.
 * Memory that is not used costs nothing.
 */
static void reserve(struct perfmap_builder *builder, uint64_t total_bytes)
{
	if (total_bytes < STEP_BYTES || total_bytes >= LIMIT_PERF_MAP_BYTES)
		return;
	index_builder_reserve(builder->symbols, total_bytes / line_bytes_guess, 0);
	perfmap_names_expect(builder->source->names, total_bytes);
}

/* What is new in `files`, which are left at their new ends; *ret is NULL when there is nothing. */
static struct sym_error *read_files(struct perfmap_source *source, struct perfmap_file *files,
				    struct index **ret)
{
	struct perfmap_builder builder = { .source = source };
	struct sym_error *error = index_builder_create_numbered(&builder.symbols);
	uint64_t total_bytes = bytes_to_read(source);

	*ret = NULL;
	if (error)
		return error;
	builder.step_bytes = total_bytes < LARGE_TEXT_BYTES ? STEP_BYTES : LARGE_STEP_BYTES;
	builder.room = malloc(builder.step_bytes + longest_line_bytes);
	if (!builder.room)
		error = &sym_error_no_memory;
	else
		reserve(&builder, total_bytes);
	for (size_t i = 0; !error && i < source->file_count; i++)
		error = read_file(&builder, &files[i]);
	if (!error)
		error = index_freeze(builder.symbols, ret);
	if (!error && !index_count(*ret) && source->levels.first) {
		index_destroy(*ret);
		*ret = NULL;
	}
	if (!error)
		source->bad_lines += builder.bad_lines;
	index_builder_destroy(builder.symbols);
	free(builder.room);
	return error;
}

/* The next one of the source. */
static struct sym_error *keep_file(struct perfmap_source *source, const struct perfmap_input *input)
{
	struct perfmap_file *file = &source->files[source->file_count];
	int result;

	file->text = malloc(sizeof(*file->text));
	if (!file->text) {
		struct held_back writer = input->writer;

		held_back_close(&writer);
		return &sym_error_no_memory;
	}
	source->file_count++;
	written_file_init(file->text, fcntl(input->fd, F_DUPFD_CLOEXEC, 0), input->writer);
	result = file->text->fd < 0 ? -errno : written_file_look(file->text);
	if (result)
		return sym_error_from_errno(-result, input->path, "cannot read");
	file->status = file->text->status;
	file->size_bytes = written_file_bytes(file->text);
	file->path = strdup(input->path);
	return file->path && (!input->only || address_ranges_copy(input->only, &file->only))
		       ? NULL
		       : &sym_error_no_memory;
}

/* The writers change hands, also where there is no source to have them. */
static struct sym_error *keep_files(struct perfmap_source *source,
				    const struct perfmap_input *inputs, size_t count)
{
	struct sym_error *error = NULL;

	if (source)
		source->files = calloc(count + 1, sizeof(*source->files));
	if (!source || !source->files)
		error = &sym_error_no_memory;
	for (size_t i = 0; i < count; i++) {
		struct held_back writer = inputs[i].writer;

		if (error)
			held_back_close(&writer);
		else
			error = keep_file(source, &inputs[i]);
	}
	return error;
}

struct sym_error *perfmap_source_open(const struct perfmap_input *inputs, size_t count,
				      unsigned int flags, struct perfmap_source **ret)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = calloc(1, sizeof(*source));
	struct index *index AUTO_INDEX = NULL;
	struct sym_error *error = keep_files(source, inputs, count);

	if (error)
		return error;
	source->names = perfmap_names_create(flags & PERFMAP_TIER_IN_NAME,
					     flags & PERFMAP_KEEP_NAMES ? SIZE_MAX
									: PERFMAP_NAMES_KEPT_BYTES);
	if (!source->names)
		return &sym_error_no_memory;
	error = read_files(source, source->files, &index);
	if (!error)
		error = index_levels_begin(&source->levels, index);
	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		set_marks(&source->files[i]);
	source->first = (struct perfmap_first){ STEAL(index), source->names };
	*ret = STEAL(source);
	return NULL;
}

/* ---- growing --------------------------------------------------------------------------- */

/* What the process held back and was read is not in the file, and it does not tell any more: it was
 * killed, or writes all the time. Those lines are its own all the same. */
static bool is_told_no_more(const struct perfmap_file *file)
{
	const struct written_file *text = file->text;

	return text->writer.context && !text->held.size_bytes &&
	       text->status.st_size >= file->status.st_size;
}

/* Whether there may be something new, and whether what was read is still there. */
static enum perfmap_refresh look_at_file(const struct perfmap_file *file,
					 struct perfmap_file *fresh)
{
	char mark[sizeof(file->mark)], head[sizeof(file->head)];
	struct stat named;

	if (written_file_look(file->text))
		return PERFMAP_REPLACED;
	fresh->status = file->text->status;
	fresh->size_bytes = written_file_bytes(file->text);
	/* Deleted, or out of reach with the process: its bytes are still there. */
	if (!stat(file->path, &named) && !path_is_same_file(&named, &fresh->status))
		return PERFMAP_REPLACED;
	if (fresh->size_bytes < file->next_offset)
		return is_told_no_more(file) ? PERFMAP_UNCHANGED : PERFMAP_REPLACED;
	/* Nothing was appended, so something was written over what was there. */
	if (fresh->status.st_size == file->status.st_size && fresh->size_bytes == file->size_bytes)
		return memcmp(&fresh->status.st_mtim, &file->status.st_mtim,
			      sizeof(file->status.st_mtim))
			       ? PERFMAP_REPLACED
			       : PERFMAP_UNCHANGED;
	return read_marks(file, file->mark_bytes, mark, head) &&
			       !memcmp(mark, file->mark, file->mark_bytes) &&
			       !memcmp(head, file->head, file->mark_bytes)
		       ? PERFMAP_APPENDED
		       : PERFMAP_REPLACED;
}

static struct sym_error *take_up(struct perfmap_source *source, struct perfmap_file *files,
				 enum perfmap_refresh *ret)
{
	struct index *added AUTO_INDEX = NULL;
	struct sym_error *error = read_files(source, files, &added);

	if (!error && added)
		error = index_levels_add(&source->levels, added);
	if (error && perfmap_names_are_full(source->names)) {
		/* What was read in thousands of pieces has room when it is read in one. */
		sym_error_destroy(error);
		*ret = PERFMAP_REPLACED;
		return NULL;
	}
	if (error)
		return error;
	*ret = added ? PERFMAP_APPENDED : PERFMAP_UNCHANGED;
	added = NULL;
	for (size_t i = 0; i < source->file_count; i++) {
		source->files[i] = files[i];
		set_marks(&source->files[i]);
	}
	return NULL;
}

struct sym_error *perfmap_source_refresh(struct perfmap_source *source, enum perfmap_refresh *ret)
{
	struct perfmap_file *files AUTO_FREE = calloc(source->file_count + 1, sizeof(*files));
	bool grown = false;

	if (!files)
		return &sym_error_no_memory;
	memcpy(files, source->files, source->file_count * sizeof(*files));
	for (size_t i = 0; i < source->file_count; i++) {
		switch (look_at_file(&source->files[i], &files[i])) {
		case PERFMAP_REPLACED:
			*ret = PERFMAP_REPLACED;
			return NULL;
		case PERFMAP_APPENDED:
			grown = true;
			break;
		case PERFMAP_UNCHANGED:
			break;
		}
	}
	*ret = PERFMAP_UNCHANGED;
	return grown ? take_up(source, files, ret) : NULL;
}

bool perfmap_source_has_garbage(const struct perfmap_source *source)
{
	return index_levels_has_garbage(&source->levels);
}

void perfmap_source_collect(struct perfmap_source *source)
{
	index_levels_collect(&source->levels);
}

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source)
{
	return source->bad_lines;
}

size_t perfmap_source_count(const struct perfmap_source *source)
{
	return index_count(source->first.index);
}

void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(source->first.index, i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = perfmap_names_at(source->names, entry.number),
		.tier = perfmap_tier(entry.value),
		.kind = perfmap_kind(entry.value),
		.source = SYM_SOURCE_PERF_MAP,
		.image_index = UINT32_MAX,
	};
}

static inline enum source_outcome take_entry(const struct perfmap_source *source,
					     const struct index_entry *entry,
					     struct source_match *ret)
{
	ret->start = entry->symbol_start;
	ret->size_bytes = entry->symbol_size_bytes;
	ret->name = perfmap_names_at(source->names, entry->number);
	ret->linkage_name = NULL;
	ret->tier = perfmap_tier(entry->value);
	ret->kind = perfmap_kind(entry->value);
	ret->reason = ret->name ? NULL : perfmap_names_lost;
	return ret->name ? SOURCE_HIT : SOURCE_NAMELESS;
}

enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret)
{
	struct index_entry entry;

	if (!index_view_look_up(index_levels_view(&source->levels), address, &entry))
		return SOURCE_MISS;
	return take_entry(source, &entry, ret);
}

/* The first view has one level. */
enum source_outcome perfmap_source_find_first(const struct perfmap_source *source, uint64_t address,
					      struct source_match *ret)
{
	struct index_entry entry;

	if (index_look_up(source->first.index, address, &entry) == INDEX_NONE)
		return SOURCE_MISS;
	return take_entry(source, &entry, ret);
}

const struct perfmap_first *perfmap_source_first(const struct perfmap_source *source)
{
	return &source->first;
}

const struct index_view *perfmap_source_first_view(const struct perfmap_source *source)
{
	return source->levels.first;
}

const struct index_view *perfmap_source_view(const struct perfmap_source *source)
{
	return index_levels_view(&source->levels);
}

void perfmap_source_warm(const struct perfmap_source *source, bool first, const uint64_t *addresses,
			 size_t count)
{
	const struct index_view *view =
		first ? source->levels.first : index_levels_view(&source->levels);

	/* The large one; what came later is small. */
	index_warm(view->levels[0]->index, addresses, count);
}
