/* SPDX-License-Identifier: MIT */
/*
 * How a batch is resolved.
 *
 *   resolve_start()    on a worker: parses the request, and starts one look-up for each module
 *   on_looked_up()     the last one that ends submits the rest of the work
 *   resolve_finish()   on a checker: opens each object as an image, resolves its addresses, writes
 * JSON
 *
 * An ELF file is resolved from its names-only file, so no DWARF is read: what is parsed here was
 * made or verified here, and libsym reads it with bounds.
 */
#include "symsrv/resolve/resolve_batch.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/format/elf/elf_brief.h"
#include "libsym/libsym.h"
#include "symsrv/resolve/resolve_request.h"
#include "symsrv/resolve/symbolicate.h"
#include "symsrv/util/clock.h"

struct resolve_module {
	struct lookup lookup;
	struct resolve *resolve;
	char text[LOOKUP_TEXT_BYTES];
};

struct resolve_batch {
	struct resolve_request request;
	json_t *root; /* POST /symbolicate/v5: the request */
	struct resolve_module *modules;
};

static void batch_destroy(struct resolve_batch *batch)
{
	if (!batch)
		return;
	resolve_request_deinit(&batch->request);
	json_decref(batch->root);
	free(batch->modules);
	free(batch);
}

/* ---- answers ---- */

/* A name with bytes that are no UTF-8 gets question marks for them. */
static json_t *json_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy;

	if (value)
		return value;
	copy = strdup(text);
	for (char *byte = copy; byte && *byte; byte++)
		if (*byte & 0x80)
			*byte = '?';
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

static json_t *answer_json(const struct sym_answer *answer)
{
	json_t *object;

	if (!answer || answer->status != SYM_RESOLVED || !answer->name)
		return json_null();
	object = json_object();
	json_object_set_new(object, "function", json_text(answer->name));
	json_object_set_new(object, "offset", json_integer((json_int_t)answer->offset_bytes));
	if (answer->linkage_name)
		json_object_set_new(object, "linkage_name", json_text(answer->linkage_name));
	return object;
}

/* The vaddr of the first loaded page. */
static uint64_t first_vaddr(int fd)
{
	char head[ELF_BRIEF_HEAD_BYTES];
	ssize_t count = pread(fd, head, sizeof(head), 0);
	struct elf_brief brief;

	if (count <= 0 || !elf_brief_parse(head, (size_t)count, &brief) || !brief.load_count)
		return 0;
	return brief.loads[0].vaddr & ~UINT64_C(0xfff);
}

/* The results of one module; NULL: its image cannot be read. */
static json_t *resolve_image(const struct object *object, const struct resolve_asked *asked)
{
	uint64_t base = asked->is_relative ? first_vaddr(object->fd) : 0;
	enum sym_position_kind kind =
		asked->key.kind == KEY_PE ? SYM_POSITION_RVA : SYM_POSITION_VADDR;
	struct sym_result *result = NULL;
	struct sym_image *image = NULL;
	struct sym_error *error;
	json_t *list = NULL;
	char path[64];

	for (size_t i = 0; base && i < asked->address_count; i++)
		asked->addresses[i] += base;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", object->fd);
	error = sym_image_open(path, &image);
	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_image_resolve(image, kind, asked->addresses, asked->address_count,
					  result);
	if (!error) {
		list = json_array();
		for (size_t i = 0; i < asked->address_count; i++)
			json_array_append_new(list, answer_json(sym_result_at(result, i)));
	}
	sym_error_destroy(error);
	sym_result_destroy(result);
	sym_image_close(image);
	return list;
}

static json_t *module_json(const struct resolve_module *module, const struct resolve_asked *asked,
			   bool *is_complete)
{
	const struct lookup *lookup = &module->lookup;
	json_t *found = json_null(), *list = NULL;
	bool is_missing = lookup->outcome == LOOKUP_MISSING && !lookup->unqueried[0];

	if (lookup->outcome == LOOKUP_FOUND)
		list = resolve_image(lookup->object, asked);
	if (list || is_missing)
		found = json_boolean(list != NULL);
	else
		*is_complete = false;
	if (!list) {
		list = json_array();
		for (size_t i = 0; i < asked->address_count; i++)
			json_array_append_new(list, json_null());
	}
	return json_pack("{s:o, s:o}", "found", found, "results", list);
}

