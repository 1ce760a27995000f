/* SPDX-License-Identifier: MIT */
/*
 * Unwinds one frame symbolically. struct walk holds the caller's stack pointer as register +
 * distance.
 *
 * Prolog and body: the codes are run in order, the last instruction of the prolog first. Each code
 * undoes one instruction, and applies only if that instruction has run, that is, if the offset
 * after it is at most `offset`. A chained info describes the prolog of the parent, which has always
 * run.
 *
 * Epilog: it has no codes, so its instructions are parsed: [release of the frame] [pops] return or
 * jump. Code that does not match is not an epilog.
 *
 * finish_row() converts the walk to a row with DWARF's rules.
 */
#include "libsym/format/dotnet/pe_unwind.h"

#include <string.h>

#include "libsym/base/reader.h"

enum {
	VERSION = 1,
	FLAG_CHAINED = 4,
	MAX_CHAIN = 8,
	HEADER_BYTES = 4,
};

enum {
	OP_PUSH = 0,
	OP_ALLOC_LARGE = 1,
	OP_ALLOC_SMALL = 2,
	OP_SET_FRAME = 3,
	OP_SAVE = 4,
	OP_SAVE_FAR = 5,
	OP_SAVE_XMM = 8,
	OP_SAVE_XMM_FAR = 9,
	OP_MACHINE_FRAME = 10,
	OP_SET_FRAME_LARGE = 11,
};

