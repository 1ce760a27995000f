/* SPDX-License-Identifier: MIT */
/*
 * How perf maps are read and refreshed.
 *
 * Each file is read in steps from where the last reading ended. Whole lines are parsed; an
 * incomplete line stays in front of the room for the next step.
 * Before a refresh the bytes at the start of the file and before the last position are compared
 * (`mark`, `head`). If they differ, the file was overwritten, and the caller opens it again.
 * The new lines become an index of their own, which index_lsm adds to the older ones.
 */
#include "libsym/perf/perfmap_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/format/perf/perfmap.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "libsym/index/index.h"
#include "libsym/index/index_lsm.h"
#include "libsym/index/string_pool.h"
#include "libsym/limits.h"
#include "libsym/perf/growing_file.h"

enum {
	/* Bytes read at once, after an incomplete line. */
	STEP_BYTES = 1 << 16,
	/* Bytes read at once for a text so large that touching more memory pays. */
	LARGE_STEP_BYTES = 1 << 20,
	LARGE_TEXT_BYTES = 1 << 25,
	/* A hole of at least this size is skipped. */
	SMALLEST_HOLE_BYTES = 1 << 20
};

/* A line without an end is given up beyond this: two numbers and a name are shorter. */
static const size_t longest_line_bytes = (1 << 16) + 64;

static const size_t line_bytes_guess = 64;

/* How far a file was read. */
struct perfmap_source_file {
	struct growing_file *text; /* as of the last look, which may have failed */
	char *path;
	struct stat status; /* as of the last reading, and with the unflushed bytes: */
	uint64_t size_bytes;
	uint64_t next_offset; /* first byte that was not parsed: an incomplete line, or the end */
	bool skipping;        /* inside a line that is too long */
	/*
	 * The bytes before it, and the first bytes of the file. If they differ, the file was
	 * overwritten.
	 */
	char mark[64], head[64];
	size_t mark_bytes;          /* of both */
	struct address_ranges only; /* as of perfmap_input; no items: NULL */
};

struct perfmap_source {
	struct index_lsm levels;   /* values: see perfmap_tier.h */
	struct string_pool *names; /* numbers of the levels are offsets in it */
	bool tier_in_name;
	uint64_t bad_lines;
	struct perfmap_source_file *files;
	size_t file_count;
	struct budget_account *account; /* charged; NULL: none */
	uint64_t charged_bytes;         /* for names */
};

struct perfmap_builder {
	struct perfmap_source *source;
	struct index_builder *symbols;
	const struct address_ranges *only; /* of the file that is read; NULL: all lines are used */
	char *room;                        /* step_bytes + longest_line_bytes */
	size_t step_bytes;                 /* read at a time */
	size_t kept_bytes;                 /* of an incomplete line */
	bool skipping;                     /* to the end of a line that is too long */
	uint64_t bad_lines;
	struct sym_error *failure; /* of the first name that was not added; NULL: none */
};

void perfmap_source_close(struct perfmap_source *source)
{
	if (!source)
		return;
	index_lsm_deinit(&source->levels);
	for (size_t i = 0; i < source->file_count; i++) {
		growing_file_deinit(source->files[i].text);
		free(source->files[i].text);
		free(source->files[i].path);
		address_ranges_deinit(&source->files[i].only);
	}
	free(source->files);
	string_pool_destroy(source->names);
	budget_release(source->account, source->charged_bytes);
	free(source);
}

/* Returns false, with the failure set, if the name of the line cannot be kept. */
static bool add_line(struct perfmap_builder *builder, const struct perfmap_line *line)
{
	struct perfmap_source *source = builder->source;
	uint32_t number, value = source->tier_in_name ? 0 : line->tier;

	if (builder->only &&
	    !address_ranges_contain(builder->only, line->start_address, line->size_bytes))
		return true;
	builder->failure = string_pool_add(
		source->names, line->name,
		source->tier_in_name ? line->name_bytes : line->bare_bytes, &number);
	if (builder->failure)
		return false;
	if (perfmap_is_stub(line->name, line->name_bytes))
		value |= PERFMAP_STUB_BIT;
	index_builder_add_number(builder->symbols, line->start_address, line->size_bytes, number,
				 value);
	return true;
}

/* Parses the whole lines in the first `size_bytes` of the room. The rest of a line moves to its
 * front. */
static void parse_room(struct perfmap_builder *builder, size_t size_bytes)
{
	const char *text = builder->room;
	struct perfmap_parser parser;
	struct perfmap_line line;

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
	while (perfmap_parser_next(&parser, &line) && add_line(builder, &line))
		;
	builder->bad_lines += parser.bad_lines;
	builder->kept_bytes = (size_t)(parser.end - parser.next);
	memmove(builder->room, parser.next, builder->kept_bytes);
	if (builder->kept_bytes > longest_line_bytes) {
		builder->bad_lines++;
		builder->skipping = true;
		builder->kept_bytes = 0;
	}
}

