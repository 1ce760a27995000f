/* SPDX-License-Identifier: MIT */
/*
 * The session:
 *	CollectTracing4 (.NET 9 on): u32 buffer MB, u32 format 1, u64 keywords of the rundown, u8
 *stacks, providers CollectTracing2 (Core 3.0 on): u32 buffer MB, u32 format 1, u8 rundown,
 *providers providers: u32 count, each u64 keywords, u32 level, string name, string arguments reply:
 *u64 session, then the stream; StopTracing {u64 session} on another connection and the events
 *(names and numbers from dotnet/runtime src/coreclr/vm/ClrEtwAll.man): 143, 144
 *MethodDCStart/EndVerbose: u64 method, u64 module, u64 start, u32 size, u32 token, u32 flags,
 *		owner, name, signature
 *	151-154 (Domain)ModuleDCStart/End: u64 module, u64 assembly, [151, 152: u64 domain,] u32
 *flags, u32, path 146 DCEndComplete
 */
#include "libsym/clr/rundown.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/reader.h"
#include "libsym/format/nettrace.h"
#include "libsym/limits.h"

/* Loader, JIT, NGen and the end of the enumeration. */
static const uint64_t rundown_keywords = 0x138;
static const int64_t idle_ms = 10000;
static const int64_t whole_ms = 60000;

enum {
	SET_EVENT_PIPE = 2,
	COMMAND_STOP = 1,
	COMMAND_COLLECT2 = 3,
	COMMAND_COLLECT4 = 5,
	BUFFER_MB = 256, /* the runtime's; too small a one loses events */
};

const char *rundown_tier(uint32_t flags)
{
	static const char *const names[8] = {
		NULL,
		"MinOptJitted",
		"Optimized",
		"QuickJitted",
		"OptimizedTier1",
		"OptimizedTier1OSR",
		"InstrumentedTier",
		"InstrumentedTierOptimized",
	};

	return names[flags >> 7 & 7];
}

/* ---- events ---------------------------------------------------------------- */

/* Texts are offsets into `names` until all are there. */
struct gathering {
	struct rundown *rundown;
	size_t module_capacity, method_capacity;
	struct buf names;
	bool no_memory;
};

static const char *take_text(struct gathering *gathering, struct reader *payload)
{
	size_t offset = gathering->names.size_bytes;

	nettrace_read_string(payload, &gathering->names);
	buf_append_char(&gathering->names, '\0');
	return (const char *)(uintptr_t)offset;
}

static bool grow(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity * 2 : 1024;
	void *moved;

	if (count < *capacity)
		return true;
	moved = reallocarray(*items, wanted, item_bytes);
	if (!moved)
		return false;
	*items = moved;
	*capacity = wanted;
	return true;
}

static void take_method(struct gathering *gathering, struct reader payload)
{
	struct rundown *rundown = gathering->rundown;
	size_t names_before = gathering->names.size_bytes;
	struct rundown_method method;

	reader_skip(&payload, 8);
	method.module_id = reader_u64(&payload);
	method.start_address = reader_u64(&payload);
	method.size_bytes = reader_u32(&payload);
	method.token = reader_u32(&payload);
	method.flags = reader_u32(&payload);
	method.owner = take_text(gathering, &payload);
	method.name = take_text(gathering, &payload);
	/* Bits 28-31: 1 is the cold part, which no runtime reports so far. */
	if (!reader_ok(&payload) || !method.size_bytes || method.flags >> 28 ||
	    method.start_address > UINT64_MAX - method.size_bytes) {
		buf_truncate(&gathering->names, names_before);
		return;
	}
	if (!grow((void **)&rundown->methods, &gathering->method_capacity, rundown->method_count,
		  sizeof(method))) {
		gathering->no_memory = true;
		return;
	}
	rundown->methods[rundown->method_count++] = method;
}

static void take_module(struct gathering *gathering, struct reader payload, bool has_domain)
{
	struct rundown *rundown = gathering->rundown;
	size_t names_before = gathering->names.size_bytes;
	struct rundown_module module;

	module.id = reader_u64(&payload);
	reader_skip(&payload, has_domain ? 24 : 16);
	module.path = take_text(gathering, &payload);
	if (!reader_ok(&payload)) {
		buf_truncate(&gathering->names, names_before);
		return;
	}
	if (!grow((void **)&rundown->modules, &gathering->module_capacity, rundown->module_count,
		  sizeof(module))) {
		gathering->no_memory = true;
		return;
	}
	rundown->modules[rundown->module_count++] = module;
}

