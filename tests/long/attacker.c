/* SPDX-License-Identifier: MIT */
/*
 * A process of an unprivileged user that looks like a .NET process and costs as much as it can.
 *
 * Usage: attacker RUNTIME PEER MAP LOCK SPIN [FILE OFFSET BYTES ADDRESS COUNT]...
 * RUNTIME  mapped, so that it looks like one
 * PEER     its diagnostics socket: none; silent, slow (a byte a second), endless
 * MAP      gets its perf map as a hard link; - for a map of one line
 * LOCK     1: it holds a lock on its perf map
 * SPIN     address of code that it runs when it has printed "ready"; its jitted code spins
 * FILE...  mapped with the right to execute, COUNT times, one behind the other
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Where the manifest of a bundle is, and the mark by which the host finds that place. */
__attribute__((used, section(".data"))) volatile const unsigned char bundle_place[40] = {
	0,    0,    0,    0,    0,    0,    0,    0,    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61,
	0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6,
	0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae
};

static const uintptr_t jitted_address = 0x7000000000;
static const char spinning[] = "\xf3\x90\xeb\xfc"; /* pause; jmp */
static const char session_reply[28] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\7";
static const char *peer_kind;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(1);
}

static void map_file(const char *path, long offset, size_t bytes, uintptr_t address)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int fixed = address ? MAP_FIXED_NOREPLACE : 0;

	must(fd >= 0, path);
	must(mmap((void *)address, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, fd, offset) !=
		     MAP_FAILED,
	     path);
	close(fd);
}

static void make_perf_map(const char *content, int is_locked)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	if (*content != '-')
		must(!link(content, path), path);
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	must(fd >= 0, path);
	if (*content == '-')
		must(dprintf(fd, "%lx 40 void [app] Some.Type::Jitted()[QuickJitted]\n",
			     (long)jitted_address) > 0,
		     path);
	if (is_locked)
		must(!flock(open(path, O_RDONLY | O_CLOEXEC), LOCK_EX), path);
}

static unsigned long long start_time(void)
{
	unsigned long long ticks = 0;
	char text[4096] = "", *at;
	FILE *file = fopen("/proc/self/stat", "re");

	must(file && fgets(text, sizeof(text), file), "stat");
	fclose(file);
	at = strrchr(text, ')');
	for (int field = 2; field < 22; field++)
		at = strchr(at, ' ') + 1;
	sscanf(at, "%llu", &ticks);
	return ticks;
}

static void *serve(void *context)
{
	static const char zeros[65536];
	int client = (int)(intptr_t)context;
	char request[65536];
	size_t bytes = *peer_kind == 'e' ? sizeof(zeros) : 1;

	recv(client, request, sizeof(request), 0);
	if (*peer_kind == 's' && peer_kind[1] == 'i')
		poll(NULL, 0, -1);
	send(client, session_reply, sizeof(session_reply), MSG_NOSIGNAL);
	send(client, "Nettrace\x14\0\0\0!FastSerialization.1", 32, MSG_NOSIGNAL);
	while (send(client, zeros, bytes, MSG_NOSIGNAL) > 0)
		if (bytes == 1)
			poll(NULL, 0, 1000);
	close(client);
	return NULL;
}

static void *accept_all(void *context)
{
	int listening = (int)(intptr_t)context;
	pthread_t thread;

	for (;;) {
		int client = accept(listening, NULL, NULL);

		if (client >= 0)
			pthread_create(&thread, NULL, serve, (void *)(intptr_t)client);
	}
	return NULL;
}

static void listen_as_runtime(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t thread;

	snprintf(address.sun_path, sizeof(address.sun_path),
		 "/tmp/dotnet-diagnostic-%d-%llu-socket", getpid(), start_time());
	unlink(address.sun_path);
	must(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 64),
	     address.sun_path);
	pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)fd);
}

int main(int count, char **words)
{
	must(count >= 6 && count % 5 == 1, "usage");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	peer_kind = words[2];
	map_file(words[1], 0, 4096, 0);
	must(mmap((void *)jitted_address, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED,
	     "mmap");
	memcpy((void *)jitted_address, spinning, sizeof(spinning));
	for (int i = 6; i < count; i += 5) {
		size_t bytes = strtoul(words[i + 2], NULL, 0);
		uintptr_t address = strtoul(words[i + 3], NULL, 0);

		for (long j = 0; j < strtol(words[i + 4], NULL, 0); j++)
			map_file(words[i], strtol(words[i + 1], NULL, 0), bytes,
				 address + (uintptr_t)j * 2 * bytes);
	}
	make_perf_map(words[3], *words[4] == '1');
	if (*peer_kind != 'n')
		listen_as_runtime();
	printf("ready\n");
	fflush(stdout);
	((void (*)(void))strtoul(words[5], NULL, 0))();
	return 0;
}
