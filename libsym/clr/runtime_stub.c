/* SPDX-License-Identifier: MIT */
/*
 * How a stub is recognised.
 *
 * `stubs` is a table of byte patterns. A pattern has a mask of the bytes that vary: displacements,
 * immediate values.
 * Two kinds of stubs have no fixed pattern and are parsed instead: linked_size() and
 * delegate_size().
 * A pattern that jitted code could contain is not in the table, because a method must never be
 * called a stub.
 */
#include "libsym/clr/runtime_stub.h"

#include <stdbool.h>
#include <string.h>

struct stub {
	uint8_t known_bytes;
	uint8_t size_bytes; /* with the padding before the next one */
	uint8_t bytes[RUNTIME_STUB_BYTES];
	uint64_t any; /* bit i: byte i varies (a displacement or a value) */
};

#define BITS(first, count) (((1ull << (count)) - 1) << (first))
#define ANY4               0, 0, 0, 0
#define ANY8               ANY4, ANY4
#define PAD3               0xcc, 0xcc, 0xcc
#define WORD(word)         (word) & 0xff, (word) >> 8 & 0xff, (word) >> 16 & 0xff, (word) >> 24
/* The offset in the word with this number, an "ldr register, literal". */
#define LITERAL(number) BITS(4 * (number) + 1, 2)

