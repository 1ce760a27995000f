/* SPDX-License-Identifier: MIT */
#include "libsym/format/perfmap.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/limits.h"

/* Words that a runtime appends in brackets (dotnet-formats: prestub.cpp, perfmap.cpp). */
static const char *const tiers[] = {
	"Unknown",        "MinOptJitted",      "Optimized",        "QuickJitted",
	"OptimizedTier1", "OptimizedTier1OSR", "InstrumentedTier", "InstrumentedTierOptimized",
	"PreJIT",         "PreJit-cold",       "ReadyToRun",
};

static const size_t longest_tier_bytes = 32;

void perfmap_parser_init(struct perfmap_parser *parser, const char *text, size_t size_bytes)
{
	*parser = (struct perfmap_parser){ .next = text, .end = text + size_bytes };
}

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

static bool parse_line(const char *text, const char *end, struct perfmap_line *ret)
{
	const char *next = take_number(text, end, &ret->start_address);
	const char *nul;
	uint64_t sum;

	if (next)
		next = take_number(next, end, &ret->size_bytes);
	if (!next || next == end || (size_t)(end - next) > LIMIT_NAME_BYTES ||
	    __builtin_add_overflow(ret->start_address, ret->size_bytes, &sum))
		return false;
	nul = memchr(next, 0, (size_t)(end - next));
	ret->name = next;
	ret->name_bytes = (size_t)((nul ? nul : end) - next);
	return ret->name_bytes > 0;
}

bool perfmap_parser_next(struct perfmap_parser *parser, struct perfmap_line *ret)
{
	while (parser->next < parser->end) {
		const char *line = parser->next;
		const char *end = memchr(line, '\n', (size_t)(parser->end - line));

		if (!end)
			return false;
		parser->next = end + 1;
		if (end > line && end[-1] == '\r')
			end--;
		if (end == line)
			continue;
		if (parse_line(line, end, ret)) {
			parser->good_lines++;
			return true;
		}
		parser->bad_lines++;
	}
	return false;
}

size_t perfmap_split_tier(const char *name, size_t name_bytes, const char **tier_ret)
{
	const char *open;
	size_t i, tier_bytes;

	*tier_ret = NULL;
	if (name_bytes < 3 || name[name_bytes - 1] != ']')
		return name_bytes;
	open = memrchr(name, '[', name_bytes);
	if (!open || open == name)
		return name_bytes;
	tier_bytes = name_bytes - (size_t)(open - name) - 2;
	if (tier_bytes > longest_tier_bytes)
		return name_bytes;
	for (i = 0; i < sizeof(tiers) / sizeof(*tiers); i++) {
		if (strlen(tiers[i]) == tier_bytes && !memcmp(open + 1, tiers[i], tier_bytes)) {
			*tier_ret = tiers[i];
			return (size_t)(open - name);
		}
	}
	return name_bytes;
}

void perfmap_write_line(struct buf *buf, uint64_t start_address, uint64_t size_bytes,
			const char *name, size_t name_bytes, const char *tier)
{
	size_t tier_bytes = tier ? strlen(tier) : 0;
	char *room = buf_reserve(buf, name_bytes + tier_bytes + 37);
	char *next = room;
	size_t i;

	if (!room)
		return;
	next += hex_write_u64(next, start_address);
	*next++ = ' ';
	next += hex_write_u64(next, size_bytes);
	*next++ = ' ';
	memcpy(next, name, name_bytes);
	for (i = 0; i < name_bytes; i++)
		if ((unsigned char)next[i] < 0x20 || next[i] == 0x7f)
			next[i] = '?';
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
