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

static struct sym_watch *open_watch(const struct fake_runtime *runtime)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };
	struct sym_watch *watch = NULL;
	struct sym_error *error = sym_watch_open(runtime->pid, &opts, 0, &watch);

	cr_assert_null(error, "%s", sym_error_message(error));
	return watch;
}

static struct sym_watch_change look(struct sym_watch *watch)
{
	struct sym_watch_change change = { .size = sizeof(change) };
	struct sym_error *error = sym_watch_refresh(watch, &change);

	cr_assert_null(error, "%s", sym_error_message(error));
	return change;
}

static const struct sym_symbol *find(const struct sym_watch *watch, const char *name)
{
	const struct sym_symbols *symbols = sym_watch_symbols(watch);

	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		if (!strcmp(sym_symbols_at(symbols, i)->name, name))
			return sym_symbols_at(symbols, i);
	return NULL;
}

Test(process_watch, says_what_was_added_and_nothing_while_nothing_is)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct sym_watch *watch = open_watch(runtime);
	struct sym_watch_change change;

	cr_assert_null(sym_watch_symbols(watch));
	fake_runtime_write(runtime, "10000 40 first()[QuickJitted]\n");
	change = look(watch);
	cr_assert(change.images && change.symbols);
	cr_assert_eq(change.added, sym_symbols_count(sym_watch_symbols(watch)));
	cr_assert_gt(change.added, 20); /* of the mapped image */
	change = look(watch);
	cr_assert(!change.images && !change.symbols && !change.added && !change.removed);
	fake_runtime_write(runtime, "20000 40 second()[QuickJitted]\n");
	change = look(watch);
	cr_assert(!change.images && change.symbols);
	cr_assert_eq(change.added, 1);
	cr_assert_eq(change.removed, 0);
	cr_assert_not_null(find(watch, "second()"));
	/* Memory that is used again. */
	fake_runtime_write(runtime, "20000 40 third()[QuickJitted]\n");
	change = look(watch);
	cr_assert_eq(change.added, 1);
	cr_assert_eq(change.removed, 1);
	cr_assert_null(find(watch, "second()"));
	cr_assert_not_null(find(watch, "first()"));
	sym_watch_close(watch);
	fake_runtime_stop(runtime);
	scratch_remove(scratch);
}

/* A copy of its own of a library, which nobody else has loaded. */
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

/* As cp(1) does it: the lines of the process stay as they are. */
Test(process_watch, lists_a_library_anew_that_was_written_in_place)
{
	static const char wanted[] = "\0deflate";
	char *scratch = scratch_create(), *path = copy_libz(scratch), *bytes;
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_NONE };
	struct sym_watch *watch = NULL;
	const char *place;
	size_t size_bytes;
	void *handle;
	int fd;

	bytes = scratch_read(path, &size_bytes);
	place = memmem(bytes, size_bytes, wanted, sizeof(wanted));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_assert(place && fd >= 0 && handle);
	cr_assert_null(sym_watch_open(getpid(), &opts, SYM_SYMBOLS_ELF, &watch));
	look(watch);
	cr_expect_not_null(find(watch, "deflate"));
	cr_expect_null(find(watch, "DEFLATE"));
	usleep(40000); /* a change in the tick of the file before shows in no time */
	cr_assert_eq(pwrite(fd, "DEFLATE", 7, place + 1 - bytes), 7);
	look(watch);
	cr_expect_not_null(find(watch, "DEFLATE"));
	sym_watch_close(watch);
	dlclose(handle);
	close(fd);
	free(bytes);
	free(path);
	scratch_remove(scratch);
}

Test(process_watch, tells_an_ended_process_and_keeps_its_list)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, false);
	struct sym_watch *watch = open_watch(runtime);
	struct sym_error *error;
	size_t count;

	look(watch);
	count = sym_symbols_count(sym_watch_symbols(watch));
	fake_runtime_stop(runtime);
	error = sym_watch_refresh(watch, NULL);
	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_STALE);
	sym_error_destroy(error);
	cr_assert_eq(sym_symbols_count(sym_watch_symbols(watch)), count);
	sym_watch_close(watch);
	scratch_remove(scratch);
}

Test(process_watch, refuses_a_recorded_process)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .root = "fixtures/recorded" };
	struct sym_watch *watch = NULL;
	struct sym_error *error = sym_watch_open(4242, &opts, 0, &watch);

	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_watch_close(NULL);
}

Test(process_watch, refuses_flags_that_it_does_not_know)
{
	struct sym_watch *watch = NULL;
	struct sym_error *error = sym_watch_open(1, NULL, 0x80000000, &watch);

	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	cr_assert_null(watch);
	sym_error_destroy(error);
}

static bool lists_address(const struct sym_watch *watch, const void *address)
{
	const struct sym_symbols *symbols = sym_watch_symbols(watch);

	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		if (sym_symbols_at(symbols, i)->start == (uintptr_t)address)
			return true;
	return false;
}

Test(process_watch, lists_later_what_there_was_no_memory_for)
{
	char *scratch = scratch_create(), *path = copy_libz(scratch);
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_NONE };
	struct sym_watch *watch = NULL;
	bool has_failed = true;

	cr_assert_null(sym_watch_open(getpid(), &opts, SYM_SYMBOLS_ELF, &watch));
	for (size_t allocations = 0; has_failed; allocations += 3) {
		struct sym_error *error;
		void *handle;

		look(watch);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		cr_assert_not_null(handle);
		alloc_fail_after(allocations);
		error = sym_watch_refresh(watch, NULL);
		has_failed = alloc_fail_stop();
		if (error)
			cr_expect(look(watch).images, "after %zu", allocations);
		sym_error_destroy(error);
		cr_assert(lists_address(watch, dlsym(handle, "deflate")), "after %zu", allocations);
		dlclose(handle);
	}
	sym_watch_close(watch);
	free(path);
	scratch_remove(scratch);
}

Test(process_watch, gives_memory_back_when_there_is_none)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct sym_watch *watch = open_watch(runtime);
	size_t before;

	fake_runtime_write(runtime, "10000 40 first()[QuickJitted]\n");
	look(watch);
	before = sym_symbols_count(sym_watch_symbols(watch));
	fake_runtime_write(runtime, "20000 40 second()[QuickJitted]\n");
	for (size_t allocations = 0; allocations < 500; allocations++) {
		struct sym_error *error;

		alloc_fail_after(allocations);
		error = sym_watch_refresh(watch, NULL);
		if (!alloc_fail_stop() && !error)
			break;
		if (!error) {
			/* It got by without that memory: then nothing may be missing. */
			cr_assert_not_null(find(watch, "second()"));
			before = sym_symbols_count(sym_watch_symbols(watch));
			continue;
		}
		cr_assert_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		cr_assert_eq(sym_symbols_count(sym_watch_symbols(watch)), before);
		cr_assert_not_null(find(watch, "first()"));
		sym_error_destroy(error);
	}
	look(watch);
	cr_assert_not_null(find(watch, "second()"));
	sym_watch_close(watch);
	fake_runtime_stop(runtime);
	scratch_remove(scratch);
}
