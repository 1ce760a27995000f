/* SPDX-License-Identifier: MIT */
/*
 * symsrv: symbols over SSQP and debuginfod from one checked store. This file creates the parts,
 * handles signals, and ends the parts in order.
 *
 *   http/ -> lookup/ -> store/      objects that were fetched
 *                    -> file_index    files of --index
 *                    -> upstream/     other servers; single_flight.c fetches each object once
 *
 * A change of the configuration (SIGHUP) replaces the set of upstreams and the list of directories;
 * requests in progress keep the old ones.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/terminal.h"
#include "symsrv/http/server.h"
#include "symsrv/lookup/scrub.h"
#include "symsrv/lookup/store_export.h"
#include "symsrv/resolve/map_processes.h"
#include "symsrv/resolve/resolve_batch.h"
#include "symsrv/resolve/symbol_child.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/listen.h"
#include "symsrv/util/log.h"
#include "symsrv/util/settings.h"
#include "symsrv/util/systemd.h"
#include "symsrv/util/user.h"
#include "symsrv/util/version.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2
};

#define MOST_SOCKETS 16
#define NO_TOKEN     "cannot be read, or its first line has fewer than 16 characters"
static const char own_program[] = "/proc/self/exe";
static const int tick_ms = 100;
static const int64_t often_ms = 5000;
/* Open connections get their last answer in this time when the server stops. */
static const int64_t farewell_ms = 250;
/* Requests that have arrived when the server stops are begun in this time. */
static const int64_t begun_ms = 2000;
static const size_t most_open_objects = 1024;
static const unsigned int worker_count = 4;
static const unsigned int checker_count = 2;
/* Each waits for one process that reads debug information. */
static const unsigned int resolver_count = 4;
/* Time between scans for moved files: this, and a multiple of the duration of the last scan. */
static const int64_t moved_pause_ms = 5000;
static const int64_t moved_pause_scans = 9;

struct program {
	int argc;
	const char *const *argv;
	struct options options;
	struct holdings holdings;
	struct resolve_parts resolve_parts;
	struct map_processes map_processes;
	struct workers *fetch_workers;
	struct upstream_client *client;
	struct prefetch *prefetch;
	struct uploads *uploads;
	struct metrics *metrics;
	struct access_log *access_log;
	struct server *server;
	char own_name[32];
	int sockets[MOST_SOCKETS];
	size_t socket_count;
	size_t shared_socket_count; /* sockets of systemd */
	size_t open_objects;        /* limit */
	unsigned int connections;   /* limit */
	int64_t looked_ms;          /* when periodic work was done last */
	bool is_writable;           /* the store, at the last check */
	bool is_misused;            /* an option has an invalid value */
	pthread_t scanner;
	bool has_scanner;
	bool stop_scanning;
	pthread_mutex_t scan_lock; /* of the lists below */
	pthread_cond_t scan_wake;
	struct options scan_options; /* a copy of the directories for the scanner */
	bool must_scan;
	unsigned int scan_number;  /* see file_index_await() */
	int64_t scan_may_begin_ms; /* when a scan for moved files is allowed */
};

/* ---- scanning: counting the store, indexing the directories ------------------- */

/* The scanner reads the list while another thread replaces it. */
static bool copy_list(const struct text_list *from, struct text_list *to)
{
	for (size_t i = 0; i < from->count; i++)
		if (!text_list_add(to, from->texts[i]))
			return false;
	return true;
}

static void request_scan(struct program *program, bool has_more)
{
	struct options copy = { 0 };

	if (!copy_list(&program->options.index, &copy.index))
		log_message(LOG_LEVEL_ERROR, "out of memory");
	pthread_mutex_lock(&program->scan_lock);
	settings_deinit(&program->scan_options);
	program->scan_options = copy;
	if (has_more)
		program->scan_number = file_index_await(program->holdings.index);
	program->must_scan = true;
	pthread_cond_signal(&program->scan_wake);
	pthread_mutex_unlock(&program->scan_lock);
}

