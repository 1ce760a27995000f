/* SPDX-License-Identifier: MIT */
/* A progress bar is for terminals that can erase a line. */
#include "mapgen/progress.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* What a bar with one step writes to a terminal of this kind; NULL: none is told. */
static size_t drawn(const char *terminal, char *room, size_t room_bytes)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO), slave;
	struct pollfd watched = { .fd = master, .events = POLLIN };
	struct progress progress;
	ssize_t count = 0;

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
	progress_end(&progress);
	dup2(kept, STDERR_FILENO);
	if (poll(&watched, 1, 0) > 0)
		count = read(master, room, room_bytes);
	close(slave);
	close(master);
	close(kept);
	return count > 0 ? (size_t)count : 0;
}

Test(progress, is_drawn_on_a_terminal)
{
	char room[1024];
	size_t count = drawn("xterm", room, sizeof(room));

	cr_expect(memmem(room, count, "1/2 libcoreclr.so", 17));
}

Test(progress, is_not_drawn_where_a_line_cannot_be_erased)
{
	char room[1024];

	cr_expect_eq(drawn("dumb", room, sizeof(room)), 0);
	cr_expect_eq(drawn(NULL, room, sizeof(room)), 0);
}
