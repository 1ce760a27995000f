/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/perf_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "mapgen/message.h"
#include "mapgen/profile/perf_copy.h"

enum {
	RECORD_HEADER_BYTES = 8,
	PIPE_HEADER_BYTES = 16
};

static void cut(struct perf_copy *copy, uint64_t offset, const char *why)
{
	if (!copy->cut)
		copy->cut = message_format("%s: offset 0x%" PRIx64 ": %s", copy->job->path, offset,
					   why);
}

/* ---- bytes that are no records --------------------------------------------- */

/* Copies `count` bytes, or what there is of them. */
static bool copy_bytes(struct perf_copy *copy, uint64_t count)
{
	while (count && perf_input_need(&copy->input, 1)) {
		size_t piece = perf_input_available(&copy->input);

		if (piece > count)
			piece = (size_t)count;
		perf_output_append(&copy->output, perf_input_bytes(&copy->input), piece);
		perf_input_take(&copy->input, piece);
		count -= piece;
	}
	return !count;
}

static bool skip_bytes(struct perf_copy *copy, uint64_t count)
{
	while (count && perf_input_need(&copy->input, 1)) {
		size_t piece = perf_input_available(&copy->input);

		if (piece > count)
			piece = (size_t)count;
		perf_input_take(&copy->input, piece);
		count -= piece;
	}
	return !count;
}

/* ---- records ------------------------------------------------------------------ */

static bool is_wanted(const struct perf_copy *copy, uint32_t type)
{
	return type < 64 && copy->job->wanted_types >> type & 1;
}

/* Records that are more than themselves, or that are replaced. */
static bool is_special(const struct perf_copy *copy, uint32_t type)
{
	switch (type) {
	case PERF_RECORD_HEADER_TRACING_DATA:
		return copy->shape == PERF_DATA_PIPE;
	case PERF_RECORD_AUXTRACE:
	case PERF_RECORD_COMPRESSED:
	case PERF_RECORD_COMPRESSED2:
		return true;
	default:
		return false;
	}
}

static bool hand_over(struct perf_copy *copy, const uint8_t *bytes, uint64_t output_offset)
{
	struct reader reader = reader_over(bytes, RECORD_HEADER_BYTES);
	struct perf_record record = { .offset = output_offset, .bytes = bytes };

	record.type = reader_u32(&reader);
	record.misc = reader_u16(&reader);
	record.size_bytes = reader_u16(&reader);
	copy->failure = copy->job->take(copy->job->context, &record);
	return !copy->failure;
}

static uint32_t record_type(const uint8_t *bytes)
{
	uint32_t type;

	memcpy(&type, bytes, sizeof(type));
	return le32toh(type);
}

static size_t record_size(const uint8_t *bytes)
{
	uint16_t size;

	memcpy(&size, bytes + 6, sizeof(size));
	return le16toh(size);
}

/* What came out of a compressed record: whole records are passed on, a part of one waits. */
static size_t pass_expanded(struct perf_copy *copy, const uint8_t *bytes, size_t count)
{
	size_t used = 0;

	while (count - used >= RECORD_HEADER_BYTES && !copy->cut && !copy->failure) {
		const uint8_t *record = bytes + used;
		size_t size = record_size(record);
		uint32_t type = record_type(record);

		if (size < RECORD_HEADER_BYTES || is_special(copy, type)) {
			cut(copy, copy->input.offset,
			    size < RECORD_HEADER_BYTES
				    ? "a record in compressed data has an impossible size"
				    : "a record in compressed data that cannot be there");
			break;
		}
		if (size > count - used ||
		    (is_wanted(copy, type) && !hand_over(copy, record, copy->output.offset + used)))
			break;
		copy->record_count++;
		used += size;
	}
	/* What was handed over is in the output, whatever follows it. */
	perf_output_append(&copy->output, bytes, used);
	return copy->cut || copy->failure ? count : used;
}

static bool expand(struct perf_copy *copy, const uint8_t *payload, size_t count)
{
	struct perf_expansion *expansion = &copy->expansion;

	if (!perf_expansion_begin(expansion, payload, count)) {
		copy->failure = message_format("out of memory");
		return false;
	}
	while (!copy->cut && !copy->failure) {
		const uint8_t *bytes;
		size_t available;
		const char *trouble = perf_expansion_more(expansion, &bytes, &available);

		if (expansion->no_memory)
			copy->failure = message_format("out of memory");
		else if (trouble)
			cut(copy, copy->input.offset, trouble);
		if (trouble || !available)
			break;
		perf_expansion_keep(expansion, pass_expanded(copy, bytes, available));
	}
	return !copy->cut && !copy->failure;
}

