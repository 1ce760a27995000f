/* SPDX-License-Identifier: MIT */
/*
 * Makes the symbol file for the code memory of a process. What lies between the symbols gets a name
 * of its own; otherwise an address there would be a number among names.
 */
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "mapgen/perfdata/fixup_internal.h"

static const char unnamed_code[] = "[unnamed code]";

static int by_start(const void *left, const void *right)
{
	const struct recorded_mapping *const *a = left, *const *b = right;

	return (*a)->start_address < (*b)->start_address
		       ? -1
		       : (*a)->start_address > (*b)->start_address;
}

struct recorded_mapping **process_fixup_choose(const struct process_fixup *process_fixup,
					       choose_mapping_fn *is_wanted, size_t *count_ret)
{
	struct recorded_mapping **chosen =
		calloc(process_fixup->count + 1, sizeof(struct recorded_mapping *));
	size_t count = 0;

	for (size_t i = 0; chosen && i < process_fixup->count; i++)
		if (!is_wanted || is_wanted(process_fixup, &process_fixup->mappings[i]))
			chosen[count++] = &process_fixup->mappings[i];
	if (count)
		qsort(chosen, count, sizeof(*chosen), by_start);
	*count_ret = count;
	return chosen;
}

/* Symbols and the memory between them, in one ascending list. */
struct filling {
	struct sym_symbol *fillers;
	size_t filler_count;
	const struct sym_symbol **all;
	size_t count;
	uint64_t position; /* everything before it is done */
};

static void fixup_code_fill(struct filling *filling, uint64_t end)
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

/* All memory with code; false when out of memory. */
static bool all_ranges(const struct code_names *names, struct address_ranges *ret)
{
	const struct address_ranges *more = names->unrecorded;
	bool done = true;

	for (size_t i = 0; done && i < names->mapping_count; i++)
		done = address_ranges_append(ret, names->mappings[i]->start_address,
					     names->mappings[i]->end_address);
	for (size_t i = 0; done && more && i < more->count; i++)
		done = address_ranges_append(ret, more->items[i].start, more->items[i].end);
	address_ranges_unite(ret);
	return done;
}

static void fixup_code_keep(struct filling *filling, const struct sym_symbol *symbol)
{
	filling->all[filling->count++] = symbol;
	if (symbol->start + symbol->size_bytes > filling->position)
		filling->position = symbol->start + symbol->size_bytes;
}

/* At most one filler before each symbol, and one at the end of each range. */
static void fixup_code_merge(const struct code_names *names, const struct address_ranges *ranges,
			     struct filling *filling)
{
	size_t at = 0;

	for (size_t i = 0; i < ranges->count; i++) {
		const struct address_range *range = &ranges->items[i];

		/* Symbols outside of all ranges are not changed. */
		while (at < names->symbol_count && names->symbols[at]->start < range->start)
			fixup_code_keep(filling, names->symbols[at++]);
		if (filling->position < range->start)
			filling->position = range->start;
		while (at < names->symbol_count && names->symbols[at]->start < range->end) {
			fixup_code_fill(filling, names->symbols[at]->start);
			fixup_code_keep(filling, names->symbols[at++]);
		}
		fixup_code_fill(filling, range->end);
	}
	while (at < names->symbol_count)
		fixup_code_keep(filling, names->symbols[at++]);
}

/* Counts the samples that get the name "[unnamed code]". */
static void count_samples(struct process_fixup *process_fixup, const struct filling *filling,
			  const struct address_ranges *ranges)
{
	const struct sampled_pages *hits = process_fixup->plan->hits;
	struct planned_process *process = process_fixup->process;

	for (size_t i = 0; i < ranges->count; i++)
		process->code_samples +=
			sampled_pages_count(hits, ranges->items[i].start, ranges->items[i].end);
	for (size_t i = 0; i < filling->filler_count; i++)
		process->unnamed_samples += sampled_pages_count(
			hits, filling->fillers[i].start,
			filling->fillers[i].start + filling->fillers[i].size_bytes);
}

