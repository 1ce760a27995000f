/* SPDX-License-Identifier: MIT */
#include "symsrv/util/json_text.h"

#include "libsym/base/utf8.h"

static bool is_utf8(const char *text)
{
	uint32_t character;

	while (*text) {
		/* The NUL at the end of the text ends every incomplete character. */
		size_t bytes = utf8_read(text, SIZE_MAX, &character);

		if (!bytes)
			return false;
		text += bytes;
	}
	return true;
}

static bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Escapes as jansson does. */
static void append_escaped(struct buf *buf, unsigned char byte)
{
	static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t i = 0; i + 1 < sizeof(named); i += 2)
		if ((unsigned char)named[i] == byte) {
			buf_append_char(buf, '\\');
			buf_append_char(buf, named[i + 1]);
			return;
		}
	buf_printf(buf, "\\u%04X", byte);
}

void json_text_append(struct buf *buf, const char *text)
{
	bool keeps_high_bytes = true, is_checked = false;

	buf_append_char(buf, '"');
	for (;;) {
		size_t plain_bytes = 0;
		unsigned char byte;

		while (is_plain((unsigned char)text[plain_bytes]))
			plain_bytes++;
		buf_append(buf, text, plain_bytes);
		text += plain_bytes;
		byte = (unsigned char)*text++;
		if (!byte)
			break;
		if (byte >= 0x80 && !is_checked) {
			keeps_high_bytes = is_utf8(text - 1);
			is_checked = true;
		}
		if (byte < 0x80)
			append_escaped(buf, byte);
		else
			buf_append_char(buf, keeps_high_bytes ? (char)byte : '?');
	}
	buf_append_char(buf, '"');
}
