/* SPDX-License-Identifier: MIT */
/*
 * Expands compressed perf.data: the zstd stream, and the file around data that has grown. Offsets
 * stand in the header, in the table of feature sections behind the data, and in the index of trace
 * data (feature 18).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/path.h"
#include "libsym/base/reader.h"
#include "mapgen/cli/message.h"
#include "mapgen/perfdata/perf_copy.h"

enum {
	LARGEST_RECORD_BYTES = 65535,
	EXPANDED_BYTES = 2 * 65536 + 2 * LARGEST_RECORD_BYTES,
	SECTION_BYTES = 16, /* u64 offset, u64 size */
	FEATURES = 64 * PERF_FEATURE_WORDS
};

/*
 * perf compresses its ring buffer, some MB of records, to a tenth or a fiftieth. A far larger ratio
 * was made to fill disks.
 */
static const uint64_t most_expanded_of_record_bytes = 256 << 20;
static const uint64_t most_expanded_per_byte = 1000;

static const uint64_t most_aux_records = 1 << 24;

bool perf_expansion_begin(struct perf_expansion *expansion, const uint8_t *payload, size_t count)
{
	if (!expansion->data)
		expansion->data = malloc(EXPANDED_BYTES);
	if (!expansion->stream)
		expansion->stream = ZSTD_createDStream();
	expansion->payload = payload;
	expansion->payload_bytes = count;
	expansion->payload_used = 0;
	expansion->more = true;
	expansion->record_expanded_bytes = 0;
	expansion->taken_bytes += count;
	return expansion->data && expansion->stream;
}

const char *perf_expansion_more(struct perf_expansion *expansion, const uint8_t **bytes_ret,
				size_t *available_ret)
{
	ZSTD_inBuffer in = { expansion->payload, expansion->payload_bytes,
			     expansion->payload_used };
	ZSTD_outBuffer out = { expansion->data, EXPANDED_BYTES, expansion->size_bytes };
	size_t got;

	*available_ret = 0;
	while (expansion->more && out.pos == expansion->size_bytes) {
		size_t used = in.pos;
		size_t result = ZSTD_decompressStream(expansion->stream, &out, &in);

		/* Missing memory is no error of the data. */
		expansion->no_memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
		if (ZSTD_isError(result))
			return "the compressed data is damaged";
		/* It stopped because input was missing, not room. */
		expansion->more = out.pos == out.size || in.pos < in.size;
		if (in.pos == used && out.pos == expansion->size_bytes)
			break;
	}
	expansion->payload_used = in.pos;
	got = out.pos - expansion->size_bytes;
	expansion->size_bytes = out.pos;
	expansion->record_expanded_bytes += got;
	expansion->expanded_bytes += got;
	if (expansion->record_expanded_bytes > most_expanded_of_record_bytes ||
	    expansion->expanded_bytes >
		    most_expanded_of_record_bytes + most_expanded_per_byte * expansion->taken_bytes)
		return "the compressed data expands beyond all measure";
	*bytes_ret = expansion->data;
	*available_ret = got ? out.pos : 0;
	return NULL;
}

void perf_expansion_keep(struct perf_expansion *expansion, size_t used)
{
	expansion->size_bytes -= used;
	memmove(expansion->data, expansion->data + used, expansion->size_bytes);
}

size_t perf_expansion_held(const struct perf_expansion *expansion)
{
	return expansion->size_bytes;
}

bool perf_copy_note_aux(struct perf_copy *copy, uint64_t input_offset, uint64_t output_offset)
{
	if (input_offset == output_offset)
		return true;
	if (copy->aux_count == most_aux_records ||
	    !grow_items((void **)&copy->aux, &copy->aux_capacity, copy->aux_count,
			sizeof(*copy->aux))) {
		copy->failure = &sym_error_no_memory;
		return false;
	}
	copy->aux[copy->aux_count++] = (struct perf_aux_move){ input_offset, output_offset };
	return true;
}

void perf_copy_deinit(struct perf_copy *copy)
{
	ZSTD_freeDStream(copy->expansion.stream);
	free(copy->expansion.data);
	free(copy->aux);
	free(copy->cut);
	sym_error_destroy(copy->failure);
}

/* ---- the file around it ---------------------------------------------------------- */

struct feature_section {
	unsigned int feature;
	uint64_t offset, size_bytes;
};

struct feature_table {
	struct feature_section sections[FEATURES];
	size_t count;
};

static bool read_table(struct perf_copy *copy, struct feature_table *table)
{
	for (unsigned int feature = 0; feature < FEATURES; feature++) {
		struct feature_section *section = &table->sections[table->count];
		struct reader reader;

		if (!perf_file_has_feature(&copy->header, feature))
			continue;
		if (!perf_input_need(&copy->input, SECTION_BYTES))
			return false;
		reader = reader_over(perf_input_bytes(&copy->input), SECTION_BYTES);
		section->feature = feature;
		section->offset = reader_u64(&reader);
		section->size_bytes = reader_u64(&reader);
		perf_input_take(&copy->input, SECTION_BYTES);
		table->count++;
	}
	return true;
}

