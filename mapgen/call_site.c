/* SPDX-License-Identifier: MIT */
#include "mapgen/call_site.h"

#include <string.h>
#include <sys/uio.h>

enum {
	LONGEST_CALL_BYTES = 7
};

#if defined(__x86_64__)
/* CALL r/m64: FF /2, with a SIB byte and a displacement or not; prefixes do not matter. */
static bool ends_indirect_call(const uint8_t *bytes, size_t count, size_t length)
{
	uint8_t mode;
	size_t operand_bytes;

	if (count < length || bytes[count - length] != 0xff)
		return false;
	mode = bytes[count - length + 1];
	if ((mode & 0x38) != 0x10)
		return false;
	operand_bytes = mode >> 6 == 1 ? 1 : mode >> 6 == 2 ? 4 : 0;
	if (mode >> 6 == 0 && (mode & 7) == 5)
		operand_bytes = 4;
	if (mode >> 6 != 3 && (mode & 7) == 4) {
		if (length < 3)
			return false;
		operand_bytes++;
		if (mode >> 6 == 0 && (bytes[count - length + 2] & 7) == 5)
			operand_bytes += 4;
	}
	return length == 2 + operand_bytes;
}

bool call_may_end(const uint8_t *bytes, size_t count)
{
	if (count >= 5 && bytes[count - 5] == 0xe8)
		return true;
	for (size_t length = 2; length <= LONGEST_CALL_BYTES; length++)
		if (ends_indirect_call(bytes, count, length))
			return true;
	return false;
}
#elif defined(__aarch64__)
bool call_may_end(const uint8_t *bytes, size_t count)
{
	uint32_t instruction;

	if (count < sizeof(instruction))
		return false;
	memcpy(&instruction, bytes + count - sizeof(instruction), sizeof(instruction));
	/* BL; BLR, with pointer authentication or not. */
	return instruction >> 26 == 0x25 || (instruction & 0xfefff000) == 0xd63f0000;
}
#else
bool call_may_end(const uint8_t *bytes, size_t count)
{
	(void)bytes;
	(void)count;
	return true;
}
#endif

bool call_may_end_at(int32_t pid, uint64_t address)
{
	uint8_t bytes[LONGEST_CALL_BYTES];
	struct iovec here = { bytes, sizeof(bytes) };
	struct iovec there = { (void *)(uintptr_t)(address - sizeof(bytes)), sizeof(bytes) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(bytes))
		return true;
	return call_may_end(bytes, sizeof(bytes));
}