/* As found in .NET 8 and 9. No jitted code ends in breakpoints up to the next multiple of 8. */
static const struct stub stubs[] = {
	/* A method that may have no code yet: jmp [target]; mov r10, [method]; jmp [compile]. */
	{ 20,
	  24,
	  { 0xff, 0x25, ANY4, 0x4c, 0x8b, 0x15, ANY4, 0xff, 0x25, ANY4, 0x90 },
	  BITS(2, 2) | BITS(9, 2) | BITS(15, 2) },
	/*
	 * A method that may have no code yet, with the method first: mov r10, [method]; jmp
	 * [target].
	 */
	{ 14, 24, { 0x4c, 0x8b, 0x15, ANY4, 0xff, 0x25, ANY4, 0x90 }, BITS(3, 2) | BITS(9, 2) },
	/* Call counting: mov rax, [count]; dec word [rax]; je + 6; jmp [method]; jmp [enough]. */
	{ 24,
	  24,
	  { 0x48, 0x8b, 0x05, ANY4, 0x66, 0xff, 0x08, 0x74, 0x06, 0xff, 0x25, ANY4, 0xff, 0x25,
	    ANY4 },
	  BITS(3, 2) | BITS(14, 2) | BITS(20, 2) },
	/*
	 * An interface method: mov rax, type; cmp [rdi], rax; nop; mov rax, target; jne to the next
	 * guess; jmp rax.
	 */
	{ 32,
	  32,
	  { 0x48, 0xb8, ANY8, 0x48, 0x39, 0x07, 0x90, 0x48, 0xb8, ANY8, 0x0f, 0x85, ANY4, 0xff,
	    0xe0 },
	  BITS(2, 8) | BITS(16, 8) | BITS(26, 4) },
	/*
	 * The next guess, which uses a cache: mov rax, [rdi]; push rdx; mov r10, cache; mov rdx,
	 * rax; shr rax, 12; add rax, rdx; xor rax, ...
	 */
	{ 26,
	  112,
	  { 0x48, 0x8b, 0x07, 0x52, 0x49, 0xba, ANY8, 0x48, 0x8b, 0xd0, 0x48, 0xc1, 0xe8, 0x0c,
	    0x48, 0x03, 0xc2, 0x48, 0x35 },
	  BITS(6, 8) },
	/*
	 * An interface method without a guess yet: nop; mov rax, token; push rax; mov rax,
	 * resolver; jmp rax.
	 */
	{ 24,
	  24,
	  { 0x90, 0x48, 0xb8, ANY8, 0x50, 0x48, 0xb8, ANY8, 0xff, 0xe0 },
	  BITS(3, 8) | BITS(14, 8) },
	/*
	 * A virtual method: mov rax, [rdi]; mov rax, [rax + n]; jmp [rax + n], and its number in
	 * four bytes. The JIT writes that jump with a prefix.
	 */
	{ 10,
	  14,
	  { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0, 0xff, 0x60, 0 },
	  BITS(6, 1) | BITS(9, 1) },
	{ 13,
	  17,
	  { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x80, ANY4, 0xff, 0x60, 0 },
	  BITS(6, 4) | BITS(12, 1) },
	{ 13,
	  17,
	  { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0, 0xff, 0xa0, ANY4 },
	  BITS(6, 1) | BITS(9, 4) },
	{ 16,
	  20,
	  { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x80, ANY4, 0xff, 0xa0, ANY4 },
	  BITS(6, 4) | BITS(12, 4) },
	/*
	 * Native code calls a delegate; the delegate's data come before it: mov r10, data; mov rax,
	 * target; jmp rax.
	 */
	{ 27,
	  27,
	  { 0, 0, 0, 0, 0x49, 0xba, ANY8, 0x48, 0xb8, ANY8, 0x48, 0xff, 0xe0 },
	  BITS(6, 8) | BITS(16, 8) },
	/* Precompiled code: mov rax, value; ret. */
	{ 16, 16, { 0x48, 0xb8, ANY8, 0xc3, PAD3, 0xcc, 0xcc }, BITS(2, 8) },
	/* mov to an argument, value; jmp. */
	{ 16, 16, { 0x48, 0xbf, ANY8, 0xe9, ANY4, 0xcc }, BITS(2, 8) | BITS(11, 4) },
	{ 16, 16, { 0x48, 0xbe, ANY8, 0xe9, ANY4, 0xcc }, BITS(2, 8) | BITS(11, 4) },
	{ 16, 16, { 0x48, 0xba, ANY8, 0xe9, ANY4, 0xcc }, BITS(2, 8) | BITS(11, 4) },
	/* mov rsi, rdi; mov rdi, value; jmp. */
	{ 24,
	  24,
	  { 0x48, 0x8b, 0xf7, 0x48, 0xbf, ANY8, 0xe9, ANY4, PAD3, PAD3 },
	  BITS(5, 8) | BITS(14, 4) },
	/* mov rdi, value; mov rsi, value; jmp. */
	{ 32,
	  32,
	  { 0x48, 0xbf, ANY8, 0x48, 0xbe, ANY8, 0xe9, ANY4, PAD3, PAD3, 0xcc },
	  BITS(2, 8) | BITS(12, 8) | BITS(21, 4) },
	/* Dictionary look-ups of generic code, whose misses jump elsewhere. */
	{ 32,
	  32,
	  { 0x48, 0x8b, 0x47, 0,    0x48, 0x8b, 0x40, 0,    0x48, 0x85,
	    0xc0, 0x74, 0x01, 0xc3, 0x48, 0xbe, ANY8, 0xe9, ANY4, PAD3 },
	  BITS(3, 1) | BITS(7, 1) | BITS(16, 8) | BITS(25, 4) },
	{ 40,
	  40,
	  { 0x48, 0x8b, 0x47, 0,    0x48, 0x8b, 0x40, 0,    0x48, 0x8b, 0x40, 0,    0x48,
	    0x85, 0xc0, 0x74, 0x01, 0xc3, 0x48, 0xbe, ANY8, 0xe9, ANY4, PAD3, PAD3, 0xcc },
	  BITS(3, 1) | BITS(7, 1) | BITS(11, 1) | BITS(20, 8) | BITS(29, 4) },
	/* Dictionary look-ups without a miss. */
	{ 16,
	  16,
	  { 0x48, 0x8b, 0x47, 0, 0x48, 0x8b, 0x40, 0, 0x48, 0x8b, 0x40, 0, 0xc3, PAD3 },
	  BITS(3, 1) | BITS(7, 1) | BITS(11, 1) },
	{ 12,
	  16,
	  { 0x48, 0x8b, 0x47, 0, 0x48, 0x8b, 0x40, 0, 0xc3, PAD3 },
	  BITS(3, 1) | BITS(7, 1) },
	/* ARM64, as found in .NET 9. A far jump: ldr x16, target; br x16; and the target. */
	{ 8, 16, { WORD(0x58000050), WORD(0xd61f0200) }, 0 },
	/*
	 * An interface method: ldr x13, [x0]; adr x9, values; ldp x10, x12, [x9]; cmp x13, x10;
	 * b.ne + 8; br x12; ldr x9, next guess; br x9; and the three values.
	 */
	{ 32,
	  56,
	  { WORD(0xf940000d), WORD(0x100000e9), WORD(0xa940312a), WORD(0xeb0a01bf),
	    WORD(0x54000041), WORD(0xd61f0180), WORD(0x580000c9), WORD(0xd61f0120) },
	  0 },
	/*
	 * A method that may have no code yet: ldr x11, target; br x11; ldr x12, method; ldr x11,
	 * compile; br x11; nop.
	 */
	{ 24,
	  24,
	  { WORD(0x5802000b), WORD(0xd61f0160), WORD(0x5802000c), WORD(0x5802002b),
	    WORD(0xd61f0160), WORD(0xd503201f) },
	  LITERAL(0) | LITERAL(2) | LITERAL(3) },
	/*
	 * Call counting: ldr x9, count; ldrh w10, [x9]; subs w10, w10, 1; strh w10, [x9]; b.eq +
	 * 12; ldr x9, method; br x9; ldr x10, enough; br x10; nop.
	 */
	{ 40,
	  40,
	  { WORD(0x58020009), WORD(0x7940012a), WORD(0x7100054a), WORD(0x7900012a),
	    WORD(0x54000060), WORD(0x5801ffa9), WORD(0xd61f0120), WORD(0x5801ffaa),
	    WORD(0xd61f0140), WORD(0xd503201f) },
	  LITERAL(0) | LITERAL(5) | LITERAL(7) },
};

