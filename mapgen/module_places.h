/* SPDX-License-Identifier: MIT */
/*
 * Where the files that perf script names in parentheses are executed in a
 * process: "(/memfd:doublemapper (deleted))" beside a number that is an offset
 * into that file, or an address, as the version of perf has it.
 */
#ifndef MAPGEN_MODULE_PLACES_H
#define MAPGEN_MODULE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sym_mapping;
struct sym_snapshot;

struct module_places {
	const struct sym_mapping **mappings; /* executable, with a path; by path, then offset */
	size_t count;
	/* Those of the module asked for last. */
	size_t first, last;
};

/* Borrows from the snapshot. False: out of memory. */
bool module_places_init(struct module_places *places, const struct sym_snapshot *snapshot);
void module_places_deinit(struct module_places *places);

/* What a number beside a module may be. */
enum module_meaning {
	MODULE_NOTHING = 0, /* the module is not mapped, or it is nowhere in it */
	MODULE_ADDRESS = 1,
	MODULE_OFFSET = 2,
	/* Of a large program at a low address nearly all numbers (Go: 0x400000). */
	MODULE_EITHER = MODULE_ADDRESS | MODULE_OFFSET,
};

/* `*address_ret`: the address that it is as an offset, when it may be one. */
enum module_meaning module_places_find(struct module_places *places, const char *module,
				       size_t module_bytes, uint64_t value, uint64_t *address_ret);

/* True for what perf prints of memory that is no file, beside which it prints addresses. */
bool module_is_memory(const char *module, size_t module_bytes);

#endif
