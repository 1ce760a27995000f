/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "libsym/base/hex.h"
#include "libsym/format/perfmap_tier.h"
#include "libsym/limits.h"

enum {
	FEWEST_DIGITS = 6, /* of an address behind 0x */
	PADDED_DIGITS = 16,
	MOST_SIZE_DIGITS = 8
};

/* "[0x]HEX " ; returns what follows, or NULL. */
static const char *take_number(const char *text, const char *end, uint64_t *ret)
{
	size_t digits;

	if (end - text > 2 && text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	digits = hex_read_u64(text, (size_t)(end - text), ret);
	if (!digits || text + digits >= end || text[digits] != ' ')
		return NULL;
	return text + digits + 1;
}

/* Address, size and the name up to `end`, however long it is. */
static bool parse_fields(const char *text, const char *end, struct perfmap_line *ret)
{
	const char *next = take_number(text, end, &ret->start_address);
	uint64_t sum;

	if (next)
		next = take_number(next, end, &ret->size_bytes);
	if (!next || next == end ||
	    __builtin_add_overflow(ret->start_address, ret->size_bytes, &sum))
		return false;
	ret->name = next;
	ret->name_bytes = (size_t)(end - next);
	return true;
}

static bool parse_line(const char *text, const char *end, struct perfmap_line *ret)
{
	return parse_fields(text, end, ret) && ret->name_bytes <= LIMIT_NAME_BYTES;
}

/* As printf("%x") writes it: the first letter or digit is no 0, unless it stands alone. */
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
 * Start of the address in front of `space`, or NULL. Runtimes from 8 on write 0x
 * and lower-case digits; those before 16 digits of which 0000 come first, because
 * user space ends at 2^47. What is left of the name before may end in digits too.
 */
static const char *glued_address(const char *text, const char *space)
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

/* "SIZE NAME" as a runtime writes it. */
static bool is_glued_rest(const char *text, const char *end)
{
	const char *space =
		memchr(text, ' ',
		       end - text > MOST_SIZE_DIGITS ? MOST_SIZE_DIGITS + 1 : (size_t)(end - text));

	return space && is_plain_hex(text, (size_t)(space - text)) && end - space > 1 &&
	       space[1] != ' ';
}

/*
 * Where a line begins whose newline in front is lost; NULL when there is none.
 * Only a name that is not ASCII loses its newline, so a byte that is not ASCII
 * (a NUL where the wreck is UTF-16) lies before it, whatever ASCII names look like.
 */
static const char *find_glued_line(const char *text, const char *end)
{
	const char *space = text;

	while (space < end && (signed char)*space > 0)
		space++;
	text = space;
	while (space < end && (space = memchr(space, ' ', (size_t)(end - space)))) {
		const char *address = glued_address(text, space);

		if (address && address > text && is_glued_rest(space + 1, end))
			return address;
		space++;
	}
	return NULL;
}

/* "M()[QuickJi" has lost the end of its tier, which is no part of the name. */
static size_t without_cut_tier(const char *name, size_t name_bytes)
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
 * A line with bytes that wrecks have. What is glued to its end is left to the
 * next call, with the newline that is known already: looking for it again and
 * again would take quadratic time.
 */
static bool take_odd_line(struct perfmap_parser *parser, const char *line, const char *end,
			  struct perfmap_line *ret)
{
	const char *glued = find_glued_line(line, end);
	bool good = parse_fields(line, glued ? glued : end, ret);

	if (glued) {
		parser->glued_lines++;
		parser->next = glued;
	}
	if (!good)
		return false;
	ret->name_bytes = strnlen(ret->name, ret->name_bytes);
	if (glued)
		ret->name_bytes = without_cut_tier(ret->name, ret->name_bytes);
	return ret->name_bytes > 0 && ret->name_bytes <= LIMIT_NAME_BYTES;
}

#ifdef __SSE2__
enum {
	AT_ONCE = 16
};

/* Of 16 bytes: which are newlines, and which are neither ASCII nor set. */
static inline void look_at(const char *text, unsigned int *newlines, unsigned int *odd)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)text);

	*newlines = (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
	*odd = (unsigned int)_mm_movemask_epi8(_mm_cmplt_epi8(bytes, _mm_set1_epi8(1)));
}
#else
enum {
	AT_ONCE = 1
};

