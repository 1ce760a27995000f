/* SPDX-License-Identifier: MIT */
/*
 * The names become the text of a recording's names (mapgen/record/name_table.h), which
 * frozen_names.h reads. A method that was listed at the end is there from the beginning, unless an
 * event says when it was loaded.
 */
#include "mapgen/profile/event_methods.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_values.h"
#include "mapgen/profile/frozen_names.h"

enum {
	TEXT_LIMIT = 1 << 30,
	FLAG_DYNAMIC = 1,
	FLAG_JITTED = 8,
};

struct known_module {
	uint64_t id;
	unsigned int number; /* of its line */
	char *path;
	UT_hash_handle hh;
};

/* Was it loaded while the stream ran? */
struct known_method {
	uint64_t start_address;
	UT_hash_handle hh;
};

/* A module's line may come after its methods' lines, so they refer to it by id until the end. */
struct event_methods {
	struct buf lines, text;
	struct known_module *modules;
	struct known_method *loaded;
	struct frozen_names *names;
	int32_t pid;
};

struct sym_error *event_methods_create(struct event_methods **ret)
{
	struct event_methods *methods = calloc(1, sizeof(*methods));

	if (!methods)
		return &sym_error_no_memory;
	buf_init(&methods->lines, TEXT_LIMIT);
	buf_init(&methods->text, 1 << 20);
	*ret = methods;
	return NULL;
}

void event_methods_destroy(struct event_methods *methods)
{
	struct known_module *module, *next_module;

	if (!methods)
		return;
	HASH_ITER(hh, methods->modules, module, next_module)
	{
		HASH_DEL(methods->modules, module);
		free(module->path);
		free(module);
	}
	HASH_DESTROY(methods->loaded, free);
	buf_deinit(&methods->lines);
	buf_deinit(&methods->text);
	frozen_names_close(methods->names);
	free(methods);
}

static struct sym_error *take_module(struct event_methods *methods,
				     const struct runtime_event *event)
{
	uint64_t id = event_number(event, "ModuleID");
	struct known_module *module;

	HASH_FIND(hh, methods->modules, &id, sizeof(id), module);
	if (module)
		return NULL;
	buf_clear(&methods->text);
	event_text(event, "ModuleILPath", &methods->text);
	module = calloc(1, sizeof(*module));
	if (!module)
		return &sym_error_no_memory;
	module->id = id;
	module->number = HASH_COUNT(methods->modules);
	module->path = strdup(buf_string(&methods->text) ?: "");
	if (module->path)
		HASH_ADD(hh, methods->modules, id, sizeof(id), module);
	if (module->path && hash_added(module))
		return NULL;
	free(module->path);
	free(module);
	return &sym_error_no_memory;
}

static struct sym_error *note_loaded(struct event_methods *methods, uint64_t start_address)
{
	struct known_method *method;

	HASH_FIND(hh, methods->loaded, &start_address, sizeof(start_address), method);
	if (method)
		return NULL;
	method = calloc(1, sizeof(*method));
	if (!method)
		return &sym_error_no_memory;
	method->start_address = start_address;
	HASH_ADD(hh, methods->loaded, start_address, sizeof(start_address), method);
	if (hash_added(method))
		return NULL;
	free(method);
	return &sym_error_no_memory;
}

static bool was_loaded(const struct event_methods *methods, uint64_t start_address)
{
	struct known_method *method;

	HASH_FIND(hh, methods->loaded, &start_address, sizeof(start_address), method);
	return method != NULL;
}

static void put_text(struct buf *lines, const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c == '\\')
			buf_append_string(lines, "\\\\");
		else if (*c == '\t' || *c == '\n')
			buf_append_char(lines, ' ');
		else
			buf_append_char(lines, *c);
	}
}

/* As the perf map of the runtime has them; src/coreclr/vm/perfmap.cpp. */
static const char *tier_of(uint64_t flags)
{
	if (!(flags & (FLAG_DYNAMIC | FLAG_JITTED)))
		return "PreJIT";
	return perfmap_tiers[perfmap_tier_of_flags(flags)] ?: "-";
}

/* "Ns.Type::Method(class System.String,int32)": the parameters of "void  (class ...)". */
static void put_name(struct event_methods *methods, const struct runtime_event *event)
{
	const char *signature, *parameters;

	buf_clear(&methods->text);
	event_method_name(event, &methods->text);
	put_text(&methods->lines, buf_string(&methods->text) ?: "");
	buf_clear(&methods->text);
	event_text(event, "MethodSignature", &methods->text);
	signature = buf_string(&methods->text) ?: "";
	parameters = strchr(signature, '(');
	put_text(&methods->lines, parameters ? parameters : "");
}

