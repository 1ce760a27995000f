/* SPDX-License-Identifier: MIT */
/*
 * The names become the text of a recording's names (mapgen/record/name_table.h), which
 * frozen_names.h reads. A method that was listed at the end is there from the beginning, unless an
 * event says when it was loaded.
 *
 * one-collect (dotnet-trace collect-linux) sends mappings and symbols instead. A mapping names what
 * no symbol names: it is there from the time 0 on, symbols and listed methods from 1 on.
 */
#include "mapgen/profile/event_methods.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "libsym/format/linux/mapping_name.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_values.h"
#include "mapgen/profile/frozen_names.h"

enum {
	TEXT_LIMIT = 1 << 30,
	FLAG_DYNAMIC = 1,
	FLAG_JITTED = 8,
};

/* No address of a module: mappings have small ids. */
static const uint64_t MAPPING_ID = 1ull << 63;

/* The pid and the id or address of something in that process. */
struct process_key {
	int64_t pid;
	uint64_t id;
};

struct known_process {
	UT_hash_handle hh;
	int32_t pid;
	unsigned int number; /* of its line */
};

struct known_module {
	UT_hash_handle hh;
	struct process_key key;
	unsigned int number, process; /* of their lines */
	bool is_elf;                  /* a mapping, by its id */
	char *path;
};

/* Was it loaded while the stream ran? */
struct known_method {
	UT_hash_handle hh;
	struct process_key key;
};

/* A module's line may come after its methods' lines, so they refer to it by id until the end. */
struct event_methods {
	struct buf lines, text;
	struct known_module *modules;
	struct known_method *loaded;
	struct known_process *processes;
	struct frozen_names *names;
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
	HASH_DESTROY(methods->processes, free);
	buf_deinit(&methods->lines);
	buf_deinit(&methods->text);
	frozen_names_close(methods->names);
	free(methods);
}

/* *ret: the number of its line. */
static struct sym_error *find_process(struct event_methods *methods, int32_t pid, unsigned int *ret)
{
	bool is_new;
	struct known_process *process =
		hash_find_or_add(&methods->processes, &pid, sizeof(pid),
				 offsetof(struct known_process, pid), sizeof(*process), &is_new);

	if (!process)
		return &sym_error_no_memory;
	if (is_new)
		process->number = HASH_COUNT(methods->processes) - 1;
	*ret = process->number;
	return NULL;
}

static struct sym_error *add_module(struct event_methods *methods, const struct process_key *key,
				    struct known_module **ret)
{
	struct known_module *module =
		hash_find_or_add(&methods->modules, key, sizeof(*key),
				 offsetof(struct known_module, key), sizeof(*module), NULL);

	if (!module)
		return &sym_error_no_memory;
	module->number = HASH_COUNT(methods->modules) - 1;
	module->path = strdup(buf_string(&methods->text) ?: "");
	*ret = module;
	return module->path ? find_process(methods, (int32_t)key->pid, &module->process)
			    : &sym_error_no_memory;
}

static struct known_module *find_module(const struct event_methods *methods,
					const struct process_key *key)
{
	struct known_module *module;

	HASH_FIND(hh, methods->modules, key, sizeof(*key), module);
	return module;
}

static struct sym_error *take_module(struct event_methods *methods,
				     const struct runtime_event *event)
{
	const struct process_key key = { event->pid, event_number(event, "ModuleID") };
	struct known_module *module;

	if (find_module(methods, &key))
		return NULL;
	buf_clear(&methods->text);
	event_text(event, "ModuleILPath", &methods->text);
	return add_module(methods, &key, &module);
}

static struct sym_error *note_loaded(struct event_methods *methods, const struct process_key *key)
{
	return hash_find_or_add(&methods->loaded, key, sizeof(*key),
				offsetof(struct known_method, key), sizeof(struct known_method),
				NULL)
		       ? NULL
		       : &sym_error_no_memory;
}

