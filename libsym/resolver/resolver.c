/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a process to names: finds the mapping of an address, asks its image or the perf map,
 * and explains a missing name.
 * The perf map is read when the first address needs it, and by refreshes.
 * Several threads may resolve at once.
 */
#include "libsym/resolver/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/il_map.h"
#include "libsym/limits.h"
#include "libsym/process/core_process.h"
#include "libsym/resolver/kernel.h"
#include "libsym/symbols/result.h"

struct sym_error *sym_resolver_create(struct sym_snapshot *snapshot, struct sym_resolver **ret)
{
	struct sym_resolver *resolver = calloc(1, sizeof(*resolver));

	if (resolver)
		resolver->answers = answer_cache_create();
	if (!resolver || !resolver->answers) {
		free(resolver);
		return &sym_error_no_memory;
	}
	resolver->snapshot = snapshot;
	atomic_init(&resolver->now, snapshot);
	buf_init(&resolver->maps, LIMIT_MAPS_BYTES);
	pthread_mutex_init(&resolver->lock, NULL);
	pthread_mutex_init(&resolver->refresh_lock, NULL);
	lazy_init(&resolver->kernel);
	*ret = resolver;
	return NULL;
}

void sym_resolver_destroy(struct sym_resolver *resolver)
{
	if (!resolver)
		return;
	self_reported_code_destroy(atomic_load(&resolver->written));
	self_reported_code_destroy(resolver->previous[0]);
	self_reported_code_destroy(resolver->previous[1]);
	jitted_code_destroy(atomic_load(&resolver->live));
	jitted_code_destroy(resolver->live_before);
	jitted_reader_close(resolver->jitted_reader);
	if (atomic_load(&resolver->now) != resolver->snapshot)
		sym_snapshot_close(atomic_load(&resolver->now));
	sym_snapshot_close(resolver->before);
	answer_cache_destroy(resolver->answers);
	buf_deinit(&resolver->maps);
	text_set_deinit(&resolver->paths);
	pthread_mutex_destroy(&resolver->refresh_lock);
	lazy_deinit(&resolver->kernel);
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
}

static inline struct resolving begin_resolving(struct sym_resolver *resolver)
{
	struct resolving resolving = { .resolver = resolver };

	resolving.reading = epoch_enter(&resolver->readers);
	/* After the registration as a reader: answers of this state stay valid from here on. */
	resolving.state.changes = atomic_load(&resolver->changes);
	resolving.snapshot = atomic_load(&resolver->now);
	resolving.state.live_changes =
		atomic_load(&resolver->snapshot->ground->jitted_code.changes);
	return resolving;
}

static void end_resolving(const struct resolving *resolving)
{
	epoch_leave(&resolving->resolver->readers, resolving->reading);
}

static bool find_live(const struct resolving *resolving, const struct runtime_source *live,
		      struct sym_answer *answer)
{
	struct source_match match;
	enum sym_source_kind source =
		resolver_look_up_live(resolving, live, answer->address, &match);

	if (source == SYM_SOURCE_NONE)
		return false;
	resolver_take_match(answer, source, &match);
	return true;
}

static bool find_written(const struct self_reported_code *written, struct sym_answer *answer)
{
	struct source_match match;
	enum sym_source_kind source = SYM_SOURCE_NONE;

	if (written)
		source = resolver_look_up_self_reported(written, answer->address, &match);
	if (source == SYM_SOURCE_NONE)
		return false;
	/* A text that `merge` wrote for a function without a name is not a name. */
	if (answer->status == SYM_BOUNDS_ONLY &&
	    eh_frame_source_is_text(match.name, answer->image_path))
		return false;
	if (resolver_is_stub_in_file(answer, &match))
		return false;
	resolver_take_match(answer, source, &match);
	return true;
}