static bool take_event(void *context, const struct nettrace_event *event)
{
	struct gathering *gathering = context;
	struct reader payload = reader_over(event->payload, event->payload_bytes);

	if (strcmp(event->provider, "Microsoft-Windows-DotNETRuntimeRundown") != 0)
		return true;
	switch (event->event_id) {
	case 143:
	case 144:
		take_method(gathering, payload);
		break;
	case 146:
		gathering->rundown->is_complete = true;
		break;
	case 151:
	case 152:
		take_module(gathering, payload, true);
		break;
	case 153:
	case 154:
		take_module(gathering, payload, false);
		break;
	default:
		break;
	}
	return !gathering->no_memory && gathering->names.failure == BUF_OK;
}

/* ---- the list ---------------------------------------------------------------- */

static int compare_methods(const void *a, const void *b)
{
	const struct rundown_method *left = a, *right = b;

	if (left->start_address != right->start_address)
		return left->start_address < right->start_address ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name; /* as they came */
}

static int compare_modules(const void *a, const void *b)
{
	const struct rundown_module *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->path < right->path ? -1 : left->path > right->path;
}

/* Composite images have each instance once for every component; a module comes twice, once with its
 * domain. */
static void keep_one_of_each(struct rundown *rundown)
{
	size_t kept = 0;

	if (rundown->method_count)
		qsort(rundown->methods, rundown->method_count, sizeof(*rundown->methods),
		      compare_methods);
	for (size_t i = 0; i < rundown->method_count; i++)
		if (!kept ||
		    rundown->methods[kept - 1].start_address != rundown->methods[i].start_address)
			rundown->methods[kept++] = rundown->methods[i];
	rundown->method_count = kept;
	kept = 0;
	if (rundown->module_count)
		qsort(rundown->modules, rundown->module_count, sizeof(*rundown->modules),
		      compare_modules);
	for (size_t i = 0; i < rundown->module_count; i++)
		if (!kept || rundown->modules[kept - 1].id != rundown->modules[i].id)
			rundown->modules[kept++] = rundown->modules[i];
	rundown->module_count = kept;
}

static void place_texts(struct rundown *rundown)
{
	for (size_t i = 0; i < rundown->method_count; i++) {
		rundown->methods[i].owner = rundown->names + (uintptr_t)rundown->methods[i].owner;
		rundown->methods[i].name = rundown->names + (uintptr_t)rundown->methods[i].name;
	}
	for (size_t i = 0; i < rundown->module_count; i++)
		rundown->modules[i].path = rundown->names + (uintptr_t)rundown->modules[i].path;
}

struct sym_error *rundown_parse(const void *data, size_t size_bytes, struct rundown *ret)
{
	struct rundown rundown = { 0 };
	struct gathering gathering = { .rundown = &rundown };
	struct nettrace_sink sink = { .context = &gathering, .event = take_event };
	struct sym_error *error;

	buf_init(&gathering.names, LIMIT_INDEX_NAME_BYTES);
	error = nettrace_parse(data, size_bytes, &sink);
	if (!error && gathering.no_memory)
		error = &sym_error_no_memory;
	if (!error && gathering.names.failure != BUF_OK)
		error = sym_error_from_buf(&gathering.names, "names of a rundown");
	if (!error) {
		rundown.names = buf_steal(&gathering.names, NULL);
		error = rundown.names ? NULL : &sym_error_no_memory;
	}
	buf_deinit(&gathering.names);
	if (error) {
		rundown_deinit(&rundown);
		return error;
	}
	keep_one_of_each(&rundown);
	place_texts(&rundown);
	*ret = rundown;
	return NULL;
}

void rundown_deinit(struct rundown *rundown)
{
	free(rundown->modules);
	free(rundown->methods);
	free(rundown->names);
	*rundown = (struct rundown){ 0 };
}

