/* SPDX-License-Identifier: MIT */
/*
 * How a batch is resolved.
 *
 *   resolve_start()    on a worker: parses the request, and starts the look-ups of each module
 *   on_looked_up()     the last one that ends submits the rest of the work
 *   resolve_finish()   resolves the addresses of each module, writes JSON text
 *
 * Names of an ELF file come from its names-only file, which was made or verified here, so it is
 * read on a checker. Lines come from the debug file, and PE files have foreign tables: these are
 * read by a process (symbol_workers.h). What that does not answer has names all the same.
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
#include "symsrv/resolve/image_of_pdb.h"
#include "symsrv/resolve/resolve_answer.h"
#include "symsrv/resolve/resolve_request.h"
#include "symsrv/resolve/symbolicate.h"
#include "symsrv/resolve/wanted_object.h"
#include "symsrv/upstream/image_note.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/json_text.h"

/* The largest response with answers, and what stands around them. */
static const size_t most_answer_bytes = (size_t)64 << 20;
static const size_t most_frame_bytes = (size_t)2 << 20;

static const char problem_unreadable[] = "its names cannot be read";
static const char problem_large[] = "the answer is too large";
static const char problem_unknown[] = "no image with this PDB is known here";
static const char problem_ambiguous[] = "several images with this PDB are known here";
static const char problem_windows_pdb[] = "its lines are in a Windows PDB, which is not read";

/* A look-up of a module's file. */
struct module_file {
	struct lookup lookup;
	struct resolve *resolve;
	char text[LOOKUP_TEXT_BYTES];
};

struct resolve_module {
	struct module_file file;  /* the names-only file, or the PE file */
	struct module_file debug; /* the debug file, when lines are wanted */
};

struct resolve_batch {
	struct resolve_request request;
	bool is_symbolicate;
	struct resolve_module *modules;
	int64_t deadline_ms;
	struct buf text; /* JSON: the modules of the answer */
};

static void batch_destroy(struct resolve_batch *batch)
{
	if (!batch)
		return;
	resolve_request_deinit(&batch->request);
	buf_deinit(&batch->text);
	free(batch->modules);
	free(batch);
}

/* ---- answers ---- */

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

/* Offsets from the first loaded byte become vaddrs. */
static void place_addresses(const struct object *object, struct resolve_asked *asked)
{
	uint64_t base = asked->is_relative && object ? first_vaddr(object->fd) : 0;

	for (size_t i = 0; base && i < asked->address_count; i++)
		asked->addresses[i] += base;
}

/* Appends the names of the addresses that have no answer yet. Returns NULL, or why some are
 * missing. */
static const char *resolve_names(const struct object *object, const struct resolve_asked *asked,
				 struct answer_list *list)
{
	size_t count = asked->address_count - list->count;
	const char *problem = NULL;
	struct sym_result *result = NULL;
	struct sym_image *image = NULL;
	struct sym_error *error;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", object->fd);
	error = sym_image_open(path, &image);
	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_image_resolve(image, SYM_POSITION_VADDR, asked->addresses + list->count,
					  count, result);
	if (error)
		problem = problem_unreadable;
	for (size_t i = 0; !problem && i < count; i++)
		if (!answer_list_append(list, sym_result_at(result, i)))
			problem = problem_large;
	sym_result_destroy(result);
	sym_image_close(image);
	sym_error_destroy(error);
	return problem;
}

static int find_wanted(void *context, const json_t *wanted)
{
	return wanted_object_open(context, wanted);
}

/* A process that hangs takes half of the time that is left, so that other images get answers. */
static int64_t fair_deadline_ms(const struct resolve_batch *batch, bool is_last)
{
	int64_t now_ms = clock_now_ms(), left_ms = batch->deadline_ms - now_ms;

	return is_last || left_ms <= 0 ? batch->deadline_ms : now_ms + left_ms / 2;
}

