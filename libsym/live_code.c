/* SPDX-License-Identifier: MIT */
#include "libsym/live_code.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/core_process.h"
#include "libsym/limits.h"
#include "libsym/live_rundown.h"
#include "libsym/live_stubs.h"
#include "libsym/snapshot.h"

struct live_reader {
	bool has_read;                /* and nothing has failed since */
	bool is_given_up;             /* it did not answer in time */
	bool asked_in_vain;           /* for what was read without asking and lacks names */
	bool is_below;                /* what was read so, below what was told when it was asked */
	enum sym_jit_way way;         /* that served; SYM_JIT_NONE: none did */
	struct index_name_set *names; /* of all that is read with it; NULL: each has its own */
	struct jit_reader *jit;       /* by contract */
	struct write_barrier barrier; /* as of the first reading by contract */
	struct jit_range *own_memory; /* as of the last reading */
	size_t own_memory_count;
	struct live_rundown rundown;
};

void live_code_slot_init(struct live_code_slot *slot)
{
	pthread_mutex_init(&slot->lock, NULL);
	atomic_init(&slot->code, NULL);
}

void live_code_destroy(struct live_code *code)
{
	while (code) {
		struct live_code *before = code->before;

		runtime_source_close(code->source);
		runtime_source_close(code->below);
		free(code->contract_reason);
		free(code->rundown_reason);
		free(code);
		code = before;
	}
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
 * Versions of contracts were reused between releases and during their development, so they
 * alone do not tell which structures they mean: the release must be one that was tried.
 */
static struct sym_error *check_release(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);
	int major = runtime ? runtime_info_major(runtime) : 0;

	if (!major || major == 10 || major == 11)
		return NULL;
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"the memory of .NET %s is not read, only that of .NET 10 and 11 is",
				runtime->version);
}

static bool has_runtime(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	return runtime && runtime->shape;
}

static struct sym_error *check_runtime(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	if (!runtime)
		return &sym_error_no_memory;
	if (!runtime->shape)
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no .NET runtime in the process");
	if (!strcmp(runtime->shape, "nativeaot"))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"compiled ahead of time: there is no JIT in the process");
	if (snapshot->process->recorded && !snapshot->process->core)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a recorded process can be neither read nor asked");
	return NULL;
}

static bool has_barrier(const struct sym_mapping *line, const struct write_barrier *barrier)
{
	uint64_t address = barrier->functions[0].start_address;

	return barrier->count && line->start_address < address && line->end_address > address;
}

static bool is_code_heap(const struct sym_snapshot *snapshot, const struct sym_mapping *line)
{
	const struct sym_mapping *runtime = snapshot_runtime_mapping(snapshot);

	return runtime &&
	       live_is_code_heap(snapshot->process, snapshot->space, line, runtime->path);
}

/* What is nobody's but the runtime's, as far as can be told, but for code heaps. *known_ret: of its
 * memory that can be, which without W^X it cannot. */
static struct jit_range *list_own_memory(const struct sym_snapshot *snapshot,
					 const struct write_barrier *barrier, size_t *count_ret,
					 bool *known_ret)
{
	const struct address_space *space = snapshot->space;
	struct jit_range *ranges = calloc(space->mapping_count + 1, sizeof(*ranges));
	size_t count = 0;

	*known_ret = false;
	for (size_t i = 0; ranges && i < space->mapping_count; i++) {
		const struct sym_mapping *line = &space->mappings[i];
		bool known = live_is_of_runtime(line);

		if (!(line->protection & SYM_EXECUTE))
			continue;
		*known_ret |= known;
		if (known ? !is_code_heap(snapshot, line) : has_barrier(line, barrier))
			ranges[count++] =
				(struct jit_range){ line->start_address, line->end_address };
	}
	*count_ret = count;
	return ranges;
}

static struct sym_error *find_stubs(const void *context, struct address_ranges *ret)
{
	const struct sym_snapshot *snapshot = context;

	return live_stubs_find(snapshot->process, snapshot->space, ret);
}

/* A core that leaves out what the runtime tells of itself cannot be read, and says no more than
 * that. */
static struct sym_error *explain_core(const struct sym_snapshot *snapshot, struct sym_error *error)
{
	const struct sym_mapping *mapping = snapshot_runtime_mapping(snapshot);
	struct sym_image *runtime = NULL;
	struct sym_error *explained;

