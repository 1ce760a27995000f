/* SPDX-License-Identifier: MIT */
/*
 * Makes the n-th allocation of our own code fail (malloc, calloc, realloc, reallocarray, strdup,
 * strndup, aligned_alloc, called from objects that are linked with --wrap). A test counts the
 * allocations of a run, then repeats it with each of them failing in turn.
 */
#ifndef TESTS_SUPPORT_ALLOC_FAIL_H
#define TESTS_SUPPORT_ALLOC_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Lets `allocations` allocations succeed, then fails the next one, once. */
void alloc_fail_after(size_t allocations);

/* Ends failing. Returns true if an allocation has failed since alloc_fail_after(). */
bool alloc_fail_stop(void);

/*
 * Runs `run(context)` with allocation 0, 1, 2, ... failing, until a run needs
 * fewer than that. `run` checks its own results, cleans up either way, and
 * returns whether it succeeded. Returns the number of runs, the last of which
 * met no failure.
 */
size_t alloc_fail_each(bool (*run)(void *context), void *context);

#endif