/* Register numbers of x86-64 instructions to DWARF numbers. */
static const uint8_t dwarf_number[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/* The caller's stack pointer while a frame is unwound: a register and a distance. */
struct walk {
	uint8_t base; /* DWARF number */
	int64_t distance;
	uint32_t saved_mask;
	uint8_t saved_base[16];
	int64_t saved_distance[16];
};

static void record_saved_register(struct walk *walk, unsigned int number, int64_t distance)
{
	number = dwarf_number[number & 15];
	walk->saved_mask |= 1u << number;
	walk->saved_base[number] = walk->base;
	walk->saved_distance[number] = distance;
}

static bool fits_32_bits(int64_t value)
{
	return value >= INT32_MIN && value <= INT32_MAX;
}

/* Makes the row. The return address is at base + distance. */
static bool finish_row(const struct walk *walk, struct frame_row *ret)
{
	int64_t cfa = walk->distance + 8;

	memset(ret, 0, sizeof(*ret));
	if (!fits_32_bits(cfa))
		return false;
	ret->cfa = (struct frame_rule){ .kind = FRAME_REGISTER_OFFSET,
					.reg = walk->base,
					.value = (int32_t)cfa };
	ret->return_register = FRAME_X86_64_RIP;
	ret->registers[FRAME_X86_64_RIP] =
		(struct frame_rule){ .kind = FRAME_AT_OFFSET, .value = -8 };
	for (unsigned int i = 0; i < 16; i++) {
		if (!(walk->saved_mask & 1u << i))
			continue;
		if (!fits_32_bits(walk->saved_distance[i]) ||
		    !fits_32_bits(walk->saved_distance[i] - cfa))
			return false;
		if (walk->saved_base[i] == walk->base)
			ret->registers[i] = (struct frame_rule){
				.kind = FRAME_AT_OFFSET,
				.value = (int32_t)(walk->saved_distance[i] - cfa)
			};
		else
			ret->registers[i] =
				(struct frame_rule){ .kind = FRAME_AT_REGISTER,
						     .reg = walk->saved_base[i],
						     .value = (int32_t)walk->saved_distance[i] };
	}
	frame_row_finish(ret);
	return true;
}

struct info {
	uint8_t flags, prolog_bytes, frame_register, frame_offset;
	struct reader codes;
	struct reader after; /* the bytes that follow the codes */
};

static bool read_info(const uint8_t *bytes, size_t size_bytes, struct info *ret)
{
	struct reader reader = reader_over(bytes, size_bytes);
	uint8_t first = reader_u8(&reader), count, frame;
	size_t code_bytes;

	ret->flags = first >> 3;
	ret->prolog_bytes = reader_u8(&reader);
	count = reader_u8(&reader);
	frame = reader_u8(&reader);
	ret->frame_register = frame & 15;
	ret->frame_offset = frame >> 4;
	ret->codes = reader_part(&reader, HEADER_BYTES, count * (size_t)2);
	code_bytes = ((size_t)count + 1) / 2 * 4;
	ret->after = reader;
	reader_skip(&ret->after, code_bytes);
	return reader_ok(&reader) && reader_ok(&ret->codes) && (first & 7) == VERSION;
}

uint32_t pe_unwind_prolog_bytes(const uint8_t *info, size_t size_bytes)
{
	struct info read;

	return read_info(info, size_bytes, &read) ? read.prolog_bytes : 0;
}

/* Offsets of saved registers count from the frame register, or from the stack pointer. */
static void save_in_frame(struct walk *walk, const struct info *info, unsigned int number,
			  uint32_t offset)
{
	struct walk frame = *walk;

	if (info->frame_register) {
		frame.base = dwarf_number[info->frame_register];
		frame.distance = -(int64_t)info->frame_offset * 16;
	} else {
		frame.base = FRAME_X86_64_RSP;
		frame.distance = 0;
	}
	number = dwarf_number[number & 15];
	walk->saved_mask |= 1u << number;
	walk->saved_base[number] = frame.base;
	walk->saved_distance[number] = frame.distance + offset;
}

static void set_frame(struct walk *walk, const struct info *info, uint32_t offset_bytes)
{
	walk->base = dwarf_number[info->frame_register];
	walk->distance = -(int64_t)offset_bytes;
}

/* Runs one code, which takes effect only if `applies`. Returns false for a code that .NET's
 * compilers do not write. */
static bool run_code(struct walk *walk, const struct info *info, struct reader *codes,
		     uint8_t operation, bool applies)
{
	unsigned int kind = operation & 15, number = operation >> 4;
	uint32_t operand = 0;

	if (kind == OP_SAVE || kind == OP_SAVE_XMM || (kind == OP_ALLOC_LARGE && !number))
		operand = reader_u16(codes);
	else if (kind == OP_SAVE_FAR || kind == OP_SAVE_XMM_FAR || kind == OP_SET_FRAME_LARGE ||
		 kind == OP_ALLOC_LARGE)
		operand = reader_u32(codes);
	if (!applies)
		return true;
	switch (kind) {
	case OP_PUSH:
		record_saved_register(walk, number, walk->distance);
		walk->distance += 8;
		return true;
	case OP_ALLOC_LARGE:
		walk->distance += number ? (int64_t)operand : (int64_t)operand * 8;
		return number <= 1;
	case OP_ALLOC_SMALL:
		walk->distance += (int64_t)number * 8 + 8;
		return true;
	case OP_SET_FRAME:
		set_frame(walk, info, (uint32_t)info->frame_offset * 16);
		return true;
	case OP_SET_FRAME_LARGE:
		if (operand > INT32_MAX / 16)
			return false;
		set_frame(walk, info, operand * 16);
		return true;
	case OP_SAVE:
		save_in_frame(walk, info, number, operand * 8);
		return true;
	case OP_SAVE_FAR:
		save_in_frame(walk, info, number, operand);
		return true;
	case OP_SAVE_XMM:
	case OP_SAVE_XMM_FAR:
		return true;
	default:
		return false;
	}
}

static bool run_codes(struct walk *walk, struct info *info, uint32_t offset)
{
	while (reader_left(&info->codes)) {
		uint8_t after = reader_u8(&info->codes);
		uint8_t operation = reader_u8(&info->codes);

		if (!run_code(walk, info, &info->codes, operation, after <= offset))
			return false;
	}
	return reader_ok(&info->codes);
}

bool pe_unwind_row(const struct pe_unwind_function *function, uint32_t offset,
		   pe_unwind_info_fn *info_at, void *context, struct frame_row *ret)
{
	struct walk walk = { .base = FRAME_X86_64_RSP };
	uint32_t unwind_rva = function->unwind_rva;

	for (int i = 0; i < MAX_CHAIN; i++) {
		struct info info;
		size_t available;
		const uint8_t *bytes = info_at(context, unwind_rva, &available);

		if (!bytes || !read_info(bytes, available, &info) ||
		    !run_codes(&walk, &info, offset))
			return false;
		if (!(info.flags & FLAG_CHAINED))
			return finish_row(&walk, ret);
		reader_skip(&info.after, 8);
		unwind_rva = reader_u32(&info.after);
		if (!reader_ok(&info.after))
			return false;
		offset = UINT32_MAX; /* the parent's prolog has completed */
	}
	return false;
}

/* ---- epilogs ---------------------------------------------------------------------------- */

/* Skips these bytes if the code starts with them. */
static bool match_bytes(struct reader *code, const char *bytes, size_t count)
{
	if (reader_left(code) < count || memcmp(code->data + code->position, bytes, count) != 0)
		return false;
	reader_skip(code, count);
	return true;
}

/* Parses at most one instruction that releases the frame, which must come first: add rsp, imm; lea
 * rsp, [rbp + disp]; mov rsp, rbp. */
static void parse_release(struct reader *code, struct walk *walk)
{
	if (match_bytes(code, "\xc5\xf8\x77", 3)) /* vzeroupper */
		parse_release(code, walk);
	else if (match_bytes(code, "\x48\x83\xc4", 3))
		walk->distance = (int8_t)reader_u8(code);
	else if (match_bytes(code, "\x48\x81\xc4", 3))
		walk->distance = (int32_t)reader_u32(code);
	else if (match_bytes(code, "\x48\x8d\x65", 3))
		*walk = (struct walk){ .base = FRAME_X86_64_RBP,
				       .distance = (int8_t)reader_u8(code) };
	else if (match_bytes(code, "\x48\x8d\xa5", 3))
		*walk = (struct walk){ .base = FRAME_X86_64_RBP,
				       .distance = (int32_t)reader_u32(code) };
	else if (match_bytes(code, "\x48\x8b\xe5", 3) || match_bytes(code, "\x48\x89\xec", 3))
		*walk = (struct walk){ .base = FRAME_X86_64_RBP };
}

static bool parse_pop(struct reader *code, struct walk *walk)
{
	struct reader ahead = *code;
	unsigned int high = match_bytes(&ahead, "\x41", 1) ? 8 : 0;
	uint8_t byte = reader_u8(&ahead);

	if (!reader_ok(&ahead) || byte < 0x58 || byte > 0x5f)
		return false;
	record_saved_register(walk, high + byte - 0x58, walk->distance);
	walk->distance += 8;
	*code = ahead;
	return true;
}

/* Is it a jump out of the function, or a jump through a register or memory with the prefix that
 * compilers write only for tail calls? */
static bool is_tail_call(struct reader code, uint32_t offset, uint32_t function_bytes)
{
	int64_t target;

	if (match_bytes(&code, "\x48\xff", 2))
		return (reader_u8(&code) & 0x38) == 0x20;
	if (match_bytes(&code, "\xe9", 1))
		target = (int32_t)reader_u32(&code);
	else if (match_bytes(&code, "\xeb", 1))
		target = (int8_t)reader_u8(&code);
	else
		return false;
	target += (int64_t)code.position + offset;
	return reader_ok(&code) && (target < 0 || target >= (int64_t)function_bytes);
}

static bool is_return(struct reader code)
{
	return match_bytes(&code, "\xc3", 1) || match_bytes(&code, "\xf3\xc3", 2) ||
	       match_bytes(&code, "\xc2", 1);
}

/* The frame is released and registers are popped. */
static struct walk parse_epilog(struct reader *code)
{
	struct walk walk = { .base = FRAME_X86_64_RSP };

	parse_release(code, &walk);
	while (parse_pop(code, &walk))
		;
	return walk;
}

bool pe_unwind_return_row(const uint8_t *code, size_t size_bytes, struct frame_row *ret)
{
	struct reader reader = reader_over(code, size_bytes);
	struct walk walk = parse_epilog(&reader);

	return is_return(reader) && finish_row(&walk, ret);
}

bool pe_unwind_epilog_row(const uint8_t *code, size_t size_bytes, uint32_t offset,
			  uint32_t function_bytes, struct frame_row *ret)
{
	struct reader reader = reader_over(code, size_bytes);
	struct walk walk = parse_epilog(&reader);

	return (is_return(reader) || is_tail_call(reader, offset, function_bytes)) &&
	       finish_row(&walk, ret);
}
