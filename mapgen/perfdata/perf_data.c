/* SPDX-License-Identifier: MIT */
/*
 * One pass over the input.
 *
 * perf_data_copy() reads the header, if there is one, and then follows the records in the buffer
 * of perf_stream.h. perf_data_follow() steps over whole ordinary records, shows the wanted ones to
 * the caller, and returns how many bytes can be copied at once. It stops at special records: those
 * with bytes behind them, compressed ones, and those that cross the end of the buffer; pass_next()
 * handles these.
 */
#include "mapgen/perfdata/perf_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "mapgen/cli/message.h"
#include "mapgen/perfdata/perf_copy.h"

enum {
	RECORD_HEADER_BYTES = 8,
	PIPE_HEADER_BYTES = 16
};

static void perf_data_cut(struct perf_copy *copy, uint64_t offset, const char *why)
{
	if (!copy->cut)
		copy->cut = message_format("%s: offset 0x%" PRIx64 ": %s", copy->job->path, offset,
					   why);
}

/* ---- records ------------------------------------------------------------------ */

static bool is_wanted(const struct perf_copy *copy, uint32_t type)
{
	return type < 64 ? copy->job->wanted_types >> type & 1 : copy->job->wants_user_types;
}

/* Records with bytes behind them, and records that are replaced. */
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

/* Passes on the whole records of expanded data; a part of one waits. */
static size_t pass_expanded(struct perf_copy *copy, const uint8_t *bytes, size_t count)
{
	size_t used = 0;

	while (count - used >= RECORD_HEADER_BYTES && !copy->cut && !copy->failure) {
		const uint8_t *record = bytes + used;
		size_t size = record_size(record);
		uint32_t type = record_type(record);

		if (size < RECORD_HEADER_BYTES || is_special(copy, type)) {
			perf_data_cut(copy, copy->input.offset,
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
	/* Bytes that were passed on are in the output, whatever follows. */
	perf_output_append(&copy->output, bytes, used);
	return copy->cut || copy->failure ? count : used;
}

static bool perf_data_expand(struct perf_copy *copy, const uint8_t *payload, size_t count)
{
	struct perf_expansion *expansion = &copy->expansion;

	if (!perf_expansion_begin(expansion, payload, count)) {
		copy->failure = &sym_error_no_memory;
		return false;
	}
	while (!copy->cut && !copy->failure) {
		const uint8_t *bytes;
		size_t available;
		const char *trouble = perf_expansion_more(expansion, &bytes, &available);

		if (expansion->no_memory)
			copy->failure = &sym_error_no_memory;
		else if (trouble)
			perf_data_cut(copy, copy->input.offset, trouble);
		if (trouble || !available)
			break;
		perf_expansion_keep(expansion, pass_expanded(copy, bytes, available));
	}
	return !copy->cut && !copy->failure;
}

/* The whole record is in the input. False when nothing can follow. */
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
		perf_data_cut(copy, copy->input.offset, "a compressed record contradicts itself");
		return false;
	}
	copy->was_compressed = true;
	if (!perf_data_expand(copy, payload, (size_t)count))
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
		perf_data_cut(copy, offset, "what belongs to a record lies beyond the end");
		return false;
	}
	if (type == PERF_RECORD_AUXTRACE && !perf_copy_note_aux(copy, offset, copy->output.offset))
		return false;
	perf_stream_copy(&copy->input, &copy->output, size);
	if (perf_stream_copy(&copy->input, &copy->output, behind))
		return true;
	perf_data_cut(copy, copy->input.offset,
		      "the data ends in the middle of what belongs to a record");
	return false;
}

/*
 * Follows the whole records in the buffer; `left`: bytes of the input up to the end of the data.
 * Returns how many bytes may be copied unchanged; the next record begins behind them.
 */
static size_t perf_data_follow(struct perf_copy *copy, uint64_t left)
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

/* The input stands at no whole ordinary record. False when the records end here. */
static bool pass_next(struct perf_copy *copy, uint64_t left)
{
	uint64_t offset = copy->input.offset;
	const uint8_t *record;
	size_t size;

	if (left < RECORD_HEADER_BYTES || !perf_input_need(&copy->input, RECORD_HEADER_BYTES)) {
		if (left && perf_input_available(&copy->input))
			perf_data_cut(copy, offset, "the data ends in the middle of a record");
		return false;
	}
	record = perf_input_bytes(&copy->input);
	size = record_size(record);
	if (size < RECORD_HEADER_BYTES) {
		perf_data_cut(copy, offset, "a record has an impossible size");
		return false;
	}
	if (size > left || !perf_input_need(&copy->input, size)) {
		perf_data_cut(copy, offset, "the data ends in the middle of a record");
		return false;
	}
	record = perf_input_bytes(&copy->input);
	if (!is_special(copy, record_type(record)))
		return true; /* the record is complete now, and perf_data_follow() continues with it
			      */
	copy->record_count++;
	return pass_special(copy, record_type(record), size, left);
}

/* Passes records up to `end`, or to the end of the input. */
static void pass_records(struct perf_copy *copy, uint64_t end)
{
	do {
		size_t passed = perf_data_follow(copy, end - copy->input.offset);

		perf_output_append(&copy->output, perf_input_bytes(&copy->input), passed);
		perf_input_take(&copy->input, passed);
	} while (!copy->failure && !copy->output.failure &&
		 pass_next(copy, end - copy->input.offset));
	if (perf_expansion_held(&copy->expansion))
		perf_data_cut(copy, copy->input.offset,
			      "the compressed data ends in the middle of a record");
}

/* ---- whole files -------------------------------------------------------------- */

