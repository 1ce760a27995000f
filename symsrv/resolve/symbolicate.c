/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/symbolicate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/ascending.h"
#include "libsym/base/hex.h"

#define MOST_JOBS      10
#define DEBUG_ID_BYTES 16
static const char name_characters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	"_.+{}@<> ~-";
static const char hex_characters[] = "0123456789abcdefABCDEF";

/* A request without "jobs" is the one job. */
static size_t job_count(const json_t *root)
{
	return json_object_get(root, "jobs") ? json_array_size(json_object_get(root, "jobs")) : 1;
}

static const json_t *job_at(const json_t *root, size_t index)
{
	const json_t *jobs = json_object_get(root, "jobs");

	return jobs ? json_array_get(jobs, index) : root;
}

/* ---- parsing ---- */

/* Reads "GUID AGE": the bytes in the order of the text. */
static bool read_debug_id(const char *text, uint8_t ret[DEBUG_ID_BYTES])
{
	return strlen(text) > (size_t)2 * DEBUG_ID_BYTES &&
	       strlen(text) <= (size_t)2 * DEBUG_ID_BYTES + 8 &&
	       hex_read_bytes(text, ret, DEBUG_ID_BYTES);
}

/* Only PDBs have an age. */
static bool is_pdb(const char *name, const char *id)
{
	size_t length = strlen(name);

	return strcmp(id + (size_t)2 * DEBUG_ID_BYTES, "0") != 0 ||
	       (length > 4 && !strcasecmp(name + length - 4, ".pdb"));
}

static void set_key(const char *name, const char *id, struct key *ret)
{
	/* The first three parts of a GUID are numbers; a build-id is bytes. */
	static const uint8_t order[DEBUG_ID_BYTES] = { 3, 2, 1,  0,  5,  4,  7,  6,
						       8, 9, 10, 11, 12, 13, 14, 15 };
	uint8_t bytes[DEBUG_ID_BYTES];

	if (!read_debug_id(id, bytes))
		return;
	ret->id_bytes = DEBUG_ID_BYTES;
	memcpy(ret->id, bytes, DEBUG_ID_BYTES);
	if (is_pdb(name, id)) {
		ret->kind = KEY_IMAGE_OF_PDB;
		return;
	}
	for (size_t i = 0; i < DEBUG_ID_BYTES; i++)
		ret->id[i] = bytes[order[i]];
}

static const char *parse_pair(json_t *pair, struct resolve_asked *module)
{
	const char *name, *id;

	if (json_unpack(pair, "[s,s!]", &name, &id))
		return "memoryMap is no list of pairs of texts";
	if (name[strspn(name, name_characters)] || id[strspn(id, hex_characters)])
		return "a name or id of memoryMap is malformed";
	module->is_relative = true;
	set_key(name, id, &module->key);
	return NULL;
}

/* Adds the offset to its module. */
static const char *parse_frame(json_t *frame, struct resolve_asked *modules, size_t count)
{
	struct resolve_asked *asked;
	json_int_t module, offset;
	uint64_t *grown;

	if (json_unpack(frame, "[I,I!]", &module, &offset))
		return "a frame is no pair of numbers";
	if (module < -1 || module >= (json_int_t)count)
		return "a frame has the number of a module that does not exist";
	if (offset < 0)
		return "a frame has a negative offset";
	if (module < 0)
		return NULL;
	asked = &modules[module];
	/* Room for a power of two. */
	if (!(asked->address_count & (asked->address_count - 1))) {
		grown = reallocarray(asked->addresses,
				     asked->address_count ? 2 * asked->address_count : 1,
				     sizeof(*grown));
		if (!grown)
			return resolve_request_no_memory;
		asked->addresses = grown;
	}
	asked->addresses[asked->address_count++] = (uint64_t)offset;
	return NULL;
}

static const char *parse_stacks(const json_t *stacks, struct resolve_asked *modules, size_t count)
{
	const char *problem = json_array_size(stacks) ? NULL : "a job has no stacks";

	for (size_t i = 0; !problem && i < json_array_size(stacks); i++) {
		const json_t *stack = json_array_get(stacks, i);

		if (!json_is_array(stack))
			problem = "a stack is no list of frames";
		for (size_t k = 0; !problem && k < json_array_size(stack); k++)
			problem = parse_frame(json_array_get(stack, k), modules, count);
	}
	return problem;
}

