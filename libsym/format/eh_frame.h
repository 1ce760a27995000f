/* SPDX-License-Identifier: MIT */
/*
 * Where functions begin and end, read from the tables by which a program is
 * unwound: they survive strip(1). Knows the records and the encodings of their
 * addresses; refuses to know the unwinding itself.
 *
 *   record  u32 length (0: end; 0xffffffff: u64 length follows)
 *           u32 id; 0: CIE, otherwise an FDE: distance back from here to its CIE
 *   CIE     u8 version, augmentation (string), [v4: u8 address size, u8 segment size],
 *           uleb code alignment, sleb data alignment, return register (v1: u8, else uleb),
 *           [with 'z': uleb size, then for each further letter its data]
 *   FDE     start, size: encoded as the letter 'R' of its CIE says
 *
 *   header  .eh_frame_hdr: u8 version 1, u8 encodings of pointer, count and table;
 *           pointer to .eh_frame, count, rows { start, FDE } in ascending order
 *
 * Linux Standard Base, Core 5.0, chapter 10.6; DWARF 5, section 6.4.
 */
#ifndef LIBSYM_FORMAT_EH_FRAME_H
#define LIBSYM_FORMAT_EH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct eh_frame {
	struct reader records; /* .eh_frame */
	uint64_t vaddr;        /* of its first byte */
	bool is_64bit;
	/* private: the CIE that was read last, which most FDEs share */
	bool has_cie;
	size_t cie_offset;
	int cie_encoding; /* of the addresses; -1: an FDE of this CIE cannot be read */
};

struct eh_frame_function {
	uint64_t vaddr;
	uint64_t size_bytes;
};

struct eh_frame eh_frame_over(struct reader records, uint64_t vaddr, bool is_64bit);

/*
 * The next function, in the order of the file; false at the end, or where the
 * records no longer make sense (reader_ok(&frame->records) tells). What is in a form
 * that compilers do not emit is skipped. Bounds are as the file says: not checked
 * against anything, in no order, perhaps overlapping; start + size does not overflow.
 */
bool eh_frame_next(struct eh_frame *frame, struct eh_frame_function *ret);

/* Where the CIE of the FDE at `offset` of the records is, which has to be there too for
 * eh_frame_at(); false when that is none. */
bool eh_frame_cie_at(const struct eh_frame *frame, size_t offset, size_t *ret);

/* The function of the FDE at `offset`; false for one that is none, or cannot be read. */
bool eh_frame_at(struct eh_frame *frame, size_t offset, struct eh_frame_function *ret);

enum {
	EH_FRAME_HEADER_BYTES = 24, /* up to the rows, at most */
	EH_FRAME_ROW_BYTES = 8
};

/* The rows of a header, as all linkers write them: signed 32 bits from the header itself. */
struct eh_frame_rows {
	uint64_t frame_vaddr;  /* of .eh_frame */
	uint64_t header_vaddr; /* from which rows count */
	size_t offset;         /* of the first one in the header */
	size_t count;          /* as the header says */
};

struct eh_frame_row {
	uint64_t start, fde; /* vaddrs */
};

/* False where there are none, or in another form. */
bool eh_frame_rows_read(struct reader header, uint64_t vaddr, bool is_64bit,
			struct eh_frame_rows *ret);
struct eh_frame_row eh_frame_row_read(const struct eh_frame_rows *rows, struct reader row);

/* The vaddr of .eh_frame by an .eh_frame_hdr at `vaddr`; false when it does not say. */
bool eh_frame_header_read(struct reader header, uint64_t vaddr, bool is_64bit, uint64_t *ret);

#endif