static bool is_stub_at(const struct stub *stub, const uint8_t *code)
{
	for (size_t i = 0; i < stub->known_bytes; i++)
		if (code[i] != stub->bytes[i] && !(stub->any >> i & 1))
			return false;
	return true;
}

/* mov to an argument register, value. */
static bool is_value(const uint8_t *code)
{
	return (code[0] == 0x48 &&
		(code[1] == 0xbf || code[1] == 0xbe || code[1] == 0xba || code[1] == 0xb9)) ||
	       (code[0] == 0x49 && (code[1] == 0xb8 || code[1] == 0xb9));
}

/* mov from register to register. */
static bool is_move(const uint8_t *code)
{
	return (code[0] & ~5) == 0x48 && code[1] == 0x89 && code[2] >= 0xc0;
}

/* mov rsi, [rdi]: the type of a boxed value, as argument of a generic method. */
static bool is_type_of_boxed(const uint8_t *code)
{
	return code[0] == 0x48 && code[1] == 0x8b && code[2] == 0x37;
}

/* add rdi, 8: from the type of a boxed value to the value. */
static bool is_unboxing(const uint8_t *code)
{
	return code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc7 && code[3] == 8;
}

/*
 * Stubs that the runtime assembles from pieces, for generic methods and methods of boxed values:
 * arguments that move up, values for them, then mov rax, target; maybe mov rax, [rax]; jmp rax. The
 * JIT writes that jump with a prefix.
 */
static size_t linked_size(const uint8_t code[RUNTIME_STUB_BYTES])
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x00 };
	enum {
		JUMP_BYTES = 12
	};
	size_t at = 0;

	while (at + JUMP_BYTES + sizeof(load) <= RUNTIME_STUB_BYTES) {
		const uint8_t *next = code + at;

		if (next[0] == 0x48 && next[1] == 0xb8) {
			size_t loaded = memcmp(next + 10, load, sizeof(load)) ? 0 : sizeof(load);

			return at && next[10 + loaded] == 0xff && next[11 + loaded] == 0xe0
				       ? at + JUMP_BYTES + loaded
				       : 0;
		}
		if (is_value(next))
			at += 10;
		else if (is_move(next) || is_type_of_boxed(next))
			at += 3;
		else if (is_unboxing(next))
			at += 4;
		else
			return 0;
	}
	return 0;
}

/*
 * A delegate to a static method, whose arguments move up by one: mov rax, rsp; mov r11, rdi; moves,
 * the last maybe mov r9, [rax + n]; mov r10, [r11 + 32]; add r11, 32; jmp r10.
 */
static size_t delegate_size(const uint8_t code[RUNTIME_STUB_BYTES])
{
	static const uint8_t begin[] = { 0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb };
	static const uint8_t end[] = { 0x4d, 0x8b, 0x53, 0x20, 0x49, 0x83, 0xc3, 0x20 };
	static const uint8_t load[] = { 0x4c, 0x8b, 0x48 };
	size_t at = sizeof(begin);

	if (memcmp(code, begin, sizeof(begin)))
		return 0;
	while (at + sizeof(end) + 7 <= RUNTIME_STUB_BYTES && is_move(code + at))
		at += 3;
	if (!memcmp(code + at, load, sizeof(load)))
		at += 4;
	return at + sizeof(end) + 3 <= RUNTIME_STUB_BYTES && !memcmp(code + at, end, sizeof(end)) &&
			       (code[at + 8] & ~8) == 0x41 && code[at + 9] == 0xff &&
			       code[at + 10] == 0xe2
		       ? at + sizeof(end) + 3
		       : 0;
}

size_t runtime_stub_size(const uint8_t code[RUNTIME_STUB_BYTES])
{
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
		if (is_stub_at(&stubs[i], code))
			return stubs[i].size_bytes;
	return linked_size(code) ?: delegate_size(code);
}