static void resolve_finish(struct job *job)
{
	struct resolve *resolve = (struct resolve *)((char *)job - offsetof(struct resolve, job));
	struct resolve_batch *batch = resolve->batch;
	json_t *list = json_array(), *root;
	bool is_complete = true;

	for (size_t i = 0; i < batch->request.module_count; i++) {
		json_array_append_new(list, module_json(&batch->modules[i],
							&batch->request.modules[i], &is_complete));
		object_release(batch->modules[i].lookup.object);
	}
	if (resolve->is_symbolicate) {
		root = symbolicate_answer(batch->root, list);
		json_decref(list);
	} else {
		root = json_pack("{s:b, s:o}", "complete", is_complete, "modules", list);
	}
	resolve->answer = root ? json_dumps(root, JSON_COMPACT) : NULL;
	resolve->answer_bytes = resolve->answer ? strlen(resolve->answer) : 0;
	json_decref(root);
	batch_destroy(batch);
	resolve->batch = NULL;
	resolve->done(resolve);
}

/* ---- look-ups ---- */

static void resolve_step(struct resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->pending, 1) == 1)
		workers_submit(resolve->holdings->checkers, &resolve->job, resolve_finish);
}

static void on_looked_up(struct lookup *lookup)
{
	struct resolve_module *module =
		(struct resolve_module *)((char *)lookup - offsetof(struct resolve_module, lookup));

	resolve_step(module->resolve);
}

static void begin_look_up(struct resolve *resolve, size_t index, int64_t deadline_ms)
{
	struct resolve_batch *batch = resolve->batch;
	struct resolve_module *module = &batch->modules[index];

	module->resolve = resolve;
	/* An id that nothing here has, or that no frame refers to. */
	if (!batch->request.modules[index].key.kind ||
	    (resolve->is_symbolicate && !batch->request.modules[index].address_count)) {
		module->lookup.outcome = LOOKUP_MISSING;
		return;
	}
	lookup_text(&batch->request.modules[index].key, NULL, module->text);
	module->lookup = (struct lookup){
		.holdings = resolve->holdings,
		.key = batch->request.modules[index].key,
		.text = module->text,
		.forwarded_for = resolve->forwarded_for,
		.depth = resolve->depth,
		.from_peer = resolve->from_peer,
		.is_local = resolve->is_local,
		.deadline_ms = deadline_ms,
		.done = on_looked_up,
	};
	atomic_fetch_add(&resolve->pending, 1);
	lookup_start(&module->lookup);
}

static void resolve_begin(struct job *job)
{
	struct resolve *resolve = (struct resolve *)((char *)job - offsetof(struct resolve, job));
	struct resolve_batch *batch = calloc(1, sizeof(*batch));
	int64_t wait_ms = resolve->most_wait_ms;
	size_t count;

	if (batch && resolve->is_symbolicate)
		resolve->problem = symbolicate_parse(resolve->body, resolve->body_bytes,
						     &batch->request, &batch->root);
	else if (batch)
		resolve->problem =
			resolve_request_parse(resolve->body, resolve->body_bytes, &batch->request);
	if (batch && resolve->is_symbolicate && !resolve->problem)
		symbolicate_find(resolve->holdings, &batch->request);
	count = batch ? batch->request.module_count : 0;
	if (batch && !resolve->problem)
		batch->modules = calloc(count + 1, sizeof(*batch->modules));
	if (!batch || resolve->problem || !batch->modules) {
		batch_destroy(batch);
		resolve->done(resolve);
		return;
	}
	if (batch->request.deadline_ms && batch->request.deadline_ms < wait_ms)
		wait_ms = batch->request.deadline_ms;
	resolve->batch = batch;
	atomic_store(&resolve->pending, 1);
	for (size_t i = 0; i < count; i++)
		begin_look_up(resolve, i, clock_now_ms() + wait_ms);
	resolve_step(resolve);
}

void resolve_start(struct resolve *resolve)
{
	workers_submit(resolve->holdings->workers, &resolve->job, resolve_begin);
}
