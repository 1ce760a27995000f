/* SPDX-License-Identifier: MIT */
/*
 * Finds where functions start and end in the unwind tables, which survive strip(1). Reads the
 * records and the encodings of their addresses; call_frame.h runs their programs.
 *
 *   record  u32 length (0: end; 0xffffffff: u64 length follows)
 *           u32 id; 0: CIE, otherwise an FDE: distance back from here to its CIE
 *   CIE     u8 version, augmentation (string), [v4: u8 address size, u8 segment size],
 *           uleb code alignment, sleb data alignment, return register (v1: u8, else uleb),
 *           [with 'z': uleb size, then for each further letter its data]
 *   FDE     start, size: encoded as the letter 'R' of its CIE selects
 *
 *   header  .eh_frame_hdr: u8 version 1, u8 encodings of pointer, count and table;
 *           pointer to .eh_frame, count, rows { start, FDE } in ascending order
 *
 * Linux Standard Base, Core 5.0, chapter 10.6; DWARF 5, section 6.4.
 */
#ifndef LIBSYM_FORMAT_ELF_EH_FRAME_H
#define LIBSYM_FORMAT_ELF_EH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct eh_frame {
	struct reader records; /* .eh_frame */
	uint64_t vaddr;        /* of its first byte */
	bool is_64bit;
	/* private: the last CIE that was read, which most FDEs share */
	bool has_cie;
	size_t cie_offset;
	int cie_encoding; /* encoding of addresses; -1: FDEs of this CIE cannot be read */
};

struct eh_frame_function {
	uint64_t vaddr;
	uint64_t size_bytes;
};

struct eh_frame eh_frame_over(struct reader records, uint64_t vaddr, bool is_64bit);

/*
 * The next function, in the order of the file. Returns false at the end, or at a malformed record
 * (then reader_ok(&frame->records) is false). FDEs in a form that compilers do not emit are
 * skipped.
 *
 * Bounds are as the file has them: unchecked, unordered, possibly overlapping. start + size does
 * not overflow.
 */
bool eh_frame_next(struct eh_frame *frame, struct eh_frame_function *ret);

/* The vaddr of .eh_frame, from an .eh_frame_hdr at `vaddr`. Returns false if the header does not
 * contain it. */
bool eh_frame_header_read(struct reader header, uint64_t vaddr, bool is_64bit, uint64_t *ret);

#endif