	if (sym_error_code(error) != SYM_ERROR_IO)
		return error;
	if (mapping)
		sym_error_destroy(snapshot_image_of(
			snapshot, (size_t)(mapping - snapshot->space->mappings), &runtime));
	if (runtime && module_trouble(runtime))
		explained = sym_error_create(SYM_ERROR_STALE, "the runtime's own file: %s",
					     module_trouble(runtime)->text);
	else
		explained = sym_error_create(
			SYM_ERROR_NOT_FOUND,
			"this core file leaves out what the runtime tells of itself (%s)%s; gcore, "
			"createdump --full and the kernel write it down",
			sym_error_message(error),
			snapshot->process->core->elf.missing_bytes ? "; it was cut off" : "");
	sym_error_destroy(error);
	return explained;
}

/* Where the runtime's file may be mapped, and could not be opened. */
static struct sym_error *explain_no_mapping(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);
	const struct module_trouble *trouble = NULL;
	struct sym_image *module = NULL;
	struct sym_error *error = NULL;

	if (runtime && runtime->mapping_index < snapshot->space->mapping_count)
		error = snapshot_image_of(snapshot, runtime->mapping_index, &module);
	if (error)
		return error;
	if (module)
		trouble = module_trouble(module);
	return sym_error_create(SYM_ERROR_NOT_FOUND, "the runtime's own file %s",
				trouble ? trouble->text : "is not mapped");
}

struct sym_error *live_open_contract(const struct sym_snapshot *snapshot, struct jit_reader **ret)
{
	struct remote_memory *memory AUTO_REMOTE_MEMORY = NULL;
	const struct sym_mapping *mapping = snapshot_runtime_mapping(snapshot);
	struct sym_error *error = check_runtime(snapshot);

	if (!error)
		error = check_release(snapshot);
	if (error)
		return error;
	if (!mapping)
		return explain_no_mapping(snapshot);
	error = snapshot->process->core
			? core_memory_open(snapshot, &memory)
			: remote_memory_open_process(snapshot->process->pid, &memory);
	if (!error)
		error = jit_reader_open(memory, mapping->start_address - mapping->offset, ret);
	if (!error)
		memory = NULL; /* the reader's now */
	return error && snapshot->process->core ? explain_core(snapshot, error) : error;
}

/* *ret stays NULL when nothing is otherwise than at the last reading, unless `anyway`. */
static struct sym_error *read_contract(const struct sym_snapshot *snapshot,
				       struct live_reader *reader, bool anyway,
				       struct runtime_source **ret)
{
	struct runtime_source *source AUTO_RUNTIME_SOURCE = NULL;
	struct jit_range *own_memory AUTO_FREE = NULL;
	struct runtime_contract contract = { .context = snapshot };
	struct sym_error *error = NULL;
	bool known;

	if (!reader->jit)
		error = live_open_contract(snapshot, &reader->jit);
	if (error)
		return error;
	/* It is there before any method is, and never moves. */
	if (!reader->has_read)
		live_stubs_find_barrier(snapshot->process, snapshot->space, &reader->barrier);
	contract.reader = reader->jit;
	contract.barrier = reader->barrier;
	contract.own_memory = own_memory =
		list_own_memory(snapshot, &reader->barrier, &contract.own_memory_count, &known);
	if (!own_memory)
		return &sym_error_no_memory;
	contract.find_stubs = known ? NULL : find_stubs;
	contract.is_other = anyway || contract.own_memory_count != reader->own_memory_count ||
			    (contract.own_memory_count &&
			     memcmp(own_memory, reader->own_memory,
				    contract.own_memory_count * sizeof(*own_memory)) != 0);
	error = runtime_source_open_contract(&contract, reader->names, &source);
	/* What was read is of this process only if it still is this process. */
	if (!error)
		error = process_check(snapshot->process);
	if (error)
		return error;
	free(reader->own_memory);
	reader->own_memory = STEAL(own_memory);
	reader->own_memory_count = contract.own_memory_count;
	*ret = STEAL(source);
	return NULL;
}

/* ---- rundown ---------------------------------------------------------------- */

static struct sym_error *read_rundown(const struct sym_snapshot *snapshot,
				      struct live_reader *reader, struct live_code *code)
{
	struct sym_error *error = check_runtime(snapshot);

