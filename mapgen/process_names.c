/* SPDX-License-Identifier: MIT */
#include "mapgen/process_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/hash.h"
#include "mapgen/call_site.h"
#include "mapgen/code_mark.h"
#include "mapgen/known_threads.h"
#include "mapgen/left_names.h"
#include "mapgen/message.h"
#include "mapgen/module_places.h"
#include "mapgen/renewal.h"
#include "mapgen/seconds.h"
#include "mapgen/target.h"

enum {
	/* Processes looked at at once; each holds the files it has mapped. */
	OPEN_PROCESSES = 64,
	/* Lines said about processes that cannot be looked at. */
	MESSAGES = 8,
	BATCH = 4096
};

/* A snapshot is worth its price: what it cost times this passes before the next. */
static const double patience = 5;
static const double shortest_wait_s = 0.1, longest_wait_s = 30;
/* While nothing is asked: what a renewal costs times this passes before the next one, at least so
 * long: of what is told in a session, and of what is read in memory. */
static const double rest_share = 20, session_rest_s = 0.2, memory_rest_s = 0.5;

/* A process, or what it has left. */
struct known_process {
	int32_t pid;
	struct sym_snapshot *snapshot; /* NULL: it is gone, or may not be looked at */
	struct sym_resolver *resolver;
	struct module_places places;
	struct sym_symbols *left;     /* its perf map; NULL: none */
	struct code_mark mark;        /* of when the snapshot was taken */
	struct renewal renewal;       /* since */
	struct known_process *former; /* that had its id before, for what is of its time */
	double wait_s;                /* until the next snapshot, grows while none helps */
	double next_s;
	double idle_s; /* when process_names_idle() takes up what is new */
	uint64_t used;
	UT_hash_handle hh;
};

struct process_names {
	const struct options *options;
	struct sym_result *result;
	struct known_process *processes;
	struct known_threads threads;
	struct known_process *chosen; /* of options.pid */
	bool is_written;              /* the text, before anybody was asked */
	struct renewal_purse purse;
	bool foreign_seen; /* the text speaks of other living processes too */
	bool failed;
	unsigned int messages;
	uint64_t uses;
	struct process_names_counts counts;
	uint64_t addresses[BATCH];
	uint64_t times_ns[BATCH];
	uint32_t places[BATCH];  /* which query an address is of */
	uint8_t statuses[BATCH]; /* enum sym_status of what has been found for a query */
	/*
	 * Of the queries: what the number may be, and the address that it is as an offset. A perf
	 * prints either offsets or addresses in all chains, and so behind all heads: those numbers
	 * that can be one thing only have shown which (module_meaning, by stack_query.behind_head).
	 */
	enum module_meaning meanings[BATCH];
	uint64_t as_offsets[BATCH];
	unsigned int shown[2];
};

/* ---- a process -------------------------------------------------------------- */

static void forget_snapshot(struct known_process *process)
{
	module_places_deinit(&process->places);
	sym_resolver_destroy(process->resolver);
	sym_snapshot_close(process->snapshot);
	process->resolver = NULL;
	process->snapshot = NULL;
}

static void process_destroy(struct known_process *process)
{
	if (process->former)
		process_destroy(process->former);
	forget_snapshot(process);
	sym_symbols_destroy(process->left);
	free(process);
}

/* Its id is another's by now. False: out of memory. */
static bool become_former(struct known_process *process)
{
	struct known_process *former = calloc(1, sizeof(*former));

	if (!former)
		return false;
	former->pid = process->pid;
	former->snapshot = STEAL(process->snapshot);
	former->resolver = STEAL(process->resolver);
	former->places = process->places;
	memset(&process->places, 0, sizeof(process->places));
	process->renewal = (struct renewal){ 0 };
	if (process->former)
		process_destroy(process->former);
	process->former = former;
	return true;
}

static void say(struct process_names *names, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct process_names *names, const char *format, ...)
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
		names->messages == MESSAGES ? " (of further processes nothing is said)" : "");
}