/* Explains why jitted code has no name. */
static void explain_jitted(const struct sym_snapshot *snapshot, const struct jitted_code *live,
			   const struct self_reported_code *written, struct sym_answer *answer)
{
	answer->status = SYM_NO_SYMBOLS;
	if (!written || (!live && snapshot_uses_runtime(snapshot))) {
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (written->source || written->jitdump || (live && live->source)) {
		answer->status = SYM_NO_MATCH;
		/* The dump is truncated. */
		if (!answer->reason && written->jitdump)
			answer->reason = written->reason;
		/* The file may have been left by `merge`, while the runtime could be asked. */
		if (!answer->reason && live && live->had_runtime && !live->source)
			answer->reason = live->info.rundown_reason ?: live->info.contract_reason;
	} else if (written->reason) {
		answer->status = written->status;
		answer->reason = written->reason;
	} else if (live && live->had_runtime && live->info.rundown_reason) {
		answer->reason = live->info.rundown_reason;
	} else if (live && live->had_runtime && live->info.contract_reason) {
		answer->reason = live->info.contract_reason;
	} else if (snapshot->process->core && !snapshot->process->core->elf.file_count) {
		answer->reason = "the core file has no list of mapped files (NT_FILE), so the "
				 "file of this code is unknown";
	} else if (!snapshot_uses_perf_map(snapshot)) {
		answer->reason = "code in memory of no file; neither a perf map nor a jitdump was "
				 "looked at";
	} else {
		answer->reason = "code in memory of no file; the process has written neither a "
				 "perf map nor a jitdump";
	}
}

/*
 * Memory outside images: jitted code, heaps, stacks, kernel mappings. The runtime's own data win
 * over what it once wrote.
 */
static void resolve_memory(const struct resolving *resolving, size_t line,
			   struct sym_answer *answer)
{
	const struct sym_mapping *mapping = &resolving->snapshot->space->mappings[line];
	bool executable = mapping->protection & SYM_EXECUTE;
	const struct jitted_code *live = executable ? resolver_get_live(resolving) : NULL;
	const struct self_reported_code *written;

	if (find_live(resolving, live ? live->source : NULL, answer))
		return;
	written = resolver_get_self_reported(resolving);
	if (find_written(written, answer) ||
	    find_live(resolving, live ? live->below : NULL, answer))
		return;
	answer->status = SYM_NO_SYMBOLS;
	if (!executable)
		answer->reason = "memory that is not executable";
	else if (resolver_is_kernel_path(mapping->path))
		answer->reason = "code of the kernel";
	else
		explain_jitted(resolving->snapshot, live, written, answer);
}

/*
 * A perf map may name what an image cannot: native code of a runtime that writes about itself,
 * images of other kinds.
 */
static void resolve_image(const struct resolving *resolving, size_t line, struct sym_image *image,
			  struct sym_answer *answer)
{
	const struct sym_snapshot *snapshot = resolving->snapshot;
	const struct sym_mapping *mapping = &snapshot->space->mappings[line];

	answer->image = image;
	answer->image_path = image->path;
	answer->image_position = snapshot_position(snapshot, line, image, answer->address);
	if (!(mapping->protection & SYM_EXECUTE) && !image_trouble(image)) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "a part of the file that is mapped as not executable";
		return;
	}
	if (answer->image_position == UINT64_MAX && !image_trouble(image) &&
	    image->object->kind != SYM_IMAGE_UNKNOWN) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "this part of the file is loaded nowhere";
	} else {
		image_find_symbol(image, answer->image_position, answer);
	}
	/* Method tables are complete; symbol tables are often stripped. */
	if (answer->status == SYM_NO_SYMBOLS || answer->status == SYM_BOUNDS_ONLY ||
	    (answer->status == SYM_NO_MATCH && image->object->kind == SYM_IMAGE_ELF))
		find_written(resolver_get_self_reported(resolving), answer);
}

/*
 * For a recorded process the recorded kernel beside it; that can be missing. A failed open is tried
 * again for the next address: it costs little.
 */
static void *open_kernel(const void *context)
{
	const struct process *process = context;
	struct sym_kernel *kernel = NULL;

	sym_error_destroy(process->recorded
				  ? kernel_open_at(process->proc_fd, "../kallsyms", &kernel)
				  : sym_kernel_open(NULL, &kernel));
	return kernel;
}

static void close_kernel(void *kernel)
{
	sym_kernel_close(kernel);
}

static void resolve_kernel(const struct resolving *resolving, struct sym_answer *answer)
{
	struct sym_resolver *resolver = resolving->resolver;
	const struct sym_kernel *kernel =
		lazy_get(&resolver->kernel, open_kernel, close_kernel, resolver->snapshot->process);

	if (kernel) {
		kernel_answer(kernel, resolving->begin_ns, answer);
		return;
	}
	answer->status = SYM_UNREADABLE;
	answer->reason = "an address of the kernel, whose kallsyms cannot be read";
}

