/* SPDX-License-Identifier: MIT */
/*
 * How the method is chosen, and what happens at each reading.
 *
 *   first reading    SYM_JIT_CONTRACT; if that fails, SYM_JIT_RUNDOWN; `info` keeps the reasons
 *   added methods    a rundown on top, if hot reload or a profiler has added methods
 *   later readings   the method that worked; what is new only
 *   after the end    only events that were received before
 *
 * The fields of struct jitted_reader are the state between two readings.
 * `has_read` becomes false after a failure, so that the next reading starts from nothing.
 * `is_given_up` becomes true when the runtime did not answer in time.
 */
#include "libsym/clr/jitted_code.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/clr/jitted_by_rundown.h"
#include "libsym/clr/stub_scan.h"
#include "libsym/image/image.h"
#include "libsym/process/core_process.h"

struct jitted_reader {
	bool has_read;           /* and nothing has failed since */
	bool is_given_up;        /* it did not answer in time */
	bool has_rundown_failed; /* a rundown for added methods failed */
	bool is_below;           /* what the contract gave is below what the rundown gave later */
	enum sym_jit_method method;    /* the method that worked; SYM_JIT_NONE: none */
	struct string_interner *names; /* shared by all readings; NULL: each has its own */
	struct jit_reader *jit;        /* for the data contract */
	struct write_barrier barrier;  /* as of the first reading by contract */
	struct jit_range *own_memory;  /* as of the last reading */
	size_t own_memory_count;
	struct jitted_by_rundown rundown;
};

void jitted_code_slot_init(struct jitted_code_slot *slot)
{
	pthread_mutex_init(&slot->lock, NULL);
	atomic_init(&slot->code, NULL);
}

void jitted_code_destroy(struct jitted_code *code)
{
	while (code) {
		struct jitted_code *before = code->before;

		runtime_source_close(code->source);
		runtime_source_close(code->below);
		free(code->contract_reason);
		free(code->rundown_reason);
		free(code);
		code = before;
	}
}

DEFINE_GUARD(jitted_code, struct jitted_code *, jitted_code_destroy)
#define AUTO_LIVE_CODE GUARDED(jitted_code)

void jitted_code_slot_deinit(struct jitted_code_slot *slot)
{
	jitted_code_destroy(atomic_load(&slot->code));
	pthread_mutex_destroy(&slot->lock);
}

/* Keeps the text of an error that means only that this method does not work. */
static struct sym_error *keep_reason(struct sym_error *error, char **reason_ret)
{
	if (sym_error_is_no_memory(error))
		return error;
	*reason_ret = strdup(sym_error_message(error));
	sym_error_destroy(error);
	return *reason_ret ? NULL : &sym_error_no_memory;
}

/*
 * Contract versions were used again between releases and during their development. So they do not
 * identify the structures; the release must be a tested one.
 */
static struct sym_error *check_release(const struct clr_target *target)
{
	const struct runtime_info *runtime = clr_target_runtime(target);
	int major = runtime ? runtime_info_major(runtime) : 0;

	if (!major || major == 10 || major == 11)
		return NULL;
	return sym_error_create(
		SYM_ERROR_UNSUPPORTED,
		"names are read from the memory of .NET 10 and 11 only, not of .NET %s",
		runtime->version);
}

static bool has_runtime(const struct clr_target *target)
{
	const struct runtime_info *runtime = clr_target_runtime(target);

	return runtime && runtime->shape;
}

static struct sym_error *check_runtime(const struct clr_target *target)
{
	const struct runtime_info *runtime = clr_target_runtime(target);

	if (!runtime)
		return &sym_error_no_memory;
	if (!runtime->shape)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no .NET runtime in the process");
	if (!strcmp(runtime->shape, "nativeaot"))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"compiled ahead of time: there is no JIT in the process");
	if (target->process->recorded && !target->process->core)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a recorded process can be neither read nor asked");
	return NULL;
}

static bool has_barrier(const struct sym_mapping *line, const struct write_barrier *barrier)
{
	uint64_t address = barrier->functions[0].start_address;

	return barrier->count && line->start_address < address && line->end_address > address;
}

static bool is_code_heap(const struct clr_target *target, const struct sym_mapping *line)
{
	const struct sym_mapping *runtime = clr_target_runtime_mapping(target);

	return runtime &&
	       stub_scan_is_code_heap(target->process, target->space, line, runtime->path);
}