/* perf annotates only functions with samples of their own. */
static bool hit_ranges(const struct fixup_plan *plan, const struct code_names *names,
		       struct address_ranges *ret)
{
	bool done = true;

	for (size_t i = 0; done && i < names->symbol_count; i++) {
		uint64_t start = names->symbols[i]->start;
		uint64_t end = start + names->symbols[i]->size_bytes;

		if (sampled_pages_in(plan->hits, start, end))
			done = address_ranges_append(ret, start, end);
	}
	return done;
}

static struct sym_error *make_code_symfile(struct process_fixup *process_fixup,
					   const struct code_names *names, uint32_t *index_ret)
{
	struct fixup_plan *plan = process_fixup->plan;
	int memory_fd = process_fixup->memory_fd;
	struct sym_symbol *fillers AUTO_FREE = NULL;
	const struct sym_symbol **all AUTO_FREE = NULL;
	struct address_ranges ranges = { 0 }, code = { 0 };
	struct filling filling;
	struct symbol_run run;
	struct sym_error *failure;
	bool united =
		all_ranges(names, &ranges) && (memory_fd < 0 || hit_ranges(plan, names, &code));
	size_t most = names->symbol_count + ranges.count + 1;

	fillers = calloc(most, sizeof(*fillers));
	all = calloc(2 * most, sizeof(const struct sym_symbol *));
	filling = (struct filling){ .fillers = fillers, .all = all };
	if (united && fillers && all) {
		fixup_code_merge(names, &ranges, &filling);
		run = (struct symbol_run){ .symbols = all,
					   .count = filling.count,
					   .origin = names->origin,
					   .label = "[jit]",
					   .code = memory_fd < 0 ? NULL : &code,
					   .code_source = { memory_fd, 0 },
					   .lines_of = process_fixup->snapshot };
		failure = fixup_make_symfile(plan, &run, index_ret);
		count_samples(process_fixup, &filling, &ranges);
	} else {
		failure = &sym_error_no_memory;
	}
	address_ranges_deinit(&ranges);
	address_ranges_deinit(&code);
	return failure;
}

struct sym_error *process_fixup_name_code(struct process_fixup *process_fixup,
					  const struct code_names *names)
{
	bool anonymous = process_fixup->plan->anonymous;
	uint32_t standin = NO_SYMFILE;
	struct sym_error *failure =
		anonymous ? NULL : make_code_symfile(process_fixup, names, &standin);

	for (size_t i = 0; !failure && i < names->mapping_count; i++)
		process_fixup_fix(process_fixup, names->mappings[i],
				  anonymous ? RECORDED_ANONYMOUS : RECORDED_ADDRESSES, standin);
	for (size_t i = 0; !failure && i < names->symbol_count; i++)
		process_fixup->process->code_names +=
			names->symbols[i]->kind != SYM_SYMBOL_STUB &&
			names->symbols[i]->source != SYM_SOURCE_READYTORUN;
	return failure;
}

/* Counts the samples in recorded memory with code: in all of it, or in what has names. */
static uint64_t samples_in_code(const struct process_fixup *process_fixup, bool with_names)
{
	struct address_ranges ranges = { 0 };
	uint64_t samples = 0;

	for (size_t i = 0; i < process_fixup->count; i++) {
		const struct recorded_mapping *mapping = &process_fixup->mappings[i];

		if (mapping_class_of(mapping->name) == MAPPING_CODE &&
		    (!with_names || mapping->fix != RECORDED_AS_IT_IS || is_fixed_already(mapping)))
			(void)address_ranges_append(&ranges, mapping->start_address,
						    mapping->end_address);
	}
	address_ranges_unite(&ranges);
	for (size_t i = 0; i < ranges.count; i++)
		samples += sampled_pages_count(process_fixup->plan->hits, ranges.items[i].start,
					       ranges.items[i].end);
	address_ranges_deinit(&ranges);
	return samples;
}

void process_fixup_count_lost(struct process_fixup *process_fixup)
{
	process_fixup->process->lost_samples =
		samples_in_code(process_fixup, false) - samples_in_code(process_fixup, true);
}
