/* SPDX-License-Identifier: MIT */
#include "mapgen/renewal.h"

#include "libsym/libsym.h"
#include "mapgen/seconds.h"
#include "mapgen/target.h"

/* Of the time. */
static const double share = 0.25;
static const double most_saved_s = 1;
static const double shortest_wait_s = 0.05;
/* A runtime that is followed hands on what it tells every 0.1 s. */
static const struct timespec delay = { .tv_nsec = 120 * 1000 * 1000 };
/* A runtime that did not answer one in time is not asked by others. */
static const double longest_service_s = 30;

void renewal_begin(struct renewal *renewal, double cost_s)
{
	*renewal = (struct renewal){ .next_s = seconds_now() + cost_s,
				     .has_said = renewal->has_said,
				     .comes_late = renewal->comes_late };
}

/* What is missing may have come since the last one. */
static bool is_hopeful(const struct renewal *renewal, bool is_missed)
{
	return is_missed && renewal->has_begun && !renewal->was_in_vain;
}

static bool is_due(const struct renewal *renewal, struct renewal_purse *purse, double now_s,
		   bool is_missed)
{
	purse->saved_s += share * (now_s - purse->counted_s);
	purse->counted_s = now_s;
	if (purse->saved_s > most_saved_s)
		purse->saved_s = most_saved_s;
	return purse->saved_s >= 0 && (now_s >= renewal->next_s || is_hopeful(renewal, is_missed));
}

static void refresh(struct renewal *renewal, struct sym_resolver *resolver, bool is_missed)
{
	enum sym_refresh found = SYM_REFRESH_ENDED;

	/* For what it has just compiled. */
	if (renewal->comes_late && is_hopeful(renewal, is_missed))
		nanosleep(&delay, NULL);
	sym_error_destroy(sym_resolver_refresh(resolver, &found));
	renewal->was_in_vain = found == SYM_REFRESH_NOTHING || found == SYM_REFRESH_ENDED;
	if (found == SYM_REFRESH_ENDED)
		renewal->serves_until_s = 0;
	else if (found != SYM_REFRESH_NOTHING)
		renewal->serves_until_s = seconds_now() + longest_service_s;
}

bool renewal_take(struct renewal *renewal, struct renewal_purse *purse,
		  struct sym_resolver *resolver, struct sym_snapshot *told, bool is_missed)
{
	double begin_s = seconds_now(), end_s;

	if (!is_due(renewal, purse, begin_s, is_missed))
		return false;
	refresh(renewal, resolver, is_missed);
	end_s = seconds_now();
	/* The first was waited for. */
	if (renewal->has_begun)
		purse->saved_s -= end_s - begin_s;
	renewal->has_begun = true;
	renewal->next_s = end_s + shortest_wait_s;
	if (told && !renewal->has_said)
		renewal->comes_late = target_say_followed(told);
	renewal->has_said |= told != NULL;
	return !renewal->was_in_vain;
}

bool renewal_serves(const struct renewal *renewal)
{
	return seconds_now() < renewal->serves_until_s;
}
