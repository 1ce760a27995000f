/* SPDX-License-Identifier: MIT */
/* The perf map of the test's own process. */
#ifndef TESTS_SUPPORT_OWN_PERF_MAP_H
#define TESTS_SUPPORT_OWN_PERF_MAP_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

struct own_perf_map {
	char path[64];
	FILE *file;
};

/* An empty map. The caller closes and removes the file. */
static inline struct own_perf_map own_perf_map_create(void)
{
	struct own_perf_map map;

	snprintf(map.path, sizeof(map.path), "/tmp/perf-%d.map", (int)getpid());
	map.file = fopen(map.path, "w");
	cr_assert_not_null(map.file);
	return map;
}

#endif