static inline void look_at(const char *text, unsigned int *newlines, unsigned int *odd)
{
	*newlines = *text == '\n';
	*odd = *text == 0 || (*text & 0x80);
}
#endif

/*
 * The newline behind `text`, or NULL. *plain_ret tells whether all before it are
 * ASCII and none is 0. One pass does both: a map is read at the speed of memory.
 */
static const char *find_newline(const char *text, const char *end, bool *plain_ret)
{
	unsigned int newlines, odd, odd_before = 0;

	for (; end - text >= AT_ONCE; text += AT_ONCE) {
		look_at(text, &newlines, &odd);
		if (newlines) {
			/* Bits below the lowest one of the newlines. */
			odd &= newlines ^ (newlines - 1);
			*plain_ret = !(odd | odd_before);
			return text + __builtin_ctz(newlines);
		}
		odd_before |= odd;
	}
	for (; text < end; text++) {
		if (*text == '\n') {
			*plain_ret = !odd_before;
			return text;
		}
		odd_before |= *text == 0 || (*text & 0x80);
	}
	return NULL;
}

/* The next line, whatever is in it; false when it is bad. Behind the text: *newline_ret is NULL. */
static bool take_line(struct perfmap_parser *parser, struct perfmap_line *ret,
		      const char **newline_ret)
{
	const char *line = parser->next, *newline = parser->newline, *end;
	bool plain = false, good;

	if (!newline)
		newline = find_newline(line, parser->end, &plain);
	*newline_ret = newline;
	if (!newline)
		return false;
	parser->next = newline + 1;
	end = newline > line && newline[-1] == '\r' ? newline - 1 : newline;
	if (end == line)
		return false;
	good = plain ? parse_line(line, end, ret) : take_odd_line(parser, line, end, ret);
	parser->newline = parser->next <= newline ? newline : NULL;
	parser->good_lines += good;
	parser->bad_lines += !good;
	return good;
}

void perfmap_parser_init(struct perfmap_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may come as NULL, to which not even 0 may be added. */
	if (!size_bytes)
		text = "";
	*parser = (struct perfmap_parser){ .next = text, .end = text + size_bytes };
}

bool perfmap_parser_next(struct perfmap_parser *parser, struct perfmap_line *ret)
{
	const char *newline;

	while (parser->next < parser->end) {
		if (take_line(parser, ret, &newline)) {
			ret->bare_bytes = perfmap_find_tier(ret->name, ret->name_bytes, &ret->tier);
			return true;
		}
		if (!newline)
			return false;
	}
	return false;
}

/* Is one of the eight bytes a control character? */
static bool has_control(uint64_t bytes)
{
	const uint64_t ones = UINT64_MAX / 255, tops = ones * 0x80;
	uint64_t deletes = bytes ^ ones * 0x7f;

	return (((bytes - ones * 0x20) & ~bytes) | ((deletes - ones) & ~deletes)) & tops;
}

/* Names hardly ever have one: eight bytes are looked at together. */
static void replace_controls(char *text, size_t size_bytes)
{
	size_t i = 0, end;
	uint64_t bytes;

	while (i < size_bytes) {
		end = size_bytes - i < sizeof(bytes) ? size_bytes : i + sizeof(bytes);
		if (end - i == sizeof(bytes)) {
			memcpy(&bytes, text + i, sizeof(bytes));
			if (!has_control(bytes)) {
				i = end;
				continue;
			}
		}
		for (; i < end; i++)
			if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
				text[i] = '?';
	}
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
	replace_controls(next, name_bytes);
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
