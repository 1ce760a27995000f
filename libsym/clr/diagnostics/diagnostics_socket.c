/* SPDX-License-Identifier: MIT */
/*
 * How a command reaches the runtime.
 *
 * 1. Find "dotnet-diagnostic-PID-TIME-socket" in the TMPDIR of the process (find_socket()).
 * 2. Connect with the rights of the process (connect_in()).
 * 3. Ask the kernel which process listens (check_peer()); any other process is rejected.
 * 4. Send one command, and read one reply or a stream.
 *
 * wait_running() waits for an answer. It has a deadline, and gives up when the process is stopped.
 * The time is charged to the budget of the process's user.
 */
#include "libsym/clr/diagnostics/diagnostics_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/reader.h"
#include "libsym/format/linux/proc_text.h"

static const char magic[14] = "DOTNET_IPC_V1";

enum {
	HEADER_BYTES = 20,
	MAX_PAYLOAD_BYTES = 60000,
	REPLY_SET = 0xff,
	REPLY_OK = 0x00,
};

int64_t diagnostics_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct sym_error *diagnostics_socket_error(const char *what)
{
	return sym_error_create(SYM_ERROR_IO, "diagnostics socket: %s", what);
}

/* Waits until `fd` is ready for `events`; false after the deadline. */
static bool wait_for(int fd, short events, int64_t deadline_ms)
{
	for (;;) {
		struct pollfd wanted = { .fd = fd, .events = events };
		int64_t left = deadline_ms - diagnostics_now_ms();
		int ready;

		if (left <= 0)
			return false;
		ready = poll(&wanted, 1, left > INT32_MAX ? INT32_MAX : (int)left);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
	}
}

/* ---- finding it ------------------------------------------------------------- */

/*
 * The second number of the name is the start time that the process read from its own /proc, which a
 * time namespace shifts.
 * So any socket with the PID is tried, and the kernel identifies the listener afterwards.
 */
static bool is_socket_name(const char *name, const struct diagnostics_place *place)
{
	char prefix[64];
	int length = snprintf(prefix, sizeof(prefix), "dotnet-diagnostic-%d-",
			      (int)place->namespace_pid);
	const char *rest = name + length;

	return !strncmp(name, prefix, (size_t)length) && strspn(rest, "0123456789") > 0 &&
	       !strcmp(rest + strspn(rest, "0123456789"), "-socket");
}

static struct sym_error *no_socket_error(const struct diagnostics_place *place)
{
	return sym_error_create(SYM_ERROR_NOT_FOUND,
				"process %d has no diagnostics socket of its own in %s "
				"(DOTNET_EnableDiagnostics=0, a child of fork(), a place where it "
				"may not write, or .NET Core before 3.0)",
				(int)place->pid, place->directory);
}

static struct sym_error *find_socket(const struct diagnostics_place *place, int directory_fd,
				     char *name, size_t name_bytes)
{
	char exact[96];
	int listing_fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing GUARDED(dir) = listing_fd < 0 ? NULL : fdopendir(listing_fd);
	struct stat status;
	struct dirent *entry;
	time_t newest = 0;

	name[0] = '\0';
	if (!listing && listing_fd >= 0)
		close(listing_fd);
	snprintf(exact, sizeof(exact), "dotnet-diagnostic-%d-%" PRIu64 "-socket",
		 (int)place->namespace_pid, place->start_time_ticks);
	while (listing && (entry = readdir(listing))) {
		bool is_exact = !strcmp(entry->d_name, exact);

		if (!is_socket_name(entry->d_name, place) || strlen(entry->d_name) >= name_bytes ||
		    fstatat(directory_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISSOCK(status.st_mode) || status.st_uid != place->uid)
			continue;
		if (!is_exact && name[0] && status.st_mtime < newest)
			continue;
		memcpy(name, entry->d_name, strlen(entry->d_name) + 1);
		newest = status.st_mtime;
		if (is_exact)
			break;
	}
	return name[0] ? NULL : no_socket_error(place);
}

/* The kernel knows which process called listen(). */
static struct sym_error *check_peer(const struct diagnostics_place *place, int fd)
{
	struct ucred peer;
	socklen_t size_bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size_bytes))
		return sym_error_from_errno(errno, NULL,
					    "diagnostics socket: its owner is unknown");
	if (peer.pid == place->pid && peer.uid == place->uid)
		return NULL;
	return sym_error_create(SYM_ERROR_PERMISSION,
				"diagnostics socket: process %d listens on it, not process %d",
				(int)peer.pid, (int)place->pid);
}

struct sym_error *diagnostics_check_running(const struct diagnostics_place *place)
{
	char path[32], text[1024];
	struct proc_stat stat;
	ssize_t size_bytes;
	int fd AUTO_CLOSE = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)place->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size_bytes = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (size_bytes <= 0 || !proc_text_parse_stat(text, (size_t)size_bytes, &stat) ||
	    (stat.state != 'T' && stat.state != 't'))
		return NULL;
	return sym_error_create(SYM_ERROR_IO, "process %d is stopped (%s) and cannot answer",
				(int)place->pid, stat.state == 'T' ? "SIGSTOP" : "by a debugger");
}