/* `moved`: how far a section behind the table moves; may be negative, in two's complement. */
static void write_table(struct perf_copy *copy, const struct feature_table *table, uint64_t moved)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct feature_section *section = &table->sections[i];
		uint8_t room[SECTION_BYTES];

		if (section->feature == PERF_FEATURE_COMPRESSED)
			continue;
		perf_data_put_u64(room, section->offset + moved);
		perf_data_put_u64(room + 8, section->size_bytes);
		perf_output_append(&copy->output, room, sizeof(room));
	}
}

static uint64_t moved_aux(const struct perf_copy *copy, uint64_t offset)
{
	size_t low = ascending_items_below(copy->aux, copy->aux_count, sizeof(*copy->aux), offset);

	return low < copy->aux_count && copy->aux[low].input_offset == offset
		       ? copy->aux[low].output_offset
		       : offset;
}

/*
 * Arrays of {u64 count, then count of {u64 offset of the record, u64 size}}, to the end of the
 * section, which is in the output already.
 */
static struct sym_error *move_aux_index(struct perf_copy *copy, uint64_t offset,
					uint64_t size_bytes)
{
	uint64_t end = offset + size_bytes, left = 0;
	int fd = copy->output.fd;

	while (offset < end) {
		uint8_t room[8];
		struct reader reader = reader_over(room, sizeof(room));
		uint64_t value;

		if (end - offset < sizeof(room) || path_read_at(fd, room, sizeof(room), offset))
			return sym_error_create(SYM_ERROR_IO,
						"%s: its index of trace data is incomplete",
						copy->job->path);
		value = reader_u64(&reader);
		if (!left) {
			left = value;
			offset += 8;
			continue;
		}
		perf_data_put_u64(room, moved_aux(copy, value));
		if (pwrite(fd, room, sizeof(room), (off_t)offset) != sizeof(room))
			return sym_error_create(SYM_ERROR_IO,
						"cannot write the index of trace data");
		offset += 16;
		left--;
	}
	return NULL;
}

static struct sym_error *move_aux_indexes(struct perf_copy *copy, const struct feature_table *table,
					  uint64_t moved)
{
	struct sym_error *failure = NULL;

	for (size_t i = 0; i < table->count && !failure && copy->aux_count; i++) {
		const struct feature_section *section = &table->sections[i];

		if (section->feature == PERF_FEATURE_AUXTRACE)
			failure =
				move_aux_index(copy, section->offset + moved, section->size_bytes);
	}
	return failure;
}

static struct sym_error *rewrite_header(struct perf_copy *copy, uint64_t data_bytes, bool has_table)
{
	const struct perf_file_header *header = &copy->header;
	uint8_t room[8 + 8 * PERF_FEATURE_WORDS];
	int fd = copy->output.fd;

	if (fd < 0)
		return NULL;
	perf_data_put_u64(room, data_bytes);
	if (header->data_bytes && pwrite(fd, room, 8, 48) != 8)
		return sym_error_create(SYM_ERROR_IO, "cannot write the header");
	for (size_t i = 0; i < PERF_FEATURE_WORDS; i++)
		perf_data_put_u64(room + 8 * i, has_table ? header->features[i] : 0);
	if (has_table)
		room[PERF_FEATURE_COMPRESSED / 8] &= (uint8_t) ~(1u << PERF_FEATURE_COMPRESSED % 8);
	if (pwrite(fd, room, 8 * PERF_FEATURE_WORDS, 72) != 8 * PERF_FEATURE_WORDS)
		return sym_error_create(SYM_ERROR_IO, "cannot write the header");
	return NULL;
}

static bool lie_behind(const struct feature_table *table, uint64_t offset)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->sections[i].size_bytes && table->sections[i].offset < offset)
			return false;
	return true;
}

struct sym_error *perf_copy_finish_expanded(struct perf_copy *copy)
{
	struct feature_table table = { .count = 0 };
	uint64_t data_bytes = copy->output.offset - copy->header.data_offset;
	uint64_t moved;
	struct sym_error *failure;

	if (!read_table(copy, &table)) {
		if (!copy->cut)
			copy->cut = message_format("%s: its feature sections are missing",
						   copy->job->path);
		return rewrite_header(copy, data_bytes, false);
	}
	if (copy->header.attributes_offset > copy->header.data_offset ||
	    !lie_behind(&table, copy->input.offset))
		return sym_error_create(SYM_ERROR_IO,
					"%s: compressed, with sections in an unsupported order",
					copy->job->path);
	moved = copy->output.offset - copy->input.offset;
	moved += SECTION_BYTES *
		 (table.count - perf_file_has_feature(&copy->header, PERF_FEATURE_COMPRESSED));
	write_table(copy, &table, moved);
	perf_stream_copy(&copy->input, &copy->output, UINT64_MAX);
	failure = rewrite_header(copy, data_bytes, true);
	return failure || copy->output.fd < 0 ? failure : move_aux_indexes(copy, &table, moved);
}