/* Appends answers of a process. Returns NULL, or why some are missing. */
static const char *ask_process(struct module_file *file, const struct resolve_asked *asked,
			       bool is_last, struct answer_list *list)
{
	struct resolve *resolve = file->resolve;
	const struct object *object = file->lookup.object;
	const struct symbol_question question = {
		.identity = object->etag,
		.name = object->text,
		.fd = object->fd,
		.kind = asked->key.kind == KEY_PE ? SYM_POSITION_RVA : SYM_POSITION_VADDR,
		.fields = resolve->batch->request.wants_lines ? SYM_FIELD_LINES | SYM_FIELD_INLINED
							      : 0,
		.positions = asked->addresses,
		.count = asked->address_count,
		.deadline_ms = fair_deadline_ms(resolve->batch, is_last),
		.find = find_wanted,
		.context = &file->lookup,
	};

	return symbol_workers_ask(resolve->parts->processes, &question, list);
}

static bool is_here(const struct module_file *file)
{
	return file->lookup.outcome == LOOKUP_FOUND;
}

static bool is_missing(const struct module_file *file)
{
	return file->lookup.outcome == LOOKUP_MISSING && !file->lookup.unqueried[0];
}

/* The file that a process reads. */
static struct module_file *own_file(struct resolve_batch *batch, size_t index)
{
	struct resolve_module *module = &batch->modules[index];

	return batch->request.modules[index].key.kind == KEY_PE ? &module->file : &module->debug;
}

/* Appends the answers to a module's addresses, null where there is none. Returns NULL, or why some
 * are missing. */
static const char *write_answers(struct resolve_batch *batch, size_t index)
{
	struct resolve_module *module = &batch->modules[index];
	struct resolve_asked *asked = &batch->request.modules[index];
	bool is_last = index + 1 == batch->request.module_count;
	struct module_file *own = own_file(batch, index);
	struct answer_list list = { .text = &batch->text, .most_bytes = most_answer_bytes };
	const char *problem = NULL, *trouble = NULL;

	place_addresses(is_here(own) ? own->lookup.object : module->file.lookup.object, asked);
	if (is_here(own))
		problem = ask_process(own, asked, is_last, &list);
	if (own != &module->file && is_here(&module->file) && list.count < asked->address_count)
		trouble = resolve_names(module->file.lookup.object, asked, &list);
	for (; list.count < asked->address_count; list.count++)
		buf_append_string(&batch->text, list.count ? ",null" : "null");
	return trouble ? trouble : problem;
}

/* A module that was asked for by its PDB: which image that is. NULL, or why there is none. */
static const char *write_image(struct buf *text, const struct resolve_asked *asked)
{
	char key[2 * 8 + 1];

	if (asked->key.kind != KEY_PE)
		return asked->is_ambiguous ? problem_ambiguous : problem_unknown;
	snprintf(key, sizeof(key), "%08X%x", asked->key.timestamp, asked->key.number);
	buf_append_string(text, ",\"image\":{\"pe\":");
	json_text_append(text, asked->key.name);
	buf_printf(text, ",\"key\":\"%s\"}", key);
	return NULL;
}

/* Why there are no lines although nothing failed; NULL: there is no reason. */
static const char *why_without_lines(const struct resolve_batch *batch, size_t index)
{
	const struct lookup *image = &batch->modules[index].file.lookup;

	return batch->request.wants_lines && batch->request.modules[index].key.kind == KEY_PE &&
			       image->outcome == LOOKUP_FOUND &&
			       image_note_has_windows_pdb(image->object->fd,
							  image->object->size_bytes)
		       ? problem_windows_pdb
		       : NULL;
}

