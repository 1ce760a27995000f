/* SPDX-License-Identifier: MIT */
#include "tests/support/perfmap_check.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/format/perf/perfmap.h"
#include "libsym/format/perf/perfmap_tier.h"

static void check_line(const struct perfmap_line *line, const char *text, size_t size_bytes)
{
	unsigned int tier;

	if (line->name < text || line->name + line->name_bytes > text + size_bytes ||
	    line->start_address + line->size_bytes < line->start_address || !line->name_bytes ||
	    perfmap_tier_find(line->name, line->name_bytes, &tier) != line->bare_bytes ||
	    tier != line->tier)
		abort();
}

struct index *perfmap_check_load(const char *text, size_t size_bytes)
{
	AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
	struct index *index = NULL;
	struct perfmap_parser parser;
	struct perfmap_line line;

	sym_error_destroy(index_builder_create(&builder));
	if (!builder)
		return NULL;
	perfmap_parser_init(&parser, text, size_bytes);
	while (perfmap_parser_next(&parser, &line)) {
		check_line(&line, text, size_bytes);
		index_builder_add(builder, line.start_address, line.size_bytes, line.name,
				  line.name_bytes, 0);
	}
	sym_error_destroy(index_freeze(builder, &index));
	return index;
}

/* A look-up must agree with a walk through all pieces. */
static bool is_looked_up(const struct index *index, size_t i, const struct index_entry *expected)
{
	const uint64_t last = expected->start + expected->size_bytes - 1;
	struct index_entry entry;

	return index_look_up(index, last, &entry) == i && entry.start == expected->start &&
	       entry.size_bytes == expected->size_bytes &&
	       entry.symbol_start == expected->symbol_start &&
	       entry.symbol_size_bytes == expected->symbol_size_bytes &&
	       entry.name == expected->name && entry.value == expected->value;
}

void perfmap_check_index(const struct index *index)
{
	uint64_t end = 0;
	size_t i;

	for (i = 0; i < index_count(index); i++) {
		struct index_entry entry;

		index_at(index, i, &entry);
		if (!entry.size_bytes || entry.start < end || entry.start < entry.symbol_start ||
		    !entry.name || index_find(index, entry.start) != i ||
		    index_find(index, entry.start + entry.size_bytes - 1) != i ||
		    !is_looked_up(index, i, &entry) ||
		    (entry.start > end && index_find(index, entry.start - 1) != INDEX_NONE))
			abort();
		end = entry.start + entry.size_bytes;
	}
}

static void write_index(const struct index *index, struct buf *text)
{
	size_t i;

	for (i = 0; i < index_count(index); i++) {
		struct index_entry entry;

		index_at(index, i, &entry);
		perfmap_write_line(text, entry.start, entry.size_bytes, entry.name,
				   strlen(entry.name), NULL);
	}
}

void perfmap_check_round_trip(const char *text, size_t size_bytes)
{
	AUTO_INDEX struct index *index = perfmap_check_load(text, size_bytes);
	AUTO_INDEX struct index *again = NULL;
	struct buf first, second;

	if (!index)
		return;
	perfmap_check_index(index);
	buf_init(&first, SIZE_MAX);
	buf_init(&second, SIZE_MAX);
	write_index(index, &first);
	again = perfmap_check_load(first.data, first.size_bytes);
	if (again)
		write_index(again, &second);
	if (!again || first.size_bytes != second.size_bytes ||
	    (first.size_bytes && memcmp(first.data, second.data, first.size_bytes)))
		abort();
	buf_deinit(&first);
	buf_deinit(&second);
}