/* The lines of images have the numbers of modules in the order of the table. */
static struct sym_error *take_method(struct event_methods *methods,
				     const struct runtime_event *event)
{
	bool is_listed = event->kind->meaning == EVENT_METHOD_LISTED;
	uint64_t start = event_number(event, "MethodStartAddress");
	uint64_t size = event_number(event, "MethodSize");
	uint64_t flags = event_number(event, "MethodFlags");
	struct sym_error *error = NULL;

	if (!size || size > UINT64_MAX - start)
		return NULL;
	if (is_listed && was_loaded(methods, start))
		return NULL;
	if (!is_listed)
		error = note_loaded(methods, start);
	if (error)
		return error;
	methods->pid = event->pid;
	buf_printf(&methods->lines,
		   "S\t0\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\t0\truntime\t%s\t@%016" PRIx64
		   "\t0\t",
		   start, size, is_listed ? 0 : event->time_ns, tier_of(flags),
		   event_number(event, "ModuleID"));
	put_name(methods, event);
	buf_append_char(&methods->lines, '\n');
	return methods->lines.failure == BUF_TOO_BIG
		       ? sym_error_create(SYM_ERROR_LIMIT, "more than %d bytes of names",
					  TEXT_LIMIT)
	       : methods->lines.failure ? &sym_error_no_memory
					: NULL;
}

struct sym_error *event_methods_take(struct event_methods *methods,
				     const struct runtime_event *event)
{
	/* A stream of version 6 may have several processes; one is named. */
	if (methods->pid && event->pid != methods->pid)
		return NULL;
	switch (event->kind->meaning) {
	case EVENT_MODULE:
		return take_module(methods, event);
	case EVENT_METHOD_LOAD:
	case EVENT_METHOD_LISTED:
		return take_method(methods, event);
	default:
		return NULL;
	}
}

/* ---- the text -------------------------------------------------------------------------------- */

/* "@0000000000000000" to the number of the module's line. */
static void put_line(const struct event_methods *methods, const char *line, const char *end,
		     struct buf *text)
{
	const char *at = memchr(line, '@', (size_t)(end - line));
	const struct known_module *module;
	uint64_t id = at ? strtoull(at + 1, NULL, 16) : 0;

	HASH_FIND(hh, methods->modules, &id, sizeof(id), module);
	buf_append(text, line, at ? (size_t)(at - line) : (size_t)(end - line));
	if (!at)
		return;
	if (module)
		buf_printf(text, "%u", module->number);
	else
		buf_append_char(text, '-');
	buf_append(text, at + 17, (size_t)(end - at) - 17);
}

static void put_lines(const struct event_methods *methods, struct buf *text)
{
	const char *line = methods->lines.data, *end = line + methods->lines.size_bytes;

	buf_printf(text, "P\t0\t%d\t%d\t0\t0\tdotnet\n", methods->pid, methods->pid);
	for (const struct known_module *module = methods->modules; module;
	     module = module->hh.next) {
		buf_printf(text, "I\t%u\t0\tpe\t-\t", module->number);
		put_text(text, module->path);
		buf_append_char(text, '\n');
	}
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		put_line(methods, line, newline + 1, text);
		line = newline + 1;
	}
}

static struct sym_error *frame_of(void *context, struct frame_table *frames, int32_t pid,
				  uint64_t time_ns, uint64_t address, uint32_t *ret)
{
	struct event_methods *methods = context;

	*ret = FRAME_NONE;
	if (pid != methods->pid)
		return NULL;
	return frozen_names_frame(methods->names, frames, methods->pid, time_ns, address, ret);
}

static uint32_t epoch_of(void *context, int32_t pid, uint64_t time_ns)
{
	const struct event_methods *methods = context;

	(void)pid;
	return frozen_names_epoch(methods->names, methods->pid, time_ns);
}

struct sym_error *event_methods_finish(struct event_methods *methods, struct address_names *ret)
{
	struct buf text;
	struct sym_error *error;
	size_t size_bytes;
	char *heap;

	buf_init(&text, TEXT_LIMIT);
	put_lines(methods, &text);
	heap = buf_steal(&text, &size_bytes);
	buf_deinit(&text);
	if (!heap)
		return &sym_error_no_memory;
	error = frozen_names_open(heap, size_bytes, &methods->names);
	if (error) {
		free(heap);
		return error;
	}
	*ret = (struct address_names){ .context = methods, .frame = frame_of, .epoch = epoch_of };
	return NULL;
}
