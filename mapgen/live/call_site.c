/* SPDX-License-Identifier: MIT */
#include "mapgen/live/call_site.h"

#include <string.h>
#include <sys/uio.h>

enum {
	LONGEST_CALL_BYTES = 7,
	SIGNAL_RETURN_BYTES = 9
};

#if defined(__x86_64__)
/* CALL r/m64: FF /2, with or without a SIB byte and a displacement; prefixes do not matter. */
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

bool is_signal_return(const uint8_t *bytes, size_t count)
{
	/* mov $15, %rax; syscall */
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return count >= sizeof(code) && !memcmp(bytes, code, sizeof(code));
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

bool is_signal_return(const uint8_t *bytes, size_t count)
{
	/* mov x8, #139; svc #0 */
	static const uint8_t code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };

	return count >= sizeof(code) && !memcmp(bytes, code, sizeof(code));
}
#else
bool call_may_end(const uint8_t *bytes, size_t count)
{
	(void)bytes;
	(void)count;
	return true;
}

bool is_signal_return(const uint8_t *bytes, size_t count)
{
	(void)bytes;
	(void)count;
	return false;
}
#endif

static bool read_at(int32_t pid, uint64_t address, uint8_t *bytes, size_t count)
{
	struct iovec here = { bytes, count };
	struct iovec there = { (void *)(uintptr_t)address, count };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)count;
}

bool call_may_end_at(int32_t pid, uint64_t address)
{
	uint8_t bytes[LONGEST_CALL_BYTES];

	return !read_at(pid, address - sizeof(bytes), bytes, sizeof(bytes)) ||
	       call_may_end(bytes, sizeof(bytes));
}

bool signal_return_at(int32_t pid, uint64_t address)
{
	uint8_t bytes[SIGNAL_RETURN_BYTES];

	return read_at(pid, address, bytes, sizeof(bytes)) &&
	       is_signal_return(bytes, sizeof(bytes));
}
