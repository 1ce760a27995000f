/* SPDX-License-Identifier: MIT */
/*
 * How a batch of addresses gets its names.
 *
 *   1. owner_of()          the process of the text, of the options, or of a thread
 *   2. get_process()       opens it at the first address: a sym_live, or the perf map that it left
 *   3. read_meanings()     decides whether numbers beside a file are offsets or addresses
 *   4. find_addresses()    looks them up in one batch; callers one byte before the return address
 *   5. name_beginnings()   looks up the address itself when no call can stand before it
 *   6. process_names_update()   refreshes the process when a name is missing, and tries once more
 *
 * The processes that were used last stay open; evict_one() closes the others.
 */
#include "mapgen/live/process_names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/hash.h"
#include "mapgen/cli/file_owner.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/run_budget.h"
#include "mapgen/cli/target.h"
#include "mapgen/live/answer_name.h"
#include "mapgen/live/call_site.h"
#include "mapgen/live/exited_map.h"
#include "mapgen/live/mapped_offsets.h"
#include "mapgen/live/tid_cache.h"

enum {
	/* Most processes that are open at a time; each holds the files it maps. */
	OPEN_PROCESSES = 64,
	/* Most messages about processes that cannot be looked at. */
	MESSAGES = 8,
	BATCH = 4096
};

/* Where the files of a process are mapped, at one generation of its sym_live. */
struct known_places {
	const struct sym_live *live; /* NULL: of no generation yet */
	uint64_t generation;
	struct mapped_offsets places;
};

/* A live process, or the perf map that it left. */
struct known_process {
	int32_t pid;
	struct sym_live *live; /* NULL: the process has ended, or may not be looked at */
	struct known_places
		places[2]; /* start time of this process, and of the one that had its id before */
	struct sym_symbols *left;  /* perf map of the process that has ended; NULL: none */
	uint64_t start_time_ticks; /* start time of the process that messages were printed about */
	bool is_followed;          /* the message about the open session was printed */
	uint64_t used;
	UT_hash_handle hh;
};

struct process_names {
	const struct options *options;
	struct sym_result *result;
	struct answer_names taken; /* of the current batch */
	struct known_process *processes;
	struct tid_cache threads;
	struct known_process *chosen;  /* of options.pid */
	bool is_written;               /* the text was written before any process was looked at */
	struct sym_live_budget budget; /* budget of time of all processes together */
	struct known_process *expected[OPEN_PROCESSES]; /* opened, but their code is not read yet */
	size_t expected_count;
	bool foreign_seen; /* the text names other living processes too */
	bool failed;
	unsigned int messages;
	uint64_t uses;
	struct process_names_counts counts;
	bool is_stale;     /* a refresh may name more of the last batch */
	char *line_reason; /* of the first frame of counts.lineless; NULL: none */
	uint64_t addresses[BATCH];
	uint64_t times_ns[BATCH];
	uint32_t places[BATCH];  /* the query of each address */
	uint8_t statuses[BATCH]; /* enum sym_status that was found for a query */
	/*
	 * For each query: what its number can be, and the address if it is an offset. One perf
	 * prints either offsets or addresses in all chains, behind all heads. Numbers that can be
	 * one thing only have shown which it is (offset_kind, by stack_query.behind_head).
	 */
	enum offset_kind meanings[BATCH];
	uint64_t as_offsets[BATCH];
	unsigned int shown[2];
};

/* ---- a process -------------------------------------------------------------- */

static void process_destroy(struct known_process *process)
{
	mapped_offsets_deinit(&process->places[0].places);
	mapped_offsets_deinit(&process->places[1].places);
	sym_live_close(process->live);
	sym_symbols_destroy(process->left);
	free(process);
}