/* A socket name has at most 108 bytes, so the directory is reached through its descriptor. */
static struct sym_error *connect_in(const struct diagnostics_place *place, int directory_fd,
				    const char *name, int64_t deadline_ms, int *fd_ret)
{
	int fd AUTO_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0)
		return sym_error_from_errno(errno, NULL, "cannot make a socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.80s", directory_fd,
		 name);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		struct timespec pause = { .tv_nsec = 10000000 };

		if (errno == EINTR)
			continue;
		/* A killed process with the same PID has left it. */
		if (errno == ECONNREFUSED)
			return no_socket_error(place);
		/* EAGAIN: the queue of the listener is full. */
		if (errno != EAGAIN)
			return sym_error_from_errno(errno, NULL,
						    "diagnostics socket: cannot connect");
		if (diagnostics_now_ms() >= deadline_ms)
			return diagnostics_socket_error("it accepts no connection");
		nanosleep(&pause, NULL);
	}
	*fd_ret = steal_fd(&fd);
	return NULL;
}

static struct sym_error *find_and_connect(const struct diagnostics_place *place,
					  int64_t deadline_ms, int *fd_ret)
{
	int directory_fd AUTO_CLOSE =
		path_open_in_root(place->root_fd, place->directory, PATH_DIRECTORY);
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;
	char name[81];

	if (directory_fd < 0)
		return sym_error_from_errno(-directory_fd, place->directory,
					    "cannot look for the diagnostics socket");
	error = find_socket(place, directory_fd, name, sizeof(name));
	if (!error)
		error = diagnostics_check_running(place);
	if (!error)
		error = diagnostics_check_patience(place);
	budget_begin(place->account, BUDGET_WAIT);
	if (!error)
		error = connect_in(place, directory_fd, name, deadline_ms, &fd);
	budget_end(place->account, BUDGET_WAIT);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

/*
 * Connects with the rights of the process, so that its path cannot lead to a socket that it may not
 * use itself. Without them: with the rights of an ordinary user.
 */
struct sym_error *diagnostics_connect(const struct diagnostics_place *place, int64_t deadline_ms,
				      int *fd_ret)
{
	int fd AUTO_CLOSE = -1;
	struct rights_held held;
	struct sym_error *error;
	int result = rights_assume(place->rights, &held);

	if (result == -EPERM)
		result = rights_drop_file_capabilities(&held);
	if (result)
		return sym_error_from_errno(-result, place->directory,
					    "cannot take the rights of the process");
	error = find_and_connect(place, deadline_ms, &fd);
	rights_restore(&held);
	if (!error)
		error = check_peer(place, fd);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

/* ---- messages ------------------------------------------------------------------ */

struct sym_error *diagnostics_send(int fd, uint8_t set, uint8_t command, const void *payload,
				   size_t payload_bytes, int64_t deadline_ms)
{
	uint8_t message[HEADER_BYTES + MAX_PAYLOAD_BYTES] = { 0 };
	size_t total = HEADER_BYTES + payload_bytes, sent = 0;

	if (payload_bytes > MAX_PAYLOAD_BYTES)
		return sym_error_create(SYM_ERROR_ARGUMENT, "command of %zu bytes", payload_bytes);
	memcpy(message, magic, sizeof(magic));
	message[14] = (uint8_t)total;
	message[15] = (uint8_t)(total >> 8);
	message[16] = set;
	message[17] = command;
	memcpy(message + HEADER_BYTES, payload, payload_bytes);
	while (sent < total) {
		ssize_t count = send(fd, message + sent, total - sent, MSG_NOSIGNAL);

		if (count >= 0)
			sent += (size_t)count;
		else if (errno == EAGAIN && !wait_for(fd, POLLOUT, deadline_ms))
			return diagnostics_socket_error("it takes no command");
		else if (errno != EAGAIN && errno != EINTR)
			return sym_error_from_errno(errno, NULL,
						    "diagnostics socket: cannot write");
	}
	return NULL;
}

/* Under a time limit, the limit is the reason. */
static void note_silence(const struct diagnostics_place *place)
{
	char what[64];

	budget_record_silent(place->account, place->pid, place->start_time_ticks);
	if (budget_left_ns(place->account, BUDGET_WAIT) == INT64_MAX)
		return;
	snprintf(what, sizeof(what), "the diagnostics socket of process %d", (int)place->pid);
	budget_record_excess(place->account, BUDGET_EXCESS_WAIT, what);
}

/* A process that is stopped for half a second is not waited for. A debugger's stop is shorter. */
static struct sym_error *wait_running(const struct diagnostics_place *place, int fd,
				      int64_t deadline_ms)
{
	enum {
		LOOK_MS = 100,
		MAX_LOOKS = 5
	};
	unsigned int looks = 0;

	for (;;) {
		int64_t now_ms = diagnostics_now_ms();
		struct sym_error *stopped;

		if (now_ms >= deadline_ms) {
			note_silence(place);
			return diagnostics_socket_error("no answer in time");
		}
		if (wait_for(fd, POLLIN,
			     deadline_ms - now_ms > LOOK_MS ? now_ms + LOOK_MS : deadline_ms))
			return NULL;
		stopped = diagnostics_check_running(place);
		looks = stopped ? looks + 1 : 0;
		if (looks == MAX_LOOKS)
			return stopped;
		sym_error_destroy(stopped);
	}
}

struct sym_error *diagnostics_check_patience(const struct diagnostics_place *place)
{
	if (budget_is_silent(place->account, place->pid, place->start_time_ticks))
		return diagnostics_socket_error("it did not answer before, and is not asked again");
	if (!budget_has_time(place->account, BUDGET_WAIT, "a diagnostics socket"))
		return diagnostics_socket_error("no time is left to wait for it");
	return NULL;
}

static struct sym_error *wait_for_answer(const struct diagnostics_place *place, int fd,
					 int64_t deadline_ms)
{
	int64_t left_ms = budget_left_ns(place->account, BUDGET_WAIT) / 1000000;
	int64_t now_ms = diagnostics_now_ms();
	struct sym_error *error;

	if (left_ms < deadline_ms - now_ms)
		deadline_ms = now_ms + left_ms;
	budget_begin(place->account, BUDGET_WAIT);
	error = wait_running(place, fd, deadline_ms);
	budget_end(place->account, BUDGET_WAIT);
	return error;
}

/* *count_ret is 0 at the end of the stream. */
static struct sym_error *read_some(const struct diagnostics_place *place, int fd, void *room,
				   size_t size_bytes, int64_t deadline_ms, size_t *count_ret)
{
	for (;;) {
		ssize_t count = recv(fd, room, size_bytes, 0);
		struct sym_error *error = NULL;

		if (count >= 0) {
			*count_ret = (size_t)count;
			return NULL;
		}
		if (errno == EAGAIN)
			error = wait_for_answer(place, fd, deadline_ms);
		else if (errno != EINTR)
			error = sym_error_from_errno(errno, NULL,
						     "diagnostics socket: cannot read");
		if (error)
			return error;
	}
}

static struct sym_error *read_exactly(const struct diagnostics_place *place, int fd, uint8_t *room,
				      size_t size_bytes, int64_t deadline_ms)
{
	size_t count;

	for (size_t done = 0; done < size_bytes; done += count) {
		struct sym_error *error =
			read_some(place, fd, room + done, size_bytes - done, deadline_ms, &count);

		if (!error && !count)
			error = diagnostics_socket_error(
				"it was closed in the middle of an answer");
		if (error)
			return error;
	}
	return NULL;
}

struct sym_error *diagnostics_receive(const struct diagnostics_place *place, int fd,
				      struct buf *payload, uint32_t *result_ret,
				      int64_t deadline_ms)
{
	uint8_t header[HEADER_BYTES];
	struct reader reader;
	size_t total;
	char *room;
	struct sym_error *error = read_exactly(place, fd, header, sizeof(header), deadline_ms);

	if (error)
		return error;
	total = (size_t)header[14] | (size_t)header[15] << 8;
	if (memcmp(header, magic, sizeof(magic)) != 0 || header[16] != REPLY_SET ||
	    total < HEADER_BYTES)
		return sym_error_create(SYM_ERROR_FORMAT, "diagnostics socket: malformed reply");
	room = buf_reserve(payload, total - HEADER_BYTES);
	if (total > HEADER_BYTES && !room)
		return sym_error_from_buf(payload, "answer of the diagnostics socket");
	error = total > HEADER_BYTES ? read_exactly(place, fd, (uint8_t *)room,
						    total - HEADER_BYTES, deadline_ms)
				     : NULL;
	if (error)
		return error;
	payload->size_bytes += total - HEADER_BYTES;
	*result_ret = DIAGNOSTICS_OK;
	if (header[17] == REPLY_OK)
		return NULL;
	reader = reader_over(payload->data, payload->size_bytes);
	*result_ret = reader_u32(&reader);
	if (*result_ret == DIAGNOSTICS_OK)
		return sym_error_create(SYM_ERROR_FORMAT,
					"diagnostics socket: a refusal without a reason");
	return NULL;
}

struct sym_error *diagnostics_drain(const struct diagnostics_place *place, int fd, struct buf *buf,
				    int64_t idle_ms, int64_t deadline_ms)
{
	static const size_t step_bytes = 1 << 16;

	for (;;) {
		int64_t idle_deadline_ms = diagnostics_now_ms() + idle_ms;
		char *room = buf_reserve(buf, step_bytes);
		struct sym_error *error;
		size_t count;

		if (!room)
			return sym_error_from_buf(buf, "answer of the diagnostics socket");
		error = read_some(place, fd, room, step_bytes,
				  idle_deadline_ms < deadline_ms ? idle_deadline_ms : deadline_ms,
				  &count);
		if (error || !count)
			return error;
		buf->size_bytes += count;
	}
}