const char *rundown_module_path(const struct rundown *rundown, uint64_t id)
{
	size_t low = 0, high = rundown->module_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rundown->modules[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rundown->module_count && rundown->modules[low].id == id
		       ? rundown->modules[low].path
		       : NULL;
}

/* ---- the session ------------------------------------------------------------------ */

static void append_u32(struct buf *buf, uint32_t value)
{
	value = htole32(value);
	buf_append(buf, &value, sizeof(value));
}

static void append_u64(struct buf *buf, uint64_t value)
{
	value = htole64(value);
	buf_append(buf, &value, sizeof(value));
}

/* u32 units with the NUL, UTF-16; ASCII in. */
static void append_text(struct buf *buf, const char *text)
{
	append_u32(buf, (uint32_t)strlen(text) + 1);
	for (;; text++) {
		buf_append_char(buf, *text);
		buf_append_char(buf, '\0');
		if (!*text)
			return;
	}
}

static void append_request(struct buf *buf, uint8_t command)
{
	append_u32(buf, BUFFER_MB);
	append_u32(buf, 1); /* nettrace */
	if (command == COMMAND_COLLECT4) {
		append_u64(buf, rundown_keywords);
		buf_append_char(buf, 0); /* no stacks */
	} else {
		buf_append_char(buf, 1); /* with a rundown */
	}
	append_u32(buf, 1);
	/* A session needs a provider. Nothing of this one at level 1 is switched on by keyword 0.
	 */
	append_u64(buf, 0);
	append_u32(buf, 1);
	append_text(buf, "Microsoft-Windows-DotNETRuntimePrivate");
	append_u32(buf, 0); /* no arguments */
}

/* *fd_ret is -1 when the runtime does not know the command. */
static struct sym_error *begin_session(const struct diagnostics_place *place, uint8_t command,
				       int64_t deadline_ms, int *fd_ret, uint64_t *session_ret)
{
	int fd AUTO_CLOSE = -1;
	struct buf message;
	struct reader reader;
	uint32_t result = 0;
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (error)
		return error;
	buf_init(&message, 4096);
	append_request(&message, command);
	error = diagnostics_send(fd, SET_EVENT_PIPE, command, message.data, message.size_bytes,
				 deadline_ms);
	buf_clear(&message);
	if (!error)
		error = diagnostics_receive(fd, &message, &result, deadline_ms);
	reader = reader_over(message.data, message.size_bytes);
	*session_ret = reader_u64(&reader);
	buf_deinit(&message);
	*fd_ret = -1;
	if (error || result == DIAGNOSTICS_UNKNOWN_COMMAND)
		return error;
	if (result != DIAGNOSTICS_OK || !reader_ok(&reader))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the runtime refuses a tracing session (0x%08x)", result);
	*fd_ret = steal_fd(&fd);
	return NULL;
}

static struct sym_error *stop_session(const struct diagnostics_place *place, uint64_t session,
				      int64_t deadline_ms, int *fd_ret)
{
	int fd AUTO_CLOSE = -1;
	uint64_t payload = htole64(session);
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (!error)
		error = diagnostics_send(fd, SET_EVENT_PIPE, COMMAND_STOP, &payload,
					 sizeof(payload), deadline_ms);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

static struct sym_error *record(const struct diagnostics_place *place, struct buf *stream)
{
	int64_t deadline_ms = diagnostics_now_ms() + whole_ms;
	int fd AUTO_CLOSE = -1;
	int stop_fd AUTO_CLOSE = -1; /* stays open: its answer comes when the stream has ended */
	uint64_t session;
	struct sym_error *error;

	error = begin_session(place, COMMAND_COLLECT4, diagnostics_now_ms() + idle_ms, &fd,
			      &session);
	if (!error && fd < 0)
		error = begin_session(place, COMMAND_COLLECT2, diagnostics_now_ms() + idle_ms, &fd,
				      &session);
	if (!error && fd < 0)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "the runtime knows no tracing session");
	if (!error)
		error = stop_session(place, session, diagnostics_now_ms() + idle_ms, &stop_fd);
	/* If this ends early, closing the connection ends the session too. */
	return error ? error : diagnostics_drain(fd, stream, idle_ms, deadline_ms);
}

struct sym_error *rundown_ask(const struct diagnostics_place *place, struct rundown *ret)
{
	struct sym_error *error;
	struct buf stream;

	buf_init(&stream, LIMIT_RUNDOWN_BYTES);
	error = record(place, &stream);
	if (!error)
		error = rundown_parse(stream.data, stream.size_bytes, ret);
	buf_deinit(&stream);
	return error;
}
