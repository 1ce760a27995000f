/* SPDX-License-Identifier: MIT */
/* A perf map that the runtime of the process does not write, such as one left by `merge`. */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/libsym.h"
#include "tests/support/fake_runtime.h"
#include "tests/support/program.h"

static const char line[] = "10000 40 left()[QuickJitted]\n";

static char *scratch;
static struct fake_runtime *runtime;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	fake_runtime_stop(runtime);
	scratch_remove(scratch);
}

TestSuite(left_map, .init = set_up, .fini = tear_down);

static struct sym_snapshot *open_snapshot(enum sym_jit_method jit)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = (uint32_t)jit };
	struct sym_snapshot *snapshot;

	cr_assert_null(sym_snapshot_open(runtime->pid, &opts, &snapshot));
	return snapshot;
}

static bool has_name(struct sym_snapshot *snapshot)
{
	struct sym_symbols *symbols;
	bool found = false;

	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_RUNTIME,
					    &symbols));
	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		found |= !strcmp(sym_symbols_at(symbols, i)->name, "left()");
	sym_symbols_destroy(symbols);
	return found;
}

/* The runtime is a fake one, and cannot be asked. */
Test(left_map, is_rejected_when_the_runtime_cannot_be_asked)
{
	const struct sym_perf_map_info *info;
	struct sym_snapshot *snapshot;

	runtime = fake_runtime_start(scratch, false);
	scratch_write(runtime->map_path, line, sizeof(line) - 1);
	snapshot = open_snapshot(SYM_JIT_AUTO);
	cr_expect_not(has_name(snapshot));
	cr_assert_null(sym_snapshot_perf_map(snapshot, &info));
	cr_expect_null(info->path);
	cr_assert_not_null(info->rejected_reason);
	cr_expect(strstr(info->rejected_reason, "does not write it"), "%s", info->rejected_reason);
	sym_snapshot_close(snapshot);
}

Test(left_map, is_used_on_request)
{
	struct sym_snapshot *snapshot;

	runtime = fake_runtime_start(scratch, false);
	scratch_write(runtime->map_path, line, sizeof(line) - 1);
	snapshot = open_snapshot(SYM_JIT_PERF_MAP);
	cr_expect(has_name(snapshot));
	sym_snapshot_close(snapshot);
}

Test(left_map, is_used_when_the_runtime_writes_it)
{
	struct sym_snapshot *snapshot;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, line);
	snapshot = open_snapshot(SYM_JIT_AUTO);
	cr_expect(has_name(snapshot));
	sym_snapshot_close(snapshot);
}
