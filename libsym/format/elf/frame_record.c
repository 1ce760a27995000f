/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/frame_record.h"

#include <string.h>

#include "libsym/base/leb.h"

enum {
	/* Compilers write at most "zPLRSB". Each FDE may require reading its CIE again. */
	MAX_AUGMENTATION = 16,
};

bool frame_is_readable(int encoding)
{
	int base = encoding & FRAME_BASE_MASK;

	switch (encoding & FRAME_FORM_MASK) {
	case FRAME_FORM_ABSOLUTE:
	case FRAME_FORM_U16:
	case FRAME_FORM_U32:
	case FRAME_FORM_U64:
	case FRAME_FORM_S16:
	case FRAME_FORM_S32:
	case FRAME_FORM_S64:
		return base == FRAME_BASE_NONE || base == FRAME_BASE_HERE;
	default:
		return false;
	}
}

uint64_t frame_read_number(struct reader *reader, int encoding, bool is_64bit)
{
	switch (encoding & FRAME_FORM_MASK) {
	case FRAME_FORM_U16:
		return reader_u16(reader);
	case FRAME_FORM_S16:
		return (uint64_t)(int16_t)reader_u16(reader);
	case FRAME_FORM_U32:
		return reader_u32(reader);
	case FRAME_FORM_S32:
		return (uint64_t)(int32_t)reader_u32(reader);
	case FRAME_FORM_U64:
	case FRAME_FORM_S64:
		return reader_u64(reader);
	default:
		return is_64bit ? reader_u64(reader) : reader_u32(reader);
	}
}

uint64_t frame_read_address(struct reader *reader, int encoding, uint64_t vaddr, bool is_64bit)
{
	uint64_t here = vaddr + reader->position;
	uint64_t value = frame_read_number(reader, encoding, is_64bit);

	if ((encoding & FRAME_BASE_MASK) == FRAME_BASE_HERE)
		value += here;
	return is_64bit ? value : (uint32_t)value;
}

bool frame_record_read(struct reader *reader, struct frame_record *ret)
{
	uint64_t length = reader_u32(reader);

	ret->is_wide = length == UINT32_MAX;
	if (ret->is_wide)
		length = reader_u64(reader);
	ret->id_offset = reader->position;
	if (!reader_ok(reader) || !length)
		return false;
	if (length > reader_left(reader)) {
		reader_fail(reader, "a record ends beyond the section");
		return false;
	}
	ret->end = ret->id_offset + (size_t)length;
	ret->id = ret->is_wide ? reader_u64(reader) : reader_u32(reader);
	return reader_ok(reader);
}

bool frame_record_is_cie(const struct frame_record *record, bool is_debug_frame)
{
	if (!is_debug_frame)
		return record->id == 0;
	return record->id == (record->is_wide ? UINT64_MAX : UINT32_MAX);
}

/* Reads the data of each letter of an augmentation. */
static bool read_augmentation(struct reader *cie, const char *letters, bool is_64bit,
			      struct frame_cie *ret)
{
	for (const char *letter = letters; *letter; letter++) {
		int personality;

		switch (*letter) {
		case 'z':
		case 'B': /* arm64: signed with the B key */
		case 'G': /* arm64: tagged stack memory */
			break;
		case 'S':
			ret->is_signal_frame = true;
			break;
		case 'R':
			ret->encoding = reader_u8(cie);
			break;
		case 'L':
			reader_skip(cie, 1);
			break;
		case 'P':
			personality = reader_u8(cie);
			if (!frame_is_readable(personality & ~FRAME_INDIRECT))
				return false;
			frame_read_number(cie, personality, is_64bit);
			break;
		default:
			return false;
		}
	}
	/* The target of a pointer exists only in a running program. */
	return reader_ok(cie) && !(ret->encoding & FRAME_INDIRECT) &&
	       frame_is_readable(ret->encoding);
}

bool frame_cie_read(struct reader records, size_t offset, bool is_debug_frame, bool is_64bit,
		    struct frame_cie *ret)
{
	struct reader cie = records;
	struct frame_record record;
	const char *augmentation;
	unsigned int version;

	reader_seek(&cie, offset);
	if (!reader_ok(&cie) || !frame_record_read(&cie, &record) ||
	    !frame_record_is_cie(&record, is_debug_frame))
		return false;
	reader_end_at(&cie, record.end); /* the record may be too short for its own id */
	version = reader_u8(&cie);
	augmentation = reader_string(&cie);
	if (!augmentation || strlen(augmentation) > MAX_AUGMENTATION ||
	    (version != 1 && version != 3 && version != 4) ||
	    (*augmentation && *augmentation != 'z')) /* "eh" of gcc 2 */
		return false;
	if (version == 4)
		reader_skip(&cie, 2);
	*ret = (struct frame_cie){ .end = record.end, .encoding = FRAME_FORM_ABSOLUTE };
	ret->code_alignment = leb_unsigned(&cie);
	ret->data_alignment = leb_signed(&cie);
	ret->return_register = version == 1 ? reader_u8(&cie) : leb_unsigned(&cie);
	ret->has_augmentation_bytes = *augmentation == 'z';
	ret->augmentation_bytes = ret->has_augmentation_bytes ? leb_unsigned(&cie) : 0;
	ret->augmentation_offset = cie.position;
	return read_augmentation(&cie, augmentation, is_64bit, ret);
}