/*
 * Lists memory that only the runtime uses, as far as can be determined, without code heaps.
 * *known_ret: false without W^X, where it cannot be determined.
 */
static struct jit_range *list_own_memory(const struct clr_target *target,
					 const struct write_barrier *barrier, size_t *count_ret,
					 bool *known_ret)
{
	const struct address_space *space = target->space;
	struct jit_range *ranges = calloc(space->mapping_count + 1, sizeof(*ranges));
	size_t count = 0;

	*known_ret = false;
	for (size_t i = 0; ranges && i < space->mapping_count; i++) {
		const struct sym_mapping *line = &space->mappings[i];
		bool known = stub_scan_is_of_runtime(line);

		if (!(line->protection & SYM_EXECUTE))
			continue;
		*known_ret |= known;
		if (known ? !is_code_heap(target, line) : has_barrier(line, barrier))
			ranges[count++] =
				(struct jit_range){ line->start_address, line->end_address };
	}
	*count_ret = count;
	return ranges;
}

static struct sym_error *find_stubs(const void *context, struct address_ranges *ret)
{
	const struct clr_target *target = context;

	return stub_scan_find(target->process, target->space, ret);
}

/*
 * A core file without the runtime's description of itself cannot be read. The error explains that.
 */
static struct sym_error *explain_core(const struct clr_target *target, struct sym_error *error)
{
	const struct sym_mapping *mapping = clr_target_runtime_mapping(target);
	struct sym_image *runtime = NULL;
	struct sym_error *explained;

	if (sym_error_code(error) != SYM_ERROR_IO)
		return error;
	if (mapping)
		sym_error_destroy(clr_target_image_of(
			target, (size_t)(mapping - target->space->mappings), &runtime));
	if (runtime && image_trouble(runtime))
		explained = sym_error_create(SYM_ERROR_STALE, "the runtime's own file: %s",
					     image_trouble(runtime)->text);
	else
		explained = sym_error_create(
			SYM_ERROR_NOT_FOUND,
			"this core file lacks the runtime's description of its memory (%s)%s; "
			"gcore, createdump --full and the kernel save it",
			sym_error_message(error),
			target->process->core->elf.missing_bytes ? "; it was cut off" : "");
	sym_error_destroy(error);
	return explained;
}

/* Explains an error when the runtime's file is mapped but could not be opened. */
static struct sym_error *explain_no_mapping(const struct clr_target *target)
{
	const struct runtime_info *runtime = clr_target_runtime(target);
	const struct image_trouble *trouble = NULL;
	struct sym_image *image = NULL;
	struct sym_error *error = NULL;

	if (runtime && runtime->mapping_index < target->space->mapping_count)
		error = clr_target_image_of(target, runtime->mapping_index, &image);
	if (error)
		return error;
	if (image)
		trouble = image_trouble(image);
	return sym_error_create(SYM_ERROR_NOT_FOUND, "the runtime's own file %s",
				trouble ? trouble->text : "is not mapped");
}

static struct sym_error *open_contract(const struct clr_target *target, struct jit_reader **ret)
{
	struct remote_memory *memory AUTO_REMOTE_MEMORY = NULL;
	const struct sym_mapping *mapping = clr_target_runtime_mapping(target);
	struct sym_error *error = check_runtime(target);

	if (!error)
		error = check_release(target);
	if (error)
		return error;
	if (!mapping)
		return explain_no_mapping(target);
	error = clr_target_open_memory(target, &memory);
	if (!error)
		error = jit_reader_open(memory, mapping->start_address - mapping->offset, ret);
	if (!error)
		memory = NULL; /* owned by the reader now */
	return error && target->process->core ? explain_core(target, error) : error;
}

/* *ret stays NULL when nothing has changed since the last reading, unless `anyway`. */
static struct sym_error *read_contract(const struct clr_target *target,
				       struct jitted_reader *reader, bool anyway,
				       struct runtime_source **ret)
{
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	struct jit_range *own_memory AUTO_FREE = NULL;
	struct runtime_contract contract = { .context = target };
	struct sym_error *error = NULL;
	bool known;

