/* SPDX-License-Identifier: MIT */
/*
 * How methods are read.
 *
 * A body passes steps; each reads one structure, which may not be cached yet. All bodies run as
 * many steps as they can, then everything that was requested is fetched in one go. The debug
 * information has no length in front: a few hundred bytes are read first, more when they do not
 * suffice.
 *
 * .NET 11 publishes where the header has the pointer to it. .NET 10 does not: there it is used only
 * if all published fields of the header are where they are in 10.0.
 */
#include "libsym/clr/jit_debug.h"

#include <stdlib.h>

#include "libsym/base/buf.h"
#include "libsym/clr/contract_locate.h"
#include "libsym/clr/method_desc.h"
#include "libsym/limits.h"

enum {
	FIRST_BYTES = 128, /* most methods have less */
	MOST_BYTES = 1 << 20,
};

enum step {
	STEP_HEAD = 0,
	STEP_HEADER,
	STEP_METHOD,
	STEP_PLACE,
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

struct body_reading {
	struct jit_debug *debug;
	jit_debug_visit *visit;
	void *context;
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

static int read_method(struct jit_debug *debug, struct jit_debug_body *body)
{
	struct method_owner owner;

	if (!methods_read_owner(debug->methods, body->method_desc, &owner))
		return remote_state(debug->memory) == REMOTE_OK
			       ? fail(body, "a dynamic method, which has no source lines")
			       : STEP_DONE;
	body->module =
		remote_u64(debug->memory, owner.method_table + debug->layout.method_table.module);
	body->rid = owner.rid;
	return STEP_PLACE;
}

static int read_place(struct jit_debug *debug, struct jit_debug_body *body)
{
	struct module_place place;

	module_place_read(debug->memory, &debug->layout, body->module, &place);
	if (remote_state(debug->memory) != REMOTE_OK)
		return STEP_DONE;
	body->place = place;
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

static int run_step(const struct body_reading *reading, struct jit_debug_body *body)
{
	switch (body->step) {
	case STEP_HEAD:
		return read_head(reading->debug, body);
	case STEP_HEADER:
		return read_header(reading->debug, body);
	case STEP_METHOD:
		return read_method(reading->debug, body);
	case STEP_PLACE:
		return read_place(reading->debug, body);
	default:
		return read_blob(reading, body);
	}
}

/* Runs as many steps as the cache allows. */
static void advance(const struct body_reading *reading, struct jit_debug_body *body)
{
	struct remote_memory *memory = reading->debug->memory;

	while (body->step != STEP_DONE) {
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

struct sym_error *jit_debug_read(struct jit_debug *debug, struct jit_debug_body *bodies,
				 size_t count, jit_debug_visit *visit, void *context)
{
	const struct body_reading reading = { debug, visit, context };
	struct sym_error *error = NULL;
	bool again = count;

	remote_memory_forget(debug->memory);
	for (unsigned int round = 0; !error && again; round++) {
		if (round == LIMIT_REMOTE_ROUNDS)
			return sym_error_create(SYM_ERROR_LIMIT,
						"the runtime's debug information has no end");
		for (size_t i = 0; i < count; i++)
			advance(&reading, &bodies[i]);
		error = remote_memory_fetch(debug->memory, &again);
	}
	for (size_t i = 0; i < count; i++)
		if (bodies[i].step != STEP_DONE)
			bodies[i].step =
				fail(&bodies[i], "the runtime's memory cannot be read there");
	return error;
}
