/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: limits on memory and time.
 */
#ifndef LIBSYM_SYM_BUDGET_H
#define LIBSYM_SYM_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------
 * Budgets
 * ------------------------------------------------------------------------ */

/** No limit, for a field of sym_budget_opts. */
#define SYM_BUDGET_UNLIMITED UINT64_MAX

/**
 * The limits of a budget; 0 selects the default.
 *
 * Foreign input belongs to neither root nor the caller.
 * A file belongs to its owner.
 * Memory and sockets belong to the user of their process.
 */
struct sym_budget_opts {
	size_t size;           /**< sizeof(struct sym_budget_opts) */
	uint64_t memory_bytes; /**< memory for foreign input; default: 512 MB */
	uint64_t cpu_ms;       /**< CPU time for foreign input; default: 10,000 ms */
	/** Time spent waiting for foreign input; default: 10,000 ms.
	 * Peers that are waited for at the same time count once. */
	uint64_t wait_ms;
	uint64_t own_memory_bytes; /**< memory for all other input; default: 1/4 of the machine's */
};

/**
 * A limit on the cost of input, shared by all snapshots and images opened with it.
 *
 * Without a budget only the limits of single files and tables apply.
 * Exceeding it is SYM_ERROR_LIMIT or an address without a name, and sym_budget_excess() reports it.
 * The CPU time is that of the whole process while it works on foreign input.
 * Several threads may share a budget.
 */
struct sym_budget;

/**
 * Creates a budget.
 *
 * @param opts  The limits; copied. NULL selects the defaults.
 * @param ret  The budget; free it with sym_budget_destroy().
 *
 * Errors: NO_MEMORY; ARGUMENT for options of a newer version.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_budget_create(const struct sym_budget_opts *opts,
							   struct sym_budget **ret);

/**
 * Frees a budget.
 *
 * Close all objects that were opened with it first.
 *
 * @param budget  NULL is accepted.
 */
SYM_API void sym_budget_destroy(struct sym_budget *budget);

/**
 * Starts a new step: resets the used time and the recorded excess.
 *
 * Memory in use stays counted.
 * Call it once a round in a program that repeats its work.
 *
 * @param budget  NULL is accepted.
 */
SYM_API void sym_budget_begin_step(struct sym_budget *budget);

/**
 * Describes what was refused since the budget was created or its step began.
 *
 * Use it from one thread at a time.
 *
 * @param budget  NULL is accepted.
 * @return One line for people, valid until the next call; NULL when nothing was refused.
 */
SYM_API const char *sym_budget_excess(struct sym_budget *budget);

#ifdef __cplusplus
}
#endif

#endif