	if (!reader->jit)
		error = open_contract(target, &reader->jit);
	if (error)
		return error;
	/* The write barrier exists before any method and never moves. */
	if (!reader->has_read)
		stub_scan_find_barrier(target->process, target->space, &reader->barrier);
	contract.reader = reader->jit;
	contract.barrier = reader->barrier;
	contract.own_memory = own_memory =
		list_own_memory(target, &reader->barrier, &contract.own_memory_count, &known);
	if (!own_memory)
		return &sym_error_no_memory;
	contract.find_stubs = known ? NULL : find_stubs;
	contract.is_other = anyway || contract.own_memory_count != reader->own_memory_count ||
			    (contract.own_memory_count &&
			     memcmp(own_memory, reader->own_memory,
				    contract.own_memory_count * sizeof(*own_memory)) != 0);
	error = runtime_source_open_contract(&contract, reader->names, &source);
	/* The memory belonged to this process only if the process is still the same. */
	if (!error)
		error = process_check(target->process);
	if (error)
		return error;
	free(reader->own_memory);
	reader->own_memory = STEAL(own_memory);
	reader->own_memory_count = contract.own_memory_count;
	*ret = STEAL(source);
	return NULL;
}

/* ---- rundown ---------------------------------------------------------------- */

static struct sym_error *read_rundown(const struct clr_target *target, struct jitted_reader *reader,
				      struct jitted_code *code)
{
	struct sym_error *error = check_runtime(target);

	if (!error && target->process->core)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED, "a core file cannot be asked");
	if (!error)
		error = jitted_by_rundown_begin(&reader->rundown, target, reader->names,
						&code->source);
	if (!error)
		error = process_check(target->process);
	if (!error) {
		code->info.method = SYM_JIT_RUNDOWN;
		return NULL;
	}
	runtime_source_close(STEAL(code->source));
	jitted_by_rundown_reset(&reader->rundown);
	return error;
}

/* code->source stays NULL when nothing has changed. */
static struct sym_error *read_events(const struct clr_target *target, struct jitted_reader *reader,
				     struct jitted_code *code)
{
	code->info.method = SYM_JIT_RUNDOWN;
	return jitted_by_rundown_go_on(&reader->rundown, target, reader->names, &code->source);
}

/* ---- the choice -------------------------------------------------------------- */

/* Received data that were not returned are lost, so the next reading starts from nothing. */
static void jitted_reader_reset(struct jitted_reader *reader)
{
	jit_reader_close(STEAL(reader->jit));
	jitted_by_rundown_reset(&reader->rundown);
	reader->has_read = reader->has_rundown_failed = reader->is_below = false;
}

void jitted_reader_close(struct jitted_reader *reader)
{
	if (!reader)
		return;
	jit_reader_close(reader->jit);
	jitted_by_rundown_deinit(&reader->rundown);
	string_interner_release(reader->names);
	free(reader->own_memory);
	free(reader);
}

static struct jitted_reader *jitted_reader_create(const struct clr_target *target, bool follows)
{
	struct jitted_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	jitted_by_rundown_init(&reader->rundown, target->process, follows);
	return reader;
}

DEFINE_GUARD(jitted_reader, struct jitted_reader *, jitted_reader_close)
#define AUTO_LIVE_READER GUARDED(jitted_reader)

static void fill_in_info(struct jitted_code *code)
{
	const struct runtime_counts *counts;

	code->info.contract_reason = code->contract_reason;
	code->info.rundown_reason = code->rundown_reason;
	if (!code->source)
		return;
	counts = runtime_source_counts(code->source);
	code->info.method_count = counts->method_count;
	code->info.unnamed_count = counts->unnamed_count;
	code->info.unnamed_dynamic_count = counts->unnamed_dynamic_count;
	code->info.read_calls = counts->read_calls;
	code->info.read_bytes = counts->read_bytes;
}

/*
 * Methods that hot reload or a profiler has added are in no readable metadata. The runtime must be
 * asked for them.
 */
static bool has_added_methods(const struct jitted_code *code)
{
	const struct runtime_counts *counts =
		code->source ? runtime_source_counts(code->source) : NULL;

	return counts && counts->is_editable &&
	       counts->unnamed_count > counts->unnamed_dynamic_count;
}

