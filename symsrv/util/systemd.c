/* SPDX-License-Identifier: MIT */
#include "symsrv/util/systemd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

static const int first_socket = 3; /* SD_LISTEN_FDS_START */

size_t systemd_sockets(int *sockets, size_t most)
{
	const char *pid = getenv("LISTEN_PID");
	const char *count_text = getenv("LISTEN_FDS");
	size_t count = 0;
	size_t i;

	if (pid && count_text && strtol(pid, NULL, 10) == (long)getpid())
		count = strtoul(count_text, NULL, 10);
	if (count > most)
		count = most;
	for (i = 0; i < count; i++) {
		sockets[i] = first_socket + (int)i;
		fcntl(sockets[i], F_SETFD, FD_CLOEXEC);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return count;
}

void systemd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd AUTO_CLOSE = -1;

	if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}
