/* SPDX-License-Identifier: MIT */
/*
 * Names and numbers from dotnet/runtime src/coreclr/vm/ClrEtwAll.man.
 * The rundown provider:
 *	143, 144 MethodDCStart/EndVerbose: u64 method, u64 module, u64 start, u32 size,
 *		u32 token, u32 flags, owner, name, signature
 *	151-154 (Domain)ModuleDCStart/End: u64 module, u64 assembly,
 *		[151, 152: u64 domain,] u32 flags, u32, path
 *	146 DCEndComplete
 * The runtime's own provider, with the same payloads:
 *	143 MethodLoadVerbose, 144 MethodUnloadVerbose, 151 DomainModuleLoad, 152 ModuleLoad,
 *	153 ModuleUnload
 */
#include "libsym/clr/diagnostics/rundown_events.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/limits.h"

void rundown_gathering_init(struct rundown_gathering *gathering, struct rundown *rundown)
{
	*gathering = (struct rundown_gathering){ .rundown = rundown };
	buf_init(&gathering->names, LIMIT_INDEX_NAME_BYTES);
}

void rundown_gathering_deinit(struct rundown_gathering *gathering)
{
	buf_deinit(&gathering->names);
}

static const char *take_text(struct rundown_gathering *gathering, struct reader *payload)
{
	size_t offset = gathering->names.size_bytes;

	nettrace_read_string(payload, &gathering->names);
	buf_append_char(&gathering->names, '\0');
	return (const char *)(uintptr_t)offset;
}

/* Reads the return type from the signature. The text is not kept. */
static struct runtime_async_text read_returned(struct rundown_gathering *gathering,
					       struct reader *payload)
{
	struct buf *names = &gathering->names;
	size_t names_before = names->size_bytes;
	struct runtime_async_text returned = { 0 };

	nettrace_read_string(payload, names);
	if (reader_ok(payload) && buf_append_char(names, '\0'))
		returned = runtime_async_read_text(names->data + names_before);
	buf_truncate(names, names_before);
	return returned;
}

static void take_method(struct rundown_gathering *gathering, struct reader payload, bool is_gone,
			uint64_t time)
{
	struct rundown *rundown = gathering->rundown;
	size_t names_before = gathering->names.size_bytes;
	struct rundown_method method = { .is_gone = is_gone, .time = time };

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
	if (!grow_items((void **)&rundown->methods, &gathering->method_capacity,
			rundown->method_count, sizeof(method))) {
		gathering->no_memory = true;
		return;
	}
	method.returned = read_returned(gathering, &payload);
	rundown->methods[rundown->method_count++] = method;
}

static void take_module(struct rundown_gathering *gathering, struct reader payload, bool has_domain,
			bool is_gone, uint64_t time)
{
	struct rundown *rundown = gathering->rundown;
	size_t names_before = gathering->names.size_bytes;
	struct rundown_module module = { .is_gone = is_gone, .time = time };

	module.id = reader_u64(&payload);
	reader_skip(&payload, has_domain ? 24 : 16);
	module.path = take_text(gathering, &payload);
	if (!reader_ok(&payload)) {
		buf_truncate(&gathering->names, names_before);
		return;
	}
	if (!grow_items((void **)&rundown->modules, &gathering->module_capacity,
			rundown->module_count, sizeof(module))) {
		gathering->no_memory = true;
		return;
	}
	rundown->modules[rundown->module_count++] = module;
}

static void take_listed(struct rundown_gathering *gathering, const struct nettrace_event *event,
			struct reader payload)
{
	switch (event->event_id) {
	case 143:
	case 144:
		take_method(gathering, payload, false, event->time);
		break;
	case 146:
		gathering->rundown->is_complete = true;
		break;
	case 151:
	case 152:
		take_module(gathering, payload, true, false, event->time);
		break;
	case 153:
	case 154:
		take_module(gathering, payload, false, false, event->time);
		break;
	default:
		break;
	}
}

static void take_change(struct rundown_gathering *gathering, const struct nettrace_event *event,
			struct reader payload)
{
	switch (event->event_id) {
	case 143:
	case 144:
		take_method(gathering, payload, event->event_id == 144, event->time);
		break;
	case 151:
	case 152:
	case 153:
		take_module(gathering, payload, event->event_id == 151, event->event_id == 153,
			    event->time);
		break;
	default:
		break;
	}
}

bool rundown_take_event(void *context, const struct nettrace_event *event)
{
	struct rundown_gathering *gathering = context;
	struct reader payload = reader_over(event->payload, event->payload_bytes);

	if (!gathering->changes && !strcmp(event->provider, RUNDOWN_PROVIDER))
		take_listed(gathering, event, payload);
	else if (gathering->changes && !strcmp(event->provider, "Microsoft-Windows-DotNETRuntime"))
		take_change(gathering, event, payload);
	return !gathering->no_memory && gathering->names.failure == BUF_OK;
}

static int compare_methods(const void *a, const void *b)
{
	const struct rundown_method *left = a, *right = b;

	if (left->start_address != right->start_address)
		return left->start_address < right->start_address ? -1 : 1;
	return left->name < right->name ? -1
					: left->name > right->name; /* in the order of arrival */
}

static int compare_modules(const void *a, const void *b)
{
	const struct rundown_module *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->path < right->path ? -1 : left->path > right->path;
}

/*
 * Composite images list each instance once for every component. A module comes twice, once with its
 * domain.
 */
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

struct sym_error *rundown_gathering_finish(struct rundown_gathering *gathering)
{
	struct rundown *rundown = gathering->rundown;

	if (gathering->no_memory)
		return &sym_error_no_memory;
	if (gathering->names.failure != BUF_OK)
		return sym_error_from_buf(&gathering->names, "names of a rundown");
	if (!gathering->changes)
		keep_one_of_each(rundown);
	rundown->names = buf_steal(&gathering->names, NULL);
	if (!rundown->names)
		return &sym_error_no_memory;
	for (size_t i = 0; i < rundown->method_count; i++) {
		rundown->methods[i].owner = rundown->names + (uintptr_t)rundown->methods[i].owner;
		rundown->methods[i].name = rundown->names + (uintptr_t)rundown->methods[i].name;
	}
	for (size_t i = 0; i < rundown->module_count; i++)
		rundown->modules[i].path = rundown->names + (uintptr_t)rundown->modules[i].path;
	return NULL;
}
