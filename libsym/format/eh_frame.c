/* SPDX-License-Identifier: MIT */
#include "libsym/format/eh_frame.h"

#include <string.h>

/* Low four bits: how a number is written; the next three: what it is relative to. */
enum {
	FORM_ABSOLUTE = 0x00, /* an address */
	FORM_U16 = 0x02,
	FORM_U32 = 0x03,
	FORM_U64 = 0x04,
	FORM_S16 = 0x0a,
	FORM_S32 = 0x0b,
	FORM_S64 = 0x0c,
	FORM_MASK = 0x0f,
	BASE_NONE = 0x00,
	BASE_HERE = 0x10,   /* the place of the number itself */
	BASE_HEADER = 0x30, /* that of .eh_frame_hdr */
	BASE_MASK = 0x70,
	INDIRECT = 0x80,
	OMITTED = 0xff,
	/* Compilers write "zPLRSB" at most; each FDE may make us read a CIE again. */
	MAX_AUGMENTATION = 16,
	MAX_LEB_BYTES = 10
};

struct eh_frame eh_frame_over(struct reader records, uint64_t vaddr, bool is_64bit)
{
	return (struct eh_frame){ .records = records, .vaddr = vaddr, .is_64bit = is_64bit };
}

static bool is_readable(int encoding)
{
	switch (encoding & FORM_MASK) {
	case FORM_ABSOLUTE:
	case FORM_U16:
	case FORM_U32:
	case FORM_U64:
	case FORM_S16:
	case FORM_S32:
	case FORM_S64:
		break;
	default:
		return false;
	}
	return (encoding & BASE_MASK) == BASE_NONE || (encoding & BASE_MASK) == BASE_HERE;
}

static uint64_t read_number(struct reader *reader, int encoding, bool is_64bit)
{
	switch (encoding & FORM_MASK) {
	case FORM_U16:
		return reader_u16(reader);
	case FORM_S16:
		return (uint64_t)(int64_t)(int16_t)reader_u16(reader);
	case FORM_U32:
		return reader_u32(reader);
	case FORM_S32:
		return (uint64_t)(int64_t)(int32_t)reader_u32(reader);
	case FORM_U64:
	case FORM_S64:
		return reader_u64(reader);
	default:
		return is_64bit ? reader_u64(reader) : reader_u32(reader);
	}
}

/* `vaddr` is that of the first byte of the reader's data. */
static uint64_t read_address(struct reader *reader, int encoding, uint64_t vaddr, bool is_64bit)
{
	uint64_t here = vaddr + reader->position;
	uint64_t value = read_number(reader, encoding, is_64bit);

	if ((encoding & BASE_MASK) == BASE_HERE)
		value += here;
	return is_64bit ? value : (uint32_t)value;
}

static void skip_leb(struct reader *reader)
{
	for (int i = 0; i < MAX_LEB_BYTES; i++)
		if (!(reader_u8(reader) & 0x80))
			return;
	reader_fail(reader, "number without an end");
}

/* The encoding of the addresses in FDEs of a CIE; `cie` stands behind its id. */
static int read_encoding(struct reader *cie, bool is_64bit)
{
	unsigned int version = reader_u8(cie);
	const char *augmentation = reader_string(cie);
	int encoding = FORM_ABSOLUTE;

	if (!augmentation || strlen(augmentation) > MAX_AUGMENTATION ||
	    (version != 1 && version != 3 && version != 4))
		return -1;
	if (version == 4)
		reader_skip(cie, 2);
	if (*augmentation && *augmentation != 'z')
		return -1; /* "eh" of gcc 2 */
	skip_leb(cie);
	skip_leb(cie);
	if (version == 1)
		reader_skip(cie, 1);
	else
		skip_leb(cie);
	if (*augmentation == 'z')
		skip_leb(cie);
	for (const char *letter = augmentation; *letter; letter++) {
		int personality;

		switch (*letter) {
		case 'R':
			encoding = reader_u8(cie);
			break;
		case 'P':
			personality = reader_u8(cie);
			if (!is_readable(personality & ~INDIRECT))
				return -1;
			read_number(cie, personality, is_64bit);
			break;
		case 'L':
			reader_skip(cie, 1);
			break;
		case 'z':
		case 'S':
		case 'B':
		case 'G':
			break;
		default:
			return -1;
		}
	}
	/* What is behind a pointer is known to a running program only. */
	return reader_ok(cie) && !(encoding & INDIRECT) && is_readable(encoding) ? encoding : -1;
}

