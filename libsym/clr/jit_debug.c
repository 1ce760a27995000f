/* SPDX-License-Identifier: MIT */
/*
 * How methods are read.
 *
 * A body passes steps; each reads one structure, which may not be cached yet. All bodies try their
 * step, then everything that was requested is fetched in one go. Many bodies share a module: all
 * bodies first find theirs, then each module is read once. The debug information has no length in
 * front: a few hundred bytes are read first, more when they do not suffice.
 *
 * .NET 11 publishes where the header has the pointer to it. .NET 10 does not: there it is used only
 * if all published fields of the header are where they are in 10.0.
 */
#include "libsym/clr/jit_debug.h"

#include <stdlib.h>

#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/clr/contract_locate.h"
#include "libsym/clr/method_desc.h"
#include "libsym/limits.h"

enum {
	FIRST_BYTES = 128, /* most methods have less */
	MOST_BYTES = 1 << 20,
	BATCH_BODIES = 256, /* what is read for so many is still in the processor's cache */
};

enum step {
	STEP_HEAD = 0,
	STEP_HEADER,
	STEP_METHOD,
	STEP_PLACE, /* waits for the module */
	STEP_BLOB,
	STEP_DONE,
};

struct jit_debug {
	struct remote_memory *memory;
	struct layout layout;
	struct layout_debug debug_layout;
	struct methods *methods;
	struct buf blob;
};

struct remote_memory *jit_debug_memory(struct jit_debug *debug)
{
	return debug->memory;
}

const struct layout *jit_debug_layout(const struct jit_debug *debug)
{
	return &debug->layout;
}

struct sym_error *jit_debug_create(struct remote_memory *memory, const struct layout *layout,
				   const struct layout_debug *debug_layout, struct jit_debug **ret)
{
	struct jit_debug *debug AUTO_JIT_DEBUG = calloc(1, sizeof(*debug));
	struct sym_error *error;

	if (!debug)
		return &sym_error_no_memory;
	buf_init(&debug->blob, MOST_BYTES);
	debug->layout = *layout;
	debug->debug_layout = *debug_layout;
	error = methods_create(memory, &debug->layout, NULL, NULL, &debug->methods);
	if (error)
		return error;
	debug->memory = memory;
	*ret = STEAL(debug);
	return NULL;
}

struct sym_error *jit_debug_open(struct remote_memory *memory, uint64_t runtime_base,
				 struct jit_debug **ret)
{
	AUTO_CONTRACT struct contract *contract = NULL;
	struct layout_debug debug_layout;
	struct layout layout;
	struct sym_error *error = contract_locate(memory, runtime_base, &contract);

	if (!error)
		error = layout_load(contract, &layout);
	if (!error)
		error = layout_load_debug(contract, &debug_layout);
	return error ? error : jit_debug_create(memory, &layout, &debug_layout, ret);
}

void jit_debug_close(struct jit_debug *debug)
{
	if (!debug)
		return;
	methods_destroy(debug->methods);
	buf_deinit(&debug->blob);
	remote_memory_close(debug->memory);
	free(debug);
}

/* ---- steps -------------------------------------------------------------------------- */

/* A module of the methods of one call. */
struct jit_module {
	uint64_t address;
	struct module_place place;
	bool is_done, is_unreadable;
	UT_hash_handle hh;
};

struct body_reading {
	struct jit_debug *debug;
	jit_debug_visit *visit;
	void *context;
	struct jit_module *modules; /* table */
	struct jit_module *last;    /* the one that the previous body has; NULL: none */
};

static int fail(struct jit_debug_body *body, const char *failure)
{
	body->failure = failure;
	return STEP_DONE;
}

static int read_head(struct jit_debug *debug, struct jit_debug_body *body)
{
	body->header = remote_u64(debug->memory, body->start_address - sizeof(uint64_t));
	if (body->header <= debug->layout.stub_kind_last)
		return fail(body, "code that the runtime generated");
	remote_want(debug->memory, body->header, debug->layout.code_header.read_bytes);
	return STEP_HEADER;
}

/*
 * The end of the last piece of the code minus the begin of the first; 0: unknown. `bytes`: the
 * header, with the first piece.
 */
