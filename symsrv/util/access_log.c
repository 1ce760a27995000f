/* SPDX-License-Identifier: MIT */
#include "symsrv/util/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "symsrv/util/log.h"

/* Most bytes that wait to be written. */
static const size_t most_bytes = (size_t)1 << 20;

struct access_log {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	char *path; /* NULL for standard error */
	int fd;
	struct buf lines;
	unsigned long long lost;
	bool is_ending, must_reopen;
};

/* A FIFO without a reader fails, and a full one loses lines, because writing never waits. */
static int open_file(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		    0640);
}

static void access_log_open_file(struct access_log *log)
{
	int fd = log->path ? open_file(log->path) : -1;

	if (fd < 0)
		return;
	close(log->fd);
	log->fd = fd;
}

/* For the writing thread. */
struct writing {
	unsigned long long lost; /* lost lines since the last report */
	bool is_cut;             /* the last written line is incomplete */
	bool is_failing;
};

static void write_batch(const struct access_log *log, const struct buf *lines,
			struct writing *writing)
{
	size_t done_bytes = 0;
	int failure = 0;
	char note[64];

	if (writing->lost) {
		snprintf(note, sizeof(note), "%slost=%llu\n", writing->is_cut ? "\n" : "",
			 writing->lost);
		if (log_write(log->fd, note, strlen(note)) < 0)
			failure = -errno;
		else
			writing->lost = 0;
	}
	while (!failure && done_bytes < lines->size_bytes) {
		ssize_t written = log_write(log->fd, lines->data + done_bytes,
					    lines->size_bytes - done_bytes);

		if (written > 0)
			done_bytes += (size_t)written;
		else if (!written || errno != EINTR)
			failure = written ? -errno : -EIO;
	}
	if (done_bytes)
		writing->is_cut = lines->data[done_bytes - 1] != '\n';
	for (size_t i = done_bytes; i < lines->size_bytes; i++)
		writing->lost += lines->data[i] == '\n';
	if (failure && !writing->is_failing)
		log_message(LOG_LEVEL_ERROR, "access log: %s; lines are lost", strerror(-failure));
	writing->is_failing = failure != 0;
}

static void *write_lines(void *context)
{
	struct access_log *log = context;
	struct writing writing = { 0 };
	struct buf lines;
	bool ending = false;

	buf_init(&lines, most_bytes);
	while (!ending) {
		struct buf swap;
		bool must_reopen;

		pthread_mutex_lock(&log->lock);
		while (!log->lines.size_bytes && !log->is_ending && !log->must_reopen)
			pthread_cond_wait(&log->wake, &log->lock);
		swap = log->lines;
		log->lines = lines;
		lines = swap;
		ending = log->is_ending;
		must_reopen = log->must_reopen;
		log->must_reopen = false;
		writing.lost += log->lost;
		log->lost = 0;
		pthread_mutex_unlock(&log->lock);
		write_batch(log, &lines, &writing);
		buf_clear(&lines);
		if (must_reopen || writing.is_failing)
			access_log_open_file(log);
	}
	buf_deinit(&lines);
	return NULL;
}

int access_log_open(const char *path, struct access_log **ret)
{
	struct access_log *log = calloc(1, sizeof(*log));
	bool is_stderr = !strcmp(path, "-");
	int failure;

	if (!log)
		return -ENOMEM;
	log->path = is_stderr ? NULL : strdup(path);
	log->fd = is_stderr ? log_open_output() : open_file(path);
	failure = log->fd < 0 ? errno : 0;
	buf_init(&log->lines, most_bytes);
	pthread_mutex_init(&log->lock, NULL);
	pthread_cond_init(&log->wake, NULL);
	if (!failure)
		failure = pthread_create(&log->thread, NULL, write_lines, log);
	if (failure) {
		if (log->fd >= 0)
			close(log->fd);
		free(log->path);
		free(log);
		return -failure;
	}
	*ret = log;
	return 0;
}

void access_log_close(struct access_log *log)
{
	if (!log)
		return;
	pthread_mutex_lock(&log->lock);
	log->is_ending = true;
	pthread_cond_signal(&log->wake);
	pthread_mutex_unlock(&log->lock);
	pthread_join(log->thread, NULL);
	close(log->fd);
	buf_deinit(&log->lines);
	free(log->path);
	free(log);
}

/* Quotes a value; escapes what could end it or the line. */
static void append_quoted(struct buf *buf, const char *text)
{
	size_t count = 0;

	buf_append_char(buf, '"');
	for (; *text && count < 1024; text++, count++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
			buf_printf(buf, "\\x%02x", byte);
		else
			buf_append_char(buf, (char)byte);
	}
	buf_append_char(buf, '"');
}

void access_log_write(struct access_log *log, const struct access_entry *entry)
{
	char time_text[32] = "";
	time_t now = time(NULL);
	struct buf line;
	struct tm parts;

	buf_init(&line, 16 << 10);
	if (gmtime_r(&now, &parts))
		strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	buf_printf(&line, "time=%s client=%s method=%s path=", time_text, entry->client,
		   entry->method);
	append_quoted(&line, entry->path);
	buf_printf(&line, " status=%u bytes=%llu ms=%.3f source=", entry->status,
		   (unsigned long long)entry->bytes, (double)entry->duration_us / 1000);
	append_quoted(&line, entry->source);
	if (entry->user_agent) {
		buf_append_string(&line, " agent=");
		append_quoted(&line, entry->user_agent);
	}
	buf_append_char(&line, '\n');
	pthread_mutex_lock(&log->lock);
	if (line.failure || log->lines.size_bytes + line.size_bytes > most_bytes)
		log->lost++;
	else
		buf_append(&log->lines, line.data, line.size_bytes);
	pthread_cond_signal(&log->wake);
	pthread_mutex_unlock(&log->lock);
	buf_deinit(&line);
}

void access_log_reopen(struct access_log *log)
{
	if (!log)
		return;
	pthread_mutex_lock(&log->lock);
	log->must_reopen = true;
	pthread_cond_signal(&log->wake);
	pthread_mutex_unlock(&log->lock);
}