static void process_names_say(struct process_names *names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void process_names_say(struct process_names *names, const char *format, ...)
{
	char *text AUTO_FREE = NULL;
	va_list arguments;

	if (++names->messages > MESSAGES)
		return;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	message("%s%s", text ? text : "out of memory",
		names->messages == MESSAGES ? " (further messages suppressed)" : "");
}

static void say_nameless_code(struct process_names *names, int32_t pid,
			      struct sym_snapshot *snapshot)
{
	char *why AUTO_FREE = NULL;
	bool is_none = false;

	if (names->options->jit == SYM_JIT_NONE || target_aot_program(snapshot))
		return;
	why = target_code_way(snapshot, &is_none);
	if (is_none && why)
		process_names_say(names, "process %" PRId32 ": jitted code has no names: %s", pid,
				  why);
}

/* For a process that is new, or that has become another one. Reads its jitted code now, so that
 * names remain after the process has ended. */
static void note_process(struct process_names *names, struct known_process *process)
{
	struct sym_snapshot *snapshot = sym_live_snapshot(process->live);
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	const struct sym_jit_info *jit;

	if (process->start_time_ticks == info->start_time_ticks || !info->runtime_version)
		return;
	process->start_time_ticks = info->start_time_ticks;
	process->is_followed = false;
	sym_error_destroy(sym_live_jit(process->live, &jit));
	target_say_asked(snapshot);
	say_nameless_code(names, process->pid, snapshot);
}

static void note_session(struct known_process *process)
{
	if (process->is_followed || !sym_live_has_session(process->live))
		return;
	process->is_followed = true;
	target_say_followed(sym_live_snapshot(process->live));
}

static struct sym_error *open_live(struct process_names *names, struct known_process *process)
{
	const struct sym_snapshot_opts snapshot = {
		.size = sizeof(snapshot),
		.flags = SYM_SNAPSHOT_FORK_FOR_DWARF,
		.root = names->options->root,
		.jit = (uint32_t)names->options->jit,
		.debug_dirs = names->options->debug_dirs.items,
		.budget = names->options->budget,
	};
	const struct sym_live_opts opts = {
		.size = sizeof(opts),
		.wait_ms = TARGET_WAIT_MS,
		.snapshot = &snapshot,
		.budget = &names->budget,
	};

	return sym_live_open(process->pid, &opts, &process->live);
}

/* Refreshes the process; true when something was new. */
static bool process_names_update(struct process_names *names, struct known_process *process,
				 bool missed)
{
	bool is_new;

	run_budget_step_if_due(names->options);
	sym_live_set_past(process->live, names->is_written);
	is_new = sym_live_update(process->live, missed);
	if (is_new)
		note_process(names, process);
	note_session(process);
	return is_new;
}

/* Where the files of `live` are mapped. */
static struct mapped_offsets *places_of(struct known_process *process, struct sym_live *live)
{
	struct known_places *known = &process->places[live != process->live];
	uint64_t generation = sym_live_generation(live);

	if (known->live == live && known->generation == generation)
		return &known->places;
	mapped_offsets_deinit(&known->places);
	/* Without this, offsets into files have no names. */
	if (!mapped_offsets_init(&known->places, sym_live_snapshot(live)))
		message("out of memory");
	known->live = live;
	known->generation = generation;
	return &known->places;
}

/* Opens the perf map that a process left. */
static void take_left_map(struct process_names *names, struct known_process *process,
			  const struct sym_error *why)
{
	const uint32_t owner = process->live
				       ? sym_snapshot_process(sym_live_snapshot(process->live))->uid
				       : SYM_NO_OWNER;
	char *owner_text AUTO_FREE = NULL;
	struct sym_error *error;
	uint64_t bad_lines;
	int fd AUTO_CLOSE = -1;

	error = sym_perf_map_open_of(process->pid, names->options->root, owner, &fd);
	if (!error)
		error = sym_perf_map_read(fd, &process->left, &bad_lines);
	if (error) {
		names->failed = true;
		if (sym_error_code(error) == SYM_ERROR_NOT_FOUND)
			process_names_say(names, "%s, and it has left no perf map",
					  sym_error_message(why));
		else
			process_names_say(names, "%s, and its perf map is not used: %s",
					  sym_error_message(why), sym_error_message(error));
	} else {
		owner_text = file_owner_text(fd);
		process_names_say(
			names,
			"%s: its addresses get the names of the perf map that lies there, which "
			"belongs to %s",
			sym_error_message(why), owner_text ? owner_text : "a user");
	}
	sym_error_destroy(error);
}

static void evict_one(struct process_names *names)
{
	struct known_process *oldest = NULL, *process, *next;

	HASH_ITER(hh, names->processes, process, next)
	if (process != names->chosen && (!oldest || process->used < oldest->used))
		oldest = process;
	if (!oldest)
		return;
	HASH_DEL(names->processes, oldest);
	process_destroy(oldest);
}

/* NULL: out of memory. */
static struct known_process *open_process(struct process_names *names, int32_t pid)
{
	struct known_process *process;
	struct sym_error *error;

	if (HASH_COUNT(names->processes) >= OPEN_PROCESSES)
		evict_one(names);
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->used = ++names->uses;
	HASH_ADD(hh, names->processes, pid, sizeof(pid), process);
	if (!hash_added(process)) {
		free(process);
		return NULL;
	}
	error = open_live(names, process);
	if (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND) {
		take_left_map(names, process, error);
	} else if (error) {
		names->failed = true;
		process_names_say(names, "%s", sym_error_message(error));
	}
	sym_error_destroy(error);
	return process;
}

/* NULL: out of memory. */
static struct known_process *get_process(struct process_names *names, int32_t pid)
{
	struct known_process *process;

	HASH_FIND(hh, names->processes, &pid, sizeof(pid), process);
	if (process) {
		process->used = ++names->uses;
		return process;
	}
	process = open_process(names, pid);
	if (process && process->live)
		note_process(names, process);
	return process;
}

void process_names_expect(struct process_names *names, struct stack_owner owner)
{
	struct known_process *process;
	int32_t pid = owner.id;

	if (names->chosen || owner.kind == STACK_OWNER_NONE)
		return;
	if (owner.kind == STACK_OWNER_THREAD)
		pid = tid_cache_process(&names->threads, owner.id);
	if (pid <= 0 || names->expected_count == OPEN_PROCESSES)
		return;
	HASH_FIND(hh, names->processes, &pid, sizeof(pid), process);
	if (process)
		return;
	/* Expected processes were used last and are at most as many as can be open, so none of them
	 * is closed. */
	process = open_process(names, pid);
	if (process)
		names->expected[names->expected_count++] = process;
}

/* Runtimes that must be asked are asked together. */
static void read_expected(struct process_names *names)
{
	struct sym_snapshot *snapshots[OPEN_PROCESSES];
	size_t count = 0;

	for (size_t i = 0; i < names->expected_count; i++) {
		struct sym_live *live = names->expected[i]->live;
		struct sym_snapshot *snapshot = live ? sym_live_snapshot(live) : NULL;

		if (snapshot && sym_snapshot_process(snapshot)->runtime_version)
			snapshots[count++] = snapshot;
	}
	if (count > 1)
		target_read_code(snapshots, count);
	for (size_t i = 0; i < names->expected_count; i++)
		if (names->expected[i]->live)
			note_process(names, names->expected[i]);
	names->expected_count = 0;
}

/* ---- whose frames ------------------------------------------------------------ */

static bool is_chosen(const struct known_process *chosen, int32_t pid)
{
	const struct sym_process_info *info =
		chosen->live ? sym_snapshot_process(sym_live_snapshot(chosen->live)) : NULL;

	return pid == chosen->pid || (info && (pid == info->pid || pid == info->namespace_pid));
}

/* The options name the one process to look at. */
static struct known_process *chosen_owner(struct process_names *names, struct stack_owner owner,
					  uint64_t count)
{
	struct known_process *chosen = names->chosen;
	int32_t pid = owner.id;

	if (owner.kind == STACK_OWNER_NONE)
		return chosen;
	if (owner.kind == STACK_OWNER_THREAD && !is_chosen(chosen, owner.id)) {
		pid = tid_cache_process(&names->threads, owner.id);
		/* A thread that has ended: it belongs to this process, unless the text names
		 * several processes. */
		if (!pid && !names->foreign_seen)
			return chosen;
	}
	if (is_chosen(chosen, pid))
		return chosen;
	names->foreign_seen |= pid != 0;
	names->counts.foreign += count;
	return NULL;
}

/* NULL: the process is unknown, which was counted. */
static struct known_process *owner_of(struct process_names *names, struct stack_owner owner,
				      uint64_t count)
{
	int32_t pid = owner.id;

	if (names->chosen)
		return chosen_owner(names, owner, count);
	if (owner.kind == STACK_OWNER_NONE) {
		names->counts.ownerless += count;
		return NULL;
	}
	if (owner.kind == STACK_OWNER_THREAD)
		pid = tid_cache_process(&names->threads, owner.id);
	if (pid > 0)
		return get_process(names, pid);
	names->counts.gone += count;
	names->counts.threads += count;
	return NULL;
}

/* ---- naming -------------------------------------------------------------------- */

static void read_meanings(struct process_names *names, struct mapped_offsets *places,
			  const struct stack_query *queries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct stack_query *query = &queries[i];
		enum offset_kind meaning = OFFSET_KIND_ADDRESS;

		/* Beside memory of no file stands an address, whatever stands beside files. */
		if (query->image && !names_memory(query->image, query->image_bytes)) {
			meaning = mapped_offsets_find(places, query->image, query->image_bytes,
						      query->value, &names->as_offsets[i]);
			if (meaning != OFFSET_KIND_EITHER)
				names->shown[query->behind_head] |= meaning;
		}
		names->meanings[i] = meaning;
	}
}