/* Requests a rundown when methods lack names. */
static struct sym_error *ask_for_added(const struct clr_target *target,
				       struct jitted_reader *reader, enum sym_jit_method jit,
				       struct jitted_code *code)
{
	struct runtime_source *read AUTO_RUNTIME_SOURCE = NULL;
	struct sym_error *error;

	if (jit != SYM_JIT_AUTO || code->info.method != SYM_JIT_CONTRACT ||
	    reader->has_rundown_failed || !has_added_methods(code))
		return NULL;
	read = STEAL(code->source);
	error = read_rundown(target, reader, code);
	reader->is_below = !error;
	if (!error) {
		code->below = STEAL(read);
		return NULL;
	}
	code->source = STEAL(read);
	reader->has_rundown_failed = true;
	return keep_reason(error, &code->rundown_reason);
}

/* Stubs between methods are recognised by their bytes, when the methods themselves are unknown. */
static struct sym_error *find_stubs_alone(const struct clr_target *target, struct jitted_code *code)
{
	struct sym_error *error = check_runtime(target);

	if (!error && !target->process->core)
		error = jitted_by_rundown_stubs_alone(target, &code->below);
	return sym_error_only_no_memory(error);
}

/* Reads with the first method that works. */
static struct sym_error *read_code(const struct clr_target *target, struct jitted_reader *reader,
				   enum sym_jit_method jit, struct jitted_code **ret)
{
	struct budget_account *span AUTO_BUDGET_SPAN =
		budget_span(process_account(target->process));
	struct jitted_code *code AUTO_LIVE_CODE = calloc(1, sizeof(*code));
	struct sym_error *error = NULL;

	if (!code)
		return &sym_error_no_memory;
	code->info.method = SYM_JIT_NONE;
	if (jit == SYM_JIT_AUTO || jit == SYM_JIT_CONTRACT)
		error = read_contract(target, reader, false, &code->source);
	if (error)
		error = keep_reason(error, &code->contract_reason);
	else if (code->source)
		code->info.method = SYM_JIT_CONTRACT;
	if (!error && !code->source && (jit == SYM_JIT_AUTO || jit == SYM_JIT_RUNDOWN)) {
		error = read_rundown(target, reader, code);
		if (error)
			error = keep_reason(error, &code->rundown_reason);
	}
	if (!error)
		error = ask_for_added(target, reader, jit, code);
	if (!error && !code->source && jit != SYM_JIT_NONE && jit != SYM_JIT_PERF_MAP)
		error = find_stubs_alone(target, code);
	if (error)
		return error;
	reader->method = code->info.method;
	reader->has_read = true;
	code->had_runtime = has_runtime(target);
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

/* Reads again with the method that worked before. *ret is NULL when nothing has changed. */
static struct sym_error *read_code_again(const struct clr_target *target,
					 struct jitted_reader *reader, struct jitted_code **ret)
{
	struct budget_account *span AUTO_BUDGET_SPAN =
		budget_span(process_account(target->process));
	struct jitted_code *code AUTO_LIVE_CODE = NULL;
	struct sym_error *error = NULL;

	*ret = NULL;
	if (reader->method == SYM_JIT_NONE)
		return NULL;
	code = calloc(1, sizeof(*code));
	if (!code)
		return &sym_error_no_memory;
	code->info.method = reader->method;
	if (reader->method == SYM_JIT_CONTRACT)
		error = read_contract(target, reader, false, &code->source);
	else
		error = read_events(target, reader, code);
	if (!error && code->source && reader->is_below)
		error = read_contract(target, reader, true, &code->below);
	if (!error)
		error = ask_for_added(target, reader, target->jit, code);
	if (error || !code->source)
		return error;
	reader->method = code->info.method;
	code->had_runtime = true;
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

/* Reads what a process reported before it ended. What was read from its memory is dropped. */
struct sym_error *jitted_code_read_rest(const struct clr_target *target,
					struct jitted_reader *reader, struct jitted_code **ret)
{
	struct jitted_code *code AUTO_LIVE_CODE = NULL;
	struct sym_error *error;

