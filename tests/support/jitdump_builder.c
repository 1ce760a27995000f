/* SPDX-License-Identifier: MIT */
#include "tests/support/jitdump_builder.h"

#include <string.h>

#include "libsym/format/perf/jitdump.h"

uint8_t jitdump_dump[1 << 22];
size_t jitdump_bytes;
bool jitdump_big_endian;

void jitdump_put(uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		jitdump_dump[jitdump_bytes++] =
			(uint8_t)(value >> 8 * (jitdump_big_endian ? bytes - 1 - i : i));
}

static void put_text(const char *text)
{
	memcpy(jitdump_dump + jitdump_bytes, text, strlen(text) + 1);
	jitdump_bytes += strlen(text) + 1;
}

void jitdump_begin(uint32_t pid)
{
	jitdump_bytes = 0;
	jitdump_put(0x4a695444, 4);
	jitdump_put(1, 4);
	jitdump_put(40, 4);
	jitdump_put(62, 4);
	jitdump_put(0, 4);
	jitdump_put(pid, 4);
	jitdump_put(1000, 8);
	jitdump_put(0, 8);
}

void jitdump_load(uint64_t timestamp, uint64_t address, uint64_t size_bytes, const char *name)
{
	jitdump_put(JITDUMP_LOAD, 4);
	jitdump_put(56 + strlen(name) + 1 + size_bytes, 4);
	jitdump_put(timestamp, 8);
	jitdump_put(JITDUMP_BUILDER_PID, 4);
	jitdump_put(JITDUMP_BUILDER_PID + 1, 4);
	jitdump_put(address, 8);
	jitdump_put(address, 8);
	jitdump_put(size_bytes, 8);
	jitdump_put(timestamp, 8);
	put_text(name);
	for (uint64_t i = 0; i < size_bytes; i++)
		jitdump_put(0x90, 1);
}

void jitdump_load_without_code(uint64_t timestamp, uint64_t address, uint64_t size_bytes,
			       const char *name)
{
	size_t begin_bytes = jitdump_bytes;

	jitdump_load(timestamp, address, size_bytes, name);
	jitdump_bytes -= size_bytes;
	jitdump_dump[begin_bytes + 4] = (uint8_t)(jitdump_bytes - begin_bytes);
	jitdump_dump[begin_bytes + 5] = (uint8_t)((jitdump_bytes - begin_bytes) >> 8);
}

void jitdump_move(uint64_t timestamp, uint64_t from, uint64_t to, uint64_t size_bytes)
{
	jitdump_put(JITDUMP_MOVE, 4);
	jitdump_put(64, 4);
	jitdump_put(timestamp, 8);
	jitdump_put(JITDUMP_BUILDER_PID, 4);
	jitdump_put(JITDUMP_BUILDER_PID, 4);
	jitdump_put(to, 8);
	jitdump_put(from, 8);
	jitdump_put(to, 8);
	jitdump_put(size_bytes, 8);
	jitdump_put(timestamp, 8);
}

void jitdump_lines(uint64_t timestamp, uint64_t code_address,
		   const struct jitdump_builder_line *lines)
{
	size_t count = 0, bytes = 32;

	while (lines[count].file)
		bytes += 16 + strlen(lines[count++].file) + 1;
	jitdump_put(JITDUMP_LINES, 4);
	jitdump_put(bytes, 4);
	jitdump_put(timestamp, 8);
	jitdump_put(code_address, 8);
	jitdump_put(count, 8);
	for (size_t i = 0; i < count; i++) {
		jitdump_put(lines[i].address, 8);
		jitdump_put(lines[i].line, 4);
		jitdump_put(7, 4); /* a discriminator, or what V8 has there: a column */
		put_text(lines[i].file);
	}
}
