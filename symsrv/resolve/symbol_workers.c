/* SPDX-License-Identifier: MIT */
/*
 * A table of processes.
 *
 *   symbol_workers_ask()  takes the process of the image, or starts one, and talks to it
 *   take_worker()         waits while another thread talks to it; the oldest one makes room
 *   receive_answers()     answers come in parts; in between the process may want a file
 *   put_together()        what was asked for before is known, and the process is not asked
 *
 * What a process sends is not believed: it must have the expected form and size.
 */
#include "symsrv/resolve/symbol_workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "symsrv/resolve/known_answers.h"
#include "symsrv/resolve/symbol_answer.h"
#include "symsrv/resolve/symbol_child.h"
#include "symsrv/resolve/symbol_message.h"
#include "symsrv/resolve/symbol_process.h"
#include "symsrv/resolve/symbol_sandbox.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/log.h"

static const int64_t idle_ms = 300000;
/* An image whose process has failed is not read again for this time. */
static const int64_t failed_ms = 60000;
/* A PDB or shared file for each; more are a fault of the process. */
static const unsigned int most_wanted = 16;
/* Answers that are kept for each image when a question has ended. */
static const size_t most_kept_bytes = (size_t)16 << 20;
/* A process that takes longer, although its CPU time is limited, hangs. */
static const int64_t hanging_ms = 1000 * (SYMBOL_SANDBOX_CPU_S + 10);

enum {
	MOST_FAILED = 64,
	IDENTITY_BYTES = 128,
	REASON_BYTES = 300
};

static const char problem_late[] = "its debug information was not read before the deadline";
static const char problem_crashed[] = "the process that reads its debug information ended";
static const char problem_unreadable[] = "its debug information cannot be read";
static const char problem_start[] = "no process could be started to read its debug information";
static const char problem_large[] = "the answer is too large";
static const char problem_before[] =
	"a process that read its debug information failed less than a minute ago";

struct symbol_worker {
	char identity[IDENTITY_BYTES]; /* "": none */
	struct symbol_process process;
	int64_t used_ms;
	int64_t asked_ms;           /* when it got its last question */
	size_t owed;                /* answers that its last client did not wait for */
	struct known_answers known; /* to positions that were asked for before */
	uint32_t known_fields;      /* of these answers */
	bool is_busy;
	char reason[REASON_BYTES]; /* why it cannot read the image; "": it has not said so */
};

struct failed_image {
	char identity[IDENTITY_BYTES];
	int64_t until_ms;
};

struct symbol_workers {
	pthread_mutex_t lock;
	pthread_cond_t released;
	char *program;
	struct symbol_worker list[SYMBOL_WORKERS_MOST];
	struct failed_image failed[MOST_FAILED];
	size_t next_failed;
	struct symbol_worker_counts counts;
	struct log_limit late_lines, failure_lines;
};

/* ---- processes ------------------------------------------------------------------ */

static void end_process(struct symbol_worker *worker)
{
	symbol_process_end(&worker->process);
	known_answers_forget(&worker->known);
	worker->owed = 0;
	worker->identity[0] = '\0';
}

/* ---- the table ------------------------------------------------------------------ */

struct symbol_workers *symbol_workers_create(const char *program)
{
	struct symbol_workers *workers = calloc(1, sizeof(*workers));
	pthread_condattr_t attributes;

	if (!workers)
		return NULL;
	workers->program = strdup(program);
	if (!workers->program) {
		free(workers);
		return NULL;
	}
	pthread_mutex_init(&workers->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&workers->released, &attributes);
	pthread_condattr_destroy(&attributes);
	return workers;
}

void symbol_workers_destroy(struct symbol_workers *workers)
{
	if (!workers)
		return;
	for (size_t i = 0; i < SYMBOL_WORKERS_MOST; i++)
		end_process(&workers->list[i]);
	pthread_cond_destroy(&workers->released);
	pthread_mutex_destroy(&workers->lock);
	free(workers->program);
	free(workers);
}

