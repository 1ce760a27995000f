/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/run_budget.h"

#include <stdlib.h>
#include <string.h>

#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"

struct run_budget {
	struct sym_budget *budget;
	char *said; /* the last message; NULL: none yet */
	double step_s;
};

bool run_budget_begin(struct options *options)
{
	struct sym_error *error;

	if (options->no_limits)
		return true;
	options->run_budget = calloc(1, sizeof(*options->run_budget));
	error = options->run_budget ? sym_budget_create(NULL, &options->run_budget->budget) : NULL;
	if (!options->run_budget || error) {
		message("out of memory");
		sym_error_destroy(error);
		return false;
	}
	options->budget = options->run_budget->budget;
	options->run_budget->step_s = monotonic_seconds();
	return true;
}

static void say_excess(struct run_budget *run)
{
	const char *excess = sym_budget_excess(run->budget);

	if (!excess || (run->said && !strcmp(run->said, excess)))
		return;
	message("%s; --no-limits removes the limit", excess);
	free(run->said);
	run->said = strdup(excess);
}

void run_budget_step(const struct options *options)
{
	struct run_budget *run = options->run_budget;

	if (!run)
		return;
	say_excess(run);
	sym_budget_begin_step(run->budget);
	run->step_s = monotonic_seconds();
}

void run_budget_step_if_due(const struct options *options)
{
	const double step_s = 60;

	if (options->run_budget && monotonic_seconds() - options->run_budget->step_s >= step_s)
		run_budget_step(options);
}

int run_budget_end(struct options *options, int exit_code)
{
	struct run_budget *run = options->run_budget;

	if (!run)
		return exit_code;
	say_excess(run);
	if (run->said && exit_code == EXIT_DONE)
		exit_code = EXIT_PARTLY;
	sym_budget_destroy(run->budget);
	free(run->said);
	free(run);
	options->run_budget = NULL;
	options->budget = NULL;
	return exit_code;
}
