/* SPDX-License-Identifier: MIT */
#include "libsym/base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";

/* Few texts have a control character, so eight bytes are tested at a time. A byte from 0x20 to 0x7e
 * has a clear top bit also when 0x20 is subtracted, and when 1 is added. */
void utf8_replace_controls(char *text, size_t size_bytes)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	uint64_t word;

	for (size_t i = 0; i < size_bytes; i++) {
		if (size_bytes - i >= sizeof(word)) {
			memcpy(&word, text + i, sizeof(word));
			if (!(((word - 0x20 * ones) | (word + ones)) & tops)) {
				i += sizeof(word) - 1;
				continue;
			}
		}
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	}
}

/* Most texts are ASCII, so eight bytes are tested at a time. */
bool utf8_is_ascii(const char *text, size_t size_bytes)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
	size_t i = 0;

	for (; size_bytes - i >= sizeof(ones); i += sizeof(ones)) {
		uint64_t word;

		memcpy(&word, text + i, sizeof(word));
		if ((word | (word - ones)) & tops)
			return false;
	}
	for (; i < size_bytes; i++)
		if ((signed char)text[i] <= 0)
			return false;
	return true;
}

/* Rejects overlong forms, surrogates and values beyond U+10FFFF. */
static bool may_follow(unsigned char first, unsigned char second)
{
	unsigned char lowest = 0x80, highest = 0xbf;

	if (first == 0xe0)
		lowest = 0xa0;
	else if (first == 0xed)
		highest = 0x9f;
	else if (first == 0xf0)
		lowest = 0x90;
	else if (first == 0xf4)
		highest = 0x8f;
	return second >= lowest && second <= highest;
}

size_t utf8_read(const char *text, size_t size_bytes, uint32_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)text;
	unsigned char first = bytes[0];
	size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	uint32_t character;

	*ret = first;
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	character = first & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (i == size_bytes)
			return UTF8_NOT_WHOLE;
		if ((bytes[i] & 0xc0) != 0x80 || (i == 1 && !may_follow(first, bytes[1])))
			return 0;
		character = character << 6 | (bytes[i] & 0x3f);
	}
	*ret = character;
	return length;
}

size_t utf8_append(struct buf *buf, const char *text)
{
	uint32_t character;
	/* The NUL at the end of the text ends every incomplete character. */
	size_t bytes = utf8_read(text, SIZE_MAX, &character);

	if (bytes) {
		buf_append(buf, text, bytes);
		return bytes;
	}
	buf_append(buf, replacement, sizeof(replacement) - 1);
	return 1;
}

/* `text` is not empty. */
static const char *next_character(const char *text)
{
	uint32_t character;

	return text + (utf8_read(text, SIZE_MAX, &character) ?: 1);
}

size_t utf8_count(const char *text)
{
	size_t count = 0;

	for (; *text; text = next_character(text))
		count++;
	return count;
}

const char *utf8_skip(const char *text, size_t count)
{
	for (; *text && count; count--)
		text = next_character(text);
	return text;
}

int utf8_padding(const char *text, size_t columns)
{
	size_t count = utf8_count(text);

	return count < columns ? (int)(columns - count) : 0;
}
