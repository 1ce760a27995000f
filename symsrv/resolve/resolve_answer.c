/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/resolve_answer.h"

#include "symsrv/util/json_text.h"

/* Appends `key`, which is a comma, a name in quotation marks and a colon, and the text. */
static void write_text(struct buf *buf, const char *key, const char *text)
{
	buf_append_string(buf, key);
	json_text_append(buf, text);
}

static void write_number(struct buf *buf, const char *key, uint64_t number)
{
	char digits[24];
	char *first = digits + sizeof(digits);

	do
		*--first = (char)('0' + number % 10);
	while (number /= 10);
	buf_append_string(buf, key);
	buf_append(buf, first, (size_t)(digits + sizeof(digits) - first));
}

static void write_place(struct buf *buf, const char *file, uint32_t line)
{
	if (file)
		write_text(buf, ",\"file\":", file);
	if (file && line)
		write_number(buf, ",\"line\":", line);
}

/* Appends an inlined function, whose first key has no comma before it. */
static void write_inlined(struct buf *buf, const struct sym_inlined *inlined, const char *file,
			  uint32_t line)
{
	size_t start = buf->size_bytes;

	if (*inlined->name)
		write_text(buf, ",\"function\":", inlined->name);
	if (inlined->linkage_name)
		write_text(buf, ",\"linkage_name\":", inlined->linkage_name);
	write_place(buf, file, line);
	if (buf->size_bytes == start)
		buf_append_char(buf, '{');
	else if (buf->failure == BUF_OK)
		buf->data[start] = '{';
	buf_append_char(buf, '}');
}

/* Appends the place of the outermost function, then the inlined functions. */
static void write_inlines(struct buf *buf, const struct sym_answer *answer)
{
	const struct sym_inlined *inlined = answer->inlined;
	size_t count = answer->inlined_count;

	if (!count) {
		write_place(buf, answer->file, answer->line);
		return;
	}
	write_place(buf, inlined[count - 1].call_file, inlined[count - 1].call_line);
	buf_append_string(buf, ",\"inlines\":[");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_char(buf, ',');
		write_inlined(buf, &inlined[i], i ? inlined[i - 1].call_file : answer->file,
			      i ? inlined[i - 1].call_line : answer->line);
	}
	buf_append_char(buf, ']');
}

bool resolve_answer_write(struct buf *buf, const struct sym_answer *answer)
{
	size_t start = buf->size_bytes;

	if (!answer || answer->status != SYM_RESOLVED || !answer->name) {
		buf_append_string(buf, "null");
	} else {
		write_text(buf, "{\"function\":", answer->name);
		write_number(buf, ",\"offset\":", answer->offset_bytes);
		if (answer->linkage_name)
			write_text(buf, ",\"linkage_name\":", answer->linkage_name);
		write_inlines(buf, answer);
		if (answer->line_quality == SYM_LINE_NEAREST ||
		    answer->line_quality == SYM_LINE_PROLOG)
			write_text(
				buf, ",\"line_quality\":",
				sym_line_quality_text((enum sym_line_quality)answer->line_quality));
		buf_append_char(buf, '}');
	}
	if (buf->failure == BUF_OK)
		return true;
	buf_truncate(buf, start);
	buf->failure = BUF_OK;
	return false;
}

bool answer_list_append(struct answer_list *list, const struct sym_answer *answer)
{
	size_t start = list->text->size_bytes;

	if (list->count)
		buf_append_char(list->text, ',');
	if (resolve_answer_write(list->text, answer) &&
	    list->text->size_bytes <= list->most_bytes) {
		list->count++;
		return true;
	}
	buf_truncate(list->text, start);
	return false;
}

bool answer_list_append_text(struct answer_list *list, const char *text, size_t size_bytes)
{
	struct buf *buf = list->text;

	if (buf->size_bytes > list->most_bytes || size_bytes >= list->most_bytes - buf->size_bytes)
		return false;
	if (list->count)
		buf_append_char(buf, ',');
	list->count++;
	return buf_append(buf, text, size_bytes);
}
