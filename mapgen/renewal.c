/* SPDX-License-Identifier: MIT */
#include "mapgen/renewal.h"

#include "libsym/libsym.h"
#include "mapgen/seconds.h"
#include "mapgen/target.h"

/* Of the time. */
static const double share = 0.25;
static const double most_saved_s = 1;
/* While nothing is missed, or looking for it was in vain. */
static const double shortest_wait_s = 0.05;
/* A runtime that is followed hands on what it tells every 0.1 s. */
static const struct timespec delay = { .tv_nsec = 120 * 1000 * 1000 };
/* A runtime that did not answer one in time is not asked by others. */
static const double longest_service_s = 30;

void renewal_begin(struct renewal *renewal, double cost_s)
{
	double now_s = seconds_now();

	*renewal = (struct renewal){ .ended_s = now_s,
				     .saved_s = -share * cost_s,
				     .counted_s = now_s,
				     .has_said = renewal->has_said,
				     .comes_late = renewal->comes_late };
}

static bool is_due(struct renewal *renewal, double now_s, bool is_missed)
{
	renewal->saved_s += share * (now_s - renewal->counted_s);
	renewal->counted_s = now_s;
	if (renewal->saved_s > most_saved_s)
		renewal->saved_s = most_saved_s;
	return renewal->saved_s >= 0 && ((is_missed && !renewal->was_in_vain) ||
					 now_s - renewal->ended_s >= shortest_wait_s);
}

bool renewal_take(struct renewal *renewal, struct sym_resolver *resolver, struct sym_snapshot *told,
		  bool is_missed)
{
	enum sym_refresh found = SYM_REFRESH_ENDED;
	double now_s = seconds_now();

	if (!is_due(renewal, now_s, is_missed))
		return false;
	/* What it has just compiled. */
	if (is_missed && renewal->comes_late && renewal->has_begun && !renewal->was_in_vain)
		nanosleep(&delay, NULL);
	sym_error_destroy(sym_resolver_refresh(resolver, &found));
	renewal->ended_s = seconds_now();
	if (renewal->has_begun)
		renewal->saved_s -= renewal->ended_s - now_s;
	renewal->has_begun = true;
	if (told && !renewal->has_said)
		renewal->comes_late = target_say_followed(told);
	renewal->has_said |= told != NULL;
	renewal->was_in_vain = found == SYM_REFRESH_NOTHING || found == SYM_REFRESH_ENDED;
	if (found == SYM_REFRESH_ENDED)
		renewal->serves_until_s = 0;
	else if (found != SYM_REFRESH_NOTHING)
		renewal->serves_until_s = renewal->ended_s + longest_service_s;
	return !renewal->was_in_vain;
}

bool renewal_serves(const struct renewal *renewal)
{
	return seconds_now() < renewal->serves_until_s;
}
