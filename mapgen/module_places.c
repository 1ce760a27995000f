/* SPDX-License-Identifier: MIT */
#include "mapgen/module_places.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"

static int compare(const void *left, const void *right)
{
	const struct sym_mapping *one = *(const struct sym_mapping *const *)left;
	const struct sym_mapping *other = *(const struct sym_mapping *const *)right;
	int order = strcmp(one->path, other->path);

	if (order)
		return order;
	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return one->start_address < other->start_address ? -1 : 1;
}

bool module_places_init(struct module_places *places, const struct sym_snapshot *snapshot)
{
	size_t count = sym_snapshot_mapping_count(snapshot);

	*places = (struct module_places){ 0 };
	places->mappings = calloc(count ? count : 1, sizeof(*places->mappings));
	if (!places->mappings)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if ((mapping->protection & SYM_EXECUTE) && *mapping->path)
			places->mappings[places->count++] = mapping;
	}
	qsort(places->mappings, places->count, sizeof(*places->mappings), compare);
	return true;
}

void module_places_deinit(struct module_places *places)
{
	free(places->mappings);
	*places = (struct module_places){ 0 };
}

static bool begins(const char *text, size_t size_bytes, const char *start)
{
	size_t length = strlen(start);

	return size_bytes >= length && !memcmp(text, start, length);
}

static bool ends(const char *text, size_t size_bytes, const char *end)
{
	size_t length = strlen(end);

	return size_bytes >= length && !memcmp(text + size_bytes - length, end, length);
}

/* Beside jitted code perf prints the perf map that it would read. The vDSO it treats as a file. */
bool module_is_memory(const char *module, size_t module_bytes)
{
	return (begins(module, module_bytes, "[") && !begins(module, module_bytes, "[vdso]")) ||
	       begins(module, module_bytes, "//anon") ||
	       (begins(module, module_bytes, "/tmp/") && ends(module, module_bytes, ".map")) ||
	       begins(module, module_bytes, "/dev/zero") ||
	       begins(module, module_bytes, "/anon_hugepage") ||
	       begins(module, module_bytes, "/SYSV");
}

/* As strcmp() of a path and a text that is not terminated. */
static int compare_path(const char *path, const char *module, size_t module_bytes)
{
	int order = strncmp(path, module, module_bytes);

	return order ? order : path[module_bytes] != '\0';
}

/* Finds the range of mappings of a module. */
static void find_module(struct module_places *places, const char *module, size_t module_bytes)
{
	size_t low = 0, high = places->count;

	if (places->first < places->last &&
	    !compare_path(places->mappings[places->first]->path, module, module_bytes))
		return;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_path(places->mappings[middle]->path, module, module_bytes) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	places->first = places->last = low;
	while (places->last < places->count &&
	       !compare_path(places->mappings[places->last]->path, module, module_bytes))
		places->last++;
}

enum module_meaning module_places_find(struct module_places *places, const char *module,
				       size_t module_bytes, uint64_t value, uint64_t *address_ret)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_bytes = sizeof(deleted) - 1;
	enum module_meaning meaning = MODULE_NOTHING;

	if (module_bytes > deleted_bytes &&
	    !memcmp(module + module_bytes - deleted_bytes, deleted, deleted_bytes))
		module_bytes -= deleted_bytes;
	find_module(places, module, module_bytes);
	for (size_t i = places->first; i < places->last; i++) {
		const struct sym_mapping *mapping = places->mappings[i];
		uint64_t size_bytes = mapping->end_address - mapping->start_address;

		if (value - mapping->start_address < size_bytes)
			meaning |= MODULE_ADDRESS;
		/* A file that is mapped twice: its methods are the same in both places. */
		if (!(meaning & MODULE_OFFSET) && value - mapping->offset < size_bytes) {
			meaning |= MODULE_OFFSET;
			*address_ret = mapping->start_address + (value - mapping->offset);
		}
	}
	return meaning;
}
