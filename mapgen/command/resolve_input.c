/* SPDX-License-Identifier: MIT */
#include "mapgen/command/resolve_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"

/* A path of 4096 bytes and a number fit; a longer line is not a question. */
enum {
	LONGEST_LINE_BYTES = 8192,
	READ_BYTES = 1 << 18,
	BATCH = 1024
};

static bool read_number(const char *text, uint64_t *ret)
{
	size_t length;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	length = strlen(text);
	return length && hex_read_u64(text, length, ret) == length;
}

/* Takes "!MVID" from the end of the image; the image may have "!" itself. */
static void take_mvid(struct question *question)
{
	const char *mark = memrchr(question->image, '!', question->image_bytes);

	if (!mark || mark == question->image)
		return;
	if (question->image_bytes - (size_t)(mark - question->image) != MVID_TEXT + 1 ||
	    strspn(mark + 1, "0123456789abcdefABCDEF-") < MVID_TEXT)
		return;
	question->mvid = mark + 1;
	question->image_bytes = (size_t)(mark - question->image);
}

/* "IMAGE!0xTOKEN" or "IMAGE!MVID!0xTOKEN", then "IL0xN" or "IL~0xN". */
static bool read_il(const char *il, struct question *question)
{
	char token[20];
	const char *mark = memrchr(question->image, '!', question->image_bytes);
	size_t length = mark ? question->image_bytes - (size_t)(mark - question->image) - 1 : 0;
	uint64_t value;

	if (!length || length >= sizeof(token) || mark == question->image)
		return false;
	memcpy(token, mark + 1, length);
	token[length] = '\0';
	question->is_approximate = il[2] == '~';
	if (!read_number(token, &value) || value >> 24 != 0x06 ||
	    !read_number(il + 2 + question->is_approximate, &question->value) ||
	    question->value > UINT32_MAX)
		return false;
	question->token = (uint32_t)value;
	question->image_bytes = (size_t)(mark - question->image);
	take_mvid(question);
	return true;
}

struct question question_parse(const char *text)
{
	struct question question = { .text = text };
	const char *plus = strrchr(text, '+');

	if (!plus) {
		question.malformed = !read_number(text, &question.value);
		return question;
	}
	question.image = text;
	question.image_bytes = (size_t)(plus - text);
	if (!strncmp(plus + 1, "IL", 2))
		question.malformed = !read_il(plus + 1, &question);
	else
		question.malformed = plus == text || !read_number(plus + 1, &question.value);
	return question;
}

struct line_reader {
	char *data;
	size_t size_bytes;
	bool skipping; /* inside a line that is too long */
	struct question *questions;
	size_t count;
	question_handler *handler;
	void *context;
};

static bool questions_flush(struct line_reader *reader)
{
	bool go_on = !reader->count ||
		     reader->handler(reader->context, reader->questions, reader->count);

	reader->count = 0;
	return go_on;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

/* line[length] is a NUL. */
static bool take_line(struct line_reader *reader, char *line, size_t length)
{
	static const char too_long[] = "(a line that is too long)";
	bool skipped = reader->skipping || length > LONGEST_LINE_BYTES;

	reader->skipping = false;
	while (length && is_blank(line[length - 1]))
		line[--length] = '\0';
	while (is_blank(*line))
		line++;
	if (!*line && !skipped && !length)
		return true;
	if (reader->count == BATCH && !questions_flush(reader))
		return false;
	reader->questions[reader->count++] =
		skipped ? (struct question){ .text = too_long, .malformed = true }
			: question_parse(line);
	return true;
}

/* Takes all whole lines out of the buffer. Their texts are used before it moves. */
static bool take_lines(struct line_reader *reader, bool at_end)
{
	char *next = reader->data, *end = reader->data + reader->size_bytes, *newline;

	while ((newline = memchr(next, '\n', (size_t)(end - next)))) {
		*newline = '\0';
		if (!take_line(reader, next, (size_t)(newline - next)))
			return false;
		next = newline + 1;
	}
	if (at_end && (next < end || reader->skipping)) {
		*end = '\0';
		if (!take_line(reader, next, (size_t)(end - next)))
			return false;
		next = end;
	}
	if (!questions_flush(reader))
		return false;
	reader->size_bytes = (size_t)(end - next);
	memmove(reader->data, next, reader->size_bytes);
	if (reader->size_bytes > LONGEST_LINE_BYTES) {
		reader->skipping = true;
		reader->size_bytes = 0;
	}
	return true;
}

int questions_read(int fd, question_handler *handler, void *context)
{
	char *data AUTO_FREE = malloc(READ_BYTES + LONGEST_LINE_BYTES + 1);
	struct question *questions AUTO_FREE = calloc(BATCH, sizeof(*questions));
	struct line_reader reader = {
		.data = data, .questions = questions, .handler = handler, .context = context
	};

	if (!data || !questions)
		return ENOMEM;
	for (;;) {
		ssize_t count = read(fd, data + reader.size_bytes, READ_BYTES);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno;
		reader.size_bytes += (size_t)count;
		if (!take_lines(&reader, count == 0) || count == 0)
			return 0;
	}
}