static const char *parse_job(const json_t *job, struct resolve_request *request)
{
	const json_t *map = json_object_get(job, "memoryMap");
	struct resolve_asked *modules = request->modules + request->module_count;
	size_t count = json_array_size(map);

	if (!json_is_array(map))
		return "a job has no memoryMap";
	if (count > RESOLVE_MAX_MODULES - request->module_count)
		return "more than 1024 modules";
	request->module_count += count;
	for (size_t i = 0; i < count; i++) {
		const char *problem = parse_pair(json_array_get(map, i), &modules[i]);

		if (problem)
			return problem;
	}
	return parse_stacks(json_object_get(job, "stacks"), modules, count);
}

static const char *parse_jobs(const json_t *root, const json_error_t *error,
			      struct resolve_request *ret)
{
	const char *problem = NULL;
	size_t address_count = 0;

	if (!json_is_object(root))
		return resolve_request_no_object(error);
	if (job_count(root) > MOST_JOBS)
		return "more than 10 jobs";
	ret->modules = calloc(RESOLVE_MAX_MODULES, sizeof(*ret->modules));
	if (!ret->modules)
		return resolve_request_no_memory;
	for (size_t i = 0; !problem && i < job_count(root); i++)
		problem = parse_job(job_at(root, i), ret);
	for (size_t i = 0; i < ret->module_count; i++)
		address_count += ret->modules[i].address_count;
	ret->wants_lines = true;
	return problem || address_count <= RESOLVE_MAX_ADDRESSES ? problem
								 : resolve_request_too_many;
}

const char *symbolicate_parse(const char *text, size_t size_bytes, struct resolve_request *ret)
{
	json_error_t error = { 0 };
	json_t *root = json_loadb(text, size_bytes, 0, &error);
	const char *problem;

	*ret = (struct resolve_request){ 0 };
	problem = parse_jobs(root, &error, ret);
	json_decref(root);
	return problem;
}

/* ---- build-ids ---- */

/* The modules by the known part of their build-id: the locks of store and index are held during the
 * search, and a request may have a thousand. */
struct wanted_ids {
	struct resolve_asked *modules[RESOLVE_MAX_MODULES];
	size_t count;
};

static int compare_ids(const void *left, const void *right)
{
	const struct resolve_asked *const *a = left, *const *b = right;

	return memcmp((*a)->key.id, (*b)->key.id, DEBUG_ID_BYTES);
}

static void complete_id(struct resolve_asked *asked, const struct key *key)
{
	if (asked->is_ambiguous)
		return;
	if (asked->key.kind && (asked->key.id_bytes != key->id_bytes ||
				memcmp(asked->key.id, key->id, key->id_bytes) != 0)) {
		asked->is_ambiguous = true;
		asked->key.kind = KEY_NONE;
		return;
	}
	asked->key = *key;
	asked->key.kind = KEY_NAMES;
}

static bool visit_key(void *context, const char *text, const char *name)
{
	const struct wanted_ids *wanted = context;
	struct key key;
	size_t first;

	(void)name;
	if (!key_from_text(&key, text) || key.id_bytes < DEBUG_ID_BYTES ||
	    (key.kind != KEY_DEBUGINFO && key.kind != KEY_EXECUTABLE && key.kind != KEY_NAMES))
		return true;
	first = ASCENDING_COUNT(wanted->count, i,
				memcmp(wanted->modules[i]->key.id, key.id, DEBUG_ID_BYTES) < 0);
	for (size_t i = first;
	     i < wanted->count && !memcmp(wanted->modules[i]->key.id, key.id, DEBUG_ID_BYTES); i++)
		complete_id(wanted->modules[i], &key);
	return true;
}

void symbolicate_find(const struct holdings *holdings, struct resolve_request *request)
{
	struct wanted_ids wanted = { 0 };

	for (size_t i = 0; i < request->module_count; i++)
		if (request->modules[i].key.id_bytes && !request->modules[i].is_of_pdb)
			wanted.modules[wanted.count++] = &request->modules[i];
	if (!wanted.count)
		return;
	qsort(wanted.modules, wanted.count, sizeof(*wanted.modules), compare_ids);
	store_each(holdings->store, visit_key, &wanted);
	file_index_each(holdings->index, visit_key, &wanted);
}

/* ---- the answer ---- */

static json_t *hex_json(json_int_t number)
{
	return json_sprintf("0x%llx", (unsigned long long)number);
}