	if (!error && snapshot->process->core)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED, "a core file cannot be asked");
	if (!error)
		error = live_rundown_begin(&reader->rundown, snapshot, reader->names,
					   &code->source);
	if (!error)
		error = process_check(snapshot->process);
	if (!error) {
		code->info.way = SYM_JIT_RUNDOWN;
		return NULL;
	}
	runtime_source_close(STEAL(code->source));
	live_rundown_reset(&reader->rundown);
	return error;
}

/* code->source stays NULL when nothing is otherwise. */
static struct sym_error *read_events(const struct sym_snapshot *snapshot,
				     struct live_reader *reader, struct live_code *code)
{
	code->info.way = SYM_JIT_RUNDOWN;
	return live_rundown_go_on(&reader->rundown, snapshot, reader->names, &code->source);
}

/* ---- the choice -------------------------------------------------------------- */

/* What was taken in and not handed out is lost: the next reading begins anew. */
static void reset(struct live_reader *reader)
{
	jit_reader_close(STEAL(reader->jit));
	live_rundown_reset(&reader->rundown);
	reader->has_read = reader->asked_in_vain = reader->is_below = false;
}

void live_reader_close(struct live_reader *reader)
{
	if (!reader)
		return;
	jit_reader_close(reader->jit);
	live_rundown_deinit(&reader->rundown);
	index_name_set_release(reader->names);
	free(reader->own_memory);
	free(reader);
}

static struct live_reader *live_reader_create(const struct sym_snapshot *snapshot, bool follows)
{
	struct live_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	live_rundown_init(&reader->rundown, snapshot->process, follows);
	return reader;
}

DEFINE_GUARD(live_reader, struct live_reader *, live_reader_close)
#define AUTO_LIVE_READER GUARDED(live_reader)

static void fill_in_info(struct live_code *code)
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

/* Methods that hot reload or a profiler has added are in no metadata that can be read: the runtime
 * has to be asked. */
static bool has_added_methods(const struct live_code *code)
{
	const struct runtime_counts *counts =
		code->source ? runtime_source_counts(code->source) : NULL;

	return counts && counts->is_editable &&
	       counts->unnamed_count > counts->unnamed_dynamic_count;
}

/* A rundown over what was read and lacks names. */
static struct sym_error *ask_for_added(const struct sym_snapshot *snapshot,
				       struct live_reader *reader, enum sym_jit_way jit,
				       struct live_code *code)
{
	struct runtime_source *read AUTO_RUNTIME_SOURCE = NULL;
	struct sym_error *error;

	if (jit != SYM_JIT_AUTO || code->info.way != SYM_JIT_CONTRACT || reader->asked_in_vain ||
	    !has_added_methods(code))
		return NULL;
	read = STEAL(code->source);
	error = read_rundown(snapshot, reader, code);
	reader->is_below = !error;
	if (!error) {
		code->below = STEAL(read);
		return NULL;
	}
	code->source = STEAL(read);
	reader->asked_in_vain = true;
	return keep_reason(error, &code->rundown_reason);
}

/* Code between the methods is known by its bytes, whoever may be asked for these. */
static struct sym_error *find_stubs_alone(const struct sym_snapshot *snapshot,
					  struct live_code *code)
{
	struct sym_error *error = check_runtime(snapshot);

	if (!error && !snapshot->process->core)
		error = live_rundown_stubs_alone(snapshot, &code->below);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	sym_error_destroy(error);
	return NULL;
}

/* By the first way that serves. */
static struct sym_error *read_code(const struct sym_snapshot *snapshot, struct live_reader *reader,
				   enum sym_jit_way jit, struct live_code **ret)
{
	struct live_code *code AUTO_LIVE_CODE = calloc(1, sizeof(*code));
	struct sym_error *error = NULL;