/* Length and id of a record at the cursor; the end of its bytes, or 0 at the end of all. */
static size_t read_record(struct reader *reader, size_t *id_offset_ret, uint64_t *id_ret)
{
	uint64_t length = reader_u32(reader);
	bool wide = length == UINT32_MAX;
	size_t start;

	if (wide)
		length = reader_u64(reader);
	start = reader->position;
	if (!reader_ok(reader) || !length)
		return 0;
	if (length > reader_left(reader)) {
		reader_fail(reader, "a record ends beyond the section");
		return 0;
	}
	*id_offset_ret = start;
	*id_ret = wide ? reader_u64(reader) : reader_u32(reader);
	return reader_ok(reader) ? start + (size_t)length : 0;
}

static int encoding_of(struct eh_frame *frame, size_t cie_offset)
{
	struct reader cie = frame->records;
	size_t id_offset, end;
	uint64_t id;

	if (frame->has_cie && frame->cie_offset == cie_offset)
		return frame->cie_encoding;
	frame->has_cie = true;
	frame->cie_offset = cie_offset;
	frame->cie_encoding = -1;
	reader_seek(&cie, cie_offset);
	end = read_record(&cie, &id_offset, &id);
	if (end && !id) {
		reader_end_at(&cie, end); /* may be too short for its own id */
		frame->cie_encoding = read_encoding(&cie, frame->is_64bit);
	}
	return frame->cie_encoding;
}

static bool read_function(struct eh_frame *frame, size_t id_offset, uint64_t id, size_t end,
			  struct eh_frame_function *ret)
{
	struct reader fde = frame->records;
	int encoding;

	if (id > id_offset)
		return false;
	encoding = encoding_of(frame, id_offset - (size_t)id);
	if (encoding < 0)
		return false;
	reader_end_at(&fde, end);
	ret->vaddr = read_address(&fde, encoding, frame->vaddr, frame->is_64bit);
	ret->size_bytes = read_number(&fde, encoding, frame->is_64bit);
	/* A signed form says a size too; none is negative. */
	return reader_ok(&fde) && ret->size_bytes && ret->size_bytes <= INT64_MAX &&
	       ret->vaddr <= UINT64_MAX - ret->size_bytes;
}

bool eh_frame_next(struct eh_frame *frame, struct eh_frame_function *ret)
{
	while (reader_left(&frame->records) >= 4) {
		size_t id_offset, end;
		uint64_t id;
		bool found;

		end = read_record(&frame->records, &id_offset, &id);
		if (!end)
			return false;
		found = id && read_function(frame, id_offset, id, end, ret);
		reader_seek(&frame->records, end);
		if (found)
			return true;
	}
	return false;
}

bool eh_frame_cie_at(const struct eh_frame *frame, size_t offset, size_t *ret)
{
	struct reader fde = frame->records;
	size_t id_offset;
	uint64_t id;

	reader_seek(&fde, offset);
	if (!reader_ok(&fde) || !read_record(&fde, &id_offset, &id) || !id || id > id_offset)
		return false;
	*ret = id_offset - (size_t)id;
	return true;
}

bool eh_frame_at(struct eh_frame *frame, size_t offset, struct eh_frame_function *ret)
{
	struct eh_frame from = *frame;
	size_t id_offset, end;
	uint64_t id;

	reader_seek(&from.records, offset);
	end = reader_ok(&from.records) ? read_record(&from.records, &id_offset, &id) : 0;
	return end && id && read_function(&from, id_offset, id, end, ret);
}

/* Version and encodings; then the pointer. */
static bool read_header(struct reader *header, uint64_t vaddr, bool is_64bit, uint64_t *ret)
{
	unsigned int version = reader_u8(header);
	int encoding = reader_u8(header);

	reader_skip(header, 2);
	if (!reader_ok(header) || version != 1 || encoding == OMITTED || encoding & INDIRECT ||
	    !is_readable(encoding))
		return false;
	*ret = read_address(header, encoding, vaddr, is_64bit);
	return reader_ok(header);
}

bool eh_frame_header_read(struct reader header, uint64_t vaddr, bool is_64bit, uint64_t *ret)
{
	return read_header(&header, vaddr, is_64bit, ret);
}

bool eh_frame_rows_read(struct reader header, uint64_t vaddr, bool is_64bit,
			struct eh_frame_rows *ret)
{
	struct eh_frame_rows rows = { .header_vaddr = vaddr };
	struct reader encodings = header;

	if (!read_header(&header, vaddr, is_64bit, &rows.frame_vaddr))
		return false;
	rows.count = reader_u32(&header);
	rows.offset = header.position;
	reader_skip(&encodings, 2);
	if (reader_u8(&encodings) != FORM_U32 ||
	    reader_u8(&encodings) != (BASE_HEADER | FORM_S32) || !reader_ok(&header))
		return false;
	*ret = rows;
	return true;
}

struct eh_frame_row eh_frame_row_read(const struct eh_frame_rows *rows, struct reader row)
{
	uint64_t start = rows->header_vaddr + read_number(&row, FORM_S32, true);

	return (struct eh_frame_row){ start,
				      rows->header_vaddr + read_number(&row, FORM_S32, true) };
}
