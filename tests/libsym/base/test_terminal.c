/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/terminal.h"

static void expect_clean(const char *text, const char *expected)
{
	char room[256];
	size_t rest, length = terminal_clean(room, text, strlen(text), &rest);

	cr_assert_eq(rest, 0, "%s", text);
	cr_expect_eq(length, strlen(expected), "%s", text);
	cr_expect(!memcmp(room, expected, length), "%.*s", (int)length, room);
}

Test(terminal, keeps_text)
{
	expect_clean("a\tb\n", "a\tb\n");
	expect_clean("Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0 \xe2\x80\x90",
		     "Gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0 \xe2\x80\x90");
}

Test(terminal, replaces_every_control_character)
{
	for (int byte = 1; byte < 0x20; byte++)
		if (byte != '\n' && byte != '\t')
			expect_clean((char[]){ 'a', (char)byte, 'b', '\0' }, "a?b");
	expect_clean("a\x7f"
		     "b",
		     "a?b");
	/* C1, as UTF-8 and as bytes. */
	for (int byte = 0x80; byte < 0xa0; byte++) {
		expect_clean((char[]){ 'a', (char)0xc2, (char)byte, 'b', '\0' }, "a?b");
		expect_clean((char[]){ 'a', (char)byte, 'b', '\0' }, "a?b");
	}
}

Test(terminal, replaces_characters_that_change_the_direction)
{
	static const char *const texts[] = {
		"\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa",
		"\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
		"\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect_clean(texts[i], "?");
}

/* Overlong forms, surrogates, beyond U+10FFFF, truncated characters. */
Test(terminal, replaces_invalid_bytes)
{
	expect_clean("\xc0\x9b"
		     "a",
		     "??a");
	expect_clean("\xe0\x82\x9b"
		     "a",
		     "???a");
	expect_clean("\xed\xa0\x80"
		     "a",
		     "???a");
	expect_clean("\xf4\x90\x80\x80"
		     "a",
		     "????a");
	expect_clean("\xff\xe2\x82"
		     "a",
		     "???a");
}

Test(terminal, keeps_an_incomplete_character_for_the_next_write)
{
	char room[8];
	size_t rest;

	cr_expect_eq(terminal_clean(room, "a\xf0\x9f\x98", 4, &rest), 1);
	cr_expect_eq(rest, 3);
	cr_expect_eq(terminal_clean(room, "\xc2", 1, &rest), 0);
	cr_expect_eq(rest, 1);
}

/* A terminal that passes its output through unchanged. */
static int open_terminal(int *other_ret)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios mode;

	cr_assert(fd >= 0 && !grantpt(fd) && !unlockpt(fd));
	*other_ret = open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	cr_assert_geq(*other_ret, 0);
	tcgetattr(*other_ret, &mode);
	cfmakeraw(&mode);
	tcsetattr(*other_ret, TCSANOW, &mode);
	return fd;
}

Test(terminal, guards_a_stream)
{
	int slave, fd AUTO_CLOSE = open_terminal(&slave);
	FILE *opened GUARDED(file) = fdopen(slave, "w"), *stream = opened;
	char got[64] = "";

	terminal_guard(&stream);
	cr_assert_neq(stream, opened);
	fputs("a\x1b[31m\xc2", stream);
	fflush(stream);
	fputs("\x9b"
	      "b\n",
	      stream);
	while (!strchr(got, '\n'))
		cr_assert_gt(read(fd, got + strlen(got), sizeof(got) - 1 - strlen(got)), 0);
	cr_expect_str_eq(got, "a?[31m?b\n");
	fclose(stream);
}

Test(terminal, does_not_change_a_stream_to_a_pipe)
{
	int ends[2];
	FILE *opened GUARDED(file) = NULL, *stream;

	cr_assert_eq(pipe(ends), 0);
	stream = opened = fdopen(ends[1], "w");
	terminal_guard(&stream);
	cr_expect_eq(stream, opened);
	close(ends[0]);
}
