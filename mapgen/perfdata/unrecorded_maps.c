/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/unrecorded_maps.h"

#include "libsym/base/address_ranges.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "libsym/libsym.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

enum {
	MISC_COMM_EXEC = 1 << 13,
	MOST_CHANGED = 1 << 20
};

/* The pages with samples, and the executable mappings, of one process. */
struct one_process {
	int32_t pid;
	const struct recorded_page *pages;
	size_t page_count;
	struct recorded_mapping *mappings;
	size_t count;
};

void unrecorded_maps_deinit(struct unrecorded_maps *unrecorded)
{
	address_table_deinit(&unrecorded->changed);
}

/* COMM and EXIT have the process at 8; the thread is at 12 in COMM, at 16 in EXIT. */
void unrecorded_maps_note(struct unrecorded_maps *unrecorded, const struct perf_record *record)
{
	struct reader reader = reader_over(record->bytes, record->size_bytes);
	struct range_slot *slot;
	uint32_t pid, tid;

	reader_skip(&reader, 8);
	pid = reader_u32(&reader);
	if (record->type == PERF_RECORD_EXIT)
		reader_skip(&reader, 4);
	tid = reader_u32(&reader);
	if (!reader_ok(&reader) || pid != tid || !pid ||
	    (record->type == PERF_RECORD_COMM && !(record->misc & MISC_COMM_EXEC)) ||
	    unrecorded->changed.count >= MOST_CHANGED)
		return;
	slot = address_table_slot(&unrecorded->changed, pid);
	if (slot)
		slot->value = unrecorded;
}

/* All memory in the records of a process, as they are shown. */
static bool recorded_ranges(const struct one_process *process, struct address_ranges *ret)
{
	bool done = true;

	for (size_t i = 0; done && i < process->count; i++)
		done = address_ranges_append(ret, process->mappings[i].shown_start_address,
					     process->mappings[i].shown_end_address);
	address_ranges_unite(ret);
	return done;
}

/* The next process with samples, in the order of both lists; false: there is none. */
static bool next_process(const struct recorded_page *pages, size_t page_count,
			 const struct recorded_maps *maps, struct one_process *ret)
{
	size_t first = ret->pages ? (size_t)(ret->pages - pages) + ret->page_count : 0, end = first;
	size_t i = ret->mappings ? (size_t)(ret->mappings - maps->items) + ret->count : 0;

	if (first == page_count)
		return false;
	while (end < page_count && pages[end].pid == pages[first].pid)
		end++;
	while (i < maps->count && maps->items[i].pid < pages[first].pid)
		i++;
	*ret = (struct one_process){
		.pid = pages[first].pid,
		.pages = &pages[first],
		.page_count = end - first,
		.mappings = &maps->items[i],
	};
	while (i < maps->count && maps->items[i].pid == ret->pid && !maps->items[i].is_data) {
		ret->count++;
		i++;
	}
	return true;
}

static bool is_wanted(const struct options *options, int32_t pid)
{
	return !options->pid || options->pid == pid || target_of_thread(options->pid, NULL) == pid;
}

/* ---- adding ------------------------------------------------------------------------------ */

static bool has_outside(const struct one_process *process, const struct address_ranges *ranges)
{
	for (size_t i = 0; i < process->page_count; i++)
		if (!address_ranges_contain(ranges, process->pages[i].address, 0))
			return true;
	return false;
}

static bool is_of_that_time(const struct one_process *process, const struct sym_snapshot *snapshot,
			    const struct options *options, int64_t recorded_until)
{
	int64_t started_s = target_started_s(snapshot, options);
	bool any = false;

	if (!started_s || started_s > recorded_until)
		return false;
	for (size_t i = 0; i < process->count; i++)
		any |= mapping_class_of(process->mappings[i].name) == MAPPING_FILE;
	return !any || plan_has_recorded(process->mappings, process->count, snapshot);
}

static bool add_mapping(struct recorded_maps *maps, int32_t pid, const struct sym_mapping *mapping)
{
	const char *path = *mapping->path ? mapping->path : "//anon";
	char *name AUTO_FREE = message_format("%s%s", path, mapping->deleted ? " (deleted)" : "");

	return name && recorded_maps_add(maps, &(struct recorded_mapping){
						       .pid = pid,
						       .device_major = mapping->device_major,
						       .device_minor = mapping->device_minor,
						       .inode = mapping->inode,
						       .start_address = mapping->start_address,
						       .end_address = mapping->end_address,
						       .offset = mapping->offset,
						       .name = name,
					       });
}

