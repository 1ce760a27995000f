/* SPDX-License-Identifier: MIT */
/* A progress bar needs a terminal that can erase a line. */
#include "mapgen/cli/progress.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* The output of a bar with one step on a terminal of this kind; NULL: TERM is not set. */
static size_t drawn(const char *terminal, char *room, size_t room_bytes)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO), slave;
	struct pollfd watched = { .fd = master, .events = POLLIN };
	struct progress progress;
	size_t count = 0;

	cr_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	cr_assert(slave >= 0 && kept >= 0);
	if (terminal)
		setenv("TERM", terminal, 1);
	else
		unsetenv("TERM");
	dup2(slave, STDERR_FILENO);
	progress_begin(&progress, 2);
	progress_step(&progress, "libcoreclr.so");
	progress_hide(&progress);
	progress_line(&progress, "a line\033[31m");
	progress_line(&progress, "drawn again too early");
	progress_end(&progress);
	dup2(kept, STDERR_FILENO);
	cr_assert_eq(write(slave, "$", 1), 1);
	while (count < room_bytes && !memchr(room, '$', count) && poll(&watched, 1, 60000) > 0) {
		ssize_t got = read(master, room + count, room_bytes - count);

		cr_assert(got > 0);
		count += (size_t)got;
	}
	close(slave);
	close(master);
	close(kept);
	return count - 1; /* without the mark */
}

Test(progress, is_drawn_on_a_terminal)
{
	char room[1024];
	size_t count = drawn("xterm", room, sizeof(room));

	cr_expect(memmem(room, count, "1/2 libcoreclr.so", 17));
	cr_expect(memmem(room, count, "\r\033[Ka line", 10));
	cr_expect_not(memmem(room, count, "\033[31m", 5));
	cr_expect_not(memmem(room, count, "too early", 9));
}

Test(progress, is_not_drawn_where_a_line_cannot_be_erased)
{
	char room[1024];

	cr_expect_eq(drawn("dumb", room, sizeof(room)), 0);
	cr_expect_eq(drawn(NULL, room, sizeof(room)), 0);
}
