/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/joined_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/utf8.h"

enum {
	ROOM_BYTES = 1 << 20, /* a longer line hides nothing */
	FEWEST_DIGITS = 6,
	MOST_DIGITS = 16
};

/* The line in which an address was seen last. */
static char joined_line, whole_line;

/* The number that ends at `space`; 0 when it is not as long as an address. */
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

static bool joined_lines_note(struct address_table *table, uint64_t address, char *where)
{
	struct range_slot *slot = address ? address_table_slot(table, address) : NULL;

	if (slot)
		slot->value = where;
	return slot || !address;
}

static bool take_line(struct address_table *table, const char *line, const char *end)
{
	const char *space = memchr(line, ' ', (size_t)(end - line));
	uint64_t address = space ? address_before(line, space) : 0;

	if (address_table_find(table, address))
		joined_lines_note(table, address, &whole_line);
	if (utf8_is_ascii(line, (size_t)(end - line)))
		return true;
	while (space && (space = memchr(space + 1, ' ', (size_t)(end - space - 1))))
		if (!joined_lines_note(table, address_before(line, space), &joined_line))
			return false;
	return true;
}

bool joined_lines_find(int fd, struct address_table *ret)
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

		if (last && !ret->count && utf8_is_ascii(room, (size_t)(last - room)))
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

bool joined_lines_have(const struct address_table *lines, uint64_t address)
{
	return address_table_find(lines, address) == &joined_line;
}
