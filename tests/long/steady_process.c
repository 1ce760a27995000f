/* SPDX-License-Identifier: MIT */
/*
 * A target process that never changes. It has mapped a precompiled assembly, a file named
 * libcoreclr.so, a page of "jitted" code, a jitdump and, on request, a part of an archive. It holds
 * its perf map open as the runtime does, and answers on a diagnostics socket with the bytes of a
 * file. It runs no managed code, and exits when its standard input is closed.
 *
 * Usage: target ASSEMBLY LIBCORECLR STREAM [ARCHIVE OFFSET BYTES]
 * Prints: the base of the assembly, the jitted page, a function of its own, the part of the archive
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The assembly is fixtures/recorded/opt/sample/sample.dll: its code has rva 0x10200. */
enum {
	TEXT_DISTANCE = 0x10000,
	TEXT_BYTES = 0x9000,
	PAGE_BYTES = 0x1000,
};

static const char session_reply[28] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\7";

static void *map_file(void *at, const char *path, long offset, size_t bytes, int protection)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = mmap(at, bytes, protection, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, offset);

	if (fd < 0 || mapped == MAP_FAILED)
		exit(1);
	close(fd);
	return mapped;
}

static char *map_assembly(const char *path)
{
	char *base = mmap(NULL, TEXT_DISTANCE + TEXT_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	map_file(base, path, 0, PAGE_BYTES, PROT_READ);
	map_file(base + TEXT_DISTANCE, path, 0, TEXT_BYTES, PROT_READ | PROT_EXEC);
	return base;
}

/* Two methods, and a third whose line is incomplete, as while it is written. */
static void write_perf_map(const char *page)
{
	char path[64], text[256];
	int fd, length;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	length = snprintf(text, sizeof(text),
			  "%lx 40 void [app] Some.Type::Jitted(int32)[QuickJitted]\n"
			  "%lx 20 void [app] Some.Type::Later()[OptimizedTier1]\n%lx 1",
			  (long)page, (long)page + 0x100, (long)page + 0x200);
	if (fd < 0 || write(fd, text, length) != length)
		exit(1);
}

/* A header, and one function of 16 bytes in the jitted page. */
static void write_jitdump(char *page)
{
	static const char name[] = "void [app] Some.Type::Dumped()";
	uint32_t header[10] = { 0x4A695444, 1, 40, 62, 0, getpid(), 1 };
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, bytes, index;
	} load = { 0,
		   sizeof(load) + sizeof(name) + 16,
		   2,
		   getpid(),
		   getpid(),
		   (uintptr_t)page + 0x300,
		   (uintptr_t)page + 0x300,
		   16,
		   1 };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (write(fd, header, sizeof(header)) < 0 || write(fd, &load, sizeof(load)) < 0 ||
	    write(fd, name, sizeof(name)) < 0 || write(fd, page + 0x300, 16) < 0 ||
	    mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(1);
}

static unsigned long long start_time(void)
{
	unsigned long long ticks = 0;
	char text[4096] = "", *at;
	FILE *file = fopen("/proc/self/stat", "re");

	if (!file || !fgets(text, sizeof(text), file))
		exit(1);
	fclose(file);
	at = strrchr(text, ')');
	for (int field = 2; field < 22; field++)
		at = strchr(at, ' ') + 1;
	sscanf(at, "%llu", &ticks);
	return ticks;
}

static int listen_as_runtime(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path),
		 "/tmp/dotnet-diagnostic-%d-%llu-socket", getpid(), start_time());
	unlink(address.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 64))
		exit(1);
	return fd;
}

/* Answers every request: a session has started, and this is its stream. */
static void answer(int listening, const char *stream)
{
	int client = accept(listening, NULL, NULL), fd = open(stream, O_RDONLY | O_CLOEXEC);
	char bytes[65536];
	ssize_t count = recv(client, bytes, sizeof(bytes), 0);

	if (count > 0 && send(client, session_reply, sizeof(session_reply), MSG_NOSIGNAL) > 0)
		while ((count = read(fd, bytes, sizeof(bytes))) > 0)
			if (send(client, bytes, count, MSG_NOSIGNAL) != count)
				break;
	close(fd);
	close(client);
}

int main(int count, char **words)
{
	struct pollfd waits[2] = { { 0, POLLIN | POLLHUP, 0 }, { -1, POLLIN, 0 } };
	char *base, *page, *archive = NULL;

	if (count != 4 && count != 7)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	base = map_assembly(words[1]);
	map_file(NULL, words[2], 0, PAGE_BYTES, PROT_READ | PROT_EXEC);
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(page, 0xc3, PAGE_BYTES);
	if (count == 7)
		archive = map_file(NULL, words[4], strtol(words[5], NULL, 0),
				   strtol(words[6], NULL, 0), PROT_READ | PROT_EXEC);
	write_perf_map(page);
	write_jitdump(page);
	waits[1].fd = listen_as_runtime();
	printf("%lx %lx %lx %lx\n", (long)base, (long)page, (long)map_assembly, (long)archive);
	fflush(stdout);
	while (poll(waits, 2, -1) > 0 && !waits[0].revents)
		answer(waits[1].fd, words[3]);
	return 0;
}