static uint64_t code_bytes(struct jit_debug *debug, uint64_t header, const uint8_t *bytes)
{
	const struct layout *layout = &debug->layout;
	const uint32_t infos = layout->code_header.unwind_infos;
	const uint32_t pieces = structure_u32(bytes, layout->code_header.unwind_count);
	const uint32_t begin = structure_u32(bytes, infos + layout->runtime_function.begin);
	const uint64_t last = (uint64_t)(pieces - 1) * layout->runtime_function.size_bytes +
			      layout->runtime_function.last;

	if (!pieces || pieces >= 4096 || layout->runtime_function.is_unwind_data)
		return 0;
	if (pieces == 1)
		return (uint64_t)structure_u32(bytes, infos + layout->runtime_function.last) -
		       begin;
	return (uint64_t)remote_u32(debug->memory, header + infos + last) - begin;
}

static int read_header(struct jit_debug *debug, struct jit_debug_body *body)
{
	const struct layout *layout = &debug->layout;
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes =
		remote_structure(debug->memory, body->header, room, layout->code_header.read_bytes);
	uint64_t size_bytes;

	if (remote_state(debug->memory) != REMOTE_OK)
		return STEP_DONE;
	body->method_desc = structure_u64(bytes, layout->code_header.method_desc);
	body->blob =
		remote_u64(debug->memory, body->header + debug->debug_layout.debug_information);
	size_bytes = code_bytes(debug, body->header, bytes);
	if (remote_state(debug->memory) != REMOTE_OK)
		return STEP_DONE;
	if (!layout->runtime_function.is_unwind_data && size_bytes != body->size_bytes)
		return fail(body, "the code has been replaced");
	remote_want(debug->memory, body->method_desc, layout->method_desc.read_bytes);
	if (body->blob)
		remote_want(debug->memory, body->blob, FIRST_BYTES);
	return STEP_METHOD;
}

/* NULL when out of memory. */
static struct jit_module *get_module(struct body_reading *reading, uint64_t address)
{
	struct jit_module *module = reading->last;

	if (module && module->address == address)
		return module;
	HASH_FIND(hh, reading->modules, &address, sizeof(address), module);
	if (module)
		return reading->last = module;
	module = calloc(1, sizeof(*module));
	if (!module)
		return NULL;
	module->address = address;
	HASH_ADD(hh, reading->modules, address, sizeof(address), module);
	if (hash_added(module))
		return reading->last = module;
	free(module);
	return NULL;
}

static int read_method(struct body_reading *reading, struct jit_debug_body *body)
{
	struct jit_debug *debug = reading->debug;
	struct method_owner owner;

	if (!methods_read_owner(debug->methods, body->method_desc, &owner))
		return remote_state(debug->memory) == REMOTE_OK
			       ? fail(body, "a dynamic method, which has no source lines")
			       : STEP_DONE;
	body->module =
		remote_u64(debug->memory, owner.method_table + debug->layout.method_table.module);
	if (remote_state(debug->memory) != REMOTE_OK)
		return STEP_DONE;
	body->rid = owner.rid;
	body->found_module = get_module(reading, body->module);
	return body->found_module ? STEP_PLACE : fail(body, "out of memory");
}

static int take_place(struct jit_debug_body *body)
{
	if (body->found_module->is_unreadable)
		return fail(body, "the runtime's memory cannot be read there");
	body->place = body->found_module->place;
	if (!body->blob)
		return fail(body, "the runtime has no debug information for this method");
	body->blob_bytes = FIRST_BYTES;
	return STEP_BLOB;
}

/* Not past the page of its first byte, unless that does not suffice. */
static size_t wanted_bytes(const struct jit_debug_body *body)
{
	size_t in_page = REMOTE_PAGE_BYTES - (size_t)(body->blob % REMOTE_PAGE_BYTES);

	return body->blob_bytes == FIRST_BYTES && in_page < FIRST_BYTES ? in_page
									: body->blob_bytes;
}

/* The debug information of a method, in the cache or copied; NULL: not read, or out of memory. */
static const void *blob_bytes(struct jit_debug *debug, uint64_t address, size_t size_bytes)
{
	const void *cached = NULL;
	void *room;

	if (size_bytes <= REMOTE_PAGE_BYTES)
		cached = remote_peek(debug->memory, address, size_bytes);
	if (cached)
		return cached;
	buf_clear(&debug->blob);
	room = buf_reserve(&debug->blob, size_bytes);
	return room && remote_read(debug->memory, address, room, size_bytes) ? room : NULL;
}

static int read_blob(const struct body_reading *reading, struct jit_debug_body *body)
{
	struct jit_debug *debug = reading->debug;
	size_t size_bytes = wanted_bytes(body);
	const void *bytes = blob_bytes(debug, body->blob, size_bytes);
	struct debug_info info;

	if (!bytes)
		return fail(body, "out of memory"); /* or not read yet, which advance() sees */
	info = debug_info_read(bytes, size_bytes, debug->debug_layout.form);
	if (info.is_short && body->blob_bytes < MOST_BYTES / 4) {
		body->blob_bytes *= 4;
		return STEP_BLOB;
	}
	if (info.failure)
		return fail(body, info.failure);
	reading->visit(reading->context, body, &info);
	return STEP_DONE;
}

