/* SPDX-License-Identifier: MIT */
/* Which connections are shut down, by a clock that the tests set. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "symsrv/http/connections.h"

static struct connections *connections;
static int server_fd, client_fd;

static void pair(int *client, int *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	*client = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	cr_assert_eq(connect(*client, (struct sockaddr *)&address, sizeof(address)), 0);
	*server = accept(listener, NULL, NULL);
	cr_assert_geq(*server, 0);
	close(listener);
}

static void begin(void)
{
	pair(&client_fd, &server_fd);
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
		connection_end_answer(connection, now, INT32_MAX);
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

/* -------- making room -------- */

enum {
	COUNT = 4
};

static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
static int clients[COUNT], servers[COUNT];
static struct connection *all[COUNT];

/* The server reads a request and is about to answer it. */
static void ask(int i)
{
	char room[sizeof(request)];

	cr_assert_eq(send(clients[i], request, sizeof(request) - 1, 0), sizeof(request) - 1);
	cr_assert_eq(recv(servers[i], room, sizeof(request) - 1, MSG_WAITALL), sizeof(request) - 1);
	connection_take_request(all[i], sizeof(request) - 1);
	connection_begin_answer(all[i], INT64_MAX);
}

static void begin_crowd(void)
{
	connections = connections_create();
	for (int i = 0; i < COUNT; i++) {
		pair(&clients[i], &servers[i]);
		all[i] = connections_add(connections, servers[i], INT64_MAX);
		ask(i);
		/* The last one has been idle for the longest time. */
		connection_end_answer(all[i], 100 - i, INT32_MAX);
	}
}

static void end_crowd(void)
{
	connections_destroy(connections);
	for (int i = 0; i < COUNT; i++) {
		close(servers[i]);
		close(clients[i]);
	}
}

/* Whether the client sees the end of the connection, or has something to read. */
static bool is_told(int i)
{
	struct pollfd readable = { .fd = servers[i], .events = POLLIN };

	return poll(&readable, 1, 0) == 1;
}

TestSuite(room, .init = begin_crowd, .fini = end_crowd);

Test(room, who_waits_longest_goes_first)
{
	cr_expect_eq(connections_make_room(connections, COUNT), 0u, "there is room");
	cr_expect_eq(connections_make_room(connections, COUNT - 2), 2u);
	cr_expect(is_told(3) && is_told(2) && !is_told(1) && !is_told(0));
	cr_expect_eq(connections_make_room(connections, COUNT - 2), 0u, "they are about to go");
	connections_remove(connections, all[3]);
	cr_expect_eq(connections_make_room(connections, COUNT - 2), 0u);
	cr_expect_eq(connections_make_room(connections, 0), 2u);
}

Test(room, a_request_that_has_begun_is_read)
{
	struct pollfd arrived = { .fd = servers[3], .events = POLLIN };
	char room[8];

	cr_assert_eq(send(clients[3], "GET", 3, 0), 3);
	cr_assert_eq(poll(&arrived, 1, -1), 1);
	ask(2);
	cr_expect_eq(connections_make_room(connections, 0), 2u);
	cr_expect(!is_told(2) && is_told(1) && is_told(0));
	cr_expect_eq(recv(servers[3], room, sizeof(room), MSG_DONTWAIT), 3);
	cr_expect(!is_told(3), "the rest may come");
}

Test(room, an_answer_that_was_not_taken_yet_arrives)
{
	static char bytes[1 << 20];

	while (send(servers[3], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	cr_expect_eq(connections_make_room(connections, 0), 3u);
	cr_expect_not(is_told(3));
}

Test(room, a_connection_that_is_new_stays)
{
	connections_remove(connections, all[3]);
	all[3] = connections_add(connections, servers[3], INT64_MAX);
	cr_expect_eq(connections_make_room(connections, 0), 3u);
	cr_expect_not(is_told(3));
}