/* A scan finds files that were moved, but scans must not run all the time. */
static void scan_for_moved(struct program *program, int64_t now)
{
	int64_t may_begin_ms;

	pthread_mutex_lock(&program->scan_lock);
	may_begin_ms = program->scan_may_begin_ms;
	pthread_mutex_unlock(&program->scan_lock);
	if (now >= may_begin_ms && file_index_was_moved(program->holdings.index))
		request_scan(program, false);
}

static void let_scan_begin(struct program *program, int64_t when_ms)
{
	pthread_mutex_lock(&program->scan_lock);
	program->scan_may_begin_ms = when_ms;
	pthread_mutex_unlock(&program->scan_lock);
}

/* Waits until a scan is requested or due; false at the end. */
static bool wait_for_scan(struct program *program, struct text_list *directories,
			  unsigned int *number_ret)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(program->options.rescan_ms / 1000) + 1;
	pthread_mutex_lock(&program->scan_lock);
	while (!program->must_scan && !program->stop_scanning)
		if (pthread_cond_timedwait(&program->scan_wake, &program->scan_lock, &until))
			break;
	program->must_scan = false;
	*number_ret = program->scan_number;
	go_on = !program->stop_scanning && copy_list(&program->scan_options.index, directories);
	pthread_mutex_unlock(&program->scan_lock);
	return go_on;
}

/* One line for each scan that finds something new, and for the first. */
static void log_indexed(struct program *program, const struct text_list *directories,
			int64_t took_ms)
{
	struct index_counts counts;

	if (!directories->count)
		return;
	file_index_counts(program->holdings.index, &counts);
	log_message(LOG_LEVEL_INFO, "indexed %llu files of %llu below %s%s in %lld ms",
		    (unsigned long long)counts.files, (unsigned long long)counts.files_seen,
		    directories->texts[0], directories->count > 1 ? " and others" : "",
		    (long long)took_ms);
}

static void *program_scan(void *context)
{
	struct program *program = context;
	struct options copy = { 0 };
	bool is_counted = false, was_scanned, is_news;
	int64_t begin_ms, end_ms;
	unsigned int number;

	while (wait_for_scan(program, &copy.index, &number)) {
		/* First, because the size limit works only after the store was counted. */
		if (!is_counted)
			store_scan(program->holdings.store, &program->stop_scanning);
		is_counted = true;
		begin_ms = clock_now_ms();
		let_scan_begin(program, INT64_MAX);
		was_scanned = file_index_is_scanned(program->holdings.index);
		is_news = file_index_scan(program->holdings.index, &copy.index, number,
					  &program->stop_scanning);
		/* Misses of the earlier state are useless now. */
		if (is_news)
			negative_cache_clear(program->holdings.negative);
		end_ms = clock_now_ms();
		if (is_news || !was_scanned)
			log_indexed(program, &copy.index, end_ms - begin_ms);
		let_scan_begin(program,
			       end_ms + moved_pause_ms + moved_pause_scans * (end_ms - begin_ms));
		settings_deinit(&copy);
	}
	settings_deinit(&copy);
	return NULL;
}

/* ---- starting ---- */

static bool program_report_misuse(struct program *program, const char *option, const char *why)
{
	program->is_misused = true;
	log_message(LOG_LEVEL_ERROR, "%s%s%s (symsrv --help lists the options)", option,
		    *option ? ": " : "", why);
	return false;
}

static bool program_report_failure(const char *what, int failure)
{
	log_message(LOG_LEVEL_ERROR, "%s: %s", what, strerror(-failure));
	return false;
}

/* Raises the limit of descriptors, and limits connections and open objects to it. */
static void share_descriptors(struct program *program)
{
	size_t others = 128; /* fetches in progress, logs, and the libraries */
	size_t wanted = program->options.connections, most;
	struct rlimit limit;

	program->open_objects = most_open_objects;
	program->connections = wanted < UINT32_MAX ? (unsigned int)wanted : UINT32_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    wanted + 2 * most_open_objects + others <= limit.rlim_cur)
		return;
	/* An object has two descriptors: its own and that of its answer. */
	if (program->open_objects > limit.rlim_cur / 8)
		program->open_objects = limit.rlim_cur / 8;
	others += 2 * program->open_objects;
	most = limit.rlim_cur > others + 16 ? limit.rlim_cur - others : 16;
	program->connections = (unsigned int)(wanted < most ? wanted : most);
	log_message(LOG_LEVEL_WARNING,
		    "the limit of %llu descriptors allows %u connections at a time",
		    (unsigned long long)limit.rlim_cur, program->connections);
}

