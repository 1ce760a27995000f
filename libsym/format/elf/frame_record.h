/* SPDX-License-Identifier: MIT */
/*
 * The records of .eh_frame and .debug_frame: where each begins and ends, what a CIE holds, and how
 * addresses are encoded. eh_frame.h lists functions from them, call_frame.h runs their programs.
 *
 *   record  u32 length (0: end; 0xffffffff: u64 length follows)
 *           u32 id (u64 after a u64 length)
 *           .eh_frame: 0 is a CIE; else an FDE, and the distance back from here to its CIE
 *           .debug_frame: all ones is a CIE; else an FDE, and the offset of its CIE
 *   CIE     u8 version, augmentation (string), [v4: u8 address size, u8 segment size],
 *           uleb code alignment, sleb data alignment, return register (v1: u8, else uleb),
 *           [with 'z': uleb size, then for each further letter its data], instructions
 *   FDE     start, size: encoded as the letter 'R' of its CIE says
 *
 * DWARF 5, section 6.4.1; Linux Standard Base, Core 5.0, chapter 10.6.
 */
#ifndef LIBSYM_FORMAT_ELF_FRAME_RECORD_H
#define LIBSYM_FORMAT_ELF_FRAME_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

/* Low four bits: the form of a number; next three: its base. */
enum frame_encoding {
	FRAME_FORM_ABSOLUTE = 0x00, /* an address */
	FRAME_FORM_U16 = 0x02,
	FRAME_FORM_U32 = 0x03,
	FRAME_FORM_U64 = 0x04,
	FRAME_FORM_S16 = 0x0a,
	FRAME_FORM_S32 = 0x0b,
	FRAME_FORM_S64 = 0x0c,
	FRAME_FORM_MASK = 0x0f,
	FRAME_BASE_NONE = 0x00,
	FRAME_BASE_HERE = 0x10, /* the position of the number itself */
	FRAME_BASE_MASK = 0x70,
	FRAME_INDIRECT = 0x80,
	FRAME_OMITTED = 0xff,
};

/* Can a number with this encoding be read without the running program? */
bool frame_is_readable(int encoding);

uint64_t frame_read_number(struct reader *reader, int encoding, bool is_64bit);

/* `vaddr` is that of the first byte of the reader's data. */
uint64_t frame_read_address(struct reader *reader, int encoding, uint64_t vaddr, bool is_64bit);

struct frame_record {
	size_t id_offset;
	size_t end;
	uint64_t id;
	bool is_wide; /* its length field has 64 bits */
};

/* Reads the header of the record at the cursor, which then stands after the id. Returns false at
 * the end of the section, or if the reader has failed. */
bool frame_record_read(struct reader *reader, struct frame_record *ret);
bool frame_record_is_cie(const struct frame_record *record, bool is_debug_frame);

struct frame_cie {
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	uint64_t augmentation_bytes; /* size of the augmentation data at augmentation_offset */
	size_t augmentation_offset;
	size_t end;   /* of the record, and of its instructions */
	int encoding; /* of addresses in its FDEs */
	bool has_augmentation_bytes;
	bool is_signal_frame;
};

/*
 * Reads the CIE at `offset`. Returns false for an FDE, and for a CIE that compilers do not write.
 */
bool frame_cie_read(struct reader records, size_t offset, bool is_debug_frame, bool is_64bit,
		    struct frame_cie *ret);

#endif