/* The record is whole in the input. False when nothing can follow. */
static bool pass_compressed(struct perf_copy *copy, uint32_t type, size_t size)
{
	struct reader reader = reader_over(perf_input_bytes(&copy->input), size);
	uint64_t count = size - RECORD_HEADER_BYTES;
	const uint8_t *payload;

	reader_skip(&reader, RECORD_HEADER_BYTES);
	if (type == PERF_RECORD_COMPRESSED2)
		count = reader_u64(&reader);
	payload = count <= size ? reader_bytes(&reader, (size_t)count) : NULL;
	if (!payload) {
		cut(copy, copy->input.offset, "a compressed record contradicts itself");
		return false;
	}
	copy->was_compressed = true;
	if (!expand(copy, payload, (size_t)count))
		return false;
	perf_input_take(&copy->input, size);
	return true;
}

static bool pass_special(struct perf_copy *copy, uint32_t type, size_t size, uint64_t left)
{
	uint64_t offset = copy->input.offset;
	struct reader reader = reader_over(perf_input_bytes(&copy->input), size);
	uint64_t behind;

	if (type == PERF_RECORD_COMPRESSED || type == PERF_RECORD_COMPRESSED2)
		return pass_compressed(copy, type, size);
	reader_skip(&reader, RECORD_HEADER_BYTES);
	behind = type == PERF_RECORD_AUXTRACE ? reader_u64(&reader) : reader_u32(&reader);
	if (type == PERF_RECORD_HEADER_TRACING_DATA)
		behind = (behind + 7) & ~(uint64_t)7;
	if (!reader_ok(&reader) || behind > left - size) {
		cut(copy, offset, "what belongs to a record lies beyond the end");
		return false;
	}
	if (type == PERF_RECORD_AUXTRACE && !perf_copy_note_aux(copy, offset, copy->output.offset))
		return false;
	copy_bytes(copy, size);
	if (copy_bytes(copy, behind))
		return true;
	cut(copy, copy->input.offset, "the data ends in the middle of what belongs to a record");
	return false;
}

/*
 * Follows the records that are whole in the buffer; `left`: bytes of the input up to the end of
 * the data. Returns how many bytes may be passed on as they are; what stopped it stands behind.
 */
static size_t follow(struct perf_copy *copy, uint64_t left)
{
	const uint8_t *bytes = perf_input_bytes(&copy->input);
	size_t available = perf_input_available(&copy->input), passed = 0;

	if (available > left)
		available = (size_t)left;
	while (available - passed >= RECORD_HEADER_BYTES) {
		const uint8_t *record = bytes + passed;
		size_t size = record_size(record);
		uint32_t type = record_type(record);

		if (size < RECORD_HEADER_BYTES || size > available - passed ||
		    is_special(copy, type))
			break;
		if (is_wanted(copy, type) && !hand_over(copy, record, copy->output.offset + passed))
			break;
		copy->record_count++;
		passed += size;
	}
	return passed;
}

/* What stands at the input is no whole ordinary record. False when the records end here. */
static bool pass_next(struct perf_copy *copy, uint64_t left)
{
	uint64_t offset = copy->input.offset;
	const uint8_t *record;
	size_t size;

	if (left < RECORD_HEADER_BYTES || !perf_input_need(&copy->input, RECORD_HEADER_BYTES)) {
		if (left && perf_input_available(&copy->input))
			cut(copy, offset, "the data ends in the middle of a record");
		return false;
	}
	record = perf_input_bytes(&copy->input);
	size = record_size(record);
	if (size < RECORD_HEADER_BYTES) {
		cut(copy, offset, "a record has an impossible size");
		return false;
	}
	if (size > left || !perf_input_need(&copy->input, size)) {
		cut(copy, offset, "the data ends in the middle of a record");
		return false;
	}
	record = perf_input_bytes(&copy->input);
	if (!is_special(copy, record_type(record)))
		return true; /* it is whole now, and follow() goes on with it */
	copy->record_count++;
	return pass_special(copy, record_type(record), size, left);
}

/* Passes records up to `end`, or to the end of the input. */
static void pass_records(struct perf_copy *copy, uint64_t end)
{
	do {
		size_t passed = follow(copy, end - copy->input.offset);

		perf_output_append(&copy->output, perf_input_bytes(&copy->input), passed);
		perf_input_take(&copy->input, passed);
	} while (!copy->failure && !copy->output.failure &&
		 pass_next(copy, end - copy->input.offset));
	if (perf_expansion_held(&copy->expansion))
		cut(copy, copy->input.offset, "the compressed data ends in the middle of a record");
}

/* ---- whole files -------------------------------------------------------------- */

static char *refuse(const struct perf_copy *copy, const char *why)
{
	return message_format("%s: %s", copy->job->path, why);
}