static bool is_hanging(const struct symbol_worker *worker, int64_t now_ms)
{
	return worker->owed && now_ms - worker->asked_ms > hanging_ms;
}

void symbol_workers_tick(struct symbol_workers *workers, int64_t now_ms)
{
	pthread_mutex_lock(&workers->lock);
	for (size_t i = 0; i < SYMBOL_WORKERS_MOST; i++) {
		struct symbol_worker *worker = &workers->list[i];

		if (worker->process.pid && !worker->is_busy &&
		    (now_ms - worker->used_ms > idle_ms || is_hanging(worker, now_ms)))
			end_process(worker);
	}
	pthread_mutex_unlock(&workers->lock);
}

static bool has_failed(const struct symbol_workers *workers, const char *identity)
{
	int64_t now_ms = clock_now_ms();

	for (size_t i = 0; i < MOST_FAILED; i++)
		if (workers->failed[i].until_ms > now_ms &&
		    !strcmp(workers->failed[i].identity, identity))
			return true;
	return false;
}

static void remember_failed(struct symbol_workers *workers, const char *identity)
{
	struct failed_image *failed = &workers->failed[workers->next_failed];

	workers->next_failed = (workers->next_failed + 1) % MOST_FAILED;
	snprintf(failed->identity, sizeof(failed->identity), "%s", identity);
	failed->until_ms = clock_now_ms() + failed_ms;
}

/* The process of the image, else the one to be replaced; NULL when all are busy, or another thread
 * talks to that of the image. */
static struct symbol_worker *find_worker(struct symbol_workers *workers, const char *identity)
{
	struct symbol_worker *oldest = NULL;

	for (size_t i = 0; i < SYMBOL_WORKERS_MOST; i++) {
		struct symbol_worker *worker = &workers->list[i];

		if (!strcmp(worker->identity, identity))
			return worker->is_busy ? NULL : worker;
		if (!worker->is_busy &&
		    (!oldest || !worker->process.pid ||
		     (oldest->process.pid && worker->used_ms < oldest->used_ms)))
			oldest = worker;
	}
	return oldest;
}

/* The process of the image, or room for one. *old_ret: the one that must end for it. NULL, with the
 * reason in *problem_ret. */
static struct symbol_worker *take_worker(struct symbol_workers *workers,
					 const struct symbol_question *question,
					 struct symbol_worker *old_ret, const char **problem_ret)
{
	const struct timespec until = { .tv_sec = question->deadline_ms / 1000,
					.tv_nsec = question->deadline_ms % 1000 * 1000000 };
	struct symbol_worker *worker = NULL;
	int failure = 0;

	*old_ret = (struct symbol_worker){ 0 };
	*problem_ret = NULL;
	pthread_mutex_lock(&workers->lock);
	while (!*problem_ret && !worker) {
		if (has_failed(workers, question->identity))
			*problem_ret = problem_before;
		else if (failure)
			*problem_ret = problem_late;
		else
			worker = find_worker(workers, question->identity);
		if (!*problem_ret && !worker)
			failure =
				pthread_cond_timedwait(&workers->released, &workers->lock, &until);
	}
	if (worker && strcmp(worker->identity, question->identity) != 0) {
		*old_ret = *worker;
		*worker = (struct symbol_worker){ 0 };
		snprintf(worker->identity, sizeof(worker->identity), "%s", question->identity);
	}
	if (worker)
		worker->is_busy = true;
	workers->counts.questions += worker != NULL;
	pthread_mutex_unlock(&workers->lock);
	return worker;
}

static bool prepare_worker(struct symbol_workers *workers, const struct symbol_question *question,
			   struct symbol_worker *worker)
{
	struct symbol_process own;
	bool is_up;

	if (worker->process.pid)
		return true;
	is_up = symbol_process_start(workers->program, SYMBOL_MESSAGE_IMAGE, question->kind,
				     question->fd, &own);
	pthread_mutex_lock(&workers->lock);
	worker->process = own;
	workers->counts.started += is_up;
	pthread_mutex_unlock(&workers->lock);
	return is_up;
}

