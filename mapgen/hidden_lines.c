/* SPDX-License-Identifier: MIT */
#include "mapgen/hidden_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"

enum {
	ROOM_BYTES = 1 << 20, /* a line that is longer hides nothing */
	FEWEST_DIGITS = 6,
	MOST_DIGITS = 16
};

/* What an address was seen in last. */
static char glued_line, whole_line;

/* The number that ends at `space`; 0 where there is none of the length of an address. */
static uint64_t address_before(const char *line, const char *space)
{
	const char *digit = space;
	uint64_t address;

	while (digit > line && space - digit < MOST_DIGITS &&
	       hex_values[(unsigned char)digit[-1]] >= 0)
		digit--;
	if (space - digit < FEWEST_DIGITS ||
	    hex_read_u64(digit, (size_t)(space - digit), &address) != (size_t)(space - digit))
		return 0;
	return address;
}

static bool note(struct address_table *table, uint64_t address, char *where)
{
	struct address_slot *slot = address ? address_table_take(table, address) : NULL;

	if (slot)
		slot->value = where;
	return slot || !address;
}

/* A byte that is not ASCII, or 0. Most maps have none, so they are looked for by eight. */
static bool has_odd_byte(const char *at, const char *end)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	uint64_t word;

	for (; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		if ((word | (word - ones)) & tops)
			return true;
	}
	for (; at < end; at++)
		if ((signed char)*at <= 0)
			return true;
	return false;
}

static bool take_line(struct address_table *table, const char *line, const char *end)
{
	const char *space = memchr(line, ' ', (size_t)(end - line));
	uint64_t address = space ? address_before(line, space) : 0;

	if (address_table_find(table, address))
		note(table, address, &whole_line);
	if (!has_odd_byte(line, end))
		return true;
	while (space && (space = memchr(space + 1, ' ', (size_t)(end - space - 1))))
		if (!note(table, address_before(line, space), &glued_line))
			return false;
	return true;
}

bool hidden_lines_find(int fd, struct address_table *ret)
{
	char *room AUTO_FREE = malloc(ROOM_BYTES);
	size_t kept = 0;
	off_t offset = 0;
	ssize_t got;

	if (!room)
		return false;
	while ((got = pread(fd, room + kept, ROOM_BYTES - kept, offset)) > 0) {
		const char *line = room, *end = room + kept + got, *newline;
		const char *last = memrchr(room, '\n', (size_t)(end - room));

		if (last && !ret->count && !has_odd_byte(room, last))
			line = last + 1;
		while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
			if (!take_line(ret, line, newline))
				return false;
			line = newline + 1;
		}
		offset += got;
		kept = (size_t)(end - line) < ROOM_BYTES ? (size_t)(end - line) : 0;
		memmove(room, line, kept);
	}
	return true;
}

bool hidden_lines_have(const struct address_table *lines, uint64_t address)
{
	return address_table_find(lines, address) == &glued_line;
}
