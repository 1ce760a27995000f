/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/eh_frame.h"

#include "libsym/format/elf/frame_record.h"

struct eh_frame eh_frame_over(struct reader records, uint64_t vaddr, bool is_64bit)
{
	return (struct eh_frame){ .records = records, .vaddr = vaddr, .is_64bit = is_64bit };
}

static int encoding_of(struct eh_frame *frame, size_t cie_offset)
{
	struct frame_cie cie;

	if (frame->has_cie && frame->cie_offset == cie_offset)
		return frame->cie_encoding;
	frame->has_cie = true;
	frame->cie_offset = cie_offset;
	frame->cie_encoding =
		frame_cie_read(frame->records, cie_offset, false, frame->is_64bit, &cie)
			? cie.encoding
			: -1;
	return frame->cie_encoding;
}

static bool read_function(struct eh_frame *frame, const struct frame_record *record,
			  struct eh_frame_function *ret)
{
	struct reader fde = frame->records;
	int encoding;

	if (record->id > record->id_offset)
		return false;
	encoding = encoding_of(frame, record->id_offset - (size_t)record->id);
	if (encoding < 0)
		return false;
	reader_end_at(&fde, record->end);
	ret->vaddr = frame_read_address(&fde, encoding, frame->vaddr, frame->is_64bit);
	ret->size_bytes = frame_read_number(&fde, encoding, frame->is_64bit);
	/* Signed forms encode sizes too; no size is negative. */
	return reader_ok(&fde) && ret->size_bytes && ret->size_bytes <= INT64_MAX &&
	       ret->vaddr <= UINT64_MAX - ret->size_bytes;
}

bool eh_frame_next(struct eh_frame *frame, struct eh_frame_function *ret)
{
	while (reader_left(&frame->records) >= 4) {
		struct frame_record record;
		bool found;

		if (!frame_record_read(&frame->records, &record))
			return false;
		found = record.id && read_function(frame, &record, ret);
		reader_seek(&frame->records, record.end);
		if (found)
			return true;
	}
	return false;
}

bool eh_frame_header_read(struct reader header, uint64_t vaddr, bool is_64bit, uint64_t *ret)
{
	unsigned int version = reader_u8(&header);
	int encoding = reader_u8(&header);

	reader_skip(&header, 2); /* encodings of count and table */
	if (!reader_ok(&header) || version != 1 || encoding == FRAME_OMITTED ||
	    encoding & FRAME_INDIRECT || !frame_is_readable(encoding))
		return false;
	*ret = frame_read_address(&header, encoding, vaddr, is_64bit);
	return reader_ok(&header);
}
