/* SPDX-License-Identifier: MIT */
/* Clients that have connected when the acceptor stops. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "symsrv/http/acceptor.h"

enum {
	COUNT = 5
};

static atomic_uint taken;
static atomic_uint room;
static int clients[COUNT];
static struct sockaddr_storage place;
static socklen_t place_bytes;

static bool has_room(void *context)
{
	(void)context;
	return taken < room;
}

static void take(void *context, int fd, const struct sockaddr *address, socklen_t size_bytes)
{
	(void)context;
	(void)address;
	(void)size_bytes;
	close(fd);
	taken++;
}

static int listen_somewhere(int family)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&place;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t size = family == AF_UNIX ? sizeof(sa_family_t) : sizeof(*in);

	place.ss_family = (sa_family_t)family;
	if (family == AF_INET)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* A Unix socket without a name gets an abstract one. */
	cr_assert_eq(bind(fd, (struct sockaddr *)&place, size), 0);
	cr_assert_eq(listen(fd, 1024), 0);
	place_bytes = sizeof(place);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&place, &place_bytes), 0);
	return fd;
}

static int connect_one(void)
{
	int fd = socket(place.ss_family, SOCK_STREAM, 0);

	if (!connect(fd, (struct sockaddr *)&place, place_bytes))
		return fd;
	close(fd);
	return -errno;
}

static void connect_all(void)
{
	for (int i = 0; i < COUNT; i++) {
		clients[i] = connect_one();
		cr_assert_geq(clients[i], 0);
	}
}

static struct acceptor *start(const int *sockets, size_t shared_count)
{
	const struct acceptor_settings settings = {
		.sockets = sockets,
		.socket_count = 1,
		.shared_count = shared_count,
		.has_room = has_room,
		.take = take,
	};
	struct acceptor *acceptor;

	cr_assert_eq(acceptor_start(&settings, &acceptor), 0);
	return acceptor;
}

static void end(struct acceptor *acceptor)
{
	acceptor_stop(acceptor);
	acceptor_destroy(acceptor);
}

static void wait_for_end(const struct acceptor *acceptor)
{
	while (!acceptor_is_done(acceptor))
		sched_yield();
}

static void give_room(struct acceptor *acceptor)
{
	room = UINT32_MAX;
	acceptor_wake(acceptor);
}

Test(acceptor, accepts_no_more_than_there_is_room_for)
{
	int fd = listen_somewhere(AF_INET);
	struct acceptor *acceptor = start(&fd, 0);

	connect_all();
	for (unsigned int i = 1; i <= COUNT; i++) {
		room = i;
		acceptor_wake(acceptor);
		while (taken < i)
			sched_yield();
		cr_expect_eq(taken, i);
	}
	end(acceptor);
}

Test(acceptor, takes_all_that_wait_when_it_drains)
{
	int fd = listen_somewhere(AF_INET);
	struct acceptor *acceptor = start(&fd, 0);

	connect_all();
	acceptor_drain(acceptor);
	give_room(acceptor);
	wait_for_end(acceptor);
	cr_expect_eq(taken, COUNT);
	cr_expect_eq(connect_one(), -ECONNREFUSED);
	end(acceptor);
}

Test(acceptor, refuses_a_client_of_a_unix_socket_while_others_wait)
{
	int fd = listen_somewhere(AF_UNIX);
	struct acceptor *acceptor = start(&fd, 0);
	unsigned int connected = COUNT;
	int late;

	connect_all();
	acceptor_drain(acceptor);
	while ((late = connect_one()) >= 0)
		connected += (unsigned int)!sched_yield();
	cr_expect_eq(late, -ECONNREFUSED);
	cr_expect_eq(taken, 0u);
	give_room(acceptor);
	wait_for_end(acceptor);
	cr_expect_eq(taken, connected);
	end(acceptor);
}

Test(acceptor, leaves_those_of_a_shared_socket_to_the_next_server)
{
	int own = listen_somewhere(AF_INET), fd = dup(own);
	struct acceptor *acceptor = start(&fd, 1);

	connect_all();
	acceptor_drain(acceptor);
	wait_for_end(acceptor);
	cr_expect_eq(taken, 0u);
	for (int i = 0; i < COUNT; i++)
		cr_expect_geq(accept(own, NULL, NULL), 0);
	cr_expect_geq(connect_one(), 0, "new clients can connect");
	end(acceptor);
}
