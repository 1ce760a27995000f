/* SPDX-License-Identifier: MIT */
/*
 * The thread that accepts connections, and stops without losing one. Knows sockets, not HTTP.
 */
#ifndef SYMSRV_HTTP_ACCEPTOR_H
#define SYMSRV_HTTP_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct acceptor_settings {
	const int *sockets; /* listening, not blocking; owned by the acceptor, also on failure */
	size_t socket_count;
	size_t shared_count; /* how many of the first ones systemd has too */
	bool (*has_room)(void *context);
	/* Adopts the connection. */
	void (*take)(void *context, int fd, const struct sockaddr *address, socklen_t size_bytes);
	void *context;
};

struct acceptor;

/* Returns 0 or a negative errno. *ret is set before the first call of take(). */
int acceptor_start(const struct acceptor_settings *settings, struct acceptor **ret);
/* Closes the sockets at once, waits for the thread, and frees the memory. NULL is allowed. */
void acceptor_stop(struct acceptor *acceptor);
void acceptor_destroy(struct acceptor *acceptor);

/* Call this when has_room() has become true; cheap, from any thread; NULL is allowed. */
void acceptor_wake(struct acceptor *acceptor);

/* Lets no further client connect. Clients that have connected are still accepted. Then the sockets
 * are closed, and acceptor_is_done() becomes true. */
void acceptor_drain(struct acceptor *acceptor);
bool acceptor_is_done(const struct acceptor *acceptor);

#endif
