/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_text.h"

#include <string.h>

#include "libsym/base/leb.h"

static void append_utf8(struct buf *out, uint32_t character)
{
	if (character < 0x80) {
		buf_append_char(out, (char)character);
		return;
	}
	if (character < 0x800) {
		buf_append_char(out, (char)(0xc0 | character >> 6));
	} else {
		if (character < 0x10000) {
			buf_append_char(out, (char)(0xe0 | character >> 12));
		} else {
			buf_append_char(out, (char)(0xf0 | character >> 18));
			buf_append_char(out, (char)(0x80 | (character >> 12 & 0x3f)));
		}
		buf_append_char(out, (char)(0x80 | (character >> 6 & 0x3f)));
	}
	buf_append_char(out, (char)(0x80 | (character & 0x3f)));
}

void nettrace_read_string(struct reader *reader, struct buf *out)
{
	for (;;) {
		uint32_t unit = reader_u16(reader), next;

		if (!unit)
			return; /* also if the reader has failed */
		if ((unit & 0xfc00) == 0xd800 && reader_left(reader) >= 2) {
			next = (uint32_t)reader->data[reader->position] |
			       (uint32_t)reader->data[reader->position + 1] << 8;
			if ((next & 0xfc00) == 0xdc00) {
				reader_skip(reader, 2);
				append_utf8(out, 0x10000 + ((unit & 0x3ff) << 10) + (next & 0x3ff));
				continue;
			}
		}
		append_utf8(out, (unit & 0xf800) == 0xd800 ? 0xfffd : unit);
	}
}

void nettrace_append_utf16(struct buf *out, const uint8_t *bytes, size_t size_bytes)
{
	struct reader reader = reader_over(bytes, size_bytes);

	nettrace_read_string(&reader, out);
}

char *nettrace_read_text16(struct reader *reader, size_t most_bytes, bool *no_memory)
{
	struct buf text;
	char *heap = NULL;

	buf_init(&text, most_bytes);
	nettrace_read_string(reader, &text);
	if (reader_ok(reader) && text.failure != BUF_TOO_BIG) {
		heap = buf_steal(&text, NULL);
		*no_memory |= !heap;
	}
	buf_deinit(&text);
	return heap;
}

char *nettrace_read_text8(struct reader *reader, size_t most_bytes, bool *no_memory)
{
	size_t size_bytes = (size_t)leb_unsigned(reader);
	const uint8_t *bytes = reader_bytes(reader, size_bytes);
	char *heap;

	if (!bytes || size_bytes > most_bytes)
		return NULL;
	heap = strndup((const char *)bytes, size_bytes);
	*no_memory |= !heap;
	return heap;
}

void nettrace_skip_text8(struct reader *reader)
{
	reader_skip(reader, (size_t)leb_unsigned(reader));
}