/* Offset of the next bytes from `offset` on: a large hole is skipped. */
static uint64_t pass_hole(struct perfmap_builder *builder, const struct perfmap_source_file *file,
			  uint64_t offset)
{
	uint64_t end = (uint64_t)file->text->status.st_size;
	off_t data;

	/* Otherwise no lseek(): it moves a position that may be shared. */
	if (offset >= end ||
	    (uint64_t)file->text->status.st_blocks * 512 + SMALLEST_HOLE_BYTES > end)
		return offset;
	data = lseek(file->text->fd, (off_t)offset, SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		return offset;
	if (data >= 0 && (uint64_t)data < end)
		end = (uint64_t)data;
	if (end - offset < SMALLEST_HOLE_BYTES)
		return offset;
	/* It is a part of one bad line. */
	builder->bad_lines += !builder->skipping;
	builder->skipping = true;
	builder->kept_bytes = 0;
	return end;
}

/*
 * Names are kept to be listed. A list of very long names is copied up to three times by those who
 * write it: the names, the text, and the file with symbols.
 */
static const uint64_t listed_copies = 4;

/* Charges bytes whose names stay in memory. */
static struct sym_error *perfmap_source_charge(struct perfmap_source *source, const char *path,
					       uint64_t bytes)
{
	struct sym_error *error = budget_check_time(source->account, path);

	if (error)
		return error;
	error = budget_charge(source->account, listed_copies * bytes, path);
	if (!error)
		source->charged_bytes += listed_copies * bytes;
	return error;
}

/* Reads from where the last reading ended to the end of the file. */
static struct sym_error *read_file(struct perfmap_builder *builder,
				   struct perfmap_source_file *file)
{
	uint64_t offset = file->next_offset;

	builder->kept_bytes = 0;
	builder->skipping = file->skipping;
	builder->only = file->only.items ? &file->only : NULL;
	for (;;) {
		struct sym_error *error;
		ssize_t got;

		offset = pass_hole(builder, file, offset);
		got = growing_file_read(file->text, builder->room + builder->kept_bytes,
					builder->step_bytes, offset);
		if (got < 0)
			return sym_error_from_errno((int)-got, file->path, "cannot read");
		if (!got)
			break;
		error = perfmap_source_charge(builder->source, file->path, (uint64_t)got);
		if (error)
			return error;
		offset += (uint64_t)got;
		if (offset > LIMIT_PERF_MAP_BYTES)
			return sym_error_create_path(SYM_ERROR_LIMIT, file->path,
						     SYM_OFFSET_UNKNOWN,
						     "more than %llu bytes (LIMIT_PERF_MAP_BYTES)",
						     (unsigned long long)LIMIT_PERF_MAP_BYTES);
		parse_room(builder, builder->kept_bytes + (size_t)got);
		if (builder->failure)
			return sym_error_with_path(STEAL(builder->failure), file->path);
		if (index_builder_has_failed(builder->symbols))
			break;
	}
	file->next_offset = offset - builder->kept_bytes;
	file->skipping = builder->skipping;
	return NULL;
}

static bool read_marks(const struct perfmap_source_file *file, size_t bytes, char *mark, char *head)
{
	return growing_file_read(file->text, mark, bytes, file->next_offset - bytes) ==
		       (ssize_t)bytes &&
	       growing_file_read(file->text, head, bytes, 0) == (ssize_t)bytes;
}

static void set_marks(struct perfmap_source_file *file)
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
 * Lines of runtimes have at least 80 bytes; with shorter ones the index grows. Unused memory costs
 * nothing.
 */
static void perfmap_source_reserve(struct perfmap_builder *builder, uint64_t total_bytes)
{
	if (total_bytes < STEP_BYTES || total_bytes >= LIMIT_PERF_MAP_BYTES)
		return;
	index_builder_reserve(builder->symbols, total_bytes / line_bytes_guess, 0);
	string_pool_reserve(builder->source->names, total_bytes);
}

/* Reads what is new in `files` and advances them. *ret is NULL when there is nothing. */
static struct sym_error *read_files(struct perfmap_source *source,
				    struct perfmap_source_file *files, struct index **ret)
{
	struct perfmap_builder builder = { .source = source };
	struct sym_error *error = index_builder_create_numbered(&builder.symbols);
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(source->account);
	uint64_t total_bytes = bytes_to_read(source);

	*ret = NULL;
	if (error)
		return error;
	index_builder_charge(builder.symbols, source->account, source->files[0].path);
	builder.step_bytes = total_bytes < LARGE_TEXT_BYTES ? STEP_BYTES : LARGE_STEP_BYTES;
	builder.room = malloc(builder.step_bytes + longest_line_bytes);
	if (!builder.room)
		error = &sym_error_no_memory;
	else
		perfmap_source_reserve(&builder, total_bytes);
	for (size_t i = 0; !error && i < source->file_count; i++)
		error = read_file(&builder, &files[i]);
	if (!error)
		error = index_freeze(builder.symbols, ret);
	if (!error && !index_count(*ret) && index_lsm_current(&source->levels)) {
		index_destroy(*ret);
		*ret = NULL;
	}
	if (!error)
		source->bad_lines += builder.bad_lines;
	index_builder_destroy(builder.symbols);
	free(builder.room);
	return error;
}

/* Adds the next file of the source. */
static struct sym_error *keep_file(struct perfmap_source *source, const struct perfmap_input *input)
{
	struct perfmap_source_file *file = &source->files[source->file_count];
	int result;

	file->text = malloc(sizeof(*file->text));
	if (!file->text) {
		struct unflushed writer = input->writer;

		unflushed_close(&writer);
		return &sym_error_no_memory;
	}
	source->file_count++;
	growing_file_init(file->text, fcntl(input->fd, F_DUPFD_CLOEXEC, 0), input->writer);
	result = file->text->fd < 0 ? -errno : growing_file_look(file->text);
	if (result)
		return sym_error_from_errno(-result, input->path, "cannot read");
	file->status = file->text->status;
	file->size_bytes = growing_file_bytes(file->text);
	file->path = strdup(input->path);
	return file->path && (!input->only || address_ranges_copy(input->only, &file->only))
		       ? NULL
		       : &sym_error_no_memory;
}

/* Takes ownership of the writers, also on failure. */
static struct sym_error *keep_files(struct perfmap_source *source,
				    const struct perfmap_input *inputs, size_t count)
{
	struct sym_error *error = NULL;

	if (source)
		source->files = calloc(count + 1, sizeof(*source->files));
	if (!source || !source->files)
		error = &sym_error_no_memory;
	for (size_t i = 0; i < count; i++) {
		struct unflushed writer = inputs[i].writer;

		if (error)
			unflushed_close(&writer);
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
	source->tier_in_name = flags & PERFMAP_TIER_IN_NAME;
	for (size_t i = 0; i < count; i++)
		if (!source->account ||
		    (inputs[i].account && budget_is_stricter(inputs[i].account)))
			source->account = inputs[i].account;
	source->names = string_pool_create();
	if (!source->names)
		return &sym_error_no_memory;
	error = read_files(source, source->files, &index);
	if (!error)
		error = index_lsm_replace(&source->levels, index);
	if (error)
		return error;
	string_pool_trim(source->names);
	for (size_t i = 0; i < count; i++)
		set_marks(&source->files[i]);
	index = NULL; /* owned by the levels now */
	*ret = STEAL(source);
	return NULL;
}

/* ---- growing --------------------------------------------------------------------------- */

/*
 * True when unflushed bytes that were read are neither in the file nor readable any more: the
 * process was killed, or writes all the time. The lines remain valid.
 */
static bool is_told_no_more(const struct perfmap_source_file *file)
{
	const struct growing_file *text = file->text;

	return text->writer.context && !text->held.size_bytes &&
	       text->status.st_size >= file->status.st_size;
}

/* Checks whether there is something new, and whether what was read is unchanged. */
static enum perfmap_refresh look_at_file(const struct perfmap_source_file *file,
					 struct perfmap_source_file *fresh)
{
	char mark[sizeof(file->mark)], head[sizeof(file->head)];
	struct stat named;

	if (growing_file_look(file->text))
		return PERFMAP_REPLACED;
	fresh->status = file->text->status;
	fresh->size_bytes = growing_file_bytes(file->text);
	/*
	 * The file was deleted, or is unreachable because the process ended: its bytes are still
	 * readable.
	 */
	if (!foreign_file_examine(-1, file->path, 0, NULL, &named) &&
	    !path_is_same_file(&named, &fresh->status))
		return PERFMAP_REPLACED;
	if (fresh->size_bytes < file->next_offset)
		return is_told_no_more(file) ? PERFMAP_UNCHANGED : PERFMAP_REPLACED;
	/* Nothing was appended, so something was overwritten. */
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

static struct sym_error *take_up(struct perfmap_source *source, struct perfmap_source_file *files,
				 enum perfmap_refresh *ret)
{
	struct index *added AUTO_INDEX = NULL;
	struct sym_error *error = read_files(source, files, &added);

	if (!error && added)
		error = index_lsm_add(&source->levels, added);
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
	struct perfmap_source_file *files AUTO_FREE =
		calloc(source->file_count + 1, sizeof(*files));
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
	return index_lsm_has_garbage(&source->levels);
}

void perfmap_source_collect(struct perfmap_source *source)
{
	index_lsm_collect(&source->levels);
}

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source)
{
	return source->bad_lines;
}

size_t perfmap_source_count(const struct perfmap_source *source)
{
	return index_count(index_lsm_lowest(&source->levels));
}

void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(index_lsm_lowest(&source->levels), i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = string_pool_at(source->names, entry.number),
		.tier = perfmap_tier(entry.value),
		.kind = perfmap_tier_kind(entry.value),
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
	ret->name = string_pool_at(source->names, entry->number);
	ret->linkage_name = NULL;
	ret->tier = perfmap_tier(entry->value);
	ret->kind = perfmap_tier_kind(entry->value);
	ret->reason = NULL;
	return SOURCE_HIT;
}

enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret)
{
	struct index_entry entry;

	if (!index_version_look_up(index_lsm_current(&source->levels), address, &entry))
		return SOURCE_MISS;
	return take_entry(source, &entry, ret);
}