	if (!code)
		return &sym_error_no_memory;
	code->info.way = SYM_JIT_NONE;
	if (jit == SYM_JIT_AUTO || jit == SYM_JIT_CONTRACT)
		error = read_contract(snapshot, reader, false, &code->source);
	if (error)
		error = keep_reason(error, &code->contract_reason);
	else if (code->source)
		code->info.way = SYM_JIT_CONTRACT;
	if (!error && !code->source && (jit == SYM_JIT_AUTO || jit == SYM_JIT_RUNDOWN)) {
		error = read_rundown(snapshot, reader, code);
		if (error)
			error = keep_reason(error, &code->rundown_reason);
	}
	if (!error)
		error = ask_for_added(snapshot, reader, jit, code);
	if (!error && !code->source && jit != SYM_JIT_NONE && jit != SYM_JIT_PERF_MAP)
		error = find_stubs_alone(snapshot, code);
	if (error)
		return error;
	reader->way = code->info.way;
	reader->has_read = true;
	code->had_runtime = has_runtime(snapshot);
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

/* As above for a reader that has read before: *ret is NULL when nothing is otherwise. */
static struct sym_error *read_code_again(const struct sym_snapshot *snapshot,
					 struct live_reader *reader, struct live_code **ret)
{
	struct live_code *code AUTO_LIVE_CODE = NULL;
	struct sym_error *error = NULL;

	*ret = NULL;
	if (reader->way == SYM_JIT_NONE)
		return NULL;
	code = calloc(1, sizeof(*code));
	if (!code)
		return &sym_error_no_memory;
	code->info.way = reader->way;
	if (reader->way == SYM_JIT_CONTRACT)
		error = read_contract(snapshot, reader, false, &code->source);
	else
		error = read_events(snapshot, reader, code);
	if (!error && code->source && reader->is_below)
		error = read_contract(snapshot, reader, true, &code->below);
	if (!error)
		error = ask_for_added(snapshot, reader, snapshot->jit, code);
	if (error || !code->source)
		return error;
	reader->way = code->info.way;
	code->had_runtime = true;
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

/* The same for a process that has ended: what it told before that and nobody has taken. Its memory
 * is gone, and with it what was read out of it. */
struct sym_error *live_code_read_rest(const struct sym_snapshot *snapshot,
				      struct live_reader *reader, struct live_code **ret)
{
	struct live_code *code AUTO_LIVE_CODE = NULL;
	struct sym_error *error;

	*ret = NULL;
	if (!reader || !reader->has_read || reader->way != SYM_JIT_RUNDOWN || reader->is_below)
		return NULL;
	code = calloc(1, sizeof(*code));
	if (!code)
		return &sym_error_no_memory;
	code->info.way = reader->way;
	error = live_rundown_end(&reader->rundown, snapshot, reader->names, &code->source);
	if (error || !code->source)
		return error;
	code->had_runtime = true;
	fill_in_info(code);
	*ret = STEAL(code);
	return NULL;
}

static struct sym_error *read_once(const struct sym_snapshot *snapshot, struct live_code **ret)
{
	struct live_reader *reader AUTO_LIVE_READER = live_reader_create(snapshot, false);

	return reader ? read_code(snapshot, reader, snapshot->jit, ret) : &sym_error_no_memory;
}

/* The same for a reader that may have read before: *ret is NULL when nothing is otherwise. */
static struct sym_error *read_on(const struct sym_snapshot *snapshot, struct live_reader *reader,
				 enum sym_jit_way jit, struct live_code **ret)
{
	struct sym_error *error = reader->has_read ? read_code_again(snapshot, reader, ret)
						   : read_code(snapshot, reader, jit, ret);

	if (error)
		reset(reader);
	return error;
}

/* Of a look that found no way, and what was known before it: one that is stopped, or asked for the
 * moment by others, tells again later. Names that were told stay until then. */
static struct sym_error *try_again(struct live_reader *reader, const struct live_code *known,
				   struct live_code **code)
{
	struct live_code *refused AUTO_LIVE_CODE = NULL;
	const char *reason;