static void say_nameless_code(struct process_names *names, struct known_process *process)
{
	char *why AUTO_FREE = NULL;
	bool is_none = false;

	if (names->options->jit == SYM_JIT_NONE || target_aot_program(process->snapshot))
		return;
	why = target_code_way(process->snapshot, &is_none);
	if (is_none && why)
		say(names, "process %" PRId32 ": jitted code has no names: %s", process->pid, why);
}

/* Takes a snapshot in place of the one that is there, which stays where that fails. */
static struct sym_error *look(struct process_names *names, struct known_process *process)
{
	struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.root = names->options->root,
		.jit = (uint32_t)names->options->jit,
		.debug_dirs = names->options->debug_dirs.items,
	};
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_resolver *resolver GUARDED(resolver) = NULL;
	struct module_places places;
	struct sym_error *error;
	double begin_s = seconds_now();
	bool first = !process->snapshot;

	if (!names->options->root)
		code_mark_set(&process->mark, process->pid);
	error = sym_snapshot_open(process->pid, &opts, &snapshot);
	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	if (!error && !first && !target_is_same(process->snapshot, snapshot)) {
		if (!become_former(process))
			return NULL;
		first = true;
	}
	if (error)
		return error;
	/* Without it offsets into files stay without names. */
	if (!module_places_init(&places, snapshot))
		message("out of memory");
	/* Read now, its jitted code can be named after its end; that it has none is no failure. A
	 * runtime that does not tell any more, as it ends, has told before. */
	if (target_tells_code(snapshot) < target_tells_code(process->snapshot)) {
		module_places_deinit(&places);
		return NULL;
	}
	forget_snapshot(process);
	process->snapshot = STEAL(snapshot);
	process->resolver = STEAL(resolver);
	process->places = places;
	if (first && sym_snapshot_process(process->snapshot)->runtime_version) {
		target_say_asked(process->snapshot);
		say_nameless_code(names, process);
	}
	process->wait_s = (seconds_now() - begin_s) * patience;
	if (process->wait_s < shortest_wait_s)
		process->wait_s = shortest_wait_s;
	process->next_s = seconds_now() + process->wait_s;
	code_mark_wait(&process->mark, process->wait_s);
	renewal_begin(&process->renewal, seconds_now() - begin_s);
	process->idle_s = process->renewal.next_s;
	return NULL;
}

