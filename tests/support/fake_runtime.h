/* SPDX-License-Identifier: MIT */
/*
 * A real process that looks like a .NET runtime from outside, for machines without .NET. It maps a
 * libcoreclr.so of a framework directory, and the precompiled sample of fixtures/recorded as a
 * runtime maps it. On request it writes a perf map like the runtime (no O_APPEND, its own offset,
 * one write per line). It runs no managed code.
 */
#ifndef TESTS_SUPPORT_FAKE_RUNTIME_H
#define TESTS_SUPPORT_FAKE_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	FAKE_RUNTIME_CODE = 0x10000, /* executable memory without any code */
	FAKE_RUNTIME_CODE_BYTES = 0x20000
};

struct fake_runtime {
	pid_t pid;
	int commands;
	int answers;
	char *map_path;   /* where tools search for its perf map */
	char *image_path; /* the mapped sample, a copy in the scratch directory */
	uint64_t load_base;
	char pid_text[16];
};

struct fake_runtime *fake_runtime_start(const char *scratch, bool writes_map);

/* Makes it write `text` to its map in one write; returns when that is done. */
void fake_runtime_write(struct fake_runtime *runtime, const char *text);

/* Kills it and removes the maps of its id. */
void fake_runtime_stop(struct fake_runtime *runtime);

#endif
