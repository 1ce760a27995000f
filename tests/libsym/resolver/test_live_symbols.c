/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/fake_runtime.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

static const struct sym_symbols *symbols; /* of the last list */

static struct sym_live *open_live(pid_t pid, enum sym_jit_method jit)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot), .jit = jit };
	const struct sym_live_opts opts = { .size = sizeof(opts), .snapshot = &snapshot };
	struct sym_live *live = NULL;
	struct sym_error *error = sym_live_open(pid, &opts, &live);

	cr_assert_null(error, "%s", sym_error_message(error));
	symbols = NULL;
	return live;
}

static struct sym_live *open_runtime(const struct fake_runtime *runtime)
{
	return open_live(runtime->pid, SYM_JIT_PERF_MAP);
}

static struct sym_live_change look_for(struct sym_live *live, uint32_t flags)
{
	struct sym_live_change change = { .size = sizeof(change) };
	struct sym_error *error = sym_live_symbols(live, flags, &symbols, &change);

	cr_assert_null(error, "%s", sym_error_message(error));
	return change;
}

static struct sym_live_change look(struct sym_live *live)
{
	return look_for(live, 0);
}

static const struct sym_symbol *find(const char *name)
{
	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		if (!strcmp(sym_symbols_at(symbols, i)->name, name))
			return sym_symbols_at(symbols, i);
	return NULL;
}

Test(live_symbols, count_added_symbols)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct sym_live *live = open_runtime(runtime);
	struct sym_live_change change;

	fake_runtime_write(runtime, "10000 40 first()[QuickJitted]\n");
	change = look(live);
	cr_assert(change.images && change.symbols);
	cr_assert_eq(change.added, sym_symbols_count(symbols));
	cr_assert_gt(change.added, 20); /* of the mapped image */
	change = look(live);
	cr_assert(!change.images && !change.symbols && !change.added && !change.removed);
	fake_runtime_write(runtime, "20000 40 second()[QuickJitted]\n");
	change = look(live);
	cr_assert(!change.images && change.symbols);
	cr_assert_eq(change.added, 1);
	cr_assert_eq(change.removed, 0);
	cr_assert_not_null(find("second()"));
	/* Memory that is used again. */
	fake_runtime_write(runtime, "20000 40 third()[QuickJitted]\n");
	change = look(live);
	cr_assert_eq(change.added, 1);
	cr_assert_eq(change.removed, 1);
	cr_assert_null(find("second()"));
	cr_assert_not_null(find("first()"));
	sym_live_close(live);
	fake_runtime_stop(runtime);
	scratch_remove(scratch);
}

/* A private copy of a library, which no other process has loaded. */
static char *copy_libz(const char *scratch)
{
	char *path = scratch_path(scratch, "libcopy.so"), *bytes;
	void *original = dlopen("libz.so.1", RTLD_NOW);
	size_t size_bytes;
	Dl_info where;

	cr_assert(original && dladdr(dlsym(original, "deflate"), &where), "libz.so.1 is needed");
	bytes = scratch_read(where.dli_fname, &size_bytes);
	dlclose(original);
	scratch_write(path, bytes, size_bytes);
	free(bytes);
	return path;
}

/* As cp(1) does: the lines of the process stay the same. */
Test(live_symbols, lists_an_overwritten_library_again)
{
	static const char wanted[] = "\0deflate";
	char *scratch = scratch_create(), *path = copy_libz(scratch), *bytes;
	struct sym_live *live;
	const char *place;
	size_t size_bytes;
	void *handle;
	int fd;

	bytes = scratch_read(path, &size_bytes);
	place = memmem(bytes, size_bytes, wanted, sizeof(wanted));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_assert(place && fd >= 0 && handle);
	live = open_live(getpid(), SYM_JIT_NONE);
	look_for(live, SYM_SYMBOLS_ELF);
	cr_expect_not_null(find("deflate"));
	cr_expect_null(find("DEFLATE"));
	wait_for_file_tick();
	cr_assert_eq(pwrite(fd, "DEFLATE", 7, place + 1 - bytes), 7);
	look_for(live, SYM_SYMBOLS_ELF);
	cr_expect_not_null(find("DEFLATE"));
	sym_live_close(live);
	dlclose(handle);
	close(fd);
	free(bytes);
	free(path);
	scratch_remove(scratch);
}

Test(live_symbols, reports_an_ended_process_and_keeps_its_list)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, false);
	struct sym_live *live = open_runtime(runtime);
	struct sym_error *error;
	size_t count;

	look(live);
	count = sym_symbols_count(symbols);
	fake_runtime_stop(runtime);
	error = sym_live_symbols(live, 0, &symbols, NULL);
	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_STALE);
	sym_error_destroy(error);
	cr_assert_eq(sym_symbols_count(symbols), count);
	sym_live_close(live);
	scratch_remove(scratch);
}

Test(live_symbols, reject_unknown_flags)
{
	struct sym_live *live = open_live(getpid(), SYM_JIT_NONE);
	struct sym_error *error = sym_live_symbols(live, 0x80000000, &symbols, NULL);

	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	cr_assert_null(symbols);
	sym_error_destroy(error);
	sym_live_close(live);
}

static bool lists_address(const void *address)
{
	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		if (sym_symbols_at(symbols, i)->start == (uintptr_t)address)
			return true;
	return false;
}

Test(live_symbols, lists_later_what_failed_for_lack_of_memory)
{
	char *scratch = scratch_create(), *path = copy_libz(scratch);
	struct sym_live *live;
	bool has_failed = true;

	live = open_live(getpid(), SYM_JIT_NONE);
	for (size_t allocations = 0; has_failed; allocations += 3) {
		struct sym_error *error;
		void *handle;

		look_for(live, SYM_SYMBOLS_ELF);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		cr_assert_not_null(handle);
		alloc_fail_after(allocations);
		error = sym_live_symbols(live, SYM_SYMBOLS_ELF, &symbols, NULL);
		has_failed = alloc_fail_stop();
		if (error)
			cr_expect(look_for(live, SYM_SYMBOLS_ELF).images, "after %zu", allocations);
		sym_error_destroy(error);
		cr_assert(lists_address(dlsym(handle, "deflate")), "after %zu", allocations);
		dlclose(handle);
	}
	sym_live_close(live);
	free(path);
	scratch_remove(scratch);
}

Test(live_symbols, frees_memory_when_out_of_memory)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct sym_live *live = open_runtime(runtime);
	size_t before;

	fake_runtime_write(runtime, "10000 40 first()[QuickJitted]\n");
	look(live);
	before = sym_symbols_count(symbols);
	fake_runtime_write(runtime, "20000 40 second()[QuickJitted]\n");
	for (size_t allocations = 0; allocations < 500; allocations++) {
		struct sym_error *error;

		alloc_fail_after(allocations);
		error = sym_live_symbols(live, 0, &symbols, NULL);
		if (!alloc_fail_stop() && !error)
			break;
		if (!error) {
			/* It succeeded without that memory, so nothing may be missing. */
			cr_assert_not_null(find("second()"));
			before = sym_symbols_count(symbols);
			continue;
		}
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		cr_assert_eq(sym_symbols_count(symbols), before);
		cr_assert_not_null(find("first()"));
		sym_error_destroy(error);
	}
	look(live);
	cr_assert_not_null(find("second()"));
	sym_live_close(live);
	fake_runtime_stop(runtime);
	scratch_remove(scratch);
}
