/* SPDX-License-Identifier: MIT */
#include "libsym/clr/write_barrier.h"

#include <string.h>

static const char barrier_name[] = "JIT_WriteBarrier";

/* ---- x86-64 -------------------------------------------------------------------------------- */

enum {
	RETURN = 0xc3,
	FUNCTION_ALIGNMENT = 16,
	CHECKED_BYTES = 34
};

/*
 * Writes if the address is below or above the heap; else jumps to the barrier. A zero stands for a
 * byte of a displacement; no other byte is zero.
 */
static const uint8_t checked[CHECKED_BYTES] = {
	0x48, 0x8d, 0x05, 0,      0, 0, 0, /* lea rax, [rip + ...] */
	0x48, 0x3b, 0x38,                  /* cmp rdi, [rax] */
	0x72, 0x12,                        /* jb to the write */
	0x48, 0x8d, 0x05, 0,      0, 0, 0, /* lea rax, [rip + ...] */
	0x48, 0x3b, 0x38,                  /* cmp rdi, [rax] */
	0x73, 0x06,                        /* jae to the write */
	0xff, 0x25, 0,    0,      0, 0,    /* jmp [rip + ...] */
	0x48, 0x89, 0x37, RETURN,          /* mov [rdi], rsi; ret */
};

/* The first instruction of every variant. */
static const uint8_t write[] = { 0x48, 0x89, 0x37 };

static bool is_checked(const uint8_t *code)
{
	for (size_t i = 0; i < sizeof(checked); i++)
		if (checked[i] && code[i] != checked[i])
			return false;
	return true;
}

static bool recognise_x86_64(const uint8_t *page, uint64_t address, struct write_barrier *ret)
{
	/* A function that only returns marks the start. .NET 10 aligns the next one. */
	size_t begin = is_checked(page + 1)                    ? 1
		       : is_checked(page + FUNCTION_ALIGNMENT) ? FUNCTION_ALIGNMENT
							       : 0;
	size_t start = (begin + CHECKED_BYTES + FUNCTION_ALIGNMENT - 1) & -FUNCTION_ALIGNMENT;
	size_t end = WRITE_BARRIER_PAGE_BYTES;

	if (page[0] != RETURN || !begin || memcmp(page + start, write, sizeof(write)) != 0)
		return false;
	while (!page[end - 1])
		end--;
	*ret = (struct write_barrier){
		.functions = { { barrier_name, address + start, (uint32_t)(end - start) } },
		.count = 1,
	};
	return true;
}

/* ---- ARM64 --------------------------------------------------------------------------------- */

enum {
	WORD_BYTES = 4,
	PAGE_WORDS = WRITE_BARRIER_PAGE_BYTES / WORD_BYTES,
	BYREF = 1,
	CHECKED = 4,
	BARRIER = 13,
	NOP = 0xd503201f
};

static const uint32_t arm_return = 0xd65f03c0;

/*
 * The functions before the barrier. A zero stands for any word: .NET 9 and 10 load the limits of
 * the heap and compare them in another order.
 */
static const uint32_t assembly_lookup[BARRIER + 1] = {
	arm_return, /* marks the start */
	0xf84085af, /* ldr x15, [x13], #8 */
	0x14000002, /* b to the next function */
	NOP,        /* pads */
	0,          /* ldr x12, the lower limit */
	0,          /* ldr the upper one, or cmp */
	0,          /* cmp, or ldr */
	0,          /* ccmp */
	0x54000042, /* b.hs to the write */
	0x14000004, /* b to the barrier */
	0xf80085cf, /* str x15, [x14], #8: the write */
	arm_return, /* its return */
	NOP,        /* pads */
	0xc89ffdcf, /* stlr x15, [x14]: the first instruction of every variant */
};

static uint32_t word_at(const uint8_t *page, size_t number)
{
	const uint8_t *bytes = page + number * WORD_BYTES;

	return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 |
	       bytes[0];
}

static struct write_barrier_function words_named(const char *name, uint64_t address, size_t first,
						 size_t end)
{
	return (struct write_barrier_function){ name, address + first * WORD_BYTES,
						(uint32_t)((end - first) * WORD_BYTES) };
}

static bool recognise_arm64(const uint8_t *page, uint64_t address, struct write_barrier *ret)
{
	size_t end = BARRIER;

	for (size_t i = 0; i <= BARRIER; i++)
		if (assembly_lookup[i] && word_at(page, i) != assembly_lookup[i])
			return false;
	/* Every exit is this return. */
	while (end < PAGE_WORDS && word_at(page, end) != arm_return)
		end++;
	if (end == PAGE_WORDS)
		return false;
	*ret = (struct write_barrier){
		.functions = { words_named("JIT_ByRefWriteBarrier", address, BYREF, CHECKED - 1),
			       words_named("JIT_CheckedWriteBarrier", address, CHECKED,
					   BARRIER - 1),
			       words_named(barrier_name, address, BARRIER, end + 1) },
		.count = 3,
	};
	return true;
}

bool write_barrier_recognise(const uint8_t page[WRITE_BARRIER_PAGE_BYTES], uint64_t address,
			     struct write_barrier *ret)
{
	return recognise_x86_64(page, address, ret) || recognise_arm64(page, address, ret);
}
