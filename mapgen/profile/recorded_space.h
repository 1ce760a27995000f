/* SPDX-License-Identifier: MIT */
/*
 * The mappings of the processes of a perf.data, by time. A forked process has those of its parent.
 * An exec() removes them.
 */
#ifndef MAPGEN_PROFILE_RECORDED_SPACE_H
#define MAPGEN_PROFILE_RECORDED_SPACE_H

#include "libsym/libsym.h"
#include "mapgen/perfdata/recorded_maps.h"

struct placed_mapping {
	const struct recorded_mapping *mapping;
	uint64_t reach; /* end of what is before it and of itself, the farthest */
};

/* A process begins: by a fork, with what the parent has, or by an exec(), with nothing. */
struct recorded_birth {
	int32_t pid;
	int32_t parent; /* 0: exec() */
	uint64_t time_ns;
};

/* The mappings of a process are others from a time on. */
struct space_change {
	int32_t pid;
	uint64_t time_ns;
};

struct recorded_space {
	struct recorded_maps maps;
	struct placed_mapping *placed; /* executable; by process and start address */
	size_t placed_count;
	struct recorded_birth *births; /* by process and time */
	size_t birth_count, birth_capacity;
	struct space_change *changes; /* by process and time */
	size_t change_count;
	uint64_t kernel_text; /* address of _text when it was recorded; 0: not known */
	char *kernel_release; /* NULL: not known */
};

/* Reads the records of a whole perf.data. Errors: FORMAT, LIMIT, IO, NO_MEMORY. */
struct sym_error *recorded_space_read(struct recorded_space *space, int fd, const char *path)
	__attribute__((warn_unused_result));
void recorded_space_deinit(struct recorded_space *space);

/* NULL: nothing executable was there. */
const struct recorded_mapping *recorded_space_find(const struct recorded_space *space, int32_t pid,
						   uint64_t time_ns, uint64_t address);

/* Between two times with the same number the mappings of a process are the same. */
uint32_t recorded_space_epoch(const struct recorded_space *space, int32_t pid, uint64_t time_ns);

/* The mappings of a process, code first, and how many of them are code. */
struct recorded_mapping *recorded_space_mappings(const struct recorded_space *space, int32_t pid,
						 size_t *code_count_ret);

#endif
