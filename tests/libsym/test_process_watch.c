/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
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
	/* It tells nothing by itself. */
	cr_assert_eq(sym_watch_fd(watch), -1);
	sym_watch_receive(watch);
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

/* Where the name of a method of `symbol` stands in the file; 0 where it does not stand alone. */
static off_t place_of_method(const char *bytes, size_t size_bytes, const struct sym_symbol *symbol)
{
	const char *name = strstr(symbol->name, "::"), *place;
	char wanted[64] = "";
	size_t length = name ? strcspn(name += 2, "(") : 0;

	if (length < 5 || length > sizeof(wanted) - 2)
		return 0;
	memcpy(wanted + 1, name, length);
	place = memmem(bytes, size_bytes, wanted, length + 2);
	return place ? place + 1 - bytes : 0;
}

/* As cp(1) does it: the lines of the process stay as they are. */
Test(process_watch, keeps_no_name_of_a_file_that_was_written_in_place)
{
	char *scratch = scratch_create();
	struct fake_runtime *runtime = fake_runtime_start(scratch, false);
	struct sym_watch *watch = open_watch(runtime);
	const struct sym_symbols *symbols;
	size_t size_bytes, count = 0;
	char *bytes = scratch_read(runtime->image_path, &size_bytes);
	int fd = open(runtime->image_path, O_WRONLY | O_CLOEXEC);
	struct sym_watch_change change = look(watch);

	cr_assert(change.symbols && fd >= 0);
	usleep(20000); /* a change in the tick of the file before shows in no time */
	symbols = sym_watch_symbols(watch);
	for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
		off_t place = place_of_method(bytes, size_bytes, sym_symbols_at(symbols, i));

		count += place && pwrite(fd, "Zz", 2, place) == 2;
	}
	cr_assert_gt(count, 0);
	change = look(watch);
	cr_expect(change.symbols && change.removed);
	/* It has those that are there now, or none where it can be told to be another file. */
	symbols = sym_watch_symbols(watch);
	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		cr_expect_eq(place_of_method(bytes, size_bytes, sym_symbols_at(symbols, i)), 0);
	change = look(watch);
	cr_expect(!change.images && !change.symbols);
	close(fd);
	free(bytes);
	sym_watch_close(watch);
	fake_runtime_stop(runtime);
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