static struct sym_error *perf_data_refuse(const struct perf_copy *copy, const char *why)
{
	return sym_error_create(SYM_ERROR_IO, "%s: %s", copy->job->path, why);
}

struct perf_file_header perf_file_header_read(const uint8_t bytes[PERF_FILE_HEADER_BYTES])
{
	struct reader reader = reader_over(bytes, PERF_FILE_HEADER_BYTES);
	struct perf_file_header header;

	reader_seek(&reader, 8);
	header.header_bytes = reader_u64(&reader);
	header.attribute_bytes = reader_u64(&reader);
	header.attributes_offset = reader_u64(&reader);
	header.attributes_bytes = reader_u64(&reader);
	header.data_offset = reader_u64(&reader);
	header.data_bytes = reader_u64(&reader);
	reader_seek(&reader, 72);
	for (size_t i = 0; i < PERF_FEATURE_WORDS; i++)
		header.features[i] = reader_u64(&reader);
	return header;
}

static struct sym_error *copy_file(struct perf_copy *copy)
{
	struct perf_file_header *header = &copy->header;
	uint64_t end;

	if (!perf_input_need(&copy->input, PERF_FILE_HEADER_BYTES))
		return perf_data_refuse(copy, "it ends inside its header");
	*header = perf_file_header_read(perf_input_bytes(&copy->input));
	if (header->data_offset < PERF_FILE_HEADER_BYTES ||
	    header->data_bytes > UINT64_MAX - header->data_offset)
		return perf_data_refuse(copy, "the header of the file contradicts itself");
	if (!perf_stream_copy(&copy->input, &copy->output, header->data_offset)) {
		perf_data_cut(copy, copy->input.offset, "the file ends before its data");
		return NULL;
	}
	/* perf writes the size when it ends; 0 means that perf was killed. */
	end = header->data_bytes ? header->data_offset + header->data_bytes : UINT64_MAX;
	pass_records(copy, end);
	if (copy->failure)
		return STEAL(copy->failure);
	if (end != UINT64_MAX && copy->input.offset < end)
		perf_data_cut(copy, copy->input.offset, "the file ends before its data does");
	if (copy->was_compressed) {
		if (copy->cut && end != UINT64_MAX)
			perf_stream_copy(&copy->input, &(struct perf_output){ .fd = -1 },
					 end - copy->input.offset);
		return perf_copy_finish_expanded(copy);
	}
	perf_stream_copy(&copy->input, &copy->output, UINT64_MAX);
	return NULL;
}

/* Without a table of sections: a pipe, or a part of a directory. */
static struct sym_error *copy_stream(struct perf_copy *copy)
{
	if (copy->shape == PERF_DATA_PIPE)
		perf_stream_copy(&copy->input, &copy->output, PIPE_HEADER_BYTES);
	pass_records(copy, UINT64_MAX);
	if (copy->failure)
		return STEAL(copy->failure);
	if (!copy->was_compressed)
		perf_stream_copy(&copy->input, &copy->output, UINT64_MAX);
	return NULL;
}

static struct sym_error *copy_whole(struct perf_copy *copy)
{
	static const char magic[] = "PERFILE2", swapped_magic[] = "2ELIFREP";
	struct reader reader;
	uint64_t header_bytes;

	if (copy->job->is_part) {
		copy->shape = PERF_DATA_PART;
		return copy_stream(copy);
	}
	if (!perf_input_need(&copy->input, PIPE_HEADER_BYTES))
		return perf_data_refuse(copy, perf_input_available(&copy->input)
						      ? "not a perf.data: it ends inside its header"
						      : "not a perf.data: it is empty");
	reader = reader_over(perf_input_bytes(&copy->input), PIPE_HEADER_BYTES);
	if (!memcmp(reader.data, swapped_magic, 8))
		return perf_data_refuse(copy,
					"recorded on a big-endian machine, which is not supported");
	if (memcmp(reader.data, magic, 8))
		return perf_data_refuse(copy, "not a perf.data (magic PERFILE2 missing)");
	reader_skip(&reader, 8);
	header_bytes = reader_u64(&reader);
	copy->shape = header_bytes == PIPE_HEADER_BYTES ? PERF_DATA_PIPE : PERF_DATA_FILE;
	if (copy->shape == PERF_DATA_PIPE)
		return copy_stream(copy);
	if (header_bytes != PERF_FILE_HEADER_BYTES)
		return perf_data_refuse(copy, "its header has an unknown size");
	return copy_file(copy);
}

static struct sym_error *perf_data_settle(struct perf_copy *copy)
{
	if (copy->output.failure)
		return sym_error_create(SYM_ERROR_IO, "cannot write: %s",
					strerror(copy->output.failure));
	if (copy->input.failure)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot read: %s", copy->job->path,
					strerror(copy->input.failure));
	return NULL;
}

struct sym_error *perf_data_copy(const struct perf_data_job *job, struct perf_data_result *ret)
{
	struct perf_copy copy = { .job = job, .output = { .fd = job->output_fd } };
	struct sym_error *failure = perf_input_init(&copy.input, job->input_fd)
					    ? copy_whole(&copy)
					    : &sym_error_no_memory;

	if (!failure)
		failure = perf_data_settle(&copy);
	if (!failure)
		*ret = (struct perf_data_result){
			.shape = copy.shape,
			.was_compressed = copy.was_compressed,
			.record_count = copy.record_count,
			.output_bytes = copy.output.offset,
			.cut = STEAL(copy.cut),
		};
	perf_input_deinit(&copy.input);
	perf_copy_deinit(&copy);
	return failure;
}