static char *read_file_header(struct perf_copy *copy)
{
	struct perf_file_header *header = &copy->header;
	struct reader reader = reader_over(perf_input_bytes(&copy->input), PERF_FILE_HEADER_BYTES);

	reader_seek(&reader, 24);
	header->attributes_offset = reader_u64(&reader);
	header->attributes_bytes = reader_u64(&reader);
	header->data_offset = reader_u64(&reader);
	header->data_bytes = reader_u64(&reader);
	reader_seek(&reader, 72);
	for (size_t i = 0; i < PERF_FEATURE_WORDS; i++)
		header->features[i] = reader_u64(&reader);
	if (header->data_offset < PERF_FILE_HEADER_BYTES ||
	    header->data_bytes > UINT64_MAX - header->data_offset)
		return refuse(copy, "the header of the file contradicts itself");
	return NULL;
}

static char *copy_file(struct perf_copy *copy)
{
	struct perf_file_header *header = &copy->header;
	uint64_t end;
	char *failure;

	if (!perf_input_need(&copy->input, PERF_FILE_HEADER_BYTES))
		return refuse(copy, "ends in the middle of its header");
	failure = read_file_header(copy);
	if (failure)
		return failure;
	if (!copy_bytes(copy, header->data_offset)) {
		cut(copy, copy->input.offset, "the file ends before its data");
		return NULL;
	}
	/* perf writes the size when it ends: 0 means that it was killed. */
	end = header->data_bytes ? header->data_offset + header->data_bytes : UINT64_MAX;
	pass_records(copy, end);
	if (copy->failure)
		return STEAL(copy->failure);
	if (end != UINT64_MAX && copy->input.offset < end)
		cut(copy, copy->input.offset, "the file ends before its data does");
	if (copy->was_compressed) {
		if (copy->cut && end != UINT64_MAX)
			skip_bytes(copy, end - copy->input.offset);
		return perf_copy_finish_expanded(copy);
	}
	copy_bytes(copy, UINT64_MAX);
	return NULL;
}

/* Without a table of what is where: a pipe, a part of a directory. */
static char *copy_stream(struct perf_copy *copy)
{
	if (copy->shape == PERF_DATA_PIPE)
		copy_bytes(copy, PIPE_HEADER_BYTES);
	pass_records(copy, UINT64_MAX);
	if (copy->failure)
		return STEAL(copy->failure);
	if (!copy->was_compressed)
		copy_bytes(copy, UINT64_MAX);
	return NULL;
}

static char *copy_whole(struct perf_copy *copy)
{
	static const char magic[] = "PERFILE2", swapped_magic[] = "2ELIFREP";
	struct reader reader;
	uint64_t header_bytes;

	if (copy->job->is_part) {
		copy->shape = PERF_DATA_PART;
		return copy_stream(copy);
	}
	if (!perf_input_need(&copy->input, PIPE_HEADER_BYTES))
		return refuse(copy, perf_input_available(&copy->input)
					    ? "no perf.data: ends before its header does"
					    : "no perf.data: it is empty");
	reader = reader_over(perf_input_bytes(&copy->input), PIPE_HEADER_BYTES);
	if (!memcmp(reader.data, swapped_magic, 8))
		return refuse(copy, "recorded on a big-endian machine, which is not handled");
	if (memcmp(reader.data, magic, 8))
		return refuse(copy, "no perf.data: begins otherwise");
	reader_skip(&reader, 8);
	header_bytes = reader_u64(&reader);
	copy->shape = header_bytes == PIPE_HEADER_BYTES ? PERF_DATA_PIPE : PERF_DATA_FILE;
	if (copy->shape == PERF_DATA_PIPE)
		return copy_stream(copy);
	if (header_bytes != PERF_FILE_HEADER_BYTES)
		return refuse(copy, "its header is of no known size");
	return copy_file(copy);
}

static char *settle(struct perf_copy *copy)
{
	int failure;

	perf_output_flush(&copy->output);
	failure = copy->output.failure;
	if (failure)
		return message_format("cannot write: %s", strerror(failure));
	if (copy->input.failure)
		return message_format("%s: cannot read: %s", copy->job->path,
				      strerror(copy->input.failure));
	return NULL;
}

char *perf_data_copy(const struct perf_data_job *job, struct perf_data_result *ret)
{
	struct perf_copy copy = { .job = job };
	bool in = perf_input_init(&copy.input, job->input_fd);
	bool out = perf_output_init(&copy.output, job->output_fd);
	char *failure = in && out ? copy_whole(&copy) : message_format("out of memory");

	if (!failure)
		failure = settle(&copy);
	if (!failure)
		*ret = (struct perf_data_result){
			.shape = copy.shape,
			.was_compressed = copy.was_compressed,
			.record_count = copy.record_count,
			.output_bytes = copy.output.offset,
			.cut = STEAL(copy.cut),
		};
	perf_input_deinit(&copy.input);
	perf_output_deinit(&copy.output);
	perf_copy_deinit(&copy);
	return failure;
}