/* False: the number lies nowhere, or can be two things. */
static bool find_address(const struct process_names *names, const struct stack_query *query,
			 size_t i, uint64_t *ret)
{
	unsigned int meaning = names->meanings[i];

	if (meaning == OFFSET_KIND_EITHER && names->as_offsets[i] == query->value)
		meaning = OFFSET_KIND_ADDRESS;
	else if (meaning == OFFSET_KIND_EITHER)
		meaning = names->shown[query->behind_head];
	*ret = meaning == OFFSET_KIND_OFFSET ? names->as_offsets[i] : query->value;
	return meaning == OFFSET_KIND_OFFSET || meaning == OFFSET_KIND_ADDRESS;
}

static bool is_named(const struct sym_answer *found)
{
	/* The bounds of a stripped function are better than an address. */
	return found->status == SYM_RESOLVED || found->status == SYM_BOUNDS_ONLY;
}

/*
 * No call returns to the first instruction of a function. Some frames that no call made have such
 * an address: OSR code of .NET 11, which replaces a running method, signal frames, and the start of
 * a stack. Before such an address there is often nothing, or a function that does not end with a
 * call. `count`: number of places.
 */
static struct sym_error *name_beginnings(struct process_names *names, struct sym_live *live,
					 const struct stack_query *queries, size_t count,
					 struct stack_name *answers)
{
	struct sym_error *error =
		sym_live_resolve_now(live, names->addresses, names->times_ns, count, names->result);