	reset(reader);
	if (!known)
		return NULL;
	refused = STEAL(*code);
	if (!known->source)
		return NULL;
	reason = refused->rundown_reason ?: refused->contract_reason;
	return sym_error_create(SYM_ERROR_IO, "%s", reason ?: "jitted code has no names any more");
}

static void exchange(struct sym_snapshot *snapshot, struct live_code *code)
{
	code->before = atomic_exchange(&snapshot->ground->live_code.code, code);
	atomic_fetch_add(&snapshot->ground->live_code.changes, 1);
}

struct sym_error *live_code_refresh(struct sym_snapshot *snapshot, struct live_reader **reader,
				    bool *changed_ret)
{
	const struct live_code *known = atomic_load(&snapshot->ground->live_code.code);
	struct live_code *code = NULL;
	struct sym_error *error;

	if (!*reader)
		*reader = live_reader_create(snapshot, true);
	if (!*reader)
		return &sym_error_no_memory;
	error = read_on(snapshot, *reader, snapshot->jit, &code);
	if (!error && code && !code->source)
		error = try_again(*reader, known, &code);
	if (error)
		return error;
	*changed_ret = code != NULL;
	if (code)
		exchange(snapshot, code);
	return NULL;
}

struct sym_error *live_code_end(struct sym_snapshot *snapshot, struct live_reader *reader,
				bool *changed_ret)
{
	struct live_code *code;
	struct sym_error *error = live_code_read_rest(snapshot, reader, &code);

	*changed_ret = !error && code;
	if (*changed_ret)
		exchange(snapshot, code);
	return error;
}

void live_code_forget(struct live_code_slot *slot)
{
	struct live_code *code = atomic_load(&slot->code);

	if (!code)
		return;
	live_code_destroy(code->before);
	code->before = NULL;
}

const struct index_name_set *live_code_names(const struct live_code *code)
{
	return code->source ? runtime_source_names(code->source) : NULL;
}

/* Names of what is gone stay, because they may be in use; until they are most of all. */
static struct sym_error *choose_names(const struct live_code *known, struct live_reader *reader)
{
	static const size_t spare_bytes = (size_t)16 << 20;
	struct index_name_set *names;
	struct sym_error *error;

	if (reader->names && (live_code_names(known) != reader->names ||
			      index_name_set_bytes(reader->names) / 2 <
				      runtime_source_name_bytes(known->source) + spare_bytes))
		return NULL;
	error = index_name_set_create(&names);
	if (error)
		return error;
	index_name_set_release(reader->names);
	reader->names = names;
	return NULL;
}

/*
 * Of a look that found no way. Whoever let us wait once would do so with each look; but one that
 * was stopped in the middle answers when it goes on.
 */
static struct sym_error *note_refusal(struct live_reader *reader, int64_t begin_ms)
{
	static const int64_t patience_ms = 1000;
	bool was_long = diagnostics_now_ms() - begin_ms >= patience_ms, is_running = false;
	struct sym_error *error = NULL;

	reset(reader);
	if (was_long)
		error = live_rundown_is_running(&reader->rundown, &is_running);
	reader->is_given_up = is_running;
	return error;
}

struct sym_error *live_code_read_again(const struct sym_snapshot *snapshot,
				       const struct live_code *known, struct live_reader **reader,
				       struct live_code **ret)
{
	struct live_code *code AUTO_LIVE_CODE = NULL;
	int64_t begin_ms = diagnostics_now_ms();
	struct sym_error *error;

	*ret = NULL;
	if (!*reader)
		*reader = live_reader_create(snapshot, true);
	if (!*reader)
		return &sym_error_no_memory;
	if ((*reader)->is_given_up)
		return NULL;
	error = choose_names(known, *reader);
	/* What is below was read before the way that served. */
	if (!error)
		error = read_on(snapshot, *reader,
				known->source && !known->below ? known->info.way : snapshot->jit,
				&code);
	if (error || !code)
		return error;
	if (!code->source)
		return note_refusal(*reader, begin_ms);
	if (!known->source || !runtime_source_is_equal(known->source, code->source))
		*ret = STEAL(code);
	return NULL;
}

/* A process that had no runtime when it was asked may have one now. */
static bool is_late(const struct sym_snapshot *snapshot, const struct live_code *code)
{
	return !code->had_runtime && has_runtime(snapshot);
}

struct sym_error *live_code_get(const struct sym_snapshot *snapshot, const struct live_code **ret)
{
	struct live_code_slot *slot = &snapshot->ground->live_code;
	struct live_code *code = atomic_load_explicit(&slot->code, memory_order_acquire);
	struct sym_error *error = NULL;

	if (!code || is_late(snapshot, code)) {
		struct live_code *before;

		pthread_mutex_lock(&slot->lock);
		before = code = atomic_load(&slot->code);
		if (!code || is_late(snapshot, code))
			error = read_once(snapshot, &code);
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

struct sym_error *sym_snapshot_jit(struct sym_snapshot *snapshot, const struct sym_jit_info **ret)
{
	const struct live_code *code;
	struct sym_error *error = live_code_get(snapshot, &code);

	if (!error)
		*ret = &code->info;
	return error;
}
