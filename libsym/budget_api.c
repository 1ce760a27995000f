/* SPDX-License-Identifier: MIT */
#include "libsym/budget_api.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sym_budget {
	struct budget inside;
	char *text; /* of the last sym_budget_excess() */
};

static const uint64_t default_bytes = (uint64_t)512 << 20;
static const uint64_t default_ms = 10000;

static uint64_t quarter_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? (uint64_t)pages / 4 * (uint64_t)page_bytes
					   : default_bytes;
}

static int64_t in_ns(uint64_t ms)
{
	return ms < INT64_MAX / 1000000 ? (int64_t)ms * 1000000 : INT64_MAX;
}

struct sym_error *sym_budget_create(const struct sym_budget_opts *opts, struct sym_budget **ret)
{
	struct sym_budget_opts checked;
	struct sym_error *error =
		sym_error_read_opts(opts, "sym_budget_opts", &checked, sizeof(checked));
	struct sym_budget *budget;
	struct budget_timer *timers;

	if (error)
		return error;
	budget = calloc(1, sizeof(*budget));
	if (!budget)
		return &sym_error_no_memory;
	budget_init(&budget->inside);
	budget->inside.others.most_bytes = checked.memory_bytes ?: default_bytes;
	budget->inside.own.most_bytes = checked.own_memory_bytes ?: quarter_of_machine();
	timers = budget->inside.others.timers;
	timers[BUDGET_CPU].most_ns = in_ns(checked.cpu_ms ?: default_ms);
	timers[BUDGET_WAIT].most_ns = in_ns(checked.wait_ms ?: default_ms);
	*ret = budget;
	return NULL;
}

void sym_budget_destroy(struct sym_budget *budget)
{
	if (!budget)
		return;
	budget_deinit(&budget->inside);
	free(budget->text);
	free(budget);
}

void sym_budget_begin_step(struct sym_budget *budget)
{
	budget_begin_step(budget_inside(budget));
}

struct budget *budget_inside(struct sym_budget *budget)
{
	return budget ? &budget->inside : NULL;
}

/* ---- what is said --------------------------------------------------------------- */

static void say_amounts(const struct budget_account *account, unsigned int excess, struct buf *text)
{
	static const char *const words[BUDGET_CLOCKS] = { "CPU time", "waiting" };

	if (excess & BUDGET_EXCESS_MEMORY)
		buf_printf(text, "%llu MB of memory",
			   (unsigned long long)(account->most_bytes >> 20));
	for (int i = 0; i < BUDGET_CLOCKS; i++)
		if (excess & (i == BUDGET_CPU ? BUDGET_EXCESS_CPU : BUDGET_EXCESS_WAIT))
			buf_printf(text, "%s%lld ms of %s", text->size_bytes ? ", " : "",
				   (long long)(account->timers[i].most_ns / 1000000), words[i]);
}

static const char *whose(const struct budget_account *account)
{
	return account == &account->budget->others ? "input of other users" : "input";
}

static void say_account(struct budget_account *account, struct buf *text)
{
	unsigned int excess = atomic_load(&account->excess);
	struct buf amounts;
	const char *said;

	if (!excess)
		return;
	buf_init(&amounts, 256);
	say_amounts(account, excess, &amounts);
	said = buf_string(&amounts);
	buf_printf(text, "%sthe budget for %s (%s) is used up", buf_separator(text), whose(account),
		   said ? said : "");
	pthread_mutex_lock(&account->lock);
	if (account->first)
		buf_printf(text, ", first by %s", account->first);
	pthread_mutex_unlock(&account->lock);
	buf_deinit(&amounts);
}

const char *sym_budget_excess(struct sym_budget *budget)
{
	struct buf text;

	if (!budget || (!atomic_load(&budget->inside.others.excess) &&
			!atomic_load(&budget->inside.own.excess)))
		return NULL;
	buf_init(&text, 16384);
	say_account(&budget->inside.others, &text);
	say_account(&budget->inside.own, &text);
	free(budget->text);
	budget->text = buf_steal(&text, NULL);
	buf_deinit(&text);
	return budget->text ? budget->text : "a budget is used up";
}

/* LIMIT: `path` (NULL: unknown) costs more than `account` has. */
static struct sym_error *budget_error(const struct budget_account *account, const char *path)
{
	if (!path)
		return sym_error_create(SYM_ERROR_LIMIT, "more than the budget for %s has",
					whose(account));
	return sym_error_create_path(SYM_ERROR_LIMIT, path, SYM_OFFSET_UNKNOWN,
				     "it costs more than the budget for %s has", whose(account));
}

struct sym_error *budget_charge(struct budget_account *account, uint64_t bytes, const char *path)
{
	return budget_reserve(account, bytes, path) ? NULL : budget_error(account, path);
}

struct sym_error *budget_check_time(struct budget_account *account, const char *path)
{
	return budget_has_time(account, BUDGET_CPU, path) ? NULL : budget_error(account, path);
}
