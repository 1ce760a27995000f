/* SPDX-License-Identifier: MIT */
#include "symsrv/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LINE_BYTES = 1024 /* a pipe takes so much whole or not at all */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int output = STDERR_FILENO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int lost;

/* The flag of a descriptor that was handed over is that of others too, who do wait. */
int log_open_output(void)
{
	struct stat status;
	int fd = -1;

	if (!fstat(STDERR_FILENO, &status) && S_ISFIFO(status.st_mode))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : fd;
}

static void choose_output(void)
{
	int fd = log_open_output();

	if (fd >= 0)
		output = fd;
}

/* Lock held. Returns the length, with the newline. */
static size_t render(char text[LINE_BYTES], enum log_level level, const char *format,
		     va_list arguments)
{
	size_t start = getenv("JOURNAL_STREAM") ? (size_t)snprintf(text, LINE_BYTES, "<%d>", level)
						: (size_t)snprintf(text, LINE_BYTES, "symsrv: ");
	size_t length =
		start + (size_t)vsnprintf(text + start, LINE_BYTES - start - 1, format, arguments);

	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	if (lost)
		length += (size_t)snprintf(text + length, LINE_BYTES - 1 - length,
					   " (%u messages before this one are lost: nobody read "
					   "them)",
					   lost);
	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	for (size_t i = start; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	text[length++] = '\n';
	return length;
}

ssize_t log_write(int fd, const void *bytes, size_t count)
{
	ssize_t sent = send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, count) : sent;
}

/* False: nobody reads it. Any other failure leaves nobody to tell. */
static bool put(const char *text, size_t length)
{
	return log_write(output, text, length) >= 0 || errno != EAGAIN;
}

void log_message(enum log_level level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list arguments;
	size_t length;

	pthread_once(&once, choose_output);
	pthread_mutex_lock(&lock);
	va_start(arguments, format);
	length = render(text, level, format, arguments);
	va_end(arguments);
	lost = put(text, length) ? 0 : lost + 1;
	pthread_mutex_unlock(&lock);
}