/* The fields that the specification has. */
static json_t *inlines_json(const json_t *inlines)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < json_array_size(inlines); i++) {
		json_t *item = json_copy(json_array_get(inlines, i));

		json_object_del(item, "linkage_name");
		json_array_append_new(ret, item);
	}
	return ret;
}

static void set_answer(json_t *frame, const json_t *result)
{
	const json_t *inlines = json_object_get(result, "inlines");

	json_object_set(frame, "function", json_object_get(result, "function"));
	json_object_set_new(frame, "function_offset",
			    hex_json(json_integer_value(json_object_get(result, "offset"))));
	/* Nothing is set where there is no value. */
	json_object_set(frame, "file", json_object_get(result, "file"));
	json_object_set(frame, "line", json_object_get(result, "line"));
	if (inlines)
		json_object_set_new(frame, "inlines", inlines_json(inlines));
}

/* `used`: for each module, how many of its results were taken. */
static json_t *frame_json(const json_t *job, const json_t *frame, size_t index,
			  const json_t *modules, size_t *used)
{
	json_int_t number = json_integer_value(json_array_get(frame, 0));
	const json_t *pair = json_array_get(json_object_get(job, "memoryMap"), (size_t)number);
	const json_t *module = number < 0 ? NULL : json_array_get(modules, (size_t)number);
	const char *name = number < 0 ? "<unknown>" : json_string_value(json_array_get(pair, 0));
	/* The file with the code, where the PDB was asked for. */
	const json_t *image = json_object_get(json_object_get(module, "image"), "pe");
	json_t *ret = json_object();
	const json_t *result;

	json_object_set_new(ret, "frame", json_integer((json_int_t)index));
	json_object_set_new(ret, "module", json_string(image ? json_string_value(image) : name));
	json_object_set_new(ret, "module_offset",
			    hex_json(json_integer_value(json_array_get(frame, 1))));
	if (number < 0)
		return ret;
	result = json_array_get(json_object_get(module, "results"), used[number]++);
	if (json_is_object(result))
		set_answer(ret, result);
	return ret;
}

/* A module that no frame is in was not looked for. */
static json_t *found_json(const json_t *job, const json_t *modules, const size_t *used)
{
	const json_t *map = json_object_get(job, "memoryMap");
	json_t *ret = json_object();

	for (size_t i = 0; i < json_array_size(map); i++) {
		const json_t *pair = json_array_get(map, i);
		char *key;

		if (asprintf(&key, "%s/%s", json_string_value(json_array_get(pair, 0)),
			     json_string_value(json_array_get(pair, 1))) < 0)
			continue;
		if (used[i])
			json_object_set(ret, key,
					json_object_get(json_array_get(modules, i), "found"));
		else
			json_object_set_new(ret, key, json_null());
		free(key);
	}
	return ret;
}

static json_t *job_json(const json_t *job, const json_t *modules, size_t *used)
{
	const json_t *stacks = json_object_get(job, "stacks");
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(stacks); i++) {
		const json_t *stack = json_array_get(stacks, i);
		json_t *frames = json_array();

		for (size_t k = 0; k < json_array_size(stack); k++)
			json_array_append_new(frames, frame_json(job, json_array_get(stack, k), k,
								 modules, used));
		json_array_append_new(list, frames);
	}
	return json_pack("{s:o, s:o}", "stacks", list, "found_modules",
			 found_json(job, modules, used));
}

static json_t *answer_jobs(const json_t *root, const json_t *modules)
{
	size_t *used = calloc(RESOLVE_MAX_MODULES, sizeof(*used));
	json_t *results = json_array();
	size_t first = 0;

	for (size_t i = 0; used && i < job_count(root); i++) {
		const json_t *job = job_at(root, i);
		size_t count = json_array_size(json_object_get(job, "memoryMap"));
		json_t *own = json_array();

		for (size_t k = 0; k < count; k++)
			json_array_append(own, json_array_get(modules, first + k));
		memset(used, 0, RESOLVE_MAX_MODULES * sizeof(*used));
		json_array_append_new(results, job_json(job, own, used));
		json_decref(own);
		first += count;
	}
	free(used);
	return json_pack("{s:o}", "results", results);
}

json_t *symbolicate_answer(const char *text, size_t size_bytes, const json_t *modules)
{
	json_t *root = json_loadb(text, size_bytes, 0, NULL);
	json_t *answer = root ? answer_jobs(root, modules) : NULL;

	json_decref(root);
	return answer;
}