	for (size_t i = 0; !error && i < count; i++) {
		const struct sym_answer *found = sym_result_at(names->result, i);
		uint32_t place = names->places[i];

		if (!is_named(found) || found->offset_bytes) {
			names->is_stale |= !answers[place].name && !queries[place].is_named &&
					   sym_live_may_be_new(found);
			continue;
		}
		error = answer_names_take(&names->taken, &queries[place], found, &answers[place]);
		answers[place].offset_bytes = 0;
		names->statuses[place] = (uint8_t)found->status;
	}
	return error;
}

/*
 * Whether a signal interrupted the frame. Then the frame before it is the one that the handler
 * returns to; `callee` is its address as printed. Unwinders print the addresses of callers
 * unchanged, or all of them minus one; frame pointers lead from the handler past the interrupted
 * function.
 */
static bool was_interrupted(int32_t pid, const struct stack_query *query, uint64_t callee)
{
	return callee && query->follows &&
	       (signal_return_at(pid, callee + 1) ||
		(query->is_unwound && signal_return_at(pid, callee)));
}

/* Whether `address` is the last byte of the function found, and the queried address lies behind it.
 */
static bool is_beginning(const struct process_names *names, const struct sym_live *live,
			 const struct sym_answer *found, uint64_t address,
			 const struct stack_query *query, uint64_t callee)
{
	int32_t pid = sym_snapshot_process(sym_live_snapshot(live))->pid;

	return found->offset_bytes + 1 == found->size_bytes && !names->options->root &&
	       (!call_may_end_at(pid, address + 1) || was_interrupted(pid, query, callee));
}

