/* SPDX-License-Identifier: MIT */
#include "tests/support/alloc_fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool armed;
static bool failed;
static size_t left;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_reallocarray(void *block, size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **ret, size_t alignment, size_t size);
char *__real_strdup(const char *string);
char *__real_strndup(const char *string, size_t length);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t size);
char *__wrap_strdup(const char *string);
char *__wrap_strndup(const char *string, size_t length);

static bool fails(void)
{
	if (!armed || failed)
		return false;
	if (left) {
		left--;
		return false;
	}
	failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	return fails() ? NULL : __real_realloc(block, size);
}

void *__wrap_reallocarray(void *block, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(block, count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **ret, size_t alignment, size_t size)
{
	return fails() ? ENOMEM : __real_posix_memalign(ret, alignment, size);
}

char *__wrap_strdup(const char *string)
{
	return fails() ? NULL : __real_strdup(string);
}

char *__wrap_strndup(const char *string, size_t length)
{
	return fails() ? NULL : __real_strndup(string, length);
}

void alloc_fail_after(size_t allocations)
{
	left = allocations;
	failed = false;
	armed = true;
}

bool alloc_fail_stop(void)
{
	armed = false;
	return failed;
}

size_t alloc_fail_each(bool (*run)(void *context), void *context)
{
	size_t runs = 0;

	do {
		alloc_fail_after(runs);
		run(context);
		runs++;
	} while (alloc_fail_stop());
	return runs;
}
