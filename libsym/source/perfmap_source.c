/* SPDX-License-Identifier: MIT */
#include "libsym/source/perfmap_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/format/perfmap.h"
#include "libsym/index.h"
#include "libsym/limits.h"

enum {
	/* Bytes read at a time; a longer line makes the buffer grow as far as a name may. */
	STEP_BYTES = 1 << 18,
	MAX_TIERS = 32,
	TIER_MASK = MAX_TIERS - 1,
	STUB_BIT = MAX_TIERS
};

/* Beyond this a line without an end is given up: 2 numbers and a name have less. */
static const size_t longest_line_bytes = (1 << 16) + 64;

static const size_t line_bytes_guess = 64;

struct perfmap_source {
	struct index *index;          /* value: number of the tier, and STUB_BIT */
	const char *tiers[MAX_TIERS]; /* the first one is "none" */
	unsigned int tier_count;
	uint64_t bad_lines;
};

struct perfmap_builder {
	struct perfmap_source *source;
	struct index_builder *symbols;
	char *room;        /* STEP_BYTES + longest_line_bytes */
	size_t kept_bytes; /* of a line whose end has not been read yet */
	bool skipping;     /* until the end of a line that is too long */
};

void perfmap_source_close(struct perfmap_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	free(source);
}

/* Tiers are a few static strings: a number of 5 bits stands for one. 0 when there is none, or too
 * many. */
static uint32_t number_of_tier(struct perfmap_source *source, const char *tier)
{
	if (!tier)
		return 0;
	for (unsigned int i = 1; i < source->tier_count; i++)
		if (source->tiers[i] == tier)
			return i;
	if (source->tier_count == MAX_TIERS)
		return 0;
	source->tiers[source->tier_count] = tier;
	return source->tier_count++;
}

/* Runtimes from 8 on write "stub ", earlier ones "stub<N> ". */
static bool is_stub(const char *name, size_t name_bytes)
{
	return name_bytes > 5 && !memcmp(name, "stub", 4) && (name[4] == ' ' || name[4] == '<');
}

static void add_line(struct perfmap_builder *builder, const struct perfmap_line *line)
{
	const char *tier;
	size_t name_bytes = perfmap_split_tier(line->name, line->name_bytes, &tier);
	uint32_t value = number_of_tier(builder->source, tier);

	if (is_stub(line->name, line->name_bytes))
		value |= STUB_BIT;
	index_builder_add(builder->symbols, line->start_address, line->size_bytes, line->name,
			  name_bytes, value);
}

/* Takes the whole lines out of the first `size_bytes` of the room; the rest of a line moves to its
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
	while (perfmap_parser_next(&parser, &line))
		add_line(builder, &line);
	builder->source->bad_lines += parser.bad_lines;
	builder->kept_bytes = (size_t)(parser.end - parser.next);
	memmove(builder->room, parser.next, builder->kept_bytes);
	if (builder->kept_bytes > longest_line_bytes) {
		builder->source->bad_lines++;
		builder->skipping = true;
		builder->kept_bytes = 0;
	}
}

static struct sym_error *read_file(struct perfmap_builder *builder, int fd, const char *path)
{
	uint64_t offset = 0;

	builder->kept_bytes = 0;
	builder->skipping = false;
	for (;;) {
		ssize_t got =
			pread(fd, builder->room + builder->kept_bytes, STEP_BYTES, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return sym_error_from_errno(errno, path, "cannot read");
		if (!got)
			return NULL;
		offset += (uint64_t)got;
		if (offset > LIMIT_PERF_MAP_BYTES)
			return sym_error_create_path(SYM_ERROR_LIMIT, path, SYM_OFFSET_UNKNOWN,
						     "more than %llu bytes (LIMIT_PERF_MAP_BYTES)",
						     (unsigned long long)LIMIT_PERF_MAP_BYTES);
		parse_room(builder, builder->kept_bytes + (size_t)got);
	}
}

/*
 * The names of a file are most of it. Lines of runtimes have 80 bytes and more;
 * where they are shorter, the index grows. Memory that is not used costs nothing.
 */
static void reserve(struct perfmap_builder *builder, const int *fds, size_t count)
{
	uint64_t total_bytes = 0;
	struct stat status;

	for (size_t i = 0; i < count; i++)
		if (!fstat(fds[i], &status) && status.st_size > 0)
			total_bytes += (uint64_t)status.st_size;
	if (total_bytes < LIMIT_PERF_MAP_BYTES)
		index_builder_reserve(builder->symbols, total_bytes / line_bytes_guess,
				      total_bytes);
}

static struct sym_error *read_files(struct perfmap_builder *builder, const int *fds,
				    const char *const *paths, size_t count)
{
	struct sym_error *error = index_builder_create(&builder->symbols);

	if (error)
		return error;
	builder->room = malloc(STEP_BYTES + longest_line_bytes);
	if (!builder->room)
		return &sym_error_no_memory;
	reserve(builder, fds, count);
	for (size_t i = 0; !error && i < count; i++)
		error = read_file(builder, fds[i], paths[i]);
	return error ? error : index_freeze(builder->symbols, &builder->source->index);
}

struct sym_error *perfmap_source_open(const int *fds, const char *const *paths, size_t count,
				      struct perfmap_source **ret)
{
	struct perfmap_source *source AUTO_PERFMAP_SOURCE = calloc(1, sizeof(*source));
	struct perfmap_builder builder = { .source = source };
	struct sym_error *error;

	if (!source)
		return &sym_error_no_memory;
	source->tier_count = 1;
	error = read_files(&builder, fds, paths, count);
	index_builder_destroy(builder.symbols);
	free(builder.room);
	if (error)
		return error;
	*ret = STEAL(source);
	return NULL;
}

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source)
{
	return source->bad_lines;
}

size_t perfmap_source_count(const struct perfmap_source *source)
{
	return index_count(source->index);
}

static const char *tier_of(const struct perfmap_source *source, uint32_t value)
{
	return source->tiers[value & TIER_MASK];
}

static enum sym_symbol_kind kind_of(uint32_t value)
{
	return value & STUB_BIT ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION;
}

void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(source->index, i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = entry.name,
		.tier = tier_of(source, entry.value),
		.kind = kind_of(entry.value),
		.source = SYM_SOURCE_PERF_MAP,
		.image_index = UINT32_MAX,
	};
}

enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret)
{
	size_t found = index_find(source->index, address);
	struct index_entry entry;

	if (found == INDEX_NONE)
		return SOURCE_MISS;
	index_at(source->index, found, &entry);
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.tier = tier_of(source, entry.value),
		.kind = kind_of(entry.value),
	};
	return SOURCE_HIT;
}
