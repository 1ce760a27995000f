/* SPDX-License-Identifier: MIT */
#include "libsym/base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd";

/* 0: none begins here. Reads no byte behind the NUL, which is part of no character. */
static size_t character_bytes(const unsigned char *text)
{
	unsigned char first = text[0], lowest = 0x80, highest = 0xbf;
	size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	/* Neither longer than need be, nor a surrogate, nor beyond U+10FFFF. */
	if (first == 0xe0)
		lowest = 0xa0;
	else if (first == 0xed)
		highest = 0x9f;
	else if (first == 0xf0)
		lowest = 0x90;
	else if (first == 0xf4)
		highest = 0x8f;
	if (text[1] < lowest || text[1] > highest)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

size_t utf8_append(struct buf *buf, const char *text)
{
	size_t bytes = character_bytes((const unsigned char *)text);

	if (bytes) {
		buf_append(buf, text, bytes);
		return bytes;
	}
	buf_append(buf, replacement, sizeof(replacement) - 1);
	return 1;
}