static void count_problem(struct symbol_worker_counts *counts, const char *problem)
{
	counts->late += problem == problem_late;
	counts->crashed += problem == problem_crashed;
	counts->refused += problem == problem_unreadable || problem == problem_start;
}

/* A process that is late goes on: its client may have given it little time. */
static void give_back(struct symbol_workers *workers, struct symbol_worker *worker,
		      const char *problem)
{
	int64_t now_ms = clock_now_ms();

	pthread_mutex_lock(&workers->lock);
	count_problem(&workers->counts, problem);
	if ((problem && problem != problem_late && problem != problem_large) ||
	    is_hanging(worker, now_ms)) {
		remember_failed(workers, worker->identity);
		end_process(worker);
	}
	worker->is_busy = false;
	worker->used_ms = now_ms;
	pthread_cond_broadcast(&workers->released);
	pthread_mutex_unlock(&workers->lock);
}

void symbol_workers_counts(struct symbol_workers *workers, struct symbol_worker_counts *ret)
{
	pthread_mutex_lock(&workers->lock);
	*ret = workers->counts;
	ret->running = 0;
	for (size_t i = 0; i < SYMBOL_WORKERS_MOST; i++)
		ret->running += workers->list[i].process.pid != 0;
	pthread_mutex_unlock(&workers->lock);
}

/* ---- questions -------------------------------------------------------------------- */

/* Takes a part of the answers to the positions from `fresh` on. Returns NULL, or why not all. */
static const char *take_answers(const struct symbol_message *message, struct symbol_worker *worker,
				const uint64_t *fresh)
{
	struct reader reader = reader_over(message->bytes.data, message->bytes.size_bytes);
	struct sym_inlined inlined[SYMBOL_ANSWER_INLINED];
	struct sym_answer answer;
	size_t count = message->number;

	if (!count || count > worker->owed)
		return problem_crashed;
	worker->owed -= count;
	for (size_t i = 0; i < count; i++) {
		if (!symbol_answer_read(&reader, inlined, &answer))
			return problem_crashed;
		if (fresh && !known_answers_add(&worker->known, fresh[i], &answer))
			return problem_large;
	}
	return reader_left(&reader) ? problem_crashed : NULL;
}

static bool send_file(const struct symbol_worker *worker, const struct symbol_question *question,
		      const struct symbol_message *message)
{
	json_t *wanted = json_loadb(message->bytes.data ?: "", message->bytes.size_bytes,
				    JSON_REJECT_DUPLICATES, NULL);
	int fd AUTO_CLOSE = -1;

	if (json_is_object(wanted))
		fd = question->find(question->context, wanted);
	json_decref(wanted);
	return symbol_message_send(worker->process.fd, SYMBOL_MESSAGE_FILE, 0, NULL, 0, fd);
}

/* Receives the answers that are owed, to the positions `fresh`. Returns NULL, or why not all came.
 * `fresh`: NULL for those to a former question. */
static const char *receive_answers(struct symbol_worker *worker,
				   const struct symbol_question *question, const uint64_t *fresh)
{
	struct symbol_message message AUTO_SYMBOL_MESSAGE;
	const size_t count = worker->owed;
	const char *problem = NULL;
	unsigned int wanted = 0;

	symbol_message_init(&message, SYMBOL_CHILD_PART_BYTES);
	while (!problem && worker->owed) {
		enum symbol_receipt receipt =
			symbol_message_receive(worker->process.fd, question->deadline_ms, &message);

		if (receipt == SYMBOL_LATE)
			return problem_late;
		if (receipt == SYMBOL_ENDED)
			return problem_crashed;
		if (message.kind == SYMBOL_MESSAGE_UNREADABLE) {
			snprintf(worker->reason, sizeof(worker->reason), "%s",
				 buf_string(&message.bytes) ?: "");
			return problem_unreadable;
		}
		if (message.kind == SYMBOL_MESSAGE_ANSWERS)
			problem = take_answers(&message, worker,
					       fresh ? fresh + (count - worker->owed) : NULL);
		else if (message.kind != SYMBOL_MESSAGE_WANT || wanted++ >= most_wanted ||
			 !send_file(worker, question, &message))
			problem = problem_crashed;
	}
	return problem;
}

