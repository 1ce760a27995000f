/* SPDX-License-Identifier: MIT */
#include "libsym/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/base/utf8.h"

enum {
	PIECE_BYTES = 4096,
	LONGEST_REST_BYTES = 3,
};

static bool is_control(uint32_t character)
{
	return (character < 0x20 && character != '\n' && character != '\t') ||
	       (character >= 0x7f && character <= 0x9f);
}

static bool turns_direction(uint32_t character)
{
	return character == 0x61c || character == 0x200e || character == 0x200f ||
	       (character >= 0x202a && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

bool terminal_obeys(uint32_t character)
{
	return is_control(character) || turns_direction(character);
}

size_t terminal_clean(char *room, const char *text, size_t size_bytes, size_t *rest_ret)
{
	size_t at = 0, written = 0;

	while (at < size_bytes) {
		uint32_t character;
		size_t bytes = utf8_read(text + at, size_bytes - at, &character);

		if (bytes == UTF8_NOT_WHOLE)
			break;
		if (!bytes || terminal_obeys(character)) {
			room[written++] = '?';
		} else {
			memcpy(room + written, text + at, bytes);
			written += bytes;
		}
		at += bytes ? bytes : 1;
	}
	*rest_ret = size_bytes - at;
	return written;
}

/* State of a guarded stream: the bytes of an incomplete character. */
struct guard {
	int fd;
	char rest[LONGEST_REST_BYTES];
	size_t rest_bytes;
};

static ssize_t write_cleaned(void *cookie, const char *text, size_t size_bytes)
{
	struct guard *guard = cookie;
	char piece[LONGEST_REST_BYTES + PIECE_BYTES], cleaned[sizeof(piece)];

	for (size_t done = 0, step; done < size_bytes; done += step) {
		size_t piece_bytes = guard->rest_bytes, cleaned_bytes;

		step = size_bytes - done < PIECE_BYTES ? size_bytes - done : PIECE_BYTES;
		memcpy(piece, guard->rest, guard->rest_bytes);
		memcpy(piece + piece_bytes, text + done, step);
		piece_bytes += step;
		cleaned_bytes = terminal_clean(cleaned, piece, piece_bytes, &guard->rest_bytes);
		memcpy(guard->rest, piece + piece_bytes - guard->rest_bytes, guard->rest_bytes);
		/* 0 means failure here (fopencookie(3)); errno is set. */
		if (path_write_all(guard->fd, cleaned, cleaned_bytes))
			return 0;
	}
	return (ssize_t)size_bytes;
}

static int close_guard(void *cookie)
{
	free(cookie);
	return 0;
}

void terminal_guard(FILE **stream)
{
	const cookie_io_functions_t functions = { .write = write_cleaned, .close = close_guard };
	int fd = fileno(*stream);
	struct guard *guard;
	FILE *guarded;

	if (!isatty(fd))
		return;
	guard = calloc(1, sizeof(*guard));
	if (!guard)
		abort();
	guard->fd = fd;
	guarded = fopencookie(guard, "w", functions);
	if (!guarded)
		abort();
	setvbuf(guarded, NULL, fd == STDERR_FILENO ? _IONBF : _IOLBF, BUFSIZ);
	*stream = guarded;
}