	*ret = NULL;
	if (!reader || !reader->has_read || reader->method != SYM_JIT_RUNDOWN || reader->is_below)
		return NULL;
	code = calloc(1, sizeof(*code));
	if (!code)
		return &sym_error_no_memory;
	code->info.method = reader->method;
	error = jitted_by_rundown_end(&reader->rundown, target, reader->names, &code->source);
	if (error || !code->source)
		return error;
	code->had_runtime = true;
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

static struct sym_error *read_once(const struct clr_target *target, struct jitted_code **ret)
{
	struct jitted_reader *reader AUTO_LIVE_READER = jitted_reader_create(target, false);

	return reader ? read_code(target, reader, target->jit, ret) : &sym_error_no_memory;
}

/* Reads at first or again. *ret is NULL when nothing has changed. */
static struct sym_error *read_on(const struct clr_target *target, struct jitted_reader *reader,
				 enum sym_jit_method jit, struct jitted_code **ret)
{
	struct sym_error *error = reader->has_read ? read_code_again(target, reader, ret)
						   : read_code(target, reader, jit, ret);

	if (error)
		jitted_reader_reset(reader);
	return error;
}

const struct string_interner *jitted_code_names(const struct jitted_code *code)
{
	return code->source ? runtime_source_names(code->source) : NULL;
}

/* Names of unloaded code may be in use, so they stay until they are most of all names. */
static struct sym_error *choose_names(const struct jitted_code *known, struct jitted_reader *reader)
{
	static const size_t spare_bytes = (size_t)16 << 20;
	struct string_interner *names;
	struct sym_error *error;

	if (reader->names && (jitted_code_names(known) != reader->names ||
			      string_interner_bytes(reader->names) / 2 <
				      runtime_source_name_bytes(known->source) + spare_bytes))
		return NULL;
	error = string_interner_create(&names);
	if (error)
		return error;
	string_interner_release(reader->names);
	reader->names = names;
	return NULL;
}

/*
 * A runtime that timed out once would time out every time, so stop asking it, unless it was merely
 * stopped (SIGSTOP).
 */
static struct sym_error *note_refusal(struct jitted_reader *reader, int64_t begin_ms)
{
	static const int64_t patience_ms = 1000;
	bool was_long = diagnostics_now_ms() - begin_ms >= patience_ms, is_running = false;
	struct sym_error *error = NULL;

	jitted_reader_reset(reader);
	if (was_long)
		error = jitted_by_rundown_is_running(&reader->rundown, &is_running);
	reader->is_given_up = is_running;
	return error;
}

struct sym_error *jitted_code_read_again(const struct clr_target *target,
					 const struct jitted_code *known,
					 struct jitted_reader **reader, struct jitted_code **ret)
{
	struct jitted_code *code AUTO_LIVE_CODE = NULL;
	int64_t begin_ms = diagnostics_now_ms();
	struct sym_error *error;

	*ret = NULL;
	if (!*reader)
		*reader = jitted_reader_create(target, true);
	if (!*reader)
		return &sym_error_no_memory;
	if ((*reader)->is_given_up)
		return NULL;
	error = choose_names(known, *reader);
	/* The sources below were read earlier than the method that worked. */
	if (!error)
		error = read_on(target, *reader,
				known->source && !known->below ? known->info.method : target->jit,
				&code);
	if (error || !code)
		return error;
	if (!code->source)
		return note_refusal(*reader, begin_ms);
	if (!known->source || !runtime_source_is_equal(known->source, code->source))
		*ret = STEAL(code);
	return NULL;
}

/* A process that had no runtime then may have one now. */
static bool is_late(const struct clr_target *target, const struct jitted_code *code)
{
	return !code->had_runtime && has_runtime(target);
}

struct sym_error *jitted_code_get(const struct clr_target *target, struct jitted_code_slot *slot,
				  const struct jitted_code **ret)
{
	struct jitted_code *code = atomic_load_explicit(&slot->code, memory_order_acquire);
	struct sym_error *error = NULL;

	if (!code || is_late(target, code)) {
		struct jitted_code *before;

		pthread_mutex_lock(&slot->lock);
		before = code = atomic_load(&slot->code);
		if (!code || is_late(target, code))
			error = read_once(target, &code);
		if (!error && code != before) {
			/* Its reasons are in use. */
			code->before = before;
			atomic_store_explicit(&slot->code, code, memory_order_release);
			atomic_fetch_add(&slot->changes, 1);
		}
		pthread_mutex_unlock(&slot->lock);
	}
	if (!error)
		*ret = code;
	return error;
}