/* Such a record can be extended over memory with code (fixup_gaps.c). */
static bool has_code_record(const struct one_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		if (process->mappings[i].is_first_sight &&
		    mapping_class_of(process->mappings[i].name) == MAPPING_CODE)
			return true;
	return false;
}

/* Executable mappings that are in no record. */
static bool add_mappings(struct unrecorded_maps *unrecorded, const struct one_process *process,
			 const struct sym_snapshot *snapshot, const struct address_ranges *ranges,
			 struct recorded_maps *maps)
{
	bool without_code = has_code_record(process);

	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (!(mapping->protection & SYM_EXECUTE) ||
		    address_ranges_overlap(ranges, mapping->start_address, mapping->end_address) ||
		    (without_code && mapping_class_of(mapping->path) == MAPPING_CODE))
			continue;
		if (!add_mapping(maps, process->pid, mapping))
			return false;
		unrecorded->added++;
	}
	return true;
}

/* For a process that cannot be looked at, the samples are counted. */
static bool add_of_process(struct unrecorded_maps *unrecorded, const struct options *options,
			   const struct one_process *process, int64_t recorded_until,
			   struct recorded_maps *maps)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_NONE };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct address_ranges ranges = { 0 };
	struct sym_error *error = NULL;
	bool done = recorded_ranges(process, &ranges);

	if (done && has_outside(process, &ranges) &&
	    !address_table_find(&unrecorded->changed, (uint64_t)process->pid)) {
		error = sym_snapshot_open(process->pid, &opts, &snapshot);
		if (!error && is_of_that_time(process, snapshot, options, recorded_until))
			done = add_mappings(unrecorded, process, snapshot, &ranges, maps);
	}
	sym_error_destroy(error);
	address_ranges_deinit(&ranges);
	return done;
}

/* Appends the added mappings, so that the places of the others stay valid. */
bool unrecorded_maps_add(struct unrecorded_maps *unrecorded, const struct options *options,
			 const struct sampled_pages *hits, int64_t recorded_until,
			 struct recorded_maps *maps)
{
	size_t page_count = 0;
	struct recorded_page *pages AUTO_FREE = sampled_pages_pages(hits, &page_count);
	struct recorded_maps before = *maps, added = { 0 };
	struct one_process process = { 0 };
	bool done = true;

	if (options->root)
		return true;
	while (done && next_process(pages, page_count, &before, &process))
		if (is_wanted(options, process.pid))
			done = add_of_process(unrecorded, options, &process, recorded_until,
					      &added);
	for (size_t i = 0; done && i < added.count; i++)
		done = recorded_maps_add(maps, &added.items[i]);
	recorded_maps_deinit(&added);
	recorded_maps_sort(maps);
	return done;
}

/* ---- counting ---------------------------------------------------------------------------- */

static void count_process(struct unrecorded_maps *unrecorded, const struct one_process *process,
			  const struct address_ranges *ranges)
{
	uint64_t outside = 0;

	for (size_t i = 0; i < process->page_count; i++) {
		unrecorded->samples += process->pages[i].samples;
		if (!address_ranges_contain(ranges, process->pages[i].address, 0))
			outside += process->pages[i].samples;
	}
	unrecorded->outside += outside;
	unrecorded->processes += outside != 0;
}

bool unrecorded_maps_count(struct unrecorded_maps *unrecorded, const struct options *options,
			   const struct sampled_pages *hits, const struct recorded_maps *maps)
{
	size_t page_count = 0;
	struct recorded_page *pages AUTO_FREE = sampled_pages_pages(hits, &page_count);
	struct one_process process = { 0 };
	bool done = true;

	while (done && next_process(pages, page_count, maps, &process)) {
		struct address_ranges ranges = { 0 };

		if (!is_wanted(options, process.pid))
			continue;
		done = recorded_ranges(&process, &ranges);
		if (done)
			count_process(unrecorded, &process, &ranges);
		address_ranges_deinit(&ranges);
	}
	return done;
}
