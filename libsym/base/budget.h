/* SPDX-License-Identifier: MIT */
/*
 * Limits for work on input: memory held, CPU time, and time spent waiting. A budget has two
 * accounts: `others` for files and processes of users other than root and the caller, `own` for the
 * rest. Memory is charged before it is allocated and released when it is freed.
 *
 * A NULL account has no limits. All functions are thread safe.
 *
 * Time is counted in spans. Between budget_begin() and budget_end() of an account, the CPU time of
 * the process counts. Spans may nest and overlap between threads; time in several spans counts
 * once.
 */
#ifndef LIBSYM_BASE_BUDGET_H
#define LIBSYM_BASE_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum budget_clock {
	BUDGET_CPU = 0,
	BUDGET_WAIT = 1, /* elapsed time, while waiting for a peer */
	BUDGET_CLOCKS = 2
};

enum budget_excess {
	BUDGET_EXCESS_MEMORY = 1 << 0,
	BUDGET_EXCESS_CPU = 1 << 1,
	BUDGET_EXCESS_WAIT = 1 << 2
};

struct budget_timer {
	int64_t most_ns; /* INT64_MAX: no limit, and nothing is counted */
	int64_t spent_ns;
	int64_t start_ns; /* when the open spans began */
	unsigned int spans;
};

/* A process that did not answer in time. */
struct budget_peer {
	int32_t pid;
	uint64_t start_time_ticks;
};

struct budget_account {
	uint64_t most_bytes; /* UINT64_MAX: no limit */
	_Atomic(uint64_t) held_bytes;
	_Atomic(unsigned int) excess; /* enum budget_excess: which limits were hit */
	_Atomic(uint64_t) refused;    /* how many requests were denied */
	pthread_mutex_t lock;         /* protects everything below */
	struct budget_timer timers[BUDGET_CLOCKS];
	struct budget_peer *silent;
	size_t silent_count;
	char *first; /* what the first denied request was for: a path or a word; NULL: unknown */
	struct budget *budget;
};

struct budget {
	struct budget_account others, own;
	uid_t effective_uid, real_uid; /* the caller's */
	/* Returns the time in ns. Tests replace it. */
	int64_t (*now_ns)(enum budget_clock clock);
};

/* Sets no limits yet. */
void budget_init(struct budget *budget);
void budget_deinit(struct budget *budget);

/* Resets the time and the denied requests of both accounts. Memory that is held stays charged. */
void budget_begin_step(struct budget *budget);

/* The account for input that belongs to a user. NULL if `budget` is NULL. */
struct budget_account *budget_account_of(struct budget *budget, uid_t uid);
/*
 * The account for an open file, by its owner. A file that fstat() rejects counts as another user's.
 */
struct budget_account *budget_account_of_file(struct budget *budget, int fd);
/* Is this the account for other users' input? */
bool budget_is_stricter(const struct budget_account *account);
/* The account for another file in the same budget. */
struct budget_account *budget_account_beside(const struct budget_account *account, int fd);

/* Charges memory. Returns false and records the excess if the limit would be exceeded. `what` names
 * the purpose; NULL: unknown. */
bool budget_reserve(struct budget_account *account, uint64_t bytes, const char *what)
	__attribute__((warn_unused_result));
/* Records an excess that the caller has detected. */
void budget_record_excess(struct budget_account *account, enum budget_excess excess,
			  const char *what);
void budget_release(struct budget_account *account, uint64_t bytes);
/* How many bytes can still be charged. */
uint64_t budget_left_bytes(const struct budget_account *account);

void budget_begin(struct budget_account *account, enum budget_clock clock);
void budget_end(struct budget_account *account, enum budget_clock clock);
/* Adds time that a child process has spent. */
void budget_spend(struct budget_account *account, enum budget_clock clock, int64_t spent_ns);
/* Call in a child after fork(), where the CPU clock starts at 0. Closes all spans. */
void budget_enter_child(struct budget_account *account);
/* In such a child: what the account of the parent has left by now. */
void budget_set_left(struct budget_account *account, uint64_t left_bytes, int64_t left_ns);
/* INT64_MAX: no limit. */
int64_t budget_left_ns(struct budget_account *account, enum budget_clock clock);
/* Returns false and records the excess if no time is left. */
bool budget_has_time(struct budget_account *account, enum budget_clock clock, const char *what);

/* Peers that did not answer are not queried again. */
void budget_record_silent(struct budget_account *account, int32_t pid, uint64_t start_time_ticks);
bool budget_is_silent(struct budget_account *account, int32_t pid, uint64_t start_time_ticks);

/* A span of CPU time that ends with its scope. */
static inline void guard_budget_span(struct budget_account **account)
{
	budget_end(*account, BUDGET_CPU);
}

static inline struct budget_account *budget_span(struct budget_account *account)
{
	budget_begin(account, BUDGET_CPU);
	return account;
}
#define AUTO_BUDGET_SPAN __attribute__((cleanup(guard_budget_span), unused))

#endif
