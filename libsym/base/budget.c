/* SPDX-License-Identifier: MIT */
#include "libsym/base/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(enum budget_clock clock)
{
	struct timespec now;

	clock_gettime(clock == BUDGET_CPU ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void init_account(struct budget_account *account, struct budget *budget)
{
	account->most_bytes = UINT64_MAX;
	for (int i = 0; i < BUDGET_CLOCKS; i++)
		account->timers[i].most_ns = INT64_MAX;
	pthread_mutex_init(&account->lock, NULL);
	account->budget = budget;
}

void budget_init(struct budget *budget)
{
	*budget = (struct budget){ .effective_uid = geteuid(),
				   .real_uid = getuid(),
				   .now_ns = now_ns };
	init_account(&budget->others, budget);
	init_account(&budget->own, budget);
}

static void deinit_account(struct budget_account *account)
{
	pthread_mutex_destroy(&account->lock);
	free(account->first);
	free(account->silent);
}

void budget_deinit(struct budget *budget)
{
	deinit_account(&budget->others);
	deinit_account(&budget->own);
}

static void begin_step(struct budget_account *account)
{
	pthread_mutex_lock(&account->lock);
	for (int i = 0; i < BUDGET_CLOCKS; i++) {
		account->timers[i].spent_ns = 0;
		if (account->timers[i].spans)
			account->timers[i].start_ns = account->budget->now_ns((enum budget_clock)i);
	}
	free(account->first);
	account->first = NULL;
	atomic_store(&account->excess, 0);
	atomic_store(&account->refused, 0);
	pthread_mutex_unlock(&account->lock);
}

void budget_begin_step(struct budget *budget)
{
	if (!budget)
		return;
	begin_step(&budget->others);
	begin_step(&budget->own);
}

/* ---- accounts ------------------------------------------------------------------- */

struct budget_account *budget_account_of(struct budget *budget, uid_t uid)
{
	if (!budget)
		return NULL;
	return !uid || uid == budget->effective_uid || uid == budget->real_uid ? &budget->own
									       : &budget->others;
}

struct budget_account *budget_account_of_file(struct budget *budget, int fd)
{
	struct stat status;

	if (!budget)
		return NULL;
	return fstat(fd, &status) ? &budget->others : budget_account_of(budget, status.st_uid);
}

bool budget_is_stricter(const struct budget_account *account)
{
	return account == &account->budget->others;
}

struct budget_account *budget_account_beside(const struct budget_account *account, int fd)
{
	return account ? budget_account_of_file(account->budget, fd) : NULL;
}

/* ---- memory --------------------------------------------------------------------- */

void budget_record_excess(struct budget_account *account, enum budget_excess excess,
			  const char *what)
{
	atomic_fetch_or(&account->excess, excess);
	atomic_fetch_add(&account->refused, 1);
	pthread_mutex_lock(&account->lock);
	if (!account->first && what)
		account->first = strdup(what);
	pthread_mutex_unlock(&account->lock);
}

bool budget_reserve(struct budget_account *account, uint64_t bytes, const char *what)
{
	uint64_t held_bytes;

	if (!account)
		return true;
	held_bytes = atomic_load(&account->held_bytes);
	do {
		if (held_bytes > account->most_bytes || bytes > account->most_bytes - held_bytes) {
			budget_record_excess(account, BUDGET_EXCESS_MEMORY, what);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&account->held_bytes, &held_bytes,
					       held_bytes + bytes));
	return true;
}

void budget_release(struct budget_account *account, uint64_t bytes)
{
	if (account)
		atomic_fetch_sub(&account->held_bytes, bytes);
}

uint64_t budget_left_bytes(const struct budget_account *account)
{
	uint64_t held_bytes;

	if (!account)
		return UINT64_MAX;
	held_bytes = atomic_load(&((struct budget_account *)account)->held_bytes);
	return held_bytes < account->most_bytes ? account->most_bytes - held_bytes : 0;
}

/* ---- time ----------------------------------------------------------------------- */

static bool is_counted(const struct budget_account *account, enum budget_clock clock)
{
	return account && account->timers[clock].most_ns != INT64_MAX;
}

void budget_begin(struct budget_account *account, enum budget_clock clock)
{
	struct budget_timer *timer;

	if (!is_counted(account, clock))
		return;
	timer = &account->timers[clock];
	pthread_mutex_lock(&account->lock);
	if (!timer->spans++)
		timer->start_ns = account->budget->now_ns(clock);
	pthread_mutex_unlock(&account->lock);
}

void budget_end(struct budget_account *account, enum budget_clock clock)
{
	struct budget_timer *timer;

	if (!is_counted(account, clock))
		return;
	timer = &account->timers[clock];
	pthread_mutex_lock(&account->lock);
	if (!--timer->spans)
		timer->spent_ns += account->budget->now_ns(clock) - timer->start_ns;
	pthread_mutex_unlock(&account->lock);
}

void budget_spend(struct budget_account *account, enum budget_clock clock, int64_t spent_ns)
{
	if (!is_counted(account, clock))
		return;
	pthread_mutex_lock(&account->lock);
	account->timers[clock].spent_ns += spent_ns;
	pthread_mutex_unlock(&account->lock);
}

void budget_enter_child(struct budget_account *account)
{
	if (!account)
		return;
	/* A thread that does not exist in the child may have held the lock. */
	pthread_mutex_init(&account->lock, NULL);
	for (int i = 0; i < BUDGET_CLOCKS; i++)
		account->timers[i].spans = 0;
	atomic_store(&account->excess, 0);
}

void budget_set_left(struct budget_account *account, uint64_t left_bytes, int64_t left_ns)
{
	int64_t now_ns;

	if (!account)
		return;
	if (left_bytes <= account->most_bytes)
		atomic_store(&account->held_bytes, account->most_bytes - left_bytes);
	now_ns = budget_left_ns(account, BUDGET_CPU);
	if (now_ns > left_ns)
		budget_spend(account, BUDGET_CPU, now_ns - left_ns);
}

int64_t budget_left_ns(struct budget_account *account, enum budget_clock clock)
{
	const struct budget_timer *timer;
	int64_t spent_ns;

	if (!is_counted(account, clock))
		return INT64_MAX;
	timer = &account->timers[clock];
	pthread_mutex_lock(&account->lock);
	spent_ns = timer->spent_ns;
	if (timer->spans)
		spent_ns += account->budget->now_ns(clock) - timer->start_ns;
	pthread_mutex_unlock(&account->lock);
	return spent_ns < timer->most_ns ? timer->most_ns - spent_ns : 0;
}

bool budget_has_time(struct budget_account *account, enum budget_clock clock, const char *what)
{
	if (budget_left_ns(account, clock))
		return true;
	budget_record_excess(account, clock == BUDGET_CPU ? BUDGET_EXCESS_CPU : BUDGET_EXCESS_WAIT,
			     what);
	return false;
}

/* ---- peers ---------------------------------------------------------------------- */

void budget_record_silent(struct budget_account *account, int32_t pid, uint64_t start_time_ticks)
{
	struct budget_peer *silent;

	if (!account)
		return;
	pthread_mutex_lock(&account->lock);
	silent = reallocarray(account->silent, account->silent_count + 1, sizeof(*silent));
	/* If out of memory, the peer is queried again. */
	if (silent) {
		account->silent = silent;
		silent[account->silent_count++] = (struct budget_peer){ pid, start_time_ticks };
	}
	pthread_mutex_unlock(&account->lock);
}

bool budget_is_silent(struct budget_account *account, int32_t pid, uint64_t start_time_ticks)
{
	bool found = false;

	if (!account)
		return false;
	pthread_mutex_lock(&account->lock);
	for (size_t i = 0; !found && i < account->silent_count; i++)
		found = account->silent[i].pid == pid &&
			account->silent[i].start_time_ticks == start_time_ticks;
	pthread_mutex_unlock(&account->lock);
	return found;
}