/* Objects that are held open still use the room that eviction should have freed. */
static void on_evicted(void *objects)
{
	object_table_drop_deleted(objects);
}

/* systemd keeps its socket open, so nothing else can have the same port for all addresses. */
static bool report_listening(const struct program *program, const char *place, int failure)
{
	log_message(LOG_LEVEL_ERROR, "%s: %s%s", place, strerror(-failure),
		    failure == -EADDRINUSE && program->shared_socket_count
			    ? ": symsrv.socket of systemd has this port"
			    : "");
	return false;
}

static bool open_sockets(struct program *program)
{
	struct text_list *list = &program->options.listen;
	char standard[] = "127.0.0.1:8002", *standard_list[] = { standard };
	struct text_list one = { standard_list, 1 };
	size_t i;

	program->shared_socket_count = program->socket_count =
		systemd_sockets(program->sockets, MOST_SOCKETS);
	for (i = 0; i < program->socket_count; i++)
		if (listen_adopt(program->sockets[i]))
			return program_report_failure("a socket that was handed over", -errno);
	if (!list->count && !program->socket_count)
		list = &one;
	if (list->count > MOST_SOCKETS - program->socket_count) {
		log_message(LOG_LEVEL_ERROR, "--listen: more than %d sockets", MOST_SOCKETS);
		return false;
	}
	for (i = 0; i < list->count; i++) {
		int fd = listen_at(list->texts[i]);

		if (fd == -EINVAL)
			return program_report_misuse(program, list->texts[i],
						     "not [ADDRESS]:PORT or unix:/PATH");
		if (fd < 0)
			return report_listening(program, list->texts[i], fd);
		program->sockets[program->socket_count++] = fd;
	}
	return true;
}

static int start_fetcher(struct program *program, struct upstream_set *set)
{
	struct holdings *holdings = &program->holdings;
	const struct fetcher_parts parts = {
		.own_name = program->own_name,
		.store = holdings->store,
		.negative = holdings->negative,
		.tellers = holdings->workers,
		.workers = program->fetch_workers,
		.client = program->client,
		.uploads = holdings->uploads,
	};

	return fetcher_create(&parts, set, &holdings->fetcher);
}

/* The fetcher owns the set now. */
static bool start_holdings(struct program *program, struct upstream_set *set)
{
	const struct options *options = &program->options;
	struct holdings *holdings = &program->holdings;
	int failure = store_open(options->store, options->max_bytes, &holdings->store);

	if (failure) {
		log_message(LOG_LEVEL_ERROR, "%s: %s", options->store, store_failure_text(failure));
		return false;
	}
	holdings->own_name = program->own_name;
	holdings->now_ms = clock_now_ms;
	holdings->index = file_index_create(!options->index.count);
	holdings->objects = object_table_create(program->open_objects);
	holdings->negative = negative_cache_create();
	program->metrics = metrics_create();
	program->resolve_parts.processes = symbol_workers_create(own_program);
	map_processes_init(&program->map_processes, own_program);
	program->resolve_parts.maps = &program->map_processes;
	holdings->map_maker = &program->map_processes.maker;
	failure = workers_create(worker_count, &holdings->workers);
	if (!failure)
		failure = workers_create(resolver_count, &program->resolve_parts.threads);
	if (!failure)
		failure = workers_create(checker_count, &holdings->checkers);
	if (!failure)
		failure = workers_create(worker_count, &program->fetch_workers);
	if (!failure)
		failure = upstream_client_create(program->own_name, &program->client);
	if (!failure)
		failure = tier_uploads_create(holdings->store, &holdings->uploads);
	if (!failure)
		failure = start_fetcher(program, set);
	if (!failure)
		failure = prefetch_create(holdings, (int64_t)options->fetch_ms, &program->prefetch);
	if (!failure)
		failure = uploads_create(holdings, &program->uploads);
	if (failure || !program->resolve_parts.processes || !holdings->index ||
	    !holdings->objects || !holdings->negative || !program->metrics)
		return program_report_failure("starting", failure ? failure : -ENOMEM);
	store_on_eviction(holdings->store, on_evicted, holdings->objects);
	if (!uploads_set_token(program->uploads, options->upload_token)) {
		log_message(LOG_LEVEL_ERROR, "--upload-token %s: " NO_TOKEN, options->upload_token);
		return false;
	}
	return true;
}

