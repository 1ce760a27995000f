/* SPDX-License-Identifier: MIT */
/* Which runtimes are read, and when. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/program.h"
#include "tests/support/runtime_elf.h"

DEFINE_GUARD(open_snapshot, struct sym_snapshot *, sym_snapshot_close)
#define AUTO_SNAPSHOT GUARDED(open_snapshot)

/* Maps the place of a runtime of this version, without content. */
static void map_runtime(char *root, const char *version)
{
	static uint8_t file[RUNTIME_ELF_BYTES];
	char name[128], *path;
	int fd;

	snprintf(name, sizeof(name), "shared/Microsoft.NETCore.App/%s/libcoreclr.so", version);
	path = scratch_path(root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	runtime_elf_build(file, NULL, NULL, 0);
	scratch_write(path, file, sizeof(file));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_neq(mmap(NULL, sizeof(file), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0),
		      MAP_FAILED);
	close(fd);
	free(path);
}

/* A contract with the same number may have another meaning there. */
Test(jitted_code, does_not_read_the_memory_of_a_newer_runtime)
{
	static const char *const versions[] = { "12.0.0", "100.0.1", "9.0.22", "10.0.12",
						"11.0.0" };
	const size_t first_known = 3; /* those of known releases */

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		char *root = scratch_create();
		const struct sym_jit_info *info;
		struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_CONTRACT };
		struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
		pid_t child;
		int ready[2];
		char byte;

		cr_assert_eq(pipe(ready), 0);
		child = fork();
		if (!child) {
			map_runtime(root, versions[i]);
			if (write(ready[1], "", 1) == 1)
				pause();
			_exit(0);
		}
		cr_assert_eq(read(ready[0], &byte, 1), 1);
		cr_assert_null(sym_snapshot_open(child, &opts, &snapshot));
		cr_expect_str_eq(sym_snapshot_process(snapshot)->runtime_version, versions[i]);
		cr_assert_null(sym_snapshot_jit(snapshot, &info));
		cr_expect_eq(info->method, SYM_JIT_NONE);
		cr_expect_eq(info->method_count, 0);
		cr_assert_not_null(info->contract_reason);
		if (i >= first_known)
			cr_expect_null(strstr(info->contract_reason, ".NET 10 and 11 only"), "%s",
				       info->contract_reason);
		else
			cr_expect(strstr(info->contract_reason, versions[i]) &&
					  strstr(info->contract_reason, ".NET 10 and 11 only"),
				  "%s", info->contract_reason);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		scratch_remove(root);
	}
}

static const char *reason_for(struct sym_resolver *resolver, struct sym_result *result,
			      uint64_t address)
{
	const struct sym_answer *answer;

	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	answer = sym_result_at(result, 0);
	cr_expect_eq(answer->status, SYM_NO_SYMBOLS);
	return answer->reason;
}

/* A host that loads its runtime late. Earlier answers stay. */
Test(jitted_code, is_read_from_a_runtime_that_a_refresh_finds)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)code;
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	char *root = scratch_create();
	const char *before, *now;

	forget_perf_map();
	cr_assert_neq(code, MAP_FAILED);
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	before = reason_for(resolver, result, address);
	cr_expect(strstr(before, "neither a perf map nor a jitdump"), "%s", before);
	map_runtime(root, "12.0.0");
	for (int i = 0; i < 3; i++) {
		cr_assert_null(sym_resolver_refresh(resolver, NULL));
		now = reason_for(resolver, result, address);
		cr_expect_null(strstr(now, "neither a perf map nor a jitdump"), "%s", now);
		cr_expect(strstr(before, "neither a perf map nor a jitdump"));
	}
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	scratch_remove(root);
}
