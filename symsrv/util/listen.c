/* SPDX-License-Identifier: MIT */
#include "symsrv/util/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "libsym/base/cleanup.h"

static const int backlog = 4096;

static int listen_unix(const char *path)
{
	int fd AUTO_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat status;

	if (fd < 0)
		return -errno;
	if (*path != '/' || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, strlen(path));
	if (!lstat(path, &status) && S_ISSOCK(status.st_mode)) {
		/* A socket file that a server left, or that a running server uses. */
		if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
		    errno == EAGAIN)
			return -EADDRINUSE;
		unlink(path);
	}
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, backlog))
		return -errno;
	return steal_fd(&fd);
}

static int listen_address(const struct addrinfo *address)
{
	int fd AUTO_CLOSE =
		socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       address->ai_protocol);
	const int yes = 1, no = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (address->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, backlog))
		return -errno;
	return steal_fd(&fd);
}

int listen_at(const char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV };
	const char *colon = strrchr(text, ':');
	struct addrinfo *address;
	char host[64] = "::";
	size_t length;
	int fd;

	if (!strncmp(text, "unix:", 5))
		return listen_unix(text + 5);
	/* getaddrinfo() takes a larger number modulo 65536. */
	if (!colon || !colon[1] || strlen(colon + 1) > 5 ||
	    strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return -EINVAL;
	length = (size_t)(colon - text);
	if (length >= sizeof(host))
		return -EINVAL;
	if (length > 2 && text[0] == '[' && text[length - 1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)length - 2, text + 1);
	else if (length)
		snprintf(host, sizeof(host), "%.*s", (int)length, text);
	if (getaddrinfo(host, colon + 1, &hints, &address))
		return -EINVAL;
	fd = listen_address(address);
	freeaddrinfo(address);
	/* A machine without IPv6 has no "::". */
	if (fd == -EAFNOSUPPORT && !length) {
		char every[32];

		snprintf(every, sizeof(every), "0.0.0.0:%.10s", colon + 1);
		return listen_at(every);
	}
	return fd;
}

int listen_adopt(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return 0;
}