/* No call is the first byte of a function. The function that signal handlers return to begins one
 * byte early in .eh_frame, for unwinders that look up the byte before the return address. */
static bool is_first_byte(const struct sym_answer *found)
{
	return found->status == SYM_BOUNDS_ONLY && !found->offset_bytes;
}

/* When the function of a call could not be read, the next function is not the answer. */
static bool is_known(const struct sym_answer *found)
{
	return found->status != SYM_UNMAPPED && found->status != SYM_UNREADABLE;
}

/* Number of queries that are still without a name. */
static size_t find_addresses(struct process_names *names, struct mapped_offsets *places,
			     const struct stack_query *queries, size_t count,
			     struct stack_name *answers)
{
	size_t asked = 0;

	read_meanings(names, places, queries, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t address;

		answers[i] = (struct stack_name){ 0 };
		names->statuses[i] = SYM_UNMAPPED;
		if (!find_address(names, &queries[i], i, &address)) {
			names->is_stale |= !queries[i].is_named;
			continue;
		}
		names->addresses[asked] = address - (queries[i].is_return && address ? 1 : 0);
		names->times_ns[asked] = queries[i].time_ns;
		names->places[asked++] = (uint32_t)i;
	}
	return asked;
}

static void count_statuses(struct process_names *names, const struct stack_query *queries,
			   size_t count)
{
	struct process_names_counts *counts = &names->counts;

	for (size_t i = 0; i < count; i++) {
		enum sym_status status = (enum sym_status)names->statuses[i];

		if (queries[i].is_named)
			continue;
		if (status == SYM_RESOLVED)
			counts->named++;
		else if (status == SYM_BOUNDS_ONLY)
			counts->bounded++;
		else if (status == SYM_UNMAPPED)
			counts->unmapped++;
		else
			counts->nameless++;
		counts->unreadable += status == SYM_UNREADABLE;
	}
}

/* Frames with a line, and managed ones without. */
static void count_lines(struct process_names *names, const struct stack_name *answers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *reason = answers[i].line_reason;

		names->counts.lined += answers[i].place.file && answers[i].place.line;
		names->counts.lineless += reason != NULL;
		if (reason && !names->line_reason)
			names->line_reason = strdup(reason);
	}
}

static bool name_living(struct process_names *names, struct known_process *process,
			struct sym_live *live, const struct stack_query *queries, size_t count,
			struct stack_name *answers)
{
	size_t asked = find_addresses(names, places_of(process, live), queries, count, answers);
	struct sym_error *error =
		sym_live_resolve_now(live, names->addresses, names->times_ns, asked, names->result);
	size_t again = 0;
	uint64_t callee = 0;

	for (size_t i = 0; !error && i < asked; i++) {
		const struct sym_answer *found = sym_result_at(names->result, i);
		const struct stack_query *query = &queries[names->places[i]];
		uint32_t place = names->places[i];
		uint64_t address = names->addresses[i];
		bool is_here = is_named(found);

		names->statuses[place] = (uint8_t)found->status;
		if (is_here) {
			error = answer_names_take(&names->taken, query, found, &answers[place]);
			names->counts.early += found->source == SYM_SOURCE_JITDUMP &&
					       sym_live_is_before(live, names->times_ns[i]);
		}
		if (query->is_return && is_known(found) &&
		    (!is_here || is_first_byte(found) ||
		     is_beginning(names, live, found, address, query, callee))) {
			names->addresses[again] = address + 1;
			names->times_ns[again] = names->times_ns[i];
			names->places[again++] = place;
		} else if (!is_here) {
			names->is_stale |= !query->is_named && sym_live_may_be_new(found);
		}
		callee = address + (query->is_return ? 1 : 0);
	}
	if (!error && again)
		error = name_beginnings(names, live, queries, again, answers);
	if (error)
		message_error(error);
	else
		count_statuses(names, queries, count);
	return !error;
}

/* Number of queries of `owner`, the process that had the id at the time of the first query. */
static size_t count_of_one(struct sym_live *live, const struct sym_live *owner,
			   const struct stack_query *queries, size_t count)
{
	size_t i = 1;

	while (i < count && i < BATCH && sym_live_at(live, queries[i].time_ns) == owner)
		i++;
	return i;
}