/* What a process that is gone has left. */
static void take_left_map(struct process_names *names, struct known_process *process,
			  const struct sym_error *why)
{
	struct sym_error *error;
	uint64_t bad_lines;
	int fd AUTO_CLOSE = -1;

	error = sym_perf_map_open(process->pid, names->options->root, &fd);
	if (!error)
		error = sym_perf_map_read(fd, &process->left, &bad_lines);
	if (error) {
		names->failed = true;
		say(names, "%s, and it has left no perf map", sym_error_message(why));
	} else {
		say(names, "%s: its addresses get the names of the perf map that lies there",
		    sym_error_message(why));
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
static struct known_process *get_process(struct process_names *names, int32_t pid)
{
	struct known_process *process;
	struct sym_error *error;

	HASH_FIND(hh, names->processes, &pid, sizeof(pid), process);
	if (process) {
		process->used = ++names->uses;
		return process;
	}
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
	error = look(names, process);
	if (error && sym_error_code(error) == SYM_ERROR_NOT_FOUND) {
		take_left_map(names, process, error);
	} else if (error) {
		names->failed = true;
		say(names, "%s", sym_error_message(error));
	}
	sym_error_destroy(error);
	return process;
}

/* ---- whose frames ------------------------------------------------------------ */

static bool is_chosen(const struct known_process *chosen, int32_t pid)
{
	const struct sym_process_info *info =
		chosen->snapshot ? sym_snapshot_process(chosen->snapshot) : NULL;

	return pid == chosen->pid || (info && (pid == info->pid || pid == info->namespace_pid));
}

/* As told to look at one process only. */
static struct known_process *chosen_owner(struct process_names *names, struct stack_owner owner,
					  uint64_t count)
{
	struct known_process *chosen = names->chosen;
	int32_t pid = owner.id;

	if (owner.kind == STACK_OWNER_NONE)
		return chosen;
	if (owner.kind == STACK_OWNER_THREAD && !is_chosen(chosen, owner.id)) {
		pid = known_threads_process(&names->threads, owner.id);
		/* A thread that has ended: of this process, unless the text is about many. */
		if (!pid && !names->foreign_seen)
			return chosen;
	}
	if (is_chosen(chosen, pid))
		return chosen;
	names->foreign_seen |= pid != 0;
	names->counts.foreign += count;
	return NULL;
}

/* NULL: nobody's, which has been counted. */
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
		pid = known_threads_process(&names->threads, owner.id);
	if (pid > 0)
		return get_process(names, pid);
	names->counts.gone += count;
	names->counts.threads += count;
	return NULL;
}

/* ---- naming -------------------------------------------------------------------- */

static void take_answer(struct stack_name *answer, const struct stack_query *query,
			const struct sym_answer *found)
{
	answer->name = found->name;
	answer->tier = found->tier;
	answer->path = found->image_path;
	answer->offset_bytes = found->offset_bytes + (query->is_return ? 1 : 0);
}

/* Code that may be new: not mapped when the snapshot was taken, or jitted since. */
static bool may_be_new(const struct sym_answer *answer)
{
	if (answer->status == SYM_UNMAPPED)
		return true;
	return !answer->image && answer->image_path[0] != '[' &&
	       (answer->status == SYM_NO_MATCH || answer->status == SYM_NO_SYMBOLS);
}

struct tally {
	uint64_t named, bounded, unmapped, nameless, gone, early;
	bool stale;     /* another snapshot may name more */
	bool misplaced; /* only one that is opened anew, because where files lie is known of those
			 */
};

static void read_meanings(struct process_names *names, struct known_process *process,
			  const struct stack_query *queries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct stack_query *query = &queries[i];
		enum module_meaning meaning = MODULE_ADDRESS;

		/* Beside memory there are addresses, whatever there is beside files. */
		if (query->module && !module_is_memory(query->module, query->module_bytes)) {
			meaning = module_places_find(&process->places, query->module,
						     query->module_bytes, query->value,
						     &names->as_offsets[i]);
			if (meaning != MODULE_EITHER)
				names->shown[query->behind_head] |= meaning;
		}
		names->meanings[i] = meaning;
	}
}

/* False: it is nowhere, or may mean two things. */
static bool find_address(const struct process_names *names, const struct stack_query *query,
			 size_t i, uint64_t *ret)
{
	unsigned int meaning = names->meanings[i];

	if (meaning == MODULE_EITHER && names->as_offsets[i] == query->value)
		meaning = MODULE_ADDRESS;
	else if (meaning == MODULE_EITHER)
		meaning = names->shown[query->behind_head];
	*ret = meaning == MODULE_OFFSET ? names->as_offsets[i] : query->value;
	return meaning == MODULE_OFFSET || meaning == MODULE_ADDRESS;
}

static bool is_named(const struct sym_answer *found)
{
	/* Of a stripped function its bounds are better than an address. */
	return found->status == SYM_RESOLVED || found->status == SYM_UNNAMED;
}

/*
 * Nothing returns to the first instruction of a function, but some frames say so that no call
 * made: of code that .NET 11 puts in place of a running method (OSR), of signals, and where a stack
 * begins. In front of it there is often nothing, or another function whose last instruction is no
 * call. `count` places.
 */
static struct sym_error *name_beginnings(struct process_names *names, struct known_process *process,
					 const struct stack_query *queries, size_t count,
					 struct stack_name *answers, struct tally *tally)
{
	struct sym_error *error = sym_resolver_resolve_at(process->resolver, names->addresses,
							  names->times_ns, count, names->result);