static enum transient_answer transient_of(const struct options *options)
{
	if (!strcmp(options->transient, "503"))
		return TRANSIENT_503;
	return strcmp(options->transient, "reset") ? TRANSIENT_AUTO : TRANSIENT_RESET;
}

static bool start_server(struct program *program)
{
	const struct options *options = &program->options;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct server_settings settings = {
		.holdings = &program->holdings,
		.resolve_parts = &program->resolve_parts,
		.metrics = program->metrics,
		.access_log = program->access_log,
		.sockets = program->sockets,
		.socket_count = program->socket_count,
		.shared_socket_count = program->shared_socket_count,
		.threads = (unsigned int)(options->threads ? options->threads
					  : processors > 0 ? (uint64_t)processors
							   : 1),
		.connections = program->connections,
		.connections_per_client = (unsigned int)options->connections_per_client,
		.transient = transient_of(options),
		.wait_ms = (int64_t)options->wait_ms,
		.header_ms = (int64_t)options->header_ms,
		.idle_ms = (int64_t)options->idle_ms,
		.min_rate_bytes = options->min_rate_bytes,
		.forwarded_limit = options->forwarded_limit,
		.max_object_bytes = options->max_object_bytes,
		.prefetch = program->prefetch,
		.uploads = program->uploads,
	};
	int failure = server_start(&settings, &program->server);

	return failure ? program_report_failure("cannot start the server", failure) : true;
}

static bool program_set_limits(const struct program *program)
{
	char message[256];

	if (user_settle(program->options.user, message, sizeof(message)))
		return true;
	log_message(LOG_LEVEL_ERROR, "--user: %s", message);
	return false;
}

static bool program_start(struct program *program)
{
	const struct options *options = &program->options;
	struct upstream_set *set;
	char instance[2 * 8 + 1];
	char message[256];
	uint8_t random[8];
	int failure = 0;

	share_descriptors(program);
	/* Before any thread starts, and before any file is created. */
	if (!open_sockets(program) || !program_set_limits(program))
		return false;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return program_report_failure("getrandom", -errno);
	hex_write_bytes(instance, random, sizeof(random));
	snprintf(program->own_name, sizeof(program->own_name), "symsrv-%s", instance);
	if (options->access_log)
		failure = access_log_open(options->access_log, &program->access_log);
	if (failure)
		return program_report_failure(options->access_log, failure);
	if (!upstream_set_create(options, NULL, message, sizeof(message), &set))
		return program_report_misuse(program, "", message);
	if (!start_holdings(program, set)) {
		if (!program->holdings.fetcher)
			upstream_set_release(set);
		return false;
	}
	if (!start_server(program))
		return false;
	request_scan(program, false);
	failure = pthread_create(&program->scanner, NULL, program_scan, program);
	program->has_scanner = !failure;
	return failure ? program_report_failure("cannot start a thread", -failure) : true;
}

/* ---- running ---- */

static bool has_all(const struct text_list *texts, const struct text_list *wanted)
{
	for (size_t i = 0; i < wanted->count; i++)
		if (!text_list_has(texts, wanted->texts[i]))
			return false;
	return true;
}

/* Sockets stay as they are. */
static void warn_of_listen(const struct text_list *old, const struct text_list *wanted)
{
	if (!has_all(old, wanted) || !has_all(wanted, old))
		log_message(LOG_LEVEL_WARNING, "listen has changed: that needs a restart");
}