/* Asks the process; `fresh`: positions that are not known. */
static const char *converse(struct symbol_worker *worker, const struct symbol_question *question,
			    const uint64_t *fresh, size_t count)
{
	const char *problem = receive_answers(worker, question, NULL);

	if (problem)
		return problem;
	worker->asked_ms = clock_now_ms();
	worker->owed = count;
	if (!symbol_message_send(worker->process.fd, SYMBOL_MESSAGE_ASK, question->fields, fresh,
				 count * sizeof(*fresh), -1))
		return problem_crashed;
	return receive_answers(worker, question, fresh);
}

/* ---- answers that are known ------------------------------------------------------- */

static size_t collect_fresh(const struct symbol_worker *worker,
			    const struct symbol_question *question, uint64_t *fresh)
{
	size_t count = 0, bytes;

	for (size_t i = 0; i < question->count; i++)
		if (!known_answers_find(&worker->known, question->positions[i], &bytes))
			fresh[count++] = question->positions[i];
	return count;
}

/* Appends answers in the order of the question, to the first one that there is not. */
static const char *put_together(const struct symbol_worker *worker,
				const struct symbol_question *question, struct answer_list *list)
{
	for (size_t i = 0; i < question->count; i++) {
		size_t bytes;
		const char *text =
			known_answers_find(&worker->known, question->positions[i], &bytes);

		if (!text)
			break;
		if (!answer_list_append_text(list, text, bytes))
			return problem_large;
	}
	return NULL;
}

static const char *ask_worker(struct symbol_worker *worker, const struct symbol_question *question,
			      struct answer_list *list)
{
	uint64_t *fresh AUTO_FREE = calloc(question->count, sizeof(*fresh));
	const char *problem, *trouble;
	size_t count;

	if (!fresh)
		return problem_large;
	if (question->fields != worker->known_fields)
		known_answers_forget(&worker->known);
	worker->known_fields = question->fields;
	count = collect_fresh(worker, question, fresh);
	if (count > KNOWN_ANSWERS_MOST - worker->known.count) {
		known_answers_forget(&worker->known);
		count = collect_fresh(worker, question, fresh);
	}
	problem = count ? converse(worker, question, fresh, count) : NULL;
	trouble = put_together(worker, question, list);
	if (worker->known.texts.size_bytes > most_kept_bytes)
		known_answers_forget(&worker->known);
	return problem ? problem : trouble;
}

/* The client chose the deadline; all else is a fault of the image. */
static void log_problem(struct symbol_workers *workers, const struct symbol_question *question,
			const struct symbol_worker *worker, const char *problem)
{
	struct log_limit *limit =
		problem == problem_late ? &workers->late_lines : &workers->failure_lines;

	if (log_limit_allows(limit, clock_now_ms()))
		log_message(LOG_LEVEL_WARNING, "%s: %s%s%s" LOG_LIMIT_NOTE, question->name, problem,
			    *worker->reason ? ": " : "", worker->reason);
}

const char *symbol_workers_ask(struct symbol_workers *workers,
			       const struct symbol_question *question, struct answer_list *list)
{
	struct symbol_worker *worker, old;
	const char *problem = NULL;

	if (!question->count)
		return NULL;
	worker = take_worker(workers, question, &old, &problem);
	end_process(&old);
	if (!worker)
		return problem;
	if (prepare_worker(workers, question, worker))
		problem = ask_worker(worker, question, list);
	else
		problem = problem_start;
	/* An answer that is too large concerns the client alone. */
	if (problem && problem != problem_large)
		log_problem(workers, question, worker, problem);
	give_back(workers, worker, problem);
	return problem;
}
