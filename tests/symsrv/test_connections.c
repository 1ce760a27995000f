/* SPDX-License-Identifier: MIT */
/* Which connections are ended, by a clock that the tests set. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "symsrv/connections.h"

static struct connections *connections;
static int server_fd, client_fd;

static void begin(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	client_fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	cr_assert_eq(connect(client_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	server_fd = accept(listener, NULL, NULL);
	cr_assert_geq(server_fd, 0);
	close(listener);
	connections = connections_create();
}

static void end(void)
{
	connections_destroy(connections);
	close(server_fd);
	close(client_fd);
}

TestSuite(connections, .init = begin, .fini = end);

/* Sends some bytes and waits until the client's side has acknowledged them. */
static void send_and_take(void)
{
	struct pollfd taken = { .fd = client_fd, .events = POLLIN };
	char room[16];

	cr_assert_eq(send(server_fd, "bytes", 5, 0), 5);
	cr_assert_eq(poll(&taken, 1, -1), 1);
	cr_assert_eq(recv(client_fd, room, sizeof(room), 0), 5);
}

Test(connections, one_that_misses_its_deadline_is_ended)
{
	connections_add(connections, server_fd, 50);
	cr_expect_eq(connections_enforce(connections, 49), 0u);
	cr_expect_eq(connections_enforce(connections, 50), 1u);
	cr_expect_eq(connections_enforce(connections, 51), 0u);
}

Test(connections, an_answer_that_does_not_go_on_is_ended)
{
	struct connection *connection = connections_add(connections, server_fd, INT64_MAX);

	connection_begin_answer(connection, INT64_MAX);
	send_and_take();
	cr_expect_eq(connections_enforce(connections, 10000), 0u);
	cr_expect_eq(connections_enforce(connections, 19999), 0u);
	send_and_take();
	cr_expect_eq(connections_enforce(connections, 20000), 0u, "bytes have gone");
	cr_expect_eq(connections_enforce(connections, 30000), 1u, "none have");
}

Test(connections, who_waits_between_answers_is_left_alone)
{
	struct connection *connection = connections_add(connections, server_fd, INT64_MAX);

	for (int64_t now = 0; now < 50000; now += 10000) {
		connection_begin_answer(connection, INT64_MAX);
		cr_expect_eq(connections_enforce(connections, now), 0u, "another answer");
		connection_end_answer(connection, INT64_MAX);
	}
	for (int64_t now = 50000; now < 100000; now += 10000)
		cr_expect_eq(connections_enforce(connections, now), 0u, "none");
}

Test(connections, who_does_not_take_his_answer_has_until_his_deadline)
{
	struct connection *connection = connections_add(connections, server_fd, INT64_MAX);
	static char bytes[1 << 20];

	connection_begin_answer(connection, 60000);
	while (send(server_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	for (int64_t now = 0; now < 60000; now += 10000)
		cr_expect_eq(connections_enforce(connections, now), 0u);
	cr_expect_eq(connections_enforce(connections, 60000), 1u);
}