static int run_step(struct body_reading *reading, struct jit_debug_body *body)
{
	switch (body->step) {
	case STEP_HEAD:
		return read_head(reading->debug, body);
	case STEP_HEADER:
		return read_header(reading->debug, body);
	case STEP_METHOD:
		return read_method(reading, body);
	case STEP_PLACE:
		return take_place(body);
	default:
		return read_blob(reading, body);
	}
}

/* Runs as many steps as the cache allows, up to the step `end`. */
static void advance(struct body_reading *reading, struct jit_debug_body *body, int end)
{
	struct remote_memory *memory = reading->debug->memory;

	while (body->step < end) {
		int next;

		remote_begin(memory);
		next = run_step(reading, body);
		/* Fields that could not be read yet were 0, and the failure means nothing. */
		if (remote_state(memory) != REMOTE_OK)
			body->failure = NULL;
		if (remote_state(memory) == REMOTE_PENDING)
			return;
		if (remote_state(memory) == REMOTE_UNREADABLE)
			next = fail(body, "the runtime's memory cannot be read there");
		body->step = next;
	}
}

/* ---- rounds --------------------------------------------------------------------------- */

/* Fetches what was requested. *again_ret: something was. */
static struct sym_error *end_round(struct remote_memory *memory, unsigned int round,
				   bool *again_ret)
{
	if (round == LIMIT_REMOTE_ROUNDS)
		return sym_error_create(SYM_ERROR_LIMIT,
					"the runtime's debug information has no end");
	return remote_memory_fetch(memory, again_ret);
}

/* Those that do not reach `end` have failed. */
static struct sym_error *advance_all(struct body_reading *reading, struct jit_debug_body *bodies,
				     size_t count, int end)
{
	struct sym_error *error = NULL;
	bool again = true;

	for (unsigned int round = 0; !error && again; round++) {
		for (size_t i = 0; i < count; i++)
			advance(reading, &bodies[i], end);
		error = end_round(reading->debug->memory, round, &again);
	}
	for (size_t i = 0; i < count; i++)
		if (bodies[i].step < end)
			bodies[i].step =
				fail(&bodies[i], "the runtime's memory cannot be read there");
	return error;
}

static void read_place(struct jit_debug *debug, struct jit_module *module)
{
	if (module->is_done)
		return;
	remote_begin(debug->memory);
	module_place_read(debug->memory, &debug->layout, module->address, &module->place);
	module->is_done = remote_state(debug->memory) != REMOTE_PENDING;
	module->is_unreadable = remote_state(debug->memory) != REMOTE_OK;
}

static struct sym_error *read_places(struct body_reading *reading)
{
	struct sym_error *error = NULL;
	bool again = true;

	for (unsigned int round = 0; !error && again; round++) {
		struct jit_module *module, *next;

		HASH_ITER(hh, reading->modules, module, next)
		read_place(reading->debug, module);
		error = end_round(reading->debug->memory, round, &again);
	}
	return error;
}

static struct sym_error *read_some(struct body_reading *reading, struct jit_debug_body *bodies,
				   size_t count)
{
	struct remote_memory *memory = reading->debug->memory;
	struct sym_error *error;
	bool again;

	for (size_t i = 0; i < count; i++)
		remote_want(memory, bodies[i].start_address - sizeof(uint64_t), sizeof(uint64_t));
	error = remote_memory_fetch(memory, &again);
	/* Each step requests what the next one reads, so that few have to start again. */
	for (int end = STEP_HEADER; !error && end <= STEP_PLACE; end++)
		error = advance_all(reading, bodies, count, end);
	if (!error)
		error = read_places(reading);
	return error ? error : advance_all(reading, bodies, count, STEP_DONE);
}

struct sym_error *jit_debug_read(struct jit_debug *debug, struct jit_debug_body *bodies,
				 size_t count, jit_debug_visit *visit, void *context)
{
	struct body_reading reading = { debug, visit, context, NULL, NULL };
	struct sym_error *error = NULL;

	remote_memory_forget(debug->memory);
	for (size_t at = 0; !error && at < count; at += BATCH_BODIES)
		error = read_some(&reading, bodies + at,
				  count - at < BATCH_BODIES ? count - at : BATCH_BODIES);
	HASH_DESTROY(reading.modules, free);
	return error;
}
