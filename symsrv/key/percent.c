/* SPDX-License-Identifier: MIT */
#include "symsrv/key/percent.h"

#include <string.h>

#include "libsym/base/hex.h"

bool percent_decode(const char *text, size_t size_bytes, char *room, size_t *length_ret)
{
	size_t length = 0;
	size_t i;

	for (i = 0; i < size_bytes; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '%') {
			if (size_bytes - i < 3 || !hex_read_bytes(text + i + 1, &byte, 1))
				return false;
			i += 2;
		}
		if (byte < 0x20 || byte == 0x7f)
			return false;
		room[length++] = (char)byte;
	}
	room[length] = 0;
	*length_ret = length;
	return true;
}

static bool is_unreserved(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte));
}

bool percent_encode(struct buf *buf, const char *text, const char *keep)
{
	for (; *text; text++) {
		if (is_unreserved(*text) || strchr(keep, *text))
			buf_append_char(buf, *text);
		else
			buf_printf(buf, "%%%02X", (unsigned char)*text);
	}
	return buf->failure == BUF_OK;
}