static void write_module(struct resolve_batch *batch, size_t index, bool *is_complete)
{
	const struct resolve_module *module = &batch->modules[index];
	const struct resolve_asked *asked = &batch->request.modules[index];
	const struct module_file *own = own_file(batch, index);
	bool is_found = is_here(&module->file) || is_here(own);
	bool is_known = is_found || (is_missing(own) && is_missing(&module->file));
	const char *found = is_found ? "true" : is_known ? "false" : "null", *problem;
	const char *trouble = NULL;

	/* An upstream may have it. Clients of Mozilla's API expect false. */
	if (asked->is_of_pdb && !asked->key.kind && !batch->is_symbolicate)
		found = "null";

	buf_append_string(&batch->text, index ? ",{\"found\":" : "{\"found\":");
	buf_append_string(&batch->text, found);
	buf_append_string(&batch->text, ",\"results\":[");
	problem = write_answers(batch, index);
	buf_append_char(&batch->text, ']');
	if (asked->is_of_pdb)
		trouble = write_image(&batch->text, asked);
	problem = trouble ? trouble : problem;
	*is_complete &= !problem && (is_here(own) || is_missing(own)) &&
			(is_found || is_missing(&module->file));
	if (!problem)
		problem = why_without_lines(batch, index);
	if (problem) {
		buf_append_string(&batch->text, ",\"problem\":");
		json_text_append(&batch->text, problem);
	}
	buf_append_char(&batch->text, '}');
}

/* The text of POST /v1/resolve, on the heap; NULL: out of memory. */
static char *resolve_text(const struct buf *modules, bool is_complete)
{
	struct buf text;

	buf_init(&text, most_answer_bytes + 2 * most_frame_bytes);
	buf_append_string(&text, is_complete ? "{\"complete\":true,\"modules\":["
					     : "{\"complete\":false,\"modules\":[");
	buf_append(&text, modules->data, modules->size_bytes);
	buf_append_string(&text, "]}");
	return buf_steal(&text, &(size_t){ 0 });
}

/* The text of POST /symbolicate/v5, on the heap; NULL: out of memory. */
static char *symbolicate_text(const struct resolve *resolve, const struct buf *modules)
{
	struct buf text;
	json_t *list, *root;
	char *ret;

	buf_init(&text, most_answer_bytes + 2 * most_frame_bytes);
	buf_append_char(&text, '[');
	buf_append(&text, modules->data, modules->size_bytes);
	buf_append_char(&text, ']');
	list = text.failure == BUF_OK ? json_loadb(text.data, text.size_bytes, 0, NULL) : NULL;
	buf_deinit(&text);
	root = list ? symbolicate_answer(resolve->body, resolve->body_bytes, list) : NULL;
	ret = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(list);
	json_decref(root);
	return ret;
}

static void resolve_finish(struct job *job)
{
	struct resolve *resolve = (struct resolve *)((char *)job - offsetof(struct resolve, job));
	struct resolve_batch *batch = resolve->batch;
	bool is_complete = true;

	for (size_t i = 0; i < batch->request.module_count; i++) {
		write_module(batch, i, &is_complete);
		object_release(batch->modules[i].file.lookup.object);
		object_release(batch->modules[i].debug.lookup.object);
	}
	if (batch->text.failure == BUF_OK)
		resolve->answer = resolve->is_symbolicate ? symbolicate_text(resolve, &batch->text)
							  : resolve_text(&batch->text, is_complete);
	resolve->answer_bytes = resolve->answer ? strlen(resolve->answer) : 0;
	memory_share_end(&resolve->memory);
	batch_destroy(batch);
	/* The client may read it slowly, or never. */
	resolve->is_refused = !memory_share_take(&resolve->memory, resolve->answer_bytes);
	if (resolve->is_refused) {
		free(resolve->answer);
		resolve->answer = NULL;
	}
	resolve->batch = NULL;
	resolve->done(resolve);
}

/* ---- look-ups ---- */

/* Whether a process is asked. */
static bool needs_process(const struct resolve_request *request)
{
	bool needs = request->wants_lines;

	for (size_t i = 0; i < request->module_count; i++)
		needs |= request->modules[i].key.kind == KEY_PE;
	return needs;
}