static void resolve_place(const struct resolving *resolving, struct sym_answer *answer)
{
	const struct sym_snapshot *snapshot = resolving->snapshot;
	size_t found = address_space_find(snapshot->space, answer->address);
	struct sym_image *image = NULL;
	struct sym_error *error;

	if (found == ADDRESS_SPACE_NONE && kernel_has_address(answer->address)) {
		resolve_kernel(resolving, answer);
		return;
	}
	if (found == ADDRESS_SPACE_NONE) {
		answer->status = SYM_UNMAPPED;
		/* createdump writes headers for saved memory only, the kernel for all mappings. */
		if (snapshot->process->core)
			answer->reason = snapshot->process->core->elf.file_count
						 ? "the core file has no memory there: nothing was "
						   "mapped, or it was left out (createdump "
						   "--normal and --triage leave memory out)"
						 : "the core file has no memory there and no list "
						   "of mapped files (NT_FILE)";
		return;
	}
	answer->image_path = snapshot->space->mappings[found].path;
	error = snapshot_image_of(snapshot, found, &image);
	if (error) {
		sym_error_destroy(error);
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (image && !snapshot_choose_part(snapshot, found, answer->address, &image)) {
		answer->image = image;
		answer->image_path = image->path;
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "a part of an archive that is not code as it is stored";
	} else if (image) {
		resolve_image(resolving, found, image, answer);
	} else {
		resolve_memory(resolving, found, answer);
	}
}

/* ---- what was answered before ---------------------------------------------------------- */

/* Caches answers with a name only: the reason for a missing name may change. */
static void resolver_cache_answer(const struct resolving *resolving,
				  const struct sym_answer *answer)
{
	if ((answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY) &&
	    (answer->source != SYM_SOURCE_KERNEL || kernel_answer_stays(answer)))
		answer_cache_put(resolving->resolver->answers, &resolving->state, answer);
}

static void resolve_one(const struct resolving *resolving, struct sym_answer *answer)
{
	resolve_place(resolving, answer);
	resolver_cache_answer(resolving, answer);
}

/* ---- batches --------------------------------------------------------------------------- */

struct sym_error *sym_resolver_resolve_at(struct sym_resolver *resolver, const uint64_t *addresses,
					  const uint64_t *times_ns, size_t count,
					  struct sym_result *result)
{
	struct sym_error *error = result_begin(result, count);
	uint64_t *room AUTO_FREE = NULL;
	struct resolving resolving;

	if (error)
		return error;
	addresses = result_looked_up(result, addresses, count, &room);
	if (!addresses && count)
		return &sym_error_no_memory;
	resolving = begin_resolving(resolver);
	resolving.begin_ns = count > 1 ? kernel_clock_ns() : UINT64_MAX;
	for (size_t i = 0; i < count; i++)
		if (!answer_cache_find(resolver->answers, &resolving.state, addresses[i],
				       &result->slots[i]))
			resolve_one(&resolving, result_blank(result, i, addresses[i]));
	if (times_ns)
		resolver_answer_then(&resolving, times_ns, result);
	/* Unmapped images may be freed by the next refresh but one. */
	if (result->fields)
		error = resolver_describe(&resolving, times_ns, result);
	end_resolving(&resolving);
	result_return(result);
	return error;
}

struct sym_error *sym_resolver_resolve(struct sym_resolver *resolver, const uint64_t *addresses,
				       size_t count, struct sym_result *result)
{
	return sym_resolver_resolve_at(resolver, addresses, NULL, count, result);
}

static struct sym_error *find_rows(struct sym_resolver *resolver, const struct sym_result *methods,
				   struct buf *ret)
{
	struct resolving resolving = begin_resolving(resolver);
	struct sym_error *error = resolver_append_rows(&resolving, methods, ret);

	end_resolving(&resolving);
	return error;
}

struct sym_error *sym_resolver_resolve_rows(struct sym_resolver *resolver,
					    const uint64_t *addresses, size_t count,
					    struct sym_result *result)
{
	const uint32_t fields = result->fields;
	struct sym_error *error;
	size_t row_count = 0;
	struct buf rows;

	buf_init(&rows, LIMIT_LINE_ROWS_BYTES);
	/* Names suffice to find the methods. */
	result->fields = 0;
	error = sym_resolver_resolve(resolver, addresses, count, result);
	result->fields = fields & ~(uint32_t)SYM_FIELD_RETURN_ADDRESSES;
	if (!error)
		error = find_rows(resolver, result, &rows);
	if (!error)
		error = il_rows_settle(&rows, &row_count);
	if (!error)
		error = sym_resolver_resolve(resolver, (const uint64_t *)rows.data, row_count,
					     result);
	result->fields = fields;
	buf_deinit(&rows);
	return error;
}