/* False, with a message, on failure. */
static bool name_all(struct process_names *names, struct known_process *process,
		     const struct stack_query *queries, size_t count, struct stack_name *answers)
{
	names->is_stale = false;
	if (!process->live) {
		exited_map_find(process->left, queries, count, answers, &names->counts);
		return true;
	}
	for (size_t done = 0, step; done < count; done += step) {
		/* An address without a time, or with a time that counts from the start of a
		 * recording, belongs to the last process of that id. */
		struct sym_live *owner = sym_live_at(process->live, queries[done].time_ns);
		bool is_stale = names->is_stale;

		step = count_of_one(process->live, owner, queries + done, count - done);
		if (!name_living(names, process, owner, queries + done, step, answers + done))
			return false;
		/* A process that has ended has nothing new. */
		if (owner != process->live)
			names->is_stale = is_stale;
	}
	return true;
}

int process_names_rest_ms(const struct process_names *names)
{
	int rest_ms = -1;

	for (const struct known_process *process = names->processes; process;
	     process = process->hh.next) {
		int next_ms = process->live ? sym_live_next_ms(process->live) : -1;

		if (next_ms >= 0 && (rest_ms < 0 || next_ms < rest_ms))
			rest_ms = next_ms;
	}
	return rest_ms;
}

void process_names_idle(struct process_names *names)
{
	for (struct known_process *process = names->processes; process;
	     process = process->hh.next) {
		if (!process->live)
			continue;
		sym_live_idle(process->live);
		note_session(process);
	}
}

bool process_names_resolve(void *context, struct stack_owner owner,
			   const struct stack_query *queries, size_t count,
			   struct stack_name *answers)
{
	struct process_names *names = context;
	struct process_names_counts before;
	struct known_process *process;
	uint64_t nameless = 0;

	for (size_t i = 0; i < count; i++)
		nameless += !queries[i].is_named;
	names->counts.asked += nameless;
	answer_names_free(&names->taken);
	read_expected(names);
	process = owner_of(names, owner, nameless);
	if (!process)
		return true;
	if (!process->live && !process->left) {
		names->counts.gone += nameless;
		return true;
	}
	if (process->live)
		process_names_update(names, process, false);
	before = names->counts;
	if (!name_all(names, process, queries, count, answers))
		return false;
	if (process->live && names->is_stale && process_names_update(names, process, true)) {
		names->counts = before;
		if (!name_all(names, process, queries, count, answers))
			return false;
	}
	count_lines(names, answers, count);
	return true;
}

/* ---- all of them ----------------------------------------------------------------- */

struct process_names *process_names_create(const struct options *options)
{
	struct process_names *names = calloc(1, sizeof(*names));
	struct sym_error *error;

	if (!names)
		return NULL;
	names->options = options;
	names->threads.root = options->root;
	error = sym_result_create(&names->result);
	if (!error && options->lines)
		error = sym_result_set_fields(names->result, SYM_FIELD_LINES | SYM_FIELD_INLINED);
	if (!error && options->pid) {
		names->chosen = get_process(names, options->pid);
		if (names->chosen)
			return names;
	} else if (!error) {
		return names;
	}
	sym_error_destroy(error);
	process_names_destroy(names);
	return NULL;
}

void process_names_set_written(struct process_names *names, bool is_written)
{
	names->is_written = is_written;
	for (struct known_process *process = names->processes; process; process = process->hh.next)
		if (process->live)
			sym_live_set_past(process->live, is_written);
}

void process_names_destroy(struct process_names *names)
{
	if (!names)
		return;
	HASH_DESTROY(names->processes, process_destroy);
	tid_cache_deinit(&names->threads);
	sym_result_destroy(names->result);
	answer_names_free(&names->taken);
	free(names->line_reason);
	free(names);
}

const char *process_names_line_reason(const struct process_names *names)
{
	return names->line_reason;
}

struct process_names_counts process_names_counts(const struct process_names *names)
{
	return names->counts;
}

bool process_names_failed(const struct process_names *names)
{
	return names->failed;
}
