/* SPDX-License-Identifier: MIT */
/*
 * How an address gets its name:
 *
 *   recorded_space.h   which file was mapped there at that time
 *   the process        if it lives and has the same file mapped there now
 *   the file           by its offset, if it is the one that was mapped
 *   a perf map         of memory with jitted code
 *
 * An answer is kept until the mappings of the process change. The same mappings unwind copies of
 * stacks.
 */
#include "mapgen/profile/recorded_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "libsym/base/address_table.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/hash.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"
#include "mapgen/debuginfo/source_urls.h"
#include "mapgen/live/exited_map.h"
#include "mapgen/perfdata/recorded_origin.h"
#include "mapgen/profile/frame_table.h"
#include "mapgen/profile/recorded_space.h"
#include "mapgen/profile/stripped_frames.h"

enum {
	MOST_FRAMES = 1024,
	KERNEL_PID = -1,
	NAME_ROOM = 4200,
};

/* The name of an address in one epoch of its process. */
struct known_frame {
	uint32_t epoch, frame;
};

struct named_process {
	UT_hash_handle hh;
	int32_t pid;
	struct recorded_names *names;
	struct sym_snapshot *snapshot; /* NULL: it is gone, or another one */
	struct sym_resolver *resolver;
	struct sym_unwinder *unwinder;
	struct sym_symbols *saved; /* its perf map */
	bool has_saved;            /* it was looked for */
	uint32_t unwind_epoch;
	uint64_t unwind_time_ns;
	struct address_table known; /* address to index of `frames` + 1 */
	struct known_frame *frames;
	size_t frame_count, frame_capacity;
};

struct named_file {
	UT_hash_handle hh;
	struct sym_image *image; /* NULL: `why` */
	struct sym_error *why;
	char key[];
};

struct recorded_names {
	struct recorded_space space;
	const struct options *options;
	int64_t recorded_until;
	struct named_process *processes;
	struct named_file *files;
	struct sym_kernel *kernel; /* NULL: `kernel_why` */
	const char *kernel_why;
	bool has_kernel; /* it was looked for */
	struct stripped_frames stripped;
	bool has_lines;
	struct source_urls *urls; /* with lines */
	uint64_t lineless;        /* places in managed code without a line */
	char *line_reason;        /* of the first; NULL: none */
	struct sym_result *result;
	struct sym_frame unwound[MOST_FRAMES];
};

static void close_process(struct named_process *process)
{
	sym_unwinder_destroy(process->unwinder);
	sym_resolver_destroy(process->resolver);
	sym_snapshot_close(process->snapshot);
	sym_symbols_destroy(process->saved);
	address_table_deinit(&process->known);
	free(process->frames);
	free(process);
}

void recorded_names_close(struct recorded_names *names)
{
	struct named_file *file, *next_file;

	if (!names)
		return;
	HASH_DESTROY(names->processes, close_process);
	HASH_ITER(hh, names->files, file, next_file)
	{
		HASH_DEL(names->files, file);
		sym_image_close(file->image);
		sym_error_destroy(file->why);
		free(file);
	}
	sym_kernel_close(names->kernel);
	stripped_frames_deinit(&names->stripped);
	sym_result_destroy(names->result);
	free(names->line_reason);
	source_urls_destroy(names->urls);
	recorded_space_deinit(&names->space);
	free(names);
}

DEFINE_GUARD(recorded_names, struct recorded_names *, recorded_names_close)

struct sym_error *recorded_names_open(int fd, const char *path, const struct options *options,
				      int64_t recorded_until, bool lines,
				      struct recorded_names **ret)
{
	struct recorded_names *names GUARDED(recorded_names) = calloc(1, sizeof(*names));
	struct sym_error *error;

	if (!names)
		return &sym_error_no_memory;
	names->options = options;
	names->recorded_until = recorded_until;
	names->has_lines = lines;
	error = sym_result_create(&names->result);
	if (!error && lines)
		error = sym_result_set_fields(names->result, SYM_FIELD_LINES | SYM_FIELD_INLINED);
	if (!error && lines)
		error = source_urls_create(&names->urls);
	if (!error)
		error = recorded_space_read(&names->space, fd, path);
	if (!error)
		*ret = STEAL(names);
	return error;
}