	for (size_t i = 0; !error && i < count; i++) {
		const struct sym_answer *found = sym_result_at(names->result, i);
		uint32_t place = names->places[i];

		if (!is_named(found) || found->offset_bytes) {
			tally->stale |= !answers[place].name && may_be_new(found);
			continue;
		}
		take_answer(&answers[place], &queries[place], found);
		answers[place].offset_bytes = 0;
		names->statuses[place] = (uint8_t)found->status;
	}
	return error;
}

/*
 * Did a signal interrupt what is asked for? Then the frame before it is that to which the handler
 * returns, `callee` as it was told. Unwinders tell callers as they are, or all of them less one;
 * frame pointers lead from the handler past what was interrupted.
 */
static bool was_interrupted(int32_t pid, const struct stack_query *query, uint64_t callee)
{
	return callee && query->follows &&
	       (signal_return_at(pid, callee + 1) ||
		(query->is_unwound && signal_return_at(pid, callee)));
}

/* Is `address` the last byte of the function that was found, and what is asked for behind it? */
static bool is_beginning(const struct process_names *names, const struct known_process *process,
			 const struct sym_answer *found, uint64_t address,
			 const struct stack_query *query, uint64_t callee)
{
	int32_t pid = sym_snapshot_process(process->snapshot)->pid;

	return found->offset_bytes + 1 == found->size_bytes && !names->options->root &&
	       (!call_may_end_at(pid, address + 1) || was_interrupted(pid, query, callee));
}

/* No call is the first byte of a function. That of the one to which signal handlers return begins
 * one byte early in .eh_frame, for those who look for calls. */
static bool is_first_byte(const struct sym_answer *found)
{
	return found->status == SYM_UNNAMED && !found->offset_bytes;
}

/* Had the process not begun? Its start is told in ticks of a clock that goes on while the machine
 * sleeps. */
static bool is_before(const struct known_process *process, uint64_t time_ns)
{
	const uint64_t tick_ns = 10000000, second_ns = 1000000000;
	uint64_t start_ns = sym_snapshot_process(process->snapshot)->start_time_ticks * tick_ns;
	struct timespec awake, all;

	if (!time_ns || time_ns >= start_ns)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &awake);
	clock_gettime(CLOCK_BOOTTIME, &all);
	return time_ns + (uint64_t)(all.tv_sec - awake.tv_sec + 1) * second_ns < start_ns;
}

/* How many there are to be asked for. */
static size_t find_addresses(struct process_names *names, struct known_process *process,
			     const struct stack_query *queries, size_t count,
			     struct stack_name *answers, struct tally *tally)
{
	size_t asked = 0;

	read_meanings(names, process, queries, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t address;

		answers[i] = (struct stack_name){ 0 };
		names->statuses[i] = SYM_UNMAPPED;
		if (!find_address(names, &queries[i], i, &address)) {
			tally->stale = tally->misplaced = true;
			continue;
		}
		names->addresses[asked] = address - (queries[i].is_return && address ? 1 : 0);
		names->times_ns[asked] = queries[i].time_ns;
		names->places[asked++] = (uint32_t)i;
	}
	return asked;
}

static void count_statuses(const struct process_names *names, size_t count, struct tally *tally)
{
	for (size_t i = 0; i < count; i++)
		switch ((enum sym_status)names->statuses[i]) {
		case SYM_RESOLVED:
			tally->named++;
			break;
		case SYM_UNNAMED:
			tally->bounded++;
			break;
		case SYM_UNMAPPED:
			tally->unmapped++;
			break;
		default:
			tally->nameless++;
		}
}

static bool name_living(struct process_names *names, struct known_process *process,
			const struct stack_query *queries, size_t count, struct stack_name *answers,
			struct tally *tally)
{
	size_t asked = find_addresses(names, process, queries, count, answers, tally), again = 0;
	struct sym_error *error = sym_resolver_resolve_at(process->resolver, names->addresses,
							  names->times_ns, asked, names->result);
	uint64_t callee = 0;