static void resolve_step(struct resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->pending, 1) != 1)
		return;
	workers_submit(needs_process(&resolve->batch->request) ? resolve->parts->threads
							       : resolve->holdings->checkers,
		       &resolve->job, resolve_finish);
}

static void on_looked_up(struct lookup *lookup)
{
	struct module_file *file =
		(struct module_file *)((char *)lookup - offsetof(struct module_file, lookup));

	resolve_step(file->resolve);
}

static void begin_look_up(struct resolve *resolve, const struct key *key, enum key_kind kind,
			  struct module_file *file)
{
	struct key own = *key;

	own.kind = kind;
	file->resolve = resolve;
	lookup_text(&own, NULL, file->text);
	file->lookup = (struct lookup){
		.holdings = resolve->holdings,
		.key = own,
		.text = file->text,
		.forwarded_for = resolve->forwarded_for,
		.depth = resolve->depth,
		.from_peer = resolve->from_peer,
		.is_local = resolve->is_local,
		.deadline_ms = resolve->batch->deadline_ms,
		.done = on_looked_up,
	};
	atomic_fetch_add(&resolve->pending, 1);
	lookup_start(&file->lookup);
}

static void begin_module(struct resolve *resolve, size_t index)
{
	struct resolve_module *module = &resolve->batch->modules[index];
	const struct resolve_request *request = &resolve->batch->request;
	const struct resolve_asked *asked = &request->modules[index];

	module->file.lookup.outcome = LOOKUP_MISSING;
	module->debug.lookup.outcome = LOOKUP_MISSING;
	/* An id that nothing here has, or that no frame refers to. */
	if (!asked->key.kind || (resolve->is_symbolicate && !asked->address_count))
		return;
	begin_look_up(resolve, &asked->key, asked->key.kind, &module->file);
	if (request->wants_lines && asked->key.kind == KEY_NAMES)
		begin_look_up(resolve, &asked->key, KEY_DEBUGINFO, &module->debug);
}

static void resolve_begin(struct job *job)
{
	struct resolve *resolve = (struct resolve *)((char *)job - offsetof(struct resolve, job));
	struct resolve_batch *batch = calloc(1, sizeof(*batch));
	int64_t wait_ms = resolve->most_wait_ms;
	size_t count;

	if (batch && resolve->is_symbolicate)
		resolve->problem =
			symbolicate_parse(resolve->body, resolve->body_bytes, &batch->request);
	else if (batch)
		resolve->problem =
			resolve_request_parse(resolve->body, resolve->body_bytes, &batch->request);
	if (batch && !resolve->problem)
		image_of_pdb_find(resolve->holdings, &batch->request);
	if (batch && resolve->is_symbolicate && !resolve->problem)
		symbolicate_find(resolve->holdings, &batch->request);
	count = batch ? batch->request.module_count : 0;
	resolve->is_refused = batch && !resolve->problem &&
			      !memory_share_take(&resolve->memory, count * sizeof(*batch->modules));
	if (batch && !resolve->problem && !resolve->is_refused)
		batch->modules = calloc(count + 1, sizeof(*batch->modules));
	if (!batch || resolve->problem || !batch->modules) {
		batch_destroy(batch);
		/* No fault of the client. */
		if (resolve->problem == resolve_request_no_memory)
			resolve->problem = NULL;
		resolve->done(resolve);
		return;
	}
	if (batch->request.deadline_ms && batch->request.deadline_ms < wait_ms)
		wait_ms = batch->request.deadline_ms;
	batch->deadline_ms = clock_now_ms() + wait_ms;
	batch->is_symbolicate = resolve->is_symbolicate;
	buf_init(&batch->text, most_answer_bytes + most_frame_bytes);
	resolve->batch = batch;
	atomic_store(&resolve->pending, 1);
	for (size_t i = 0; i < count; i++)
		begin_module(resolve, i);
	resolve_step(resolve);
}

void resolve_start(struct resolve *resolve)
{
	workers_submit(resolve->holdings->workers, &resolve->job, resolve_begin);
}
