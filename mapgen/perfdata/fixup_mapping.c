/* SPDX-License-Identifier: MIT */
/* One recorded mapping: its kind by its name, and its fix. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/format/linux/mapping_name.h"
#include "mapgen/perfdata/fixup_internal.h"
#include "mapgen/symfile/symfile.h"

enum mapping_class mapping_class_of(const char *name)
{
	switch (mapping_name_kind(name, strlen(name))) {
	case MAPPING_NAME_MEMORY:
	case MAPPING_NAME_MEMORY_FILE:
		return MAPPING_CODE;
	case MAPPING_NAME_FILE:
		return *name == '/' ? MAPPING_FILE : MAPPING_OTHER;
	case MAPPING_NAME_KERNEL:
		break;
	}
	return MAPPING_OTHER;
}

bool is_fixed_already(const struct recorded_mapping *mapping)
{
	return mapping->has_build_id &&
	       !memcmp(mapping->build_id_start, symfile_id_mark, sizeof(symfile_id_mark));
}

void process_fixup_fail(struct process_fixup *process_fixup, const char *subject,
			struct sym_error *error)
{
	process_fixup_complain(process_fixup, subject,
			       message_format("%s", sym_error_message(error)));
	sym_error_destroy(error);
}

void process_fixup_complain(struct process_fixup *process_fixup, const char *subject, char *reason)
{
	struct failures *failures = &process_fixup->process->failures;

	if (failures_have(failures, subject))
		free(reason);
	else
		failures_add(failures, subject, reason);
}

bool process_fixup_is_hit(const struct process_fixup *process_fixup,
			  const struct recorded_mapping *mapping)
{
	return sampled_pages_in(process_fixup->plan->hits, mapping->start_address,
				mapping->end_address);
}

/* Several mappings may show one file. */
static void count_file(struct process_fixup *process_fixup, uint32_t standin)
{
	for (size_t i = 0; i < process_fixup->count; i++)
		if (process_fixup->mappings[i].fix == RECORDED_BUILD_ID &&
		    process_fixup->mappings[i].standin == standin)
			return;
	if (process_fixup->plan->symfiles[standin].native_bytes) {
		process_fixup->process->native_images++;
		process_fixup->process->native_functions +=
			process_fixup->plan->symfiles[standin].symbols;
		process_fixup->process->native_unnamed +=
			process_fixup->plan->symfiles[standin].unnamed;
		return;
	}
	process_fixup->process->images++;
	process_fixup->process->methods += process_fixup->plan->symfiles[standin].symbols;
}

void process_fixup_fix(struct process_fixup *process_fixup, struct recorded_mapping *mapping,
		       enum recorded_fix fix, uint32_t standin)
{
	if (fix != RECORDED_ANONYMOUS && !mapping->has_room) {
		process_fixup_complain(
			process_fixup, mapping->name,
			message_format(
				"its MMAP record has no room for a build-id; use --via=perfmap"));
		return;
	}
	if (fix == RECORDED_BUILD_ID)
		count_file(process_fixup, standin);
	process_fixup->process->fixed += mapping->fix == RECORDED_AS_IT_IS;
	mapping->fix = fix;
	mapping->standin = standin;
}

size_t fixup_process_end(const struct recorded_maps *maps, size_t first, size_t *code_count_ret)
{
	size_t end = first;

	*code_count_ret = 0;
	for (; end < maps->count && maps->items[end].pid == maps->items[first].pid; end++)
		*code_count_ret += !maps->items[end].is_data;
	return end;
}