	for (size_t i = 0; !error && i < asked; i++) {
		const struct sym_answer *found = sym_result_at(names->result, i);
		const struct stack_query *query = &queries[names->places[i]];
		uint32_t place = names->places[i];
		uint64_t address = names->addresses[i];
		bool is_here = is_named(found);

		names->statuses[place] = (uint8_t)found->status;
		if (is_here) {
			take_answer(&answers[place], query, found);
			tally->early += found->source == SYM_SOURCE_JITDUMP &&
					is_before(process, names->times_ns[i]);
		}
		if (query->is_return && found->status != SYM_UNMAPPED &&
		    (!is_here || is_first_byte(found) ||
		     is_beginning(names, process, found, address, query, callee))) {
			names->addresses[again] = address + 1;
			names->times_ns[again] = names->times_ns[i];
			names->places[again++] = place;
		} else if (!is_here) {
			tally->stale |= may_be_new(found);
		}
		callee = address + (query->is_return ? 1 : 0);
	}
	if (!error && again)
		error = name_beginnings(names, process, queries, again, answers, tally);
	if (error)
		target_say(error);
	else
		count_statuses(names, count, tally);
	return !error;
}

/* True when something new was taken up, which may have what lacks names. */
static bool renew(struct process_names *names, struct known_process *process,
		  const struct tally *tally)
{
	return tally->stale && !tally->misplaced && !names->options->root && !names->is_written &&
	       process->resolver &&
	       renewal_take(&process->renewal, &names->purse, process->resolver, process->snapshot,
			    true);
}

/* True when there is a new snapshot of a process that went on meanwhile. */
static bool look_again(struct process_names *names, struct known_process *process,
		       const struct tally *tally)
{
	double wait_s = process->wait_s;
	struct sym_error *error;

	if (!tally->stale || names->options->root || seconds_now() < process->next_s ||
	    (!tally->misplaced && renewal_serves(&process->renewal)))
		return false;
	error = look(names, process);
	if (error)
		process->next_s = seconds_now() + longest_wait_s;
	/* Until it is seen to have helped. */
	process->wait_s = 2 * wait_s > longest_wait_s ? longest_wait_s : 2 * wait_s;
	sym_error_destroy(error);
	return !error;
}

static void count_left(struct left_counts found, struct tally *tally)
{
	tally->named += found.named;
	tally->unmapped += found.unmapped;
	tally->gone += found.gone;
}

/* The process that had the id at that time; what is of no time, or of one counted from the
 * beginning of a recording, is of the last. */
static struct known_process *at_time(struct known_process *process, uint64_t time_ns)
{
	struct known_process *former = process->former;

	return former && is_before(process, time_ns) && !is_before(former, time_ns) ? former
										    : process;
}

/* How many of the queries are of the owner of the first, at most BATCH. */
static size_t count_of_one(struct known_process *process, const struct known_process *owner,
			   const struct stack_query *queries, size_t count)
{
	size_t i = 1;

	if (count > BATCH)
		count = BATCH;
	while (i < count && (!process->former || at_time(process, queries[i].time_ns) == owner))
		i++;
	return i;
}

/* False: failed, said. */
static bool name_all(struct process_names *names, struct known_process *process,
		     const struct stack_query *queries, size_t count, struct stack_name *answers,
		     struct tally *tally)
{
	*tally = (struct tally){ 0 };
	for (size_t done = 0, step; done < count; done += step) {
		struct known_process *owner = at_time(process, queries[done].time_ns);
		bool stale = tally->stale;

		step = count_of_one(process, owner, queries + done, count - done);
		if (!owner->snapshot)
			count_left(
				left_names_find(owner->left, queries + done, step, answers + done),
				tally);
		else if (!name_living(names, owner, queries + done, step, answers + done, tally))
			return false;
		/* Of what is gone there is nothing new. */
		if (owner != process)
			tally->stale = stale;
	}
	return true;
}