/* Replaces what may change during requests; an invalid configuration changes nothing. */
static void program_reload(struct program *program)
{
	struct upstream_set *old, *set;
	struct options options;
	char message[256];
	bool is_good, has_more;

	systemd_notify("RELOADING=1");
	access_log_reopen(program->access_log);
	is_good = settings_parse(&options, program->argc, program->argv, message, sizeof(message));
	if (is_good) {
		old = fetcher_upstreams(program->holdings.fetcher);
		is_good = upstream_set_create(&options, old, message, sizeof(message), &set);
		upstream_set_release(old);
		if (is_good && !uploads_set_token(program->uploads, options.upload_token)) {
			is_good = false;
			snprintf(message, sizeof(message), "--upload-token: " NO_TOKEN);
			upstream_set_release(set);
		}
		if (!is_good)
			settings_deinit(&options);
	}
	if (is_good) {
		fetcher_set_upstreams(program->holdings.fetcher, set);
		store_set_max(program->holdings.store, options.max_bytes);
		has_more = !has_all(&program->options.index, &options.index);
		warn_of_listen(&program->options.listen, &options.listen);
		pthread_mutex_lock(&program->scan_lock);
		settings_deinit(&program->options);
		program->options = options;
		pthread_mutex_unlock(&program->scan_lock);
		request_scan(program, has_more);
		negative_cache_clear(program->holdings.negative);
		program->metrics->reloads++;
		log_message(LOG_LEVEL_INFO, "configuration read again");
	} else {
		program->metrics->failed_reloads++;
		log_message(LOG_LEVEL_ERROR, "configuration not changed: %s", message);
	}
	systemd_notify("READY=1");
}

static void mark_used(void *context, const char *text)
{
	store_touch(context, text);
}

static void look_at_store(struct program *program)
{
	struct holdings *holdings = &program->holdings;
	bool is_writable = store_is_writable(holdings->store);

	if (is_writable != program->is_writable)
		log_message(is_writable ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
			    is_writable ? "the store %s can be written"
					: "the store %s cannot be written: not ready",
			    program->options.store);
	program->is_writable = is_writable;
	object_table_each_used(holdings->objects, program->looked_ms, mark_used, holdings->store);
	/* A scrub beside the server may have removed some. */
	object_table_drop_deleted(holdings->objects);
}

static void program_tick(struct program *program)
{
	int64_t now = clock_now_ms();

	server_tick(program->server, now);
	fetcher_tick(program->holdings.fetcher, now);
	symbol_workers_tick(program->resolve_parts.processes, now);
	scan_for_moved(program, now);
	if (now - program->looked_ms >= often_ms) {
		look_at_store(program);
		program->looked_ms = now;
	}
	server_set_ready(program->server,
			 program->is_writable && file_index_is_scanned(program->holdings.index));
}

/* Runs until SIGTERM or SIGINT. */
static void program_run(struct program *program, const sigset_t *signals)
{
	const struct timespec pause = { .tv_nsec = tick_ms * 1000000L };

	program->looked_ms = clock_now_ms();
	program->is_writable = true;
	for (;;) {
		int signal = sigtimedwait(signals, NULL, &pause);

		if (signal == SIGTERM || signal == SIGINT)
			return;
		if (signal == SIGHUP)
			program_reload(program);
		else if (signal == SIGUSR1)
			request_scan(program, false);
		program_tick(program);
	}
}

/* ---- ending ---- */

static void pause_ms(long milliseconds)
{
	const struct timespec pause = { .tv_nsec = milliseconds * 1000000L };

	nanosleep(&pause, NULL);
}

static bool is_busy(struct server *server, int64_t passed_ms)
{
	return server_is_accepting(server) || server_active(server) ||
	       (passed_ms < farewell_ms && server_connections(server)) ||
	       (passed_ms < begun_ms && server_unread(server));
}

/* Requests in progress may end; those that wait for an upstream are answered before the time is
 * over. */
