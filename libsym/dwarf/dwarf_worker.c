/* SPDX-License-Identifier: MIT */
/*
 * The child is a fork() of the calling process with a socket pair. It resets crash signals,
 * redirects the standard streams to /dev/null, closes all other descriptors, and runs `serve` until
 * the socket is closed. Questions and replies are structs of fixed size; a reply is followed by
 * strings, which dwarf_reply_write() serialises. The parent reads them with bounds checks and
 * interns them, because a crashing child may write anything.
 */
#include "libsym/dwarf/dwarf_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/reader.h"

/* ---- the child ----------------------------------------------------------------- */

/* Otherwise the child would keep pipes and sockets of its parent open. */
static void close_all_but(const int *kept, size_t kept_count, int fd)
{
	int first = STDERR_FILENO + 1;

	for (;;) {
		int next = fd >= first ? fd : -1;

		for (size_t i = 0; i < kept_count; i++)
			if (kept[i] >= first && (next < 0 || kept[i] < next))
				next = kept[i];
		if (next < 0)
			break;
		if (next > first)
			close_range((unsigned int)first, (unsigned int)next - 1, 0);
		first = next + 1;
	}
	close_range((unsigned int)first, ~0U, 0);
}

/* Silences the assertions of libdw. The parent reports what is missing. */
static void silence_standard_streams(const int *kept, size_t kept_count, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int standard = 0; standard <= STDERR_FILENO; standard++) {
		bool is_kept = standard == fd;

		for (size_t i = 0; i < kept_count; i++)
			is_kept |= kept[i] == standard;
		if (!is_kept && (null < 0 || dup2(null, standard) < 0))
			close(standard);
	}
}

/* Crash signals end the child, whatever its parent does with them, and leave no core file. */
static void reset_crash_signals(void)
{
	static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGXCPU };
	/* If core dumps go to a program, only the limit 1 suppresses them (do_coredump()). */
	struct rlimit limit = { 1, 1 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		signal(signals[i], SIG_DFL);
		sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	setrlimit(RLIMIT_CORE, &limit);
}

/* ---- the parent ---------------------------------------------------------------- */

bool dwarf_worker_start(struct dwarf_worker *worker, dwarf_worker_fn *serve, void *context,
			const int *kept, size_t kept_count)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	worker->pid = fork();
	if (!worker->pid) {
		reset_crash_signals();
		silence_standard_streams(kept, kept_count, ends[1]);
		close_all_but(kept, kept_count, ends[1]);
		serve(context, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (worker->pid < 0) {
		close(ends[0]);
		worker->pid = 0;
		return false;
	}
	worker->fd = ends[0];
	return true;
}

static int64_t timeval_ns(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_usec * 1000;
}

int64_t dwarf_worker_stop(struct dwarf_worker *worker)
{
	struct rusage usage = { 0 };

	if (!worker->pid)
		return 0;
	close(worker->fd);
	kill(worker->pid, SIGKILL);
	while (wait4(worker->pid, NULL, 0, &usage) < 0 && errno == EINTR)
		;
	*worker = (struct dwarf_worker){ 0 };
	return timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
}

/* ---- messages ------------------------------------------------------------------ */

bool dwarf_worker_send(int fd, const void *bytes, size_t size_bytes)
{
	for (size_t done = 0; done < size_bytes;) {
		ssize_t sent =
			send(fd, (const char *)bytes + done, size_bytes - done, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

bool dwarf_worker_receive(int fd, void *bytes, size_t size_bytes)
{
	for (size_t done = 0; done < size_bytes;) {
		ssize_t got = recv(fd, (char *)bytes + done, size_bytes - done, MSG_WAITALL);

		if (!got || (got < 0 && errno != EINTR))
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static void write_text(struct buf *to, const char *text)
{
	buf_append_char(to, text != NULL);
	if (text)
		buf_append(to, text, strlen(text) + 1);
}

static const char *read_text(struct reader *reader, struct text_set *texts)
{
	const char *bytes = reader_u8(reader) ? reader_string(reader) : NULL;
	const char *kept = bytes ? text_set_add(texts, bytes, strlen(bytes)) : NULL;

	if (bytes && !kept)
		reader_fail(reader, "out of memory");
	return kept;
}

bool dwarf_reply_write(const struct dwarf_place *place, const struct sym_inlined *inlined,
		       size_t inlined_count, struct buf *ret)
{
	write_text(ret, place->line.file);
	write_text(ret, place->name);
	write_text(ret, place->linkage_name);
	for (size_t i = 0; i < inlined_count; i++) {
		buf_append(ret, &inlined[i], sizeof(inlined[i]));
		write_text(ret, inlined[i].name);
		write_text(ret, inlined[i].linkage_name);
		write_text(ret, inlined[i].call_file);
	}
	return !ret->failure;
}

bool dwarf_reply_read(const struct buf *text, struct text_set *texts, struct dwarf_place *place,
		      struct sym_inlined *inlined, size_t inlined_count)
{
	struct reader reader = reader_over(text->data, text->size_bytes);

	place->line.file = read_text(&reader, texts);
	place->name = read_text(&reader, texts);
	place->linkage_name = read_text(&reader, texts);
	for (size_t i = 0; i < inlined_count; i++) {
		const uint8_t *bytes = reader_bytes(&reader, sizeof(inlined[i]));

		if (!bytes)
			return false;
		memcpy(&inlined[i], bytes, sizeof(inlined[i]));
		inlined[i].name = read_text(&reader, texts) ?: "";
		inlined[i].linkage_name = read_text(&reader, texts);
		inlined[i].call_file = read_text(&reader, texts);
	}
	return reader_ok(&reader);
}
