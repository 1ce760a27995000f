/* SPDX-License-Identifier: MIT */
#include "libsym/clr/write_barrier.h"

#include <string.h>

const char write_barrier_name[] = "JIT_WriteBarrier";

enum {
	RETURN = 0xc3,
	FUNCTION_ALIGNMENT = 16,
	CHECKED_BYTES = 34
};

/*
 * Below the heap or above it, write; else go on with the other one. A zero stands for a byte of a
 * displacement; no other byte is zero.
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

/* The first thing that every variant does. */
static const uint8_t write[] = { 0x48, 0x89, 0x37 };

static bool is_checked(const uint8_t *code)
{
	for (size_t i = 0; i < sizeof(checked); i++)
		if (checked[i] && code[i] != checked[i])
			return false;
	return true;
}

bool write_barrier_recognise(const uint8_t page[WRITE_BARRIER_PAGE_BYTES], uint64_t address,
			     struct write_barrier *ret)
{
	/* A function that only returns marks the beginning. .NET 10 aligns the next one. */
	size_t begin = is_checked(page + 1)                    ? 1
		       : is_checked(page + FUNCTION_ALIGNMENT) ? FUNCTION_ALIGNMENT
							       : 0;
	size_t start = (begin + CHECKED_BYTES + FUNCTION_ALIGNMENT - 1) & -FUNCTION_ALIGNMENT;
	size_t end = WRITE_BARRIER_PAGE_BYTES;

	if (page[0] != RETURN || !begin || memcmp(page + start, write, sizeof(write)) != 0)
		return false;
	while (!page[end - 1])
		end--;
	ret->start_address = address + start;
	ret->size_bytes = (uint32_t)(end - start);
	return true;
}
