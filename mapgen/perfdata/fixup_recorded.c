/* SPDX-License-Identifier: MIT */
/*
 * Whether a live process is the recorded one. A recorded mapping is still there when the process
 * maps the same file at the same address and offset now. Addresses are random, so this is true for
 * no other process.
 */
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/format/linux/mapping_name.h"
#include "mapgen/perfdata/fixup_internal.h"

static size_t first_mapping_behind(const struct sym_snapshot *snapshot, uint64_t address)
{
	return ASCENDING_COUNT(sym_snapshot_mapping_count(snapshot), i,
			       sym_snapshot_mapping_at(snapshot, i)->end_address <= address);
}

/* perf writes the paths of processes that ran before it as /proc/PID/maps prints them, with a
 * newline as "\\012"; paths of later mappings come unchanged from the kernel. */
static bool same_name(const char *recorded, const char *path)
{
	static const char newline[] = "\\012";

	for (; *path; path++) {
		if (*path == '\n' && !strncmp(recorded, newline, sizeof(newline) - 1))
			recorded += sizeof(newline) - 1;
		else if (*recorded++ != *path)
			return false;
	}
	return !*recorded || !strcmp(recorded, " (deleted)");
}

static bool shows_the_same(const struct recorded_mapping *recorded, const struct sym_mapping *now)
{
	if (!now->inode)
		return mapping_class_of(recorded->name) == MAPPING_CODE &&
		       mapping_name_kind(recorded->name, strlen(recorded->name)) !=
			       MAPPING_NAME_MEMORY_FILE;
	if (recorded->offset - recorded->start_address != now->offset - now->start_address)
		return false;
	if (!recorded->has_room || recorded->has_build_id)
		return same_name(recorded->name, now->path);
	return recorded->inode == now->inode && recorded->device_major == now->device_major &&
	       recorded->device_minor == now->device_minor;
}

const struct sym_mapping *fixup_find_now(const struct sym_snapshot *snapshot,
					 const struct recorded_mapping *recorded)
{
	size_t count = sym_snapshot_mapping_count(snapshot);
	const struct sym_mapping *found = NULL;

	for (size_t i = first_mapping_behind(snapshot, recorded->start_address); i < count; i++) {
		const struct sym_mapping *now = sym_snapshot_mapping_at(snapshot, i);

		if (now->start_address >= recorded->end_address)
			break;
		if (!(now->protection & SYM_EXECUTE))
			continue;
		if (!shows_the_same(recorded, now))
			return NULL;
		if (!found)
			found = now;
	}
	return found;
}

bool fixup_may_be_file(const struct recorded_mapping *mapping)
{
	return mapping_class_of(mapping->name) == MAPPING_FILE ||
	       mapping_name_kind(mapping->name, strlen(mapping->name)) == MAPPING_NAME_MEMORY_FILE;
}

bool plan_has_recorded(const struct recorded_mapping *mappings, size_t count,
		       const struct sym_snapshot *snapshot)
{
	for (size_t i = 0; i < count; i++) {
		/* Added mappings come from the live process itself. */
		if (!mappings[i].is_added && fixup_may_be_file(&mappings[i]) &&
		    fixup_find_now(snapshot, &mappings[i]))
			return true;
	}
	return false;
}

/* All mappings may have been added: then the process was compared before. */
bool fixup_is_the_recorded(const struct recorded_mapping *mappings, size_t count,
			   const struct sym_snapshot *snapshot)
{
	bool is_recorded = false;

	for (size_t i = 0; i < count; i++)
		is_recorded |= !mappings[i].is_added && fixup_may_be_file(&mappings[i]);
	return is_recorded ? plan_has_recorded(mappings, count, snapshot)
			   : count && mappings[0].is_added;
}
