/* SPDX-License-Identifier: MIT */
/*
 * The parser reads one line at a time. A line of ASCII goes to parse_line(). Any other line goes to
 * parse_odd_line(), which repairs the damage that runtimes do to names with non-ASCII characters
 * (perfmap.h): it cuts the line where another one was joined on, and the next call starts there.
 */
#include "libsym/format/perf/perfmap.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/utf8.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "libsym/limits.h"

enum {
	FEWEST_DIGITS = 6, /* of an address after 0x */
	PADDED_DIGITS = 16,
	MOST_SIZE_DIGITS = 8
};

/* Parses "[0x]HEX ". Returns the text after it, or NULL. */
static const char *parse_number(const char *text, const char *end, uint64_t *ret)
{
	size_t digits;

	if (end - text > 2 && text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	digits = hex_read_u64(text, (size_t)(end - text), ret);
	if (!digits || text + digits >= end || text[digits] != ' ')
		return NULL;
	return text + digits + 1;
}

/* Is the range in the kernel's half of the address space? A process writes no lines for it. The
 * highest possible start of that half is that of x86-64 with five levels of page tables. */
static bool is_kernel_range(const struct perfmap_line *line)
{
	static const uint64_t lowest_of_kernel = 0xff00000000000000;

	return line->start_address >> 63 ||
	       line->start_address + line->size_bytes > lowest_of_kernel;
}

/* Parses address, size and the name up to `end`, whatever its length. */
static bool parse_fields(const char *text, const char *end, struct perfmap_line *ret)
{
	const char *next = parse_number(text, end, &ret->start_address);
	uint64_t sum;

	if (next)
		next = parse_number(next, end, &ret->size_bytes);
	if (!next || next == end ||
	    __builtin_add_overflow(ret->start_address, ret->size_bytes, &sum) ||
	    is_kernel_range(ret))
		return false;
	ret->name = next;
	ret->name_bytes = (size_t)(end - next);
	return true;
}

static bool parse_line(const char *text, const char *end, struct perfmap_line *ret)
{
	return parse_fields(text, end, ret) && ret->name_bytes <= LIMIT_NAME_BYTES;
}

/* Is it a number as printf("%x") writes it, in lower case and without leading zeros? */
static bool is_plain_hex(const char *digits, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (hex_values[(unsigned char)digits[i]] < 0 ||
		    (digits[i] >= 'A' && digits[i] <= 'F'))
			return false;
	return count == 1 || (count > 1 && digits[0] != '0');
}

/*
 * Start of the address in front of `space`, or NULL. Runtimes since 8 write 0x and lower-case
 * digits. Earlier ones write 16 digits that start with 0000, because user space ends at 2^47. The
 * rest of the previous name may end with digits, too.
 */
static const char *find_joined_address(const char *text, const char *space)
{
	const char *digit = space;

	while (digit > text && space - digit < PADDED_DIGITS &&
	       hex_values[(unsigned char)digit[-1]] >= 0)
		digit--;
	if (digit - text >= 2 && digit[-1] == 'x' && digit[-2] == '0' &&
	    space - digit >= FEWEST_DIGITS && is_plain_hex(digit, (size_t)(space - digit)))
		return digit - 2;
	if (space - digit == PADDED_DIGITS && !memcmp(digit, "0000", 4))
		return digit;
	return NULL;
}

/* Is it "SIZE NAME" in the form that a runtime writes? */
static bool is_joined_rest(const char *text, const char *end)
{
	const char *space =
		memchr(text, ' ',
		       end - text > MOST_SIZE_DIGITS ? MOST_SIZE_DIGITS + 1 : (size_t)(end - text));

	return space && is_plain_hex(text, (size_t)(space - text)) && end - space > 1 &&
	       space[1] != ' ';
}

/*
 * Where a line starts that was joined to the previous one; NULL if there is none. Only a name with
 * non-ASCII characters loses its newline. So a non-ASCII byte comes first (a NUL if the damaged
 * part is UTF-16). ASCII names are never cut.
 */
static const char *find_joined_line(const char *text, const char *end)
{
	const char *space = text;

	while (space < end && (signed char)*space > 0)
		space++;
	text = space;
	while (space < end && (space = memchr(space, ' ', (size_t)(end - space)))) {
		const char *address = find_joined_address(text, space);

		if (address && address > text && is_joined_rest(space + 1, end))
			return address;
		space++;
	}
	return NULL;
}

/* Length without an incomplete tier: in "M()[QuickJi" the end of the tier was lost. */
static size_t bytes_without_cut_tier(const char *name, size_t name_bytes)
{
	const char *open = memrchr(name, '[', name_bytes);
	size_t tail_bytes, i;

	if (!open || open == name)
		return name_bytes;
	tail_bytes = name_bytes - (size_t)(open - name) - 1;
	for (i = 1; i < PERFMAP_TIERS; i++)
		if (tail_bytes < strlen(perfmap_tiers[i]) + 1 &&
		    !strncmp(perfmap_tiers[i], open + 1, tail_bytes))
			return (size_t)(open - name);
	return name_bytes;
}

/*
 * Parses a line with non-ASCII or NUL bytes. If another line is joined to it, the next call parses
 * that one. The position of the newline is kept, because searching for it again each time would be
 * quadratic.
 */
static bool parse_odd_line(struct perfmap_parser *parser, const char *line, const char *end,
			   struct perfmap_line *ret)
{
	const char *joined = find_joined_line(line, end);
	bool good = parse_fields(line, joined ? joined : end, ret);

	if (joined) {
		parser->joined_lines++;
		parser->next = joined;
	}
	if (!good)
		return false;
	ret->name_bytes = strnlen(ret->name, ret->name_bytes);
	if (joined)
		ret->name_bytes = bytes_without_cut_tier(ret->name, ret->name_bytes);
	return ret->name_bytes > 0 && ret->name_bytes <= LIMIT_NAME_BYTES;
}

/* Parses the next line of any kind. Returns false if it is bad. At the end of the text *newline_ret
 * is NULL. */
static bool read_line(struct perfmap_parser *parser, struct perfmap_line *ret,
		      const char **newline_ret)
{
	const char *line = parser->next, *newline = parser->newline, *end;
	bool good;

	if (!newline)
		newline = memchr(line, '\n', (size_t)(parser->end - line));
	*newline_ret = newline;
	if (!newline)
		return false;
	parser->next = newline + 1;
	end = newline > line && newline[-1] == '\r' ? newline - 1 : newline;
	if (end == line)
		return false;
	good = utf8_is_ascii(line, (size_t)(end - line)) ? parse_line(line, end, ret)
							 : parse_odd_line(parser, line, end, ret);
	parser->newline = parser->next <= newline ? newline : NULL;
	parser->good_lines += good;
	parser->bad_lines += !good;
	return good;
}

void perfmap_parser_init(struct perfmap_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may be NULL, and even adding 0 to NULL is undefined. */
	if (!size_bytes)
		text = "";
	*parser = (struct perfmap_parser){ .next = text, .end = text + size_bytes };
}

bool perfmap_parser_next(struct perfmap_parser *parser, struct perfmap_line *ret)
{
	const char *newline;

	while (parser->next < parser->end) {
		if (read_line(parser, ret, &newline)) {
			ret->bare_bytes = perfmap_tier_find(ret->name, ret->name_bytes, &ret->tier);
			return true;
		}
		if (!newline)
			return false;
	}
	return false;
}

void perfmap_write_line(struct buf *buf, uint64_t start_address, uint64_t size_bytes,
			const char *name, size_t name_bytes, const char *tier)
{
	size_t tier_bytes = tier ? strlen(tier) : 0;
	char *room = buf_reserve(buf, name_bytes + tier_bytes + 37);
	char *next = room;

	if (!room)
		return;
	next += hex_write_u64(next, start_address);
	*next++ = ' ';
	next += hex_write_u64(next, size_bytes);
	*next++ = ' ';
	memcpy(next, name, name_bytes);
	utf8_replace_controls(next, name_bytes);
	next += name_bytes;
	if (tier) {
		*next++ = '[';
		memcpy(next, tier, tier_bytes);
		next += tier_bytes;
		*next++ = ']';
	}
	*next++ = '\n';
	buf->size_bytes += (size_t)(next - room);
}