/* Where other code lies by now, what was there before has a name, which is wrong. */
static void take_up_changes(struct process_names *names, struct known_process *process)
{
	if (!process->snapshot || names->options->root)
		return;
	if (code_mark_changed(&process->mark, process->pid))
		sym_error_destroy(look(names, process));
	else if (!names->is_written)
		renewal_take(&process->renewal, &names->purse, process->resolver, process->snapshot,
			     false);
}

/* Of a runtime: what others write stays there to be read. */
static bool is_followed(const struct process_names *names, const struct known_process *process)
{
	return process->snapshot && !names->options->root && !names->is_written &&
	       sym_snapshot_process(process->snapshot)->runtime_version;
}

int process_names_rest_ms(const struct process_names *names)
{
	double next_s = 0, now_s = seconds_now();

	for (const struct known_process *process = names->processes; process;
	     process = process->hh.next)
		if (is_followed(names, process) && (!next_s || process->idle_s < next_s))
			next_s = process->idle_s;
	if (!next_s)
		return -1;
	return next_s > now_s ? (int)((next_s - now_s) * 1000) + 1 : 0;
}

/* What is told is kept until it is taken, but where code is mapped is known as of the last time,
 * and of a session that costs little. */
static void rest(struct known_process *process, double cost_s)
{
	double rest_s = process->renewal.comes_late ? session_rest_s : memory_rest_s;

	if (rest_s < cost_s * rest_share)
		rest_s = cost_s * rest_share;
	process->idle_s = seconds_now() + rest_s;
}

void process_names_idle(struct process_names *names)
{
	for (struct known_process *process = names->processes; process;
	     process = process->hh.next) {
		double begin_s = seconds_now();
		bool had_begun = process->renewal.has_begun;

		if (!is_followed(names, process) || process->idle_s > begin_s)
			continue;
		renewal_take(&process->renewal, &names->purse, process->resolver, process->snapshot,
			     false);
		/* The first reads all. */
		rest(process, had_begun ? seconds_now() - begin_s : 0);
	}
}

bool process_names_resolve(void *context, struct stack_owner owner,
			   const struct stack_query *queries, size_t count,
			   struct stack_name *answers)
{
	struct process_names *names = context;
	struct known_process *process;
	struct tally tally;

	names->counts.asked += count;
	process = owner_of(names, owner, count);
	if (!process)
		return true;
	if (!process->snapshot && !process->left) {
		names->counts.gone += count;
		return true;
	}
	take_up_changes(names, process);
	if (!name_all(names, process, queries, count, answers, &tally))
		return false;
	if (count <= BATCH && renew(names, process, &tally) &&
	    !name_all(names, process, queries, count, answers, &tally))
		return false;
	if (count <= BATCH) {
		uint64_t before = tally.named;
		double wait_s = process->wait_s;

		if (look_again(names, process, &tally)) {
			if (!name_all(names, process, queries, count, answers, &tally))
				return false;
			if (tally.named > before)
				process->wait_s = wait_s;
			process->next_s = seconds_now() + process->wait_s;
		}
	}
	names->counts.named += tally.named;
	names->counts.bounded += tally.bounded;
	names->counts.unmapped += tally.unmapped;
	names->counts.nameless += tally.nameless;
	names->counts.gone += tally.gone;
	names->counts.early += tally.early;
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
}

void process_names_destroy(struct process_names *names)
{
	struct known_process *process, *next_process;

	if (!names)
		return;
	HASH_ITER(hh, names->processes, process, next_process)
	{
		HASH_DEL(names->processes, process);
		process_destroy(process);
	}
	known_threads_deinit(&names->threads);
	sym_result_destroy(names->result);
	free(names);
}

struct process_names_counts process_names_counts(const struct process_names *names)
{
	return names->counts;
}

bool process_names_failed(const struct process_names *names)
{
	return names->failed;
}
