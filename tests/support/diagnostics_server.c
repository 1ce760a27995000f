/* SPDX-License-Identifier: MIT */
#include "tests/support/diagnostics_server.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

const char diagnostics_session_reply[28] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\7";

void diagnostics_server_begin(struct diagnostics_server *server, uint64_t start_time_ticks)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*server = (struct diagnostics_server){ .directory = "/tmp/libsym-socket-XXXXXX" };
	cr_assert(mkdtemp(server->directory));
	snprintf(server->path, sizeof(server->path), "%s/dotnet-diagnostic-%d-%llu-socket",
		 server->directory, (int)getpid(), (unsigned long long)start_time_ticks);
	memcpy(address.sun_path, server->path, sizeof(address.sun_path));
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(server->fd, 4), 0);
	server->place = (struct diagnostics_place){
		.root_fd = -1,
		.directory = server->directory,
		.pid = getpid(),
		.namespace_pid = getpid(),
		.uid = geteuid(),
		.start_time_ticks = 4711,
	};
}

void diagnostics_server_end(struct diagnostics_server *server)
{
	close(server->fd);
	unlink(server->path);
	rmdir(server->directory);
}
