/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_space.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_events.h"
#include "mapgen/perfdata/perf_sample.h"

enum {
	MISC_MODE = 7,
	MISC_MODE_KERNEL = 1,
	MISC_COMM_EXEC = 1 << 13,
	MOST_ANCESTORS = 16,
	MOST_BIRTHS = 1 << 24,
};

void recorded_space_deinit(struct recorded_space *space)
{
	recorded_maps_deinit(&space->maps);
	free(space->placed);
	free(space->births);
	free(space->changes);
	free(space->kernel_release);
	*space = (struct recorded_space){ 0 };
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	struct recorded_space *space;
	struct perf_events events;
};

static uint64_t time_of(const struct reading *reading, const struct perf_record *record)
{
	struct perf_sample trailer;

	perf_events_read_id(&reading->events, record, &trailer);
	return trailer.time_ns;
}

static struct sym_error *add_birth(struct recorded_space *space, int32_t pid, int32_t parent,
				   uint64_t time_ns)
{
	if (space->birth_count == MOST_BIRTHS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d processes", MOST_BIRTHS);
	if (!grow_items((void **)&space->births, &space->birth_capacity, space->birth_count,
			sizeof(*space->births)))
		return &sym_error_no_memory;
	space->births[space->birth_count++] = (struct recorded_birth){ pid, parent, time_ns };
	return NULL;
}

/* "[kernel.kallsyms]_text": its offset in the file is the address of that symbol. */
static void take_kernel(struct recorded_space *space, const struct perf_record *record)
{
	struct reader reader = reader_over(record->bytes, record->size_bytes);
	uint64_t offset;
	const char *name;

	reader_seek(&reader, 32);
	offset = reader_u64(&reader);
	name = reader_string(&reader);
	if (name && !strcmp(name, "[kernel.kallsyms]_text"))
		space->kernel_text = offset;
}

static struct sym_error *take_mapping(struct reading *reading, const struct perf_record *record)
{
	struct recorded_maps *maps = &reading->space->maps;
	size_t before = maps->count;
	struct sym_error *error;

	if (record->type == PERF_RECORD_MMAP && (record->misc & MISC_MODE) == MISC_MODE_KERNEL) {
		take_kernel(reading->space, record);
		return NULL;
	}
	error = recorded_maps_take(maps, record);
	if (error)
		return error;
	if (maps->count > before && !maps->items[before].is_first_sight)
		maps->items[before].time_ns = time_of(reading, record);
	return NULL;
}

static struct sym_error *take_record(void *context, const struct perf_record *record)
{
	struct reading *reading = context;
	struct reader reader = reader_over(record->bytes, record->size_bytes);
	int32_t pid, parent;

	reader_skip(&reader, 8);
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return take_mapping(reading, record);
	case PERF_RECORD_FORK:
		pid = (int32_t)reader_u32(&reader);
		parent = (int32_t)reader_u32(&reader);
		return reader_ok(&reader) && pid != parent
			       ? add_birth(reading->space, pid, parent, time_of(reading, record))
			       : NULL;
	case PERF_RECORD_COMM:
		pid = (int32_t)reader_u32(&reader);
		return reader_ok(&reader) && record->misc & MISC_COMM_EXEC
			       ? add_birth(reading->space, pid, 0, time_of(reading, record))
			       : NULL;
	default:
		return perf_events_take(&reading->events, record);
	}
}

static struct sym_error *read_records(struct reading *reading, int fd, const char *path)
{
	const struct perf_data_job job = {
		.input_fd = fd,
		.output_fd = -1,
		.path = path,
		.wanted_types =
			RECORDED_MAPS_TYPES | 1ull << PERF_RECORD_FORK | 1ull << PERF_RECORD_COMM,
		.wants_user_types = true,
		.take = take_record,
		.context = reading,
	};
	struct perf_data_result result;
	struct sym_error *error = perf_data_copy(&job, &result);

	if (error)
		return error;
	free(result.cut); /* it is said when samples are read */
	return NULL;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_placed(const void *left, const void *right)
{
	const struct recorded_mapping *a = ((const struct placed_mapping *)left)->mapping;
	const struct recorded_mapping *b = ((const struct placed_mapping *)right)->mapping;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_address != b->start_address)
		return a->start_address < b->start_address ? -1 : 1;
	return (a > b) - (a < b);
}

