/* SPDX-License-Identifier: MIT */
/*
 * A real process that looks like a .NET runtime from outside, for machines
 * without one: it has a libcoreclr.so of a framework directory mapped, the
 * precompiled sample of fixtures/recorded as a runtime maps it, and on request
 * writes a perf map in the way of the runtime (no O_APPEND, its own offset, one
 * write a line). Runs no managed code.
 */
#ifndef TESTS_SUPPORT_FAKE_RUNTIME_H
#define TESTS_SUPPORT_FAKE_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fake_runtime {
	pid_t pid;
	int commands;
	int answers;
	char *map_path;   /* where tools look for its perf map */
	char *image_path; /* the mapped sample, a copy below the scratch directory */
	uint64_t load_base;
	char pid_text[16];
};

struct fake_runtime *fake_runtime_start(const char *scratch, bool writes_map);

/* Has it write `text` to its map in one write; returns when that is done. */
void fake_runtime_write(struct fake_runtime *runtime, const char *text);

/* Kills it, and removes the maps of its number. */
void fake_runtime_stop(struct fake_runtime *runtime);

#endif
