/* SPDX-License-Identifier: MIT */
#include "libsym/live_code.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/snapshot.h"

void live_code_slot_init(struct live_code_slot *slot)
{
	pthread_mutex_init(&slot->lock, NULL);
	atomic_init(&slot->code, NULL);
}

static void live_code_destroy(struct live_code *code)
{
	if (!code)
		return;
	runtime_source_close(code->source);
	free(code->contract_reason);
	free(code->rundown_reason);
	free(code);
}

DEFINE_GUARD(live_code, struct live_code *, live_code_destroy)
#define AUTO_LIVE_CODE GUARDED(live_code)

void live_code_slot_deinit(struct live_code_slot *slot)
{
	live_code_destroy(atomic_load(&slot->code));
	pthread_mutex_destroy(&slot->lock);
}

/* Keeps the text of an error that only means that this way does not serve. */
static struct sym_error *keep_reason(struct sym_error *error, char **reason_ret)
{
	if (sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	*reason_ret = strdup(sym_error_message(error));
	sym_error_destroy(error);
	return *reason_ret ? NULL : &sym_error_no_memory;
}

/*
 * Versions of contracts were reused during the development of .NET 11, so the
 * numbers alone do not tell which structures they mean: the release must be one
 * that was tried.
 */
static struct sym_error *check_release(const struct sym_snapshot *snapshot)
{
	const char *version = snapshot->runtime.version;

	if (!snapshot->runtime.shape)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no .NET runtime in the process");
	if (!strcmp(snapshot->runtime.shape, "nativeaot"))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"compiled ahead of time: there is no JIT in the process");
	if (snapshot->process->recorded)
		return sym_error_create(SYM_ERROR_UNSUPPORTED, "a recorded process has no memory");
	if (version[0] && strncmp(version, "10.", 3))
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"the memory of .NET %s is not read, only that of .NET 10 is", version);
	return NULL;
}

static struct sym_error *read_contract(const struct sym_snapshot *snapshot, struct live_code *code)
{
	const struct runtime_info *runtime = &snapshot->runtime;
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	const struct sym_mapping *mapping;
	struct sym_error *error = check_release(snapshot);

	if (error)
		return error;
	mapping = &snapshot->space->mappings[runtime->mapping_index];
	error = runtime_source_open_contract(snapshot->process->pid,
					     mapping->start_address - mapping->offset, &source);
	/* What was read is of this process only if it still is this process. */
	if (!error)
		error = process_check(snapshot->process);
	if (error)
		return error;
	code->source = STEAL(source);
	code->info.way = SYM_JIT_CONTRACT;
	return NULL;
}

static struct sym_error *read_code(const struct sym_snapshot *snapshot, struct live_code **ret)
{
	struct live_code *code AUTO_LIVE_CODE = calloc(1, sizeof(*code));
	enum sym_jit_way jit = snapshot->jit;
	struct sym_error *error = NULL;

	if (!code)
		return &sym_error_no_memory;
	code->info.way = SYM_JIT_NONE;
	if (jit == SYM_JIT_AUTO || jit == SYM_JIT_CONTRACT)
		error = read_contract(snapshot, code);
	if (error)
		error = keep_reason(error, &code->contract_reason);
	if (error)
		return error;
	code->info.contract_reason = code->contract_reason;
	code->info.rundown_reason = code->rundown_reason;
	if (code->source) {
		const struct runtime_counts *counts = runtime_source_counts(code->source);

		code->info.method_count = counts->method_count;
		code->info.unnamed_count = counts->unnamed_count;
		code->info.unnamed_dynamic_count = counts->unnamed_dynamic_count;
		code->info.read_calls = counts->read_calls;
		code->info.read_bytes = counts->read_bytes;
	}
	*ret = STEAL(code);
	return NULL;
}

struct sym_error *live_code_get(const struct sym_snapshot *snapshot, const struct live_code **ret)
{
	/* The slot is the one part of a snapshot that is filled in later. */
	struct live_code_slot *slot = (struct live_code_slot *)&snapshot->live_code;
	struct live_code *code = atomic_load_explicit(&slot->code, memory_order_acquire);
	struct sym_error *error = NULL;

	if (!code) {
		pthread_mutex_lock(&slot->lock);
		code = atomic_load(&slot->code);
		if (!code)
			error = read_code(snapshot, &code);
		if (!error)
			atomic_store_explicit(&slot->code, code, memory_order_release);
		pthread_mutex_unlock(&slot->lock);
	}
	if (!error)
		*ret = code;
	return error;
}

struct sym_error *sym_snapshot_jit(struct sym_snapshot *snapshot, const struct sym_jit_info **ret)
{
	const struct live_code *code;
	struct sym_error *error = live_code_get(snapshot, &code);

	if (!error)
		*ret = &code->info;
	return error;
}
