/* SPDX-License-Identifier: MIT */
#include "tests/support/fake_runtime.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "tests/support/program.h"

/* The executable section of the sample has rva 0x10200 and lies in the file from 0x200 to 0x8b70.
 */
enum {
	TEXT_DISTANCE = 0x10000,
	TEXT_BYTES = 0x9000,
	PAGE_BYTES = 0x1000
};

static const char framework[] = "shared/Microsoft.NETCore.App/10.0.12";

struct child {
	int commands;
	int answers;
	int map;
};

static void *map_file(void *at, const char *path, size_t size_bytes, int protection)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = mmap(at, size_bytes, protection, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);

	if (fd < 0 || mapped == MAP_FAILED)
		_exit(1);
	close(fd);
	return mapped;
}

static uint64_t map_image(const char *path)
{
	char *base = mmap(NULL, TEXT_DISTANCE + TEXT_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		_exit(1);
	map_file(base, path, PAGE_BYTES, PROT_READ);
	map_file(base + TEXT_DISTANCE, path, TEXT_BYTES, PROT_READ | PROT_EXEC);
	return (uint64_t)(uintptr_t)base;
}

/* The address range of jitted code in tests; a line elsewhere is not in code. */
static void map_jitted_code(void)
{
	void *wanted = (void *)(uintptr_t)FAKE_RUNTIME_CODE;

	if (mmap(wanted, FAKE_RUNTIME_CODE_BYTES, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
		_exit(1);
}

/* Sends the load base first, then one byte for each text written. */
static void serve(struct child *child, const char *runtime_path, const char *image_path)
{
	uint64_t base = map_image(image_path);
	char text[65536];
	ssize_t count;

	map_jitted_code();
	map_file(NULL, runtime_path, PAGE_BYTES, PROT_READ | PROT_EXEC);
	if (path_write_all(child->answers, &base, sizeof(base)))
		_exit(1);
	while ((count = read(child->commands, text, sizeof(text))) > 0)
		if (write(child->map, text, (size_t)count) != count ||
		    write(child->answers, "", 1) != 1)
			_exit(1);
	_exit(0);
}

static char *copy_of_sample(const char *scratch)
{
	char *path = scratch_path(scratch, "sample.dll");
	size_t size_bytes;
	char *bytes = scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes);

	cr_assert(bytes, "the tests run in the top directory of the tree");
	scratch_write(path, bytes, size_bytes);
	free(bytes);
	return path;
}

static char *copy_of_runtime(const char *scratch)
{
	static const char bytes[PAGE_BYTES];
	char *directory = scratch_path(scratch, framework);
	char *path = scratch_path(directory, "libcoreclr.so");

	cr_assert(!path_make_directories(directory, 0755));
	scratch_write(path, bytes, sizeof(bytes));
	free(directory);
	return path;
}

struct fake_runtime *fake_runtime_start(const char *scratch, bool writes_map)
{
	struct fake_runtime *runtime = calloc(1, sizeof(*runtime));
	char *runtime_path = copy_of_runtime(scratch);
	int commands[2], answers[2];

	cr_assert(runtime);
	runtime->image_path = copy_of_sample(scratch);
	cr_assert(!pipe2(commands, O_CLOEXEC) && !pipe2(answers, O_CLOEXEC));
	runtime->pid = fork();
	cr_assert(runtime->pid >= 0);
	if (!runtime->pid) {
		struct child child = { commands[0], answers[1], -1 };
		char map_path[64];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(commands[1]);
		close(answers[0]);
		snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
		unlink(map_path);
		if (writes_map)
			child.map = open(map_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		serve(&child, runtime_path, runtime->image_path);
	}
	close(commands[0]);
	close(answers[1]);
	free(runtime_path);
	runtime->commands = commands[1];
	runtime->answers = answers[0];
	snprintf(runtime->pid_text, sizeof(runtime->pid_text), "%d", runtime->pid);
	cr_assert(asprintf(&runtime->map_path, "/tmp/perf-%d.map", runtime->pid) > 0);
	cr_assert_eq(read(runtime->answers, &runtime->load_base, sizeof(runtime->load_base)),
		     (ssize_t)sizeof(runtime->load_base));
	return runtime;
}

void fake_runtime_write(struct fake_runtime *runtime, const char *text)
{
	char answer;

	cr_assert(!path_write_all(runtime->commands, text, strlen(text)));
	cr_assert_eq(read(runtime->answers, &answer, 1), 1);
}

void fake_runtime_stop(struct fake_runtime *runtime)
{
	char *kept;

	kill(runtime->pid, SIGKILL);
	waitpid(runtime->pid, NULL, 0);
	close(runtime->commands);
	close(runtime->answers);
	cr_assert(asprintf(&kept, "%s.runtime", runtime->map_path) > 0);
	unlink(kept);
	unlink(runtime->map_path);
	free(kept);
	free(runtime->map_path);
	free(runtime->image_path);
	free(runtime);
}
