/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics_socket.h"

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
#include "libsym/format/proc_text.h"

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

static struct sym_error *broken(const char *what)
{
	return sym_error_create(SYM_ERROR_IO, "diagnostics socket: %s", what);
}

/* Waits until `fd` is ready for `events`; false when the deadline comes first. */
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
 * The name's second number is the start time that the process read in its own
 * /proc, which a time namespace shifts. So any socket of the process is looked
 * at; who listens on it is asked of the kernel afterwards.
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
	if (name[0])
		return NULL;
	return sym_error_create(SYM_ERROR_NOT_FOUND,
				"process %d has no diagnostics socket of its own in %s "
				"(DOTNET_EnableDiagnostics=0, a child of fork(), a place where it "
				"may not write, or .NET Core before 3.0)",
				(int)place->pid, place->directory);
}

/* The kernel knows who called listen(). */
static struct sym_error *check_peer(const struct diagnostics_place *place, int fd)
{
	struct ucred peer;
	socklen_t size_bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size_bytes))
		return sym_error_from_errno(errno, NULL,
					    "diagnostics socket: cannot tell whose it is");
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
	if (size_bytes <= 0 || !proc_stat_parse(text, (size_t)size_bytes, &stat) ||
	    (stat.state != 'T' && stat.state != 't'))
		return NULL;
	return sym_error_create(SYM_ERROR_IO, "process %d is stopped (%s) and cannot answer",
				(int)place->pid, stat.state == 'T' ? "SIGSTOP" : "by a debugger");
}

/* A name of 108 bytes at most: the directory is reached through its descriptor. */
static struct sym_error *connect_in(int directory_fd, const char *name, int64_t deadline_ms,
				    int *fd_ret)
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
		/* EAGAIN: the queue of the listener is full. */
		if (errno != EAGAIN)
			return sym_error_from_errno(errno, NULL,
						    "diagnostics socket: cannot connect");
		if (diagnostics_now_ms() >= deadline_ms)
			return broken("it accepts no connection");
		nanosleep(&pause, NULL);
	}
	*fd_ret = steal_fd(&fd);
	return NULL;
}

struct sym_error *diagnostics_connect(const struct diagnostics_place *place, int64_t deadline_ms,
				      int *fd_ret)
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
		error = connect_in(directory_fd, name, deadline_ms, &fd);
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
			return broken("it takes no command");
		else if (errno != EAGAIN && errno != EINTR)
			return sym_error_from_errno(errno, NULL,
						    "diagnostics socket: cannot write");
	}
	return NULL;
}

/* A process that stands still for half a second is not waited for; a debugger's halt is shorter. */
static struct sym_error *wait_for_answer(const struct diagnostics_place *place, int fd,
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

		if (now_ms >= deadline_ms)
			return broken("no answer in time");
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
			error = broken("it was closed in the middle of an answer");
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
		return sym_error_create(SYM_ERROR_FORMAT, "diagnostics socket: this is no answer");
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
