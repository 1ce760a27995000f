/* SPDX-License-Identifier: MIT */
/*
 * The part of name_plan.c that makes the stand-in of a process's code memory. What
 * lies between the symbols gets a name that says so: an address in it would stand
 * as a number among the names otherwise.
 */
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "mapgen/name_plan_internal.h"

static const char unnamed_code[] = "[unnamed code]";

static int by_start(const void *left, const void *right)
{
	const struct recorded_mapping *const *a = left, *const *b = right;

	return (*a)->start_address < (*b)->start_address
		       ? -1
		       : (*a)->start_address > (*b)->start_address;
}

void sort_mappings(struct recorded_mapping **mappings, size_t count)
{
	if (count)
		qsort(mappings, count, sizeof(*mappings), by_start);
}

/* Symbols and what is between them, in one ascending list. */
struct filling {
	struct sym_symbol *fillers;
	size_t filler_count;
	const struct sym_symbol **all;
	size_t count;
	uint64_t position; /* everything before it is done */
};

static void fill(struct filling *filling, uint64_t end)
{
	struct sym_symbol *filler = &filling->fillers[filling->filler_count];

	if (filling->position >= end)
		return;
	*filler = (struct sym_symbol){
		.start = filling->position,
		.size_bytes = end - filling->position,
		.name = unnamed_code,
		.kind = SYM_SYMBOL_STUB,
	};
	filling->all[filling->count++] = filler;
	filling->filler_count++;
	filling->position = end;
}

/* At most one filler before each symbol and one at the end of each mapping. */
static void merge(const struct code_names *names, struct filling *filling)
{
	size_t at = 0;

	for (size_t i = 0; i < names->mapping_count; i++) {
		const struct recorded_mapping *mapping = names->mappings[i];

		/* Symbols outside of all mappings stay what they are. */
		for (;
		     at < names->symbol_count && names->symbols[at]->start < mapping->start_address;
		     at++) {
			const struct sym_symbol *symbol = names->symbols[at];

			filling->all[filling->count++] = symbol;
			if (symbol->start + symbol->size_bytes > filling->position)
				filling->position = symbol->start + symbol->size_bytes;
		}
		if (filling->position < mapping->start_address)
			filling->position = mapping->start_address;
		for (; at < names->symbol_count && names->symbols[at]->start < mapping->end_address;
		     at++) {
			const struct sym_symbol *symbol = names->symbols[at];

			fill(filling, symbol->start);
			filling->all[filling->count++] = symbol;
			if (symbol->start + symbol->size_bytes > filling->position)
				filling->position = symbol->start + symbol->size_bytes;
		}
		fill(filling, mapping->end_address);
	}
	while (at < names->symbol_count)
		filling->all[filling->count++] = names->symbols[at++];
}

char *deciding_name_code(struct deciding *deciding, const struct code_names *names)
{
	bool anonymous = deciding->plan->anonymous;
	size_t most = names->symbol_count + names->mapping_count + 1;
	struct sym_symbol *fillers AUTO_FREE = calloc(most, sizeof(*fillers));
	const struct sym_symbol **all AUTO_FREE =
		calloc(2 * most, sizeof(const struct sym_symbol *));
	struct filling filling = { .fillers = fillers, .all = all };
	uint32_t standin = NO_STANDIN;
	char *failure = NULL;

	if (!fillers || !all)
		return message_format("out of memory");
	merge(names, &filling);
	if (!anonymous) {
		struct symbol_run run = { all, filling.count, names->origin, "[jit]" };

		failure = plan_make_standin(deciding->plan, &run, &standin);
	}
	for (size_t i = 0; !failure && i < names->mapping_count; i++)
		deciding_fix(deciding, names->mappings[i],
			     anonymous ? RECORDED_ANONYMOUS : RECORDED_ADDRESSES, standin);
	for (size_t i = 0; !failure && i < names->symbol_count; i++)
		deciding->process->code_names += names->symbols[i]->kind != SYM_SYMBOL_STUB &&
						 names->symbols[i]->source != SYM_SOURCE_READYTORUN;
	return failure;
}