/* ---- processes and files --------------------------------------------------------------------- */

/* One that cannot be opened, or is another now, serves by its files. */
static struct sym_error *open_live(struct named_process *process)
{
	const struct recorded_names *names = process->names;
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct recorded_mapping *mappings;
	struct sym_error *error;
	size_t count;

	mappings = recorded_space_mappings(&names->space, process->pid, &count);
	if (!mappings)
		return NULL;
	error = fixup_open_snapshot(names->options, process->pid, &snapshot);
	if (!error && !fixup_is_the_recorded(mappings, count, snapshot))
		return NULL;
	if (!error)
		error = sym_resolver_create(snapshot, &process->resolver);
	if (!error)
		process->snapshot = STEAL(snapshot);
	return sym_error_only_no_memory(error);
}

static struct sym_error *find_process(struct recorded_names *names, int32_t pid,
				      struct named_process **ret)
{
	bool is_new;
	struct named_process *process =
		hash_find_or_add(&names->processes, &pid, sizeof(pid),
				 offsetof(struct named_process, pid), sizeof(*process), &is_new);

	*ret = process;
	if (!process)
		return &sym_error_no_memory;
	if (!is_new)
		return NULL;
	process->names = names;
	process->unwind_epoch = UINT32_MAX;
	return open_live(process);
}

