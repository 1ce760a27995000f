/* SPDX-License-Identifier: MIT */
/*
 * Walks the two forms of a map, and applies the rule:
 *
 *   the last native offset at or before the wanted one counts
 *   of several entries there: the first; a later one replaces it if it is a smaller signed number,
 *   or if the earlier one is "no mapping"
 *   prolog: IL 0; epilog: the greatest IL offset of the method; before the first entry: IL 0
 *   no mapping: the runtime has IL 0; this has the last real entry before, as IL_NEAREST
 */
#include "libsym/format/dotnet/il_map.h"

#include <limits.h>

#include "libsym/base/ascending.h"

/* ---- nibbles ------------------------------------------------------------- */

uint8_t nibble_next(struct nibble_reader *reader)
{
	if (reader->has_high) {
		reader->has_high = false;
		return reader->byte >> 4;
	}
	reader->byte = reader_u8(&reader->bytes);
	reader->has_high = true;
	return reader->byte & 15;
}

uint32_t nibble_read(struct nibble_reader *reader)
{
	const unsigned int most_nibbles = 11; /* 33 bits */
	uint32_t value = 0;

	for (unsigned int i = 0; i < most_nibbles && reader_ok(&reader->bytes); i++) {
		uint8_t nibble = nibble_next(reader);

		value = value << 3 | (nibble & 7);
		if (!(nibble & 8))
			return value;
	}
	reader_fail(&reader->bytes, "malformed nibble integer");
	return 0;
}

/* ---- the walk -------------------------------------------------------------- */

static void begin_packed(struct il_map *map)
{
	struct nibble_reader *reader = &map->reader;
	uint32_t native_bits = nibble_read(reader), il_bits = nibble_read(reader);
	uint64_t record_bits;

	map->source_bits = map->form == IL_MAP_PACKED_2 ? 2 : 3;
	if (!reader_ok(&reader->bytes))
		return;
	if (native_bits >= 32 || il_bits >= 32) {
		reader_fail(&reader->bytes, "records of an IL map with too many bits");
		return;
	}
	map->native_bits = (uint8_t)(native_bits + 1);
	map->il_bits = (uint8_t)(il_bits + 1);
	record_bits = (uint64_t)map->source_bits + map->native_bits + map->il_bits;
	if (record_bits * map->count > (uint64_t)reader_left(&reader->bytes) * 8)
		reader_fail(&reader->bytes, "an IL map that is longer than its blob");
}

struct il_map il_map_begin(const void *bounds, size_t size_bytes, enum il_map_form form)
{
	struct il_map map = { .form = form };

	map.reader.bytes = reader_over(bounds, size_bytes);
	if (!size_bytes)
		return map;
	map.count = nibble_read(&map.reader);
	if (map.count > IL_MAP_MOST_ENTRIES)
		reader_fail(&map.reader.bytes, "an IL map with too many entries");
	if (form != IL_MAP_NIBBLE)
		begin_packed(&map);
	map.failure = map.reader.bytes.failure;
	return map;
}

/*
 * At least 57 bits from bit `at` of the records on, or all that are left. The records begin at the
 * reader's position, because the rest of a byte that was begun is padding.
 */
static inline uint64_t bits_from(const struct reader *records, uint64_t at)
{
	const uint8_t *bytes = records->data + records->position;
	const size_t size_bytes = records->size_bytes - records->position;
	uint64_t value = 0, first = 0;

	if (size_bytes >= sizeof(value)) {
		first = at / 8 < size_bytes - sizeof(value) ? at / 8 : size_bytes - sizeof(value);
		memcpy(&value, bytes + first, sizeof(value));
	} else {
		memcpy(&value, bytes, size_bytes);
	}
	return le64toh(value) >> (at - 8 * first);
}

static uint32_t low_bits(uint64_t value, unsigned int count)
{
	return (uint32_t)(value & ((1ull << count) - 1));
}

static inline void read_packed(const struct il_map *map, uint32_t *delta_ret, uint32_t *il_ret,
			       bool *is_call_ret)
{
	const struct reader *records = &map->reader.bytes;
	unsigned int head_bits = map->source_bits + map->native_bits;
	unsigned int record_bits = head_bits + map->il_bits;
	uint64_t at = (uint64_t)map->next * record_bits;
	uint64_t head = bits_from(records, at);
	uint64_t rest = record_bits <= 57 ? head >> head_bits : bits_from(records, at + head_bits);

	*is_call_ret = head & 1;
	*delta_ret = low_bits(head >> map->source_bits, map->native_bits);
	*il_ret = low_bits(rest, map->il_bits);
}

