/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/symbol_message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "symsrv/util/clock.h"

struct head {
	uint32_t kind;
	uint32_t number;
	uint64_t size_bytes;
};

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

void symbol_message_init(struct symbol_message *message, size_t max_bytes)
{
	*message = (struct symbol_message){ .fd = -1 };
	buf_init(&message->bytes, max_bytes);
}

static void drop_descriptor(struct symbol_message *message)
{
	if (message->fd >= 0)
		close(message->fd);
	message->fd = -1;
}

void symbol_message_deinit(struct symbol_message *message)
{
	drop_descriptor(message);
	buf_deinit(&message->bytes);
}

/* ---- sending -------------------------------------------------------------------- */

static bool send_head(int fd, const struct head *head, int passed_fd)
{
	struct iovec part = { .iov_base = (void *)head, .iov_len = sizeof(*head) };
	union control control = { 0 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (passed_fd >= 0) {
		header.msg_control = control.room;
		header.msg_controllen = sizeof(control.room);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &passed_fd, sizeof(int));
	}
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == sizeof(*head);
}

bool symbol_message_send(int fd, enum symbol_message_kind kind, uint32_t number, const void *bytes,
			 size_t size_bytes, int passed_fd)
{
	const struct head head = { kind, number, size_bytes };

	if (!send_head(fd, &head, passed_fd))
		return false;
	for (size_t done = 0; done < size_bytes;) {
		ssize_t sent =
			send(fd, (const char *)bytes + done, size_bytes - done, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		done += sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

/* ---- receiving ------------------------------------------------------------------ */

/* The bytes of a message follow its head at once. */
static const int64_t bytes_ms = 5000;

static enum symbol_receipt await_bytes(int fd, int64_t deadline_ms)
{
	struct pollfd waited = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left_ms = deadline_ms < 0 ? -1 : deadline_ms - clock_now_ms();
		int ready;

		if (deadline_ms >= 0 && left_ms <= 0)
			return SYMBOL_LATE;
		ready = poll(&waited, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
		if (ready > 0)
			return SYMBOL_RECEIVED;
		if (ready < 0 && errno != EINTR)
			return SYMBOL_ENDED;
	}
}

static void take_descriptor(struct msghdr *header, struct symbol_message *message)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(header);

	if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
	    control->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&message->fd, CMSG_DATA(control), sizeof(int));
}

static enum symbol_receipt receive_head(int fd, int64_t deadline_ms, struct head *head,
					struct symbol_message *message)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = head, .iov_len = sizeof(*head) };
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	enum symbol_receipt receipt = await_bytes(fd, deadline_ms);
	ssize_t count;

	if (receipt != SYMBOL_RECEIVED)
		return receipt;
	do
		count = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (count < 0 && errno == EINTR);
	if (count > 0)
		take_descriptor(&header, message);
	return count == sizeof(*head) ? SYMBOL_RECEIVED : SYMBOL_ENDED;
}

enum symbol_receipt symbol_message_receive(int fd, int64_t deadline_ms,
					   struct symbol_message *message)
{
	struct head head;
	enum symbol_receipt receipt;
	int64_t end_ms;
	char *room;

	drop_descriptor(message);
	buf_clear(&message->bytes);
	receipt = receive_head(fd, deadline_ms, &head, message);
	if (receipt != SYMBOL_RECEIVED)
		return receipt;
	message->kind = head.kind;
	message->number = head.number;
	if (head.size_bytes > message->bytes.max_bytes)
		return SYMBOL_ENDED;
	room = buf_reserve(&message->bytes, head.size_bytes);
	if (!room && head.size_bytes)
		return SYMBOL_ENDED;
	end_ms = clock_now_ms() + bytes_ms;
	while (message->bytes.size_bytes < head.size_bytes) {
		ssize_t count;

		/* A message that was received in part cannot be received later. */
		if (await_bytes(fd, end_ms) != SYMBOL_RECEIVED)
			return SYMBOL_ENDED;
		count = recv(fd, room + message->bytes.size_bytes,
			     head.size_bytes - message->bytes.size_bytes, 0);
		if (!count || (count < 0 && errno != EINTR))
			return SYMBOL_ENDED;
		message->bytes.size_bytes += count > 0 ? (size_t)count : 0;
	}
	return SYMBOL_RECEIVED;
}