/* NULL for want of memory. */
static struct named_file *find_file(struct recorded_names *names,
				    const struct recorded_mapping *mapping)
{
	char *key AUTO_FREE = message_format("%x:%x %" PRIu64 " %s", mapping->device_major,
					     mapping->device_minor, mapping->inode, mapping->name);
	struct named_file *file = NULL;
	bool is_new;

	if (key)
		file = hash_find_or_add(&names->files, key, strlen(key),
					offsetof(struct named_file, key),
					sizeof(*file) + strlen(key), &is_new);
	if (!file || !is_new)
		return file;
	file->why = fixup_open_file(names->options, names->recorded_until, mapping, &file->image);
	if (!file->why && file->image && names->has_lines)
		file->why = sym_image_fork_for_dwarf(file->image);
	return file;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void count_lineless(struct recorded_names *names, const char *reason)
{
	names->lineless++;
	if (!names->line_reason)
		names->line_reason = strdup(reason);
}

/* This reason counts more than that of the first place. */
static void count_gone(struct recorded_names *names)
{
	static const char why[] = "the process is gone, and with it the debug information of its "
				  "jitted code; dotnet-mapgen record keeps lines";

	names->lineless++;
	if (names->line_reason && !strcmp(names->line_reason, why))
		return;
	free(names->line_reason);
	names->line_reason = strdup(why);
}

uint64_t recorded_names_lineless(const struct recorded_names *names, char **reason_ret)
{
	*reason_ret = names->line_reason ? strdup(names->line_reason) : NULL;
	return names->lineless;
}

/* `own`: the image of the answer; NULL: none that servers know. */
static struct sym_error *add_answer(struct recorded_names *names, struct frame_table *frames,
				    const struct sym_answer *answer, const char *image,
				    struct sym_image *own, uint32_t *ret)
{
	struct sym_error *error;
	struct profile_frame frame = {
		.name = answer->name,
		.image = image,
		.tier = answer->tier ? answer->tier : "",
		.reason = "",
		.file = answer->line ? answer->file : NULL,
		.line = answer->file ? answer->line : 0,
		.column = answer->file ? answer->column : 0,
		.quality = (enum sym_line_quality)(answer->file ? answer->line_quality
								: answer->il_quality),
		.il_offset = answer->il_offset,
		.has_il_offset = answer->method_token && answer->il_offset != UINT32_MAX,
		.is_named = answer->status == SYM_RESOLVED,
	};
	const char *url_reason;

	if (answer->line_reason)
		count_lineless(names, answer->line_reason);
	if (frame.line && names->urls)
		frame.url = source_urls_find(names->urls, answer->pdb, frame.file, &url_reason);
	frame.kind =
		frame_kind_of(sym_source_text(answer->source), frame.tier, image, answer->kind);
	if (!frame.is_named)
		frame.reason = "only the bounds of its function are known";
	/* Native code has its lines, but not its inlined functions. */
	error = frame_kind_is_managed(frame.kind)
			? frame_table_add_answer(frames, &frame, answer, ret)
			: frame_table_add(frames, &frame, ret);
	return error || frame.is_named || !own
		       ? error
		       : stripped_frames_add(&names->stripped, own, answer, *ret);
}

struct sym_error *recorded_names_symbolize(struct recorded_names *names,
					   struct symbolize_client *client,
					   struct frame_table *frames)
{
	return stripped_frames_name(&names->stripped, client, frames);
}

/* File and offset, and why there is no more. */
static struct sym_error *add_place(struct frame_table *frames,
				   const struct recorded_mapping *mapping, uint64_t address,
				   const char *reason, uint32_t *ret)
{
	enum mapping_class class = mapping_class_of(mapping->name);
	struct profile_frame frame = { .name = FRAME_NAME_UNKNOWN,
				       .image = class == MAPPING_CODE ? "" : mapping->name,
				       .tier = "",
				       .reason = reason };
	char name[NAME_ROOM];

	frame.kind = frame_kind_of("", "", frame.image, SYM_SYMBOL_FUNCTION);
	if (class == MAPPING_FILE) {
		snprintf(name, sizeof(name), "%s+0x%" PRIx64, path_file_name(mapping->name),
			 address - mapping->start_address + mapping->offset);
		frame.name = name;
	}
	return frame_table_add(frames, &frame, ret);
}

static bool has_name(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY;
}

static const char *reason_of(const struct sym_answer *answer)
{
	return answer->reason ? answer->reason : sym_status_text(answer->status);
}

static struct sym_error *name_by_saved_map(struct named_process *process,
					   struct frame_table *frames,
					   const struct recorded_mapping *mapping, uint64_t address,
					   const char *why, uint32_t *ret)
{
	struct profile_frame frame = { .image = "", .reason = "", .is_named = true };
	const struct sym_symbol *symbol;
	size_t count;

	if (!process->has_saved) {
		struct recorded_mapping *mappings =
			recorded_space_mappings(&process->names->space, process->pid, &count);

		process->has_saved = true;
		if (mappings)
			process->saved =
				fixup_open_saved_map(process->names->options, mappings, count);
	}
	symbol = process->saved ? exited_map_at(process->saved, address) : NULL;
	if (!symbol)
		return add_place(frames, mapping, address,
				 why              ? why
				 : process->saved ? "the perf map of the process has nothing there"
						  : "the process is gone, and has left no perf map",
				 ret);
	if (process->names->has_lines)
		count_gone(process->names);
	frame.name = symbol->name;
	frame.tier = symbol->tier ? symbol->tier : "";
	frame.kind = frame_kind_of("perfmap", frame.tier, "", symbol->kind);
	return frame_table_add(frames, &frame, ret);
}

static struct sym_error *name_by_file(struct named_process *process, struct frame_table *frames,
				      const struct recorded_mapping *mapping, uint64_t address,
				      uint32_t *ret)
{
	struct recorded_names *names = process->names;
	struct named_file *file = find_file(names, mapping);
	uint64_t offset = address - mapping->start_address + mapping->offset;
	const struct sym_answer *answer;
	struct sym_error *error;

	if (!file)
		return &sym_error_no_memory;
	/* A perf map of merge has names of precompiled code too. */
	if (!file->image && path_is_assembly(mapping->name))
		return name_by_saved_map(process, frames, mapping, address,
					 file->why ? sym_error_message(file->why) : NULL, ret);
	if (!file->image)
		return add_place(frames, mapping, address,
				 file->why ? sym_error_message(file->why) : "", ret);
	error = sym_image_resolve(file->image, SYM_POSITION_OFFSET, &offset, 1, names->result);
	if (error)
		return error;
	answer = sym_result_at(names->result, 0);
	return has_name(answer) ? add_answer(names, frames, answer, mapping->name, file->image, ret)
				: add_place(frames, mapping, address, reason_of(answer), ret);
}

/* The image of an answer that has bounds only. */
static struct sym_image *own_image(const struct named_process *process,
				   const struct sym_answer *answer)
{
	struct sym_image *own = NULL;

	if (answer->status != SYM_BOUNDS_ONLY)
		return NULL;
	for (size_t i = 0; own != answer->image; i++) {
		own = sym_snapshot_image_at(process->snapshot, i);
		if (!own)
			return NULL;
	}
	return own;
}

/* Names what the live process still has as it was recorded; else *ret stays FRAME_NONE. */
static struct sym_error *name_by_process(struct named_process *process, struct frame_table *frames,
					 const struct recorded_mapping *mapping, uint64_t address,
					 uint64_t time_ns, uint32_t *ret)
{
	struct sym_result *result = process->names->result;
	const struct sym_answer *answer;
	struct sym_error *error;

	if (!process->resolver || !fixup_find_now(process->snapshot, mapping))
		return NULL;
	error = sym_resolver_resolve_at(process->resolver, &address, &time_ns, 1, result);
	if (error)
		return error;
	answer = sym_result_at(result, 0);
	if (has_name(answer))
		return add_answer(
			process->names, frames, answer,
			mapping_class_of(mapping->name) == MAPPING_CODE ? "" : answer->image_path,
			own_image(process, answer), ret);
	return add_place(frames, mapping, address, reason_of(answer), ret);
}

static struct sym_error *name_user(struct recorded_names *names, struct named_process *process,
				   struct frame_table *frames, uint64_t time_ns, uint64_t address,
				   uint32_t *ret)
{
	const struct recorded_mapping *mapping =
		recorded_space_find(&names->space, process->pid, time_ns, address);
	struct sym_error *error;

	*ret = FRAME_NONE;
	if (!mapping)
		return NULL;
	error = name_by_process(process, frames, mapping, address, time_ns, ret);
	if (error || *ret != FRAME_NONE)
		return error;
	switch (mapping_class_of(mapping->name)) {
	case MAPPING_FILE:
		return name_by_file(process, frames, mapping, address, ret);
	case MAPPING_CODE:
		return name_by_saved_map(process, frames, mapping, address, NULL, ret);
	default:
		return add_place(frames, mapping, address, "no names are known of such memory",
				 ret);
	}
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Address of _text; 0: hidden, or not there. */
static uint64_t find_kernel_text(void)
{
	FILE *file GUARDED(file) = fopen("/proc/kallsyms", "re");
	char line[512];
	uint64_t address = 0;

	while (file && fgets(line, sizeof(line), file)) {
		size_t digits = hex_read_u64(line, strlen(line), &address);

		if (digits && !strcmp(line + digits, " T _text\n"))
			return address;
	}
	return 0;
}

/* Is it the kernel that was recorded? Its text lies where it lay, which most kernels choose at
 * random when they start, and it has the same release. */
static struct sym_error *open_kernel(struct recorded_names *names)
{
	const struct recorded_space *space = &names->space;
	struct utsname now;
	uint64_t text;

	names->has_kernel = true;
	names->kernel_why = "which kernel was recorded is not known";
	if (names->options->root || uname(&now) || !space->kernel_text || !space->kernel_release)
		return NULL;
	text = find_kernel_text();
	names->kernel_why = text ? "the kernel is not the one that was recorded"
				 : "addresses of the kernel are hidden from this user";
	if (text != space->kernel_text || strcmp(space->kernel_release, now.release) != 0)
		return NULL;
	return sym_kernel_open(NULL, &names->kernel);
}

static struct sym_error *name_kernel(struct recorded_names *names, struct frame_table *frames,
				     uint64_t address, uint32_t *ret)
{
	struct profile_frame frame = {
		.name = "[kernel]", .image = "", .tier = "", .kind = FRAME_KIND_KERNEL
	};
	const struct sym_answer *answer;
	struct sym_error *error = NULL;

	if (!names->has_kernel)
		error = open_kernel(names);
	frame.reason = names->kernel_why;
	if (!error && names->kernel) {
		error = sym_kernel_resolve(names->kernel, &address, 1, names->result);
		if (error)
			return error;
		answer = sym_result_at(names->result, 0);
		if (answer->status == SYM_RESOLVED)
			return add_answer(names, frames, answer, "", NULL, ret);
		frame.reason = reason_of(answer);
	}
	return error ? error : frame_table_add(frames, &frame, ret);
}

/* ---- the interface --------------------------------------------------------------------------- */

static uint32_t epoch_of(void *context, int32_t pid, uint64_t time_ns)
{
	const struct recorded_names *names = context;

	return recorded_space_epoch(&names->space, pid, time_ns);
}

static struct sym_error *remember(struct named_process *process, struct range_slot *slot,
				  uint32_t epoch, uint32_t frame)
{
	if (slot->value) {
		process->frames[(uintptr_t)slot->value - 1] = (struct known_frame){ epoch, frame };
		return NULL;
	}
	if (!grow_items((void **)&process->frames, &process->frame_capacity, process->frame_count,
			sizeof(*process->frames)))
		return &sym_error_no_memory;
	process->frames[process->frame_count++] = (struct known_frame){ epoch, frame };
	slot->value = (void *)(uintptr_t)process->frame_count;
	return NULL;
}

static struct sym_error *frame_of(void *context, struct frame_table *frames, int32_t pid,
				  uint64_t time_ns, uint64_t address, uint32_t *ret)
{
	struct recorded_names *names = context;
	struct named_process *process;
	struct sym_error *error = find_process(names, pid, &process);
	uint32_t epoch = epoch_of(context, pid, time_ns);
	struct range_slot *slot;
	const struct known_frame *known;

	*ret = FRAME_NONE;
	if (error || !address)
		return error;
	slot = address_table_slot(&process->known, address);
	if (!slot)
		return &sym_error_no_memory;
	known = slot->value ? &process->frames[(uintptr_t)slot->value - 1] : NULL;
	if (known && known->epoch == epoch) {
		*ret = known->frame;
		return NULL;
	}
	error = pid == KERNEL_PID ? name_kernel(names, frames, address, ret)
				  : name_user(names, process, frames, time_ns, address, ret);
	return error ? error : remember(process, slot, epoch, *ret);
}

/* Which code an address is in, for the unwinder. */
static void find_code(void *context, uint64_t address, struct sym_unwind_code *ret)
{
	struct named_process *process = context;
	const struct recorded_mapping *mapping = recorded_space_find(
		&process->names->space, process->pid, process->unwind_time_ns, address);
	struct named_file *file;

	ret->not_code = !mapping;
	if (!mapping || mapping_class_of(mapping->name) != MAPPING_FILE)
		return;
	file = find_file(process->names, mapping);
	ret->image = file ? file->image : NULL;
	ret->offset = address - mapping->start_address + mapping->offset;
}

static struct sym_error *open_unwinder(struct named_process *process)
{
	if (process->unwinder)
		return NULL;
	if (process->resolver)
		return sym_unwinder_create(process->resolver, &process->unwinder);
	return sym_unwinder_create_recorded(find_code, process, &process->unwinder);
}

static struct sym_error *unwind(void *context, int32_t pid, uint64_t time_ns,
				const struct sym_unwind_registers *registers,
				const struct sym_unwind_stack *stack, struct unwound_stack *ret)
{
	struct recorded_names *names = context;
	struct named_process *process;
	uint32_t epoch = epoch_of(context, pid, time_ns);
	struct sym_error *error = find_process(names, pid, &process);

	if (!error)
		error = open_unwinder(process);
	if (error)
		return error;
	process->unwind_time_ns = time_ns;
	if (epoch != process->unwind_epoch && !process->resolver)
		sym_unwinder_forget(process->unwinder);
	process->unwind_epoch = epoch;
	ret->frames = names->unwound;
	return sym_unwinder_unwind(process->unwinder, registers, stack, names->unwound, MOST_FRAMES,
				   &ret->count, &ret->end);
}

struct address_names recorded_names_interface(struct recorded_names *names)
{
	return (struct address_names){
		.context = names, .frame = frame_of, .epoch = epoch_of, .unwind = unwind
	};
}
