/* SPDX-License-Identifier: MIT */
/* Processes that end, call exec(), or lose the files that they have mapped. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/bcc_library.h"
#include "tests/support/bpf_program.h"
#include "tests/support/cannot_run.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

static struct bcc_library library;

static void open_library(void)
{
	setenv("LIBSYM_BCC_REFRESH_MS", "0", 1);
	cr_assert(bcc_library_open(&library, BCC_OURS));
}

TestSuite(bcc_life, .init = open_library);

/* The first executable mapping of a file whose path ends in `name`; 0: none. */
static uint64_t mapped_at(pid_t pid, const char *name)
{
	char path[64], line[512];
	uint64_t start = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && !start && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (strstr(line, " r-xp ") && strlen(line) > strlen(name) &&
		    !strcmp(line + strlen(line) - strlen(name), name))
			start = strtoull(line, NULL, 16);
	}
	if (maps)
		fclose(maps);
	return start;
}

/* A child that is this program, and another one after the descriptor is closed. */
static pid_t start_child(int *go_ret)
{
	int go[2];
	pid_t child;
	char byte;

	cr_assert_eq(pipe(go), 0);
	child = fork();
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) >= 0)
			execlp("sleep", "sleep", "30", NULL);
		_exit(1);
	}
	close(go[0]);
	*go_ret = go[1];
	return child;
}

Test(bcc_life, reads_a_process_again_after_exec)
{
	struct bcc_symbol symbol;
	uint64_t start = 0;
	pid_t child;
	int go;
	void *cache;

	child = start_child(&go);
	cache = library.symcache_new(child, NULL);
	cr_assert_eq(library.symcache_resolve(cache, (uint64_t)&open_library, &symbol), 0);
	close(go);
	for (int turn = 0; !start && wait_turn(turn); turn++)
		start = mapped_at(child, "/sleep");
	for (int turn = 0; wait_turn(turn); turn++) { /* it is looked at when a refresh is due */
		library.symcache_resolve(cache, start + 0x10, &symbol);
		if (symbol.module && strstr(symbol.module, "/sleep"))
			break;
	}
	cr_expect(symbol.module && strstr(symbol.module, "/sleep"), "module is %s", symbol.module);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	library.free_symcache(cache, child);
}

Test(bcc_life, searches_a_name_in_the_running_program)
{
	/* The sanitizers have no function of this name. */
	static const char name[] = "gnu_get_libc_version";
	uint64_t own = (uint64_t)dlsym(RTLD_DEFAULT, name), start = 0, found = 0;
	struct bcc_symbol libc;
	int go;
	void *cache;
	pid_t child;

	child = start_child(&go);
	cache = library.symcache_new(child, NULL);
	cr_assert_eq(library.symcache_resolve_no_demangle(cache, own, &libc), 0);
	close(go);
	for (int turn = 0; !start && wait_turn(turn); turn++)
		if (mapped_at(child, "/sleep"))
			start = mapped_at(child, "/libc.so.6");
	for (int turn = 0;
	     found != start + own - mapped_at(getpid(), "/libc.so.6") && wait_turn(turn); turn++)
		cr_assert_eq(library.symcache_resolve_name(cache, libc.module, name, &found), 0);
	cr_expect_eq(found, start + own - mapped_at(getpid(), "/libc.so.6"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	library.free_symcache(cache, child);
}

static int load(void *path)
{
	return dlopen(path, RTLD_NOW) ? 0 : -1;
}

Test(bcc_life, searches_a_name_in_the_mapped_file)
{
	static const struct elf_builder_symbol other = {
		"zlibVersion", 0x401010, 16, 1, 2, false, false,
	};
	char *scratch = scratch_create(), *path = scratch_path(scratch, "libcopy.so"),
	     *new_path = scratch_path(scratch, "new"), *libz = library.procutils_which_so("z", 0);
	size_t size_bytes;
	char *bytes = scratch_read(libz, &size_bytes);
	struct bcc_child child;
	uint64_t before = 0, after = 0;
	void *cache;

	scratch_write(path, bytes, size_bytes);
	free(bytes);
	cr_assert(bcc_child_start(&child, 0, load, path));
	cache = library.symcache_new(child.pid, NULL);
	cr_assert_eq(library.symcache_resolve_name(cache, path, "zlibVersion", &before), 0);
	bytes = (char *)elf_builder_make(
		&other, 1, (struct elf_builder_options){ .position_independent = true },
		&size_bytes);
	scratch_write(new_path, bytes, size_bytes);
	cr_assert_eq(rename(new_path, path), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(library.symcache_resolve_name(cache, path, "zlibVersion", &after), 0);
		cr_expect_eq(after, before);
		library.symcache_refresh(cache);
	}
	library.free_symcache(cache, child.pid);
	bcc_child_end(&child);
	free(bytes);
	free(libz);
	free(new_path);
	free(path);
	scratch_remove(scratch);
}

/* JIT memory is used again while a caller resolves the same address again and again. */
Test(bcc_life, names_code_that_replaced_other_code)
{
	void *code = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct bcc_symbol symbol = { 0 };
	char path[64];
	FILE *map;
	void *cache;

	cr_assert_neq(code, MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	cr_assert_not_null(map);
	setlinebuf(map);
	fprintf(map, "%lx 10 the_first\n", (unsigned long)code);
	cache = library.symcache_new(getpid(), NULL);
	cr_assert_eq(library.symcache_resolve(cache, (uint64_t)code + 4, &symbol), 0);
	cr_expect_str_eq(symbol.name, "the_first");
	fprintf(map, "%lx 10 the_second\n", (unsigned long)code);
	for (int turn = 0; !strcmp(symbol.name, "the_first") && wait_turn(turn); turn++) {
		cr_assert_eq(library.symcache_resolve(cache, (uint64_t)code + 4, &symbol), 0);
	}
	cr_expect_str_eq(symbol.name, "the_second");
	library.free_symcache(cache, getpid());
	fclose(map);
	unlink(path);
}

/* Programs that are loaded one after another, while one cache stays. libbcc reads the list once. */
Test(bcc_life, never_gives_a_bpf_program_the_name_of_a_freed_one)
{
	void *cache = library.symcache_new(-1, NULL);
	struct bcc_symbol symbol;
	uint64_t address, found;
	char name[16];

	for (int i = 0; i < 6; i++) {
		time_t end = time(NULL) + 20;
		int fd, outcome;

		snprintf(name, sizeof(name), "bcc%c%d", 'a' + i, getpid());
		fd = bpf_program_load(name);
		if (fd < 0 || !bpf_program_listed(name, &address))
			cannot_run("BPF programs cannot be loaded, or are not listed");
		/* Other tests may free programs at the same time, and kallsyms skips lines then. */
		do
			outcome = library.symcache_resolve(cache, address, &symbol);
		while (outcome < 0 && time(NULL) < end);
		cr_assert_eq(outcome, 0);
		cr_expect_str_eq(strrchr(symbol.name, '_') + 1, name);
		cr_expect_str_eq(symbol.module, "bpf");
		cr_expect_eq(library.symcache_resolve_name(cache, NULL, symbol.name, &found), 0);
		cr_expect_eq(found, address);
		bpf_program_free(fd, name);
		if (library.symcache_resolve(cache, address, &symbol) == 0)
			cr_expect_str_neq(strrchr(symbol.name, '_') + 1, name);
	}
	library.free_symcache(cache, -1);
}