bool il_map_next(struct il_map *map, struct il_map_entry *ret)
{
	const uint32_t stored_offset = 3, call_instruction = 0x10;
	uint32_t delta, il;

	if (map->failure || map->next >= map->count)
		return false;
	if (map->form == IL_MAP_NIBBLE) {
		delta = nibble_read(&map->reader);
		il = nibble_read(&map->reader);
		ret->is_call_instruction = (nibble_read(&map->reader) & call_instruction) != 0;
		map->failure = map->reader.bytes.failure;
	} else {
		read_packed(map, &delta, &il, &ret->is_call_instruction);
	}
	if (delta > INT32_MAX - map->native_offset)
		map->failure = "an IL map beyond 2 GiB of code";
	map->native_offset += delta;
	ret->native_offset = map->native_offset;
	ret->il_offset = (int32_t)(il - stored_offset);
	if (ret->il_offset < IL_OFFSET_EPILOG)
		map->failure = "an IL offset that does not exist";
	map->next++;
	return !map->failure;
}

/* ---- the rule ---------------------------------------------------------------- */

struct il_search {
	uint32_t wanted;
	bool has_any;    /* an entry at or before it */
	uint32_t native; /* of the last such entry */
	int32_t il;      /* that counts there */
	int32_t real;    /* of the last real entry at or before it; -1: none */
	int32_t greatest;
	size_t count;
};

static void see_entry(struct il_search *search, const struct il_map_entry *entry)
{
	if (entry->is_call_instruction)
		return;
	search->count++;
	if (entry->il_offset > search->greatest)
		search->greatest = entry->il_offset;
	if (entry->native_offset > search->wanted)
		return;
	if (!search->has_any || entry->native_offset != search->native) {
		search->has_any = true;
		search->native = entry->native_offset;
		search->il = entry->il_offset;
	} else if (search->il == IL_OFFSET_NO_MAPPING ||
		   (entry->il_offset != IL_OFFSET_NO_MAPPING && entry->il_offset < search->il)) {
		search->il = entry->il_offset;
	}
	if (entry->il_offset >= 0)
		search->real = entry->il_offset;
}

static enum il_quality conclude(const struct il_search *search, uint32_t *il_ret)
{
	if (!search->count)
		return IL_NONE;
	*il_ret = 0;
	if (!search->has_any || search->il == IL_OFFSET_PROLOG)
		return IL_PROLOG;
	if (search->il == IL_OFFSET_EPILOG) {
		*il_ret = search->greatest > 0 ? (uint32_t)search->greatest : 0;
		return IL_PROLOG;
	}
	if (search->il >= 0) {
		*il_ret = (uint32_t)search->il;
		return IL_EXACT;
	}
	if (search->real >= 0)
		*il_ret = (uint32_t)search->real;
	return IL_NEAREST;
}

static struct il_search search_for(uint32_t native_offset)
{
	return (struct il_search){
		.wanted = native_offset, .il = IL_OFFSET_NO_MAPPING, .real = -1, .greatest = INT_MIN
	};
}

enum il_quality il_map_find(struct il_map map, uint32_t native_offset, uint32_t *il_ret)
{
	struct il_search search = search_for(native_offset);
	struct il_map_entry entry;

	while (il_map_next(&map, &entry))
		see_entry(&search, &entry);
	return map.failure ? IL_NONE : conclude(&search, il_ret);
}

enum il_quality il_entries_find(const struct il_map_entry *entries, size_t count,
				uint32_t native_offset, uint32_t *il_ret)
{
	struct il_search search = search_for(native_offset);

	for (size_t i = 0; i < count; i++)
		see_entry(&search, &entries[i]);
	return conclude(&search, il_ret);
}

/* ---- rows ---------------------------------------------------------------------------- */

static void append_row(const struct il_map_entry *entry, struct il_code code, struct buf *ret)
{
	const uint64_t at = code.start + entry->native_offset;

	if (!entry->is_call_instruction && entry->native_offset < code.size_bytes)
		buf_append(ret, &at, sizeof(at));
}

void il_map_append_rows(struct il_map map, struct il_code code, struct buf *ret)
{
	struct il_map_entry entry;

	buf_append(ret, &code.start, sizeof(code.start));
	while (il_map_next(&map, &entry))
		append_row(&entry, code, ret);
}

void il_entries_append_rows(const struct il_map_entry *entries, size_t count, struct il_code code,
			    struct buf *ret)
{
	buf_append(ret, &code.start, sizeof(code.start));
	for (size_t i = 0; i < count; i++)
		append_row(&entries[i], code, ret);
}

struct sym_error *il_rows_settle(struct buf *rows, size_t *count_ret)
{
	uint64_t *items = (uint64_t *)rows->data;
	size_t count = rows->size_bytes / sizeof(*items), kept = 0;

	if (rows->failure)
		return rows->failure == BUF_TOO_BIG
			       ? sym_error_create(SYM_ERROR_LIMIT,
						  "line tables of more than %zu bytes "
						  "(LIMIT_LINE_ROWS_BYTES)",
						  rows->max_bytes)
			       : &sym_error_no_memory;
	ascending_sort(items, count);
	for (size_t i = 0; i < count; i++)
		if (!kept || items[kept - 1] != items[i])
			items[kept++] = items[i];
	*count_ret = kept;
	return NULL;
}