static void program_drain(struct program *program)
{
	int64_t start_ms = clock_now_ms(), now = start_ms;
	unsigned int patience;

	server_set_ready(program->server, false);
	server_drain(program->server);
	while (now - start_ms < (int64_t)program->options.drain_ms &&
	       is_busy(program->server, now - start_ms)) {
		server_tick(program->server, now);
		fetcher_tick(program->holdings.fetcher, now);
		pause_ms(20);
		now = clock_now_ms();
	}
	prefetch_stop(program->prefetch);
	fetcher_stop(program->holdings.fetcher);
	server_close(program->server);
	while (server_suspended(program->server) || prefetch_is_running(program->prefetch))
		pause_ms(5);
	for (patience = 0; patience < 50 && server_active(program->server); patience++)
		pause_ms(20);
}

static void end_scanner(struct program *program)
{
	if (!program->has_scanner)
		return;
	pthread_mutex_lock(&program->scan_lock);
	__atomic_store_n(&program->stop_scanning, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&program->scan_wake);
	pthread_mutex_unlock(&program->scan_lock);
	pthread_join(program->scanner, NULL);
}

static void program_end(struct program *program)
{
	struct holdings *holdings = &program->holdings;

	if (program->server)
		program_drain(program);
	end_scanner(program);
	/* Transfers use the workers of the fetcher, and these use the others. */
	prefetch_stop(program->prefetch);
	if (holdings->fetcher)
		fetcher_stop(holdings->fetcher);
	if (program->client)
		upstream_client_stop(program->client);
	/* These wait for look-ups. */
	workers_destroy(program->resolve_parts.threads);
	symbol_workers_destroy(program->resolve_parts.processes);
	workers_destroy(program->fetch_workers);
	workers_destroy(holdings->checkers);
	workers_destroy(holdings->workers);
	server_stop(program->server);
	prefetch_destroy(program->prefetch);
	uploads_destroy(program->uploads);
	tier_uploads_destroy(holdings->uploads);
	fetcher_destroy(holdings->fetcher);
	upstream_client_destroy(program->client);
	lru_table_destroy(holdings->objects);
	negative_cache_destroy(holdings->negative);
	file_index_destroy(holdings->index);
	store_close(holdings->store);
	access_log_close(program->access_log);
	metrics_destroy(program->metrics);
	settings_deinit(&program->options);
	settings_deinit(&program->scan_options);
}

static int program_serve(struct program *program)
{
	pthread_condattr_t attributes;
	sigset_t signals;
	bool is_up;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	/* Blocked before any thread starts, so that only this thread receives them. */
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	pthread_mutex_init(&program->scan_lock, NULL);
	/* A clock that is set must not delay a scan. */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&program->scan_wake, &attributes);
	is_up = program_start(program);
	if (is_up) {
		systemd_notify("READY=1");
		log_message(LOG_LEVEL_INFO, "symsrv %s serves %s", SYMSRV_VERSION,
			    program->options.store);
		program_run(program, &signals);
		systemd_notify("STOPPING=1");
	}
	program_end(program);
	if (program->is_misused)
		return EXIT_USAGE;
	return is_up ? EXIT_DONE : EXIT_FAILED;
}

/* Output that could not be written is a failure. */
static int program_finish(struct program *program, int status)
{
	settings_deinit(&program->options);
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	log_message(LOG_LEVEL_ERROR, "cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	static struct program program;
	char message[256];

	if (argc == 2 && !strcmp(argv[1], SYMBOL_CHILD_ARGUMENT))
		return symbol_child_run(STDIN_FILENO);
	terminal_guard(&stdout);
	terminal_guard(&stderr);
	program.argc = argc;
	program.argv = (const char *const *)argv;
	if (!settings_parse(&program.options, argc, program.argv, message, sizeof(message))) {
		log_message(LOG_LEVEL_ERROR, "%s (symsrv --help lists the options)", message);
		return EXIT_USAGE;
	}
	if (program.options.help || program.options.version) {
		if (program.options.help)
			settings_print_help();
		else
			printf("symsrv %s\n", SYMSRV_VERSION);
		return program_finish(&program, EXIT_DONE);
	}
	if (program.options.scrub)
		return program_finish(&program, program_set_limits(&program)
							? scrub_run(program.options.store)
							: EXIT_FAILED);
	if (program.options.export)
		return program_finish(&program, program_set_limits(&program)
							? store_export_run(program.options.store,
									   program.options.export)
							: EXIT_FAILED);
	return program_serve(&program);
}