static bool was_loaded(const struct event_methods *methods, const struct process_key *key)
{
	struct known_method *method;

	HASH_FIND(hh, methods->loaded, key, sizeof(*key), method);
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

static struct sym_error *end_line(struct event_methods *methods)
{
	buf_append_char(&methods->lines, '\n');
	return methods->lines.failure == BUF_TOO_BIG
		       ? sym_error_create(SYM_ERROR_LIMIT, "more than %d bytes of names",
					  TEXT_LIMIT)
	       : methods->lines.failure ? &sym_error_no_memory
					: NULL;
}

/* The lines of images have the numbers of modules in the order of the table. */
static struct sym_error *take_method(struct event_methods *methods,
				     const struct runtime_event *event)
{
	bool is_listed = event->kind->meaning == EVENT_METHOD_LISTED;
	uint64_t start = event_number(event, "MethodStartAddress");
	uint64_t size = event_number(event, "MethodSize");
	uint64_t flags = event_number(event, "MethodFlags");
	const struct process_key key = { event->pid, start };
	unsigned int process;
	struct sym_error *error = NULL;

	if (!size || size > UINT64_MAX - start)
		return NULL;
	if (is_listed && was_loaded(methods, &key))
		return NULL;
	if (!is_listed)
		error = note_loaded(methods, &key);
	if (!error)
		error = find_process(methods, event->pid, &process);
	if (error)
		return error;
	buf_printf(&methods->lines,
		   "S\t%u\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\t0\truntime\t%s\t@%016" PRIx64
		   "\t0\t",
		   process, start, size, is_listed ? 1 : event->time_ns, tier_of(flags),
		   event_number(event, "ModuleID"));
	put_name(methods, event);
	return end_line(methods);
}

/* ---- symbols of one-collect ------------------------------------------------------------------ */

static const char *source_of(const struct known_module *mapping)
{
	enum mapping_name_kind kind =
		mapping ? mapping_name_kind(mapping->path, strlen(mapping->path))
			: MAPPING_NAME_FILE;

	if (mapping && !strcmp(mapping->path, "vmlinux"))
		return "kernel";
	return kind == MAPPING_NAME_MEMORY || kind == MAPPING_NAME_MEMORY_FILE ? "perfmap" : "elf";
}

/* The id of a mapping stands for it in all of the stream. */
static struct sym_error *take_mapping(struct event_methods *methods,
				      const struct runtime_event *event)
{
	const struct process_key key = { event->pid, event_number(event, "Id") | MAPPING_ID };
	struct known_module *module = find_module(methods, &key);
	uint64_t start = event_number(event, "StartAddress");
	uint64_t last = event_number(event, "EndAddress");
	struct sym_error *error = NULL;

	if (module)
		return NULL;
	buf_clear(&methods->text);
	event_text(event, "FileName", &methods->text);
	error = add_module(methods, &key, &module);
	if (error)
		return error;
	module->is_elf = true;
	if (last <= start)
		return NULL;
	buf_printf(&methods->lines,
		   "S\t%u\t%" PRIx64 "\t%" PRIx64 "\t0\t0\t%s\t-\t@%016" PRIx64
		   "\t%d\tthe recording has no symbol at this address",
		   module->process, start, last - start, source_of(module), key.id, SYM_NO_MATCH);
	return end_line(methods);
}

static struct sym_error *take_symbol(struct event_methods *methods,
				     const struct runtime_event *event)
{
	const struct process_key key = { event->pid,
					 event_number(event, "MappingId") | MAPPING_ID };
	uint64_t start = event_number(event, "StartAddress");
	uint64_t last = event_number(event, "EndAddress");
	unsigned int process;
	struct sym_error *error;

	if (last < start || last - start == UINT64_MAX)
		return NULL;
	error = find_process(methods, event->pid, &process);
	if (error)
		return error;
	buf_printf(&methods->lines,
		   "S\t%u\t%" PRIx64 "\t%" PRIx64 "\t1\t0\t%s\t-\t@%016" PRIx64 "\t0\t", process,
		   start, last - start + 1, source_of(find_module(methods, &key)), key.id);
	buf_clear(&methods->text);
	event_text(event, "Name", &methods->text);
	put_text(&methods->lines, buf_string(&methods->text) ?: "");
	return end_line(methods);
}

struct sym_error *event_methods_take(struct event_methods *methods,
				     const struct runtime_event *event)
{
	switch (event->kind->meaning) {
	case EVENT_MODULE:
		return take_module(methods, event);
	case EVENT_METHOD_LOAD:
	case EVENT_METHOD_LISTED:
		return take_method(methods, event);
	case EVENT_FILE_MAPPED:
		return take_mapping(methods, event);
	case EVENT_SYMBOL:
		return take_symbol(methods, event);
	default:
		return NULL;
	}
}

/* ---- the text -------------------------------------------------------------------------------- */

/* A line begins with "S" and the number of the process. */
static int32_t pid_of_line(const struct event_methods *methods, const char *line)
{
	unsigned long number = strtoul(line + 2, NULL, 10);

	for (const struct known_process *process = methods->processes; process;
	     process = process->hh.next)
		if (process->number == number)
			return process->pid;
	return 0;
}

/* Appends a line. "@" and 16 digits are the id of a module; its number is written in their place.
 */
static void put_line(const struct event_methods *methods, const char *line, const char *end,
		     struct buf *text)
{
	const char *at = memchr(line, '@', (size_t)(end - line));
	const struct process_key key = { pid_of_line(methods, line),
					 at ? strtoull(at + 1, NULL, 16) : 0 };
	const struct known_module *module = find_module(methods, &key);

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

	for (const struct known_process *process = methods->processes; process;
	     process = process->hh.next)
		buf_printf(text, "P\t%u\t%d\t%d\t0\t0\tdotnet\n", process->number, process->pid,
			   process->pid);
	for (const struct known_module *module = methods->modules; module;
	     module = module->hh.next) {
		buf_printf(text, "I\t%u\t%u\t%s\t-\t", module->number, module->process,
			   module->is_elf ? "elf" : "pe");
		put_text(text, module->path);
		buf_append_char(text, '\n');
	}
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		put_line(methods, line, newline + 1, text);
		line = newline + 1;
	}
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
	*ret = (struct address_names){ .context = methods->names,
				       .frame = frozen_names_frame,
				       .epoch = frozen_names_epoch };
	return NULL;
}
