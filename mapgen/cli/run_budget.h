/* SPDX-License-Identifier: MIT */
/*
 * The budget of one run: what input may cost (sym_budget.h), and the message when it was not
 * enough. A long run has steps, each with time of its own.
 */
#ifndef MAPGEN_CLI_RUN_BUDGET_H
#define MAPGEN_CLI_RUN_BUDGET_H

#include "mapgen/cli/options.h"

/* Puts a budget into `options`, unless --no-limits was given. False, with a message, when out of
 * memory. */
bool run_budget_begin(struct options *options);

/* Ends a step: reports what was refused in it, unless that was reported before. */
void run_budget_step(const struct options *options);

/* Ends a step at most once a minute, for commands without steps of their own. */
void run_budget_step_if_due(const struct options *options);

/* Call it after everything that uses the budget has ended. Returns `exit_code`, or EXIT_PARTLY when
 * something was refused in a run that was done. */
int run_budget_end(struct options *options, int exit_code);

#endif