static int compare_births(const void *left, const void *right)
{
	const struct recorded_birth *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int compare_changes(const void *left, const void *right)
{
	const struct space_change *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static struct sym_error *list_changes(struct recorded_space *space)
{
	space->changes =
		calloc(space->maps.count + space->birth_count + 1, sizeof(*space->changes));
	if (!space->changes)
		return &sym_error_no_memory;
	for (size_t i = 0; i < space->maps.count; i++)
		if (space->maps.items[i].time_ns && !space->maps.items[i].is_data)
			space->changes[space->change_count++] =
				(struct space_change){ space->maps.items[i].pid,
						       space->maps.items[i].time_ns };
	for (size_t i = 0; i < space->birth_count; i++)
		space->changes[space->change_count++] =
			(struct space_change){ space->births[i].pid, space->births[i].time_ns };
	if (space->change_count)
		qsort(space->changes, space->change_count, sizeof(*space->changes),
		      compare_changes);
	return NULL;
}

static struct sym_error *put_in_order(struct recorded_space *space)
{
	uint64_t reach = 0;
	int32_t pid = 0;

	recorded_maps_sort(&space->maps);
	space->placed = calloc(space->maps.count + 1, sizeof(*space->placed));
	if (!space->placed)
		return &sym_error_no_memory;
	for (size_t i = 0; i < space->maps.count; i++)
		if (!space->maps.items[i].is_data)
			space->placed[space->placed_count++].mapping = &space->maps.items[i];
	if (space->placed_count)
		qsort(space->placed, space->placed_count, sizeof(*space->placed), compare_placed);
	if (space->birth_count)
		qsort(space->births, space->birth_count, sizeof(*space->births), compare_births);
	for (size_t i = 0; i < space->placed_count; i++) {
		struct placed_mapping *placed = &space->placed[i];

		if (placed->mapping->pid != pid) {
			pid = placed->mapping->pid;
			reach = 0;
		}
		if (placed->mapping->end_address > reach)
			reach = placed->mapping->end_address;
		placed->reach = reach;
	}
	return NULL;
}

struct sym_error *recorded_space_read(struct recorded_space *space, int fd, const char *path)
{
	struct reading reading = { .space = space };
	struct sym_error *error = perf_events_read(&reading.events, fd);

	*space = (struct recorded_space){ 0 };
	if (!error)
		error = read_records(&reading, fd, path);
	space->kernel_release = STEAL(reading.events.kernel_release);
	perf_events_deinit(&reading.events);
	if (!error)
		error = put_in_order(space);
	if (!error)
		error = list_changes(space);
	if (error)
		recorded_space_deinit(space);
	return error;
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* The last begin of a process at or before a time; NULL: it was there before the recording. */
static const struct recorded_birth *find_birth(const struct recorded_space *space, int32_t pid,
					       uint64_t time_ns)
{
	const struct recorded_birth wanted = { .pid = pid, .time_ns = time_ns };
	size_t low = ASCENDING_COUNT(space->birth_count, i,
				     compare_births(&space->births[i], &wanted) <= 0);

	return low && space->births[low - 1].pid == pid ? &space->births[low - 1] : NULL;
}

/* How many are of an earlier process, or of this one and begin at or before the address. */
static size_t count_up_to(const struct recorded_space *space, int32_t pid, uint64_t address)
{
	const struct placed_mapping *placed = space->placed;

	return ASCENDING_COUNT(space->placed_count, i,
			       placed[i].mapping->pid < pid ||
				       (placed[i].mapping->pid == pid &&
					placed[i].mapping->start_address <= address));
}

/* Finds the latest mapping that covers the address. Records without time are in the order of the
 * file.
 */
static const struct recorded_mapping *find_own(const struct recorded_space *space, int32_t pid,
					       uint64_t since_ns, uint64_t time_ns,
					       uint64_t address)
{
	const struct recorded_mapping *found = NULL;

	for (size_t i = count_up_to(space, pid, address); i > 0; i--) {
		const struct placed_mapping *placed = &space->placed[i - 1];
		const struct recorded_mapping *mapping = placed->mapping;

		if (mapping->pid != pid || placed->reach <= address)
			break;
		if (mapping->end_address <= address || mapping->time_ns < since_ns ||
		    (time_ns && mapping->time_ns > time_ns))
			continue;
		if (!found || mapping->time_ns > found->time_ns ||
		    (mapping->time_ns == found->time_ns && mapping > found))
			found = mapping;
	}
	return found;
}

const struct recorded_mapping *recorded_space_find(const struct recorded_space *space, int32_t pid,
						   uint64_t time_ns, uint64_t address)
{
	for (int i = 0; i < MOST_ANCESTORS; i++) {
		const struct recorded_birth *birth = find_birth(space, pid, time_ns);
		const struct recorded_mapping *found =
			find_own(space, pid, birth ? birth->time_ns : 0, time_ns, address);

		if (found || !birth || !birth->parent)
			return found;
		pid = birth->parent;
		time_ns = birth->time_ns;
	}
	return NULL;
}

uint32_t recorded_space_epoch(const struct recorded_space *space, int32_t pid, uint64_t time_ns)
{
	const struct space_change wanted = { pid, time_ns };
	return (uint32_t)ASCENDING_COUNT(space->change_count, i,
					 compare_changes(&space->changes[i], &wanted) <= 0);
}

struct recorded_mapping *recorded_space_mappings(const struct recorded_space *space, int32_t pid,
						 size_t *code_count_ret)
{
	struct recorded_mapping *first = NULL;

	*code_count_ret = 0;
	for (size_t i = 0; i < space->maps.count; i++) {
		struct recorded_mapping *mapping = &space->maps.items[i];

		if (mapping->pid != pid)
			continue;
		first = first ? first : mapping;
		*code_count_ret += !mapping->is_data;
	}
	return first;
}
