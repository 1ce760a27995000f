/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a process to names: which mapping an address lies in, which
 * image or perf map is to be asked, and what to say when nobody knows. Holds
 * the perf map as it was when the first address asked for it, or at the last refresh. Several
 * threads may resolve with it at once.
 */
#include "libsym/resolver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "libsym/kernel.h"
#include "libsym/limits.h"
#include "libsym/result.h"

struct sym_error *sym_resolver_create(struct sym_snapshot *snapshot, struct sym_resolver **ret)
{
	struct sym_resolver *resolver =
		aligned_alloc(_Alignof(struct sym_resolver), sizeof(*resolver));

	if (!resolver)
		return &sym_error_no_memory;
	memset(resolver, 0, sizeof(*resolver));
	resolver->snapshot = snapshot;
	atomic_init(&resolver->now, snapshot);
	buf_init(&resolver->maps, LIMIT_MAPS_BYTES);
	pthread_mutex_init(&resolver->lock, NULL);
	pthread_mutex_init(&resolver->refresh_lock, NULL);
	*ret = resolver;
	return NULL;
}

void sym_resolver_destroy(struct sym_resolver *resolver)
{
	if (!resolver)
		return;
	if (atomic_load(&resolver->first) != atomic_load(&resolver->written))
		written_destroy(atomic_load(&resolver->first));
	written_destroy(atomic_load(&resolver->written));
	written_destroy(resolver->previous[0]);
	written_destroy(resolver->previous[1]);
	live_code_destroy(atomic_load(&resolver->live));
	live_code_destroy(resolver->live_before);
	live_reader_close(resolver->live_reader);
	if (atomic_load(&resolver->now) != resolver->snapshot)
		sym_snapshot_close(atomic_load(&resolver->now));
	sym_snapshot_close(resolver->before);
	quick_look_up_destroy(resolver->quicks);
	quick_look_up_destroy(atomic_load(&resolver->quick_now));
	quick_look_up_destroy(resolver->quicks_replaced);
	quick_look_up_destroy(resolver->quicks_dropped);
	answer_cache_destroy(atomic_load(&resolver->answers));
	buf_deinit(&resolver->maps);
	index_name_set_release(resolver->paths);
	pthread_mutex_destroy(&resolver->refresh_lock);
	sym_kernel_close(atomic_load(&resolver->kernel));
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
}

/* Nobody makes a thread meanwhile, which refreshes, but perhaps the caller's function. */
static inline bool is_alone(const struct sym_resolver *resolver)
{
	return __libc_single_threaded && !resolver->snapshot->ground->context.fetch;
}

static inline struct resolving begin_resolving(struct sym_resolver *resolver)
{
	struct resolving resolving = { .resolver = resolver, .snapshot = resolver->snapshot };

	resolving.refreshed = atomic_load(&resolver->refreshed);
	resolving.state.live_changes = atomic_load(&resolver->snapshot->ground->live_code.changes);
	if (!resolving.refreshed) {
		/* No state of those who are counted: what their answers point to may end. */
		resolving.state.changes = UINT64_MAX;
		resolving.quick = atomic_load_explicit(&resolver->quick, memory_order_acquire);
		return resolving;
	}
	resolving.counted = !is_alone(resolver);
	if (resolving.counted)
		resolving.reading = reading_begin(&resolver->readers);
	/* Not before it is counted: what answers of this state point to stays from here on. */
	resolving.state.changes = atomic_load(&resolver->changes);
	resolving.snapshot = atomic_load(&resolver->now);
	resolving.quick = atomic_load(&resolver->quick_now);
	return resolving;
}

static void end_resolving(const struct resolving *resolving)
{
	if (resolving->counted)
		reading_end(&resolving->resolver->readers, &resolving->reading);
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

static bool find_written(const struct resolving *resolving, const struct written *written,
			 struct sym_answer *answer)
{
	struct source_match match;
	enum sym_source_kind source = SYM_SOURCE_NONE;

	if (written)
		source = resolver_look_up_written(resolving, written, answer->address, &match);
	if (source == SYM_SOURCE_NONE) {
		/* The map had a name and has lost it. */
		if (written && match.reason)
			answer->reason = match.reason;
		return false;
	}
	/* What `merge` wrote for want of a name is no name for having been written. */
	if (answer->status == SYM_UNNAMED &&
	    eh_frame_source_is_text(match.name, answer->image_path))
		return false;
	if (resolver_is_stub_in_file(answer, &match))
		return false;
	resolver_take_match(answer, source, &match);
	return true;
}

/* Why jitted code has no name. */
static void explain_jitted(const struct sym_snapshot *snapshot, const struct live_code *live,
			   const struct written *written, struct sym_answer *answer)
{
	answer->status = SYM_NO_SYMBOLS;
	if (!written || (!live && snapshot_uses_runtime(snapshot))) {
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (written->source || written->jitdump || (live && live->source)) {
		answer->status = SYM_NO_MATCH;
		/* That the dump is cut. */
		if (!answer->reason && written->jitdump)
			answer->reason = written->reason;
		/* The file may be one of ours, from when the runtime could be asked. */
		if (!answer->reason && live && live->had_runtime && !live->source)
			answer->reason = live->info.rundown_reason ?: live->info.contract_reason;
	} else if (written->reason) {
		answer->status = written->status;
		answer->reason = written->reason;
	} else if (live && live->had_runtime && live->info.rundown_reason) {
		answer->reason = live->info.rundown_reason;
	} else if (live && live->had_runtime && live->info.contract_reason) {
		answer->reason = live->info.contract_reason;
	} else if (!snapshot_uses_perf_map(snapshot)) {
		answer->reason = "code in memory of no file; neither a perf map nor a jitdump was "
				 "looked at";
	} else {
		answer->reason = "code in memory of no file; the process has written neither a "
				 "perf map nor a jitdump";
	}
}

static bool is_kernel_code(const struct sym_mapping *mapping)
{
	return mapping->path[0] == '[' && strncmp(mapping->path, "[anon:", 6) &&
	       strcmp(mapping->path, "[heap]");
}

/*
 * Memory of no image: jitted code, heaps, stacks, what the kernel maps. What the
 * runtime itself tells wins over what it once wrote.
 */
static void resolve_memory(const struct resolving *resolving, size_t line,
			   struct sym_answer *answer)
{
	const struct sym_mapping *mapping = &resolving->snapshot->space->mappings[line];
	bool executable = mapping->protection & SYM_EXECUTE;
	const struct live_code *live = executable ? resolver_get_live(resolving) : NULL;
	const struct written *written;

	if (find_live(resolving, live ? live->source : NULL, answer))
		return;
	written = resolver_get_written(resolving);
	if (executable && !is_kernel_code(mapping))
		resolver_learn(resolving, live, written, line);
	if (find_written(resolving, written, answer) ||
	    find_live(resolving, live ? live->below : NULL, answer))
		return;
	answer->status = SYM_NO_SYMBOLS;
	if (!executable)
		answer->reason = "memory that is not executable";
	else if (is_kernel_code(mapping))
		answer->reason = "code of the kernel";
	else
		explain_jitted(resolving->snapshot, live, written, answer);
}

/* A perf map may name what an image itself cannot: native code of a runtime that writes about
 * itself, images of others. */
static void resolve_image(const struct resolving *resolving, size_t line, struct sym_image *module,
			  struct sym_answer *answer)
{
	const struct sym_snapshot *snapshot = resolving->snapshot;
	const struct sym_mapping *mapping = &snapshot->space->mappings[line];

	answer->image = module;
	answer->image_path = module->path;
	answer->image_position = snapshot_position(snapshot, line, module, answer->address);
	if (!(mapping->protection & SYM_EXECUTE) && !module_trouble(module)) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "a part of the file that is mapped as not executable";
		return;
	}
	if (answer->image_position == UINT64_MAX && !module_trouble(module) &&
	    module->image->kind != SYM_IMAGE_UNKNOWN) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "this part of the file is loaded nowhere";
	} else {
		module_find(module, answer->image_position, answer);
	}
	/* Tables of methods are complete; symbol tables are often stripped. */
	if (answer->status == SYM_NO_SYMBOLS || answer->status == SYM_UNNAMED ||
	    (answer->status == SYM_NO_MATCH && module->image->kind == SYM_IMAGE_ELF))
		find_written(resolving, resolver_get_written(resolving), answer);
}

/* Of a recorded process the recorded one, which lies beside it; another may be gone by now. */
static struct sym_error *open_kernel(const struct process *process, struct sym_kernel **ret)
{
	return process->recorded ? kernel_open_at(process->proc_fd, "../kallsyms", ret)
				 : sym_kernel_open(NULL, ret);
}

/* What does not open is tried again by the next address: it costs little. */
static const struct sym_kernel *get_kernel(struct sym_resolver *resolver)
{
	struct sym_kernel *kernel = atomic_load_explicit(&resolver->kernel, memory_order_acquire);

	if (kernel)
		return kernel;
	pthread_mutex_lock(&resolver->lock);
	kernel = atomic_load(&resolver->kernel);
	if (!kernel) {
		sym_error_destroy(open_kernel(resolver->snapshot->process, &kernel));
		atomic_store_explicit(&resolver->kernel, kernel, memory_order_release);
	}
	pthread_mutex_unlock(&resolver->lock);
	return kernel;
}

static void resolve_kernel(struct sym_resolver *resolver, struct sym_answer *answer)
{
	const struct sym_kernel *kernel = get_kernel(resolver);

	if (kernel) {
		kernel_answer(kernel, answer);
		return;
	}
	answer->status = SYM_UNREADABLE;
	answer->reason = "an address of the kernel, whose kallsyms cannot be read";
}

static void resolve_one(const struct resolving *resolving, size_t found, struct sym_answer *answer)
{
	const struct sym_snapshot *snapshot = resolving->snapshot;
	struct sym_image *module = NULL;
	struct sym_error *error;

	if (found == ADDRESS_SPACE_NONE && kernel_has_address(answer->address)) {
		resolve_kernel(resolving->resolver, answer);
		return;
	}
	if (found == ADDRESS_SPACE_NONE) {
		answer->status = SYM_UNMAPPED;
		return;
	}
	answer->image_path = snapshot->space->mappings[found].path;
	error = snapshot_image_of(snapshot, found, &module);
	if (error) {
		sym_error_destroy(error);
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (module && !snapshot_choose_part(snapshot, found, answer->address, &module)) {
		answer->image = module;
		answer->image_path = module->path;
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "a part of an archive that is no code as it is stored";
	} else if (module) {
		resolve_image(resolving, found, module, answer);
	} else {
		resolve_memory(resolving, found, answer);
	}
}

/* ---- what was answered before ---------------------------------------------------------- */

static bool recall(const struct resolving *resolving, uint64_t address, struct sym_result *result,
		   size_t number)
{
	struct answer_cache *answers =
		atomic_load_explicit(&resolving->resolver->answers, memory_order_acquire);

	return answers &&
	       answer_cache_find(answers, &resolving->state, address, result_any(result, number));
}

static struct answer_cache *get_answers(struct sym_resolver *resolver)
{
	struct answer_cache *answers =
		atomic_load_explicit(&resolver->answers, memory_order_acquire);

	if (answers)
		return answers;
	pthread_mutex_lock(&resolver->lock);
	answers = atomic_load(&resolver->answers);
	if (!answers) {
		answers = answer_cache_create();
		atomic_store(&resolver->answers, answers);
	}
	pthread_mutex_unlock(&resolver->lock);
	return answers;
}

/*
 * Names only: why there is none may be otherwise the next time (memory, the kernel's list). Where a
 * perf map has a way of its own, that needs less memory.
 */
static void remember(const struct resolving *resolving, const struct sym_answer *answer)
{
	struct answer_cache *answers;

	if ((answer->status != SYM_RESOLVED && answer->status != SYM_UNNAMED) ||
	    (answer->source == SYM_SOURCE_PERF_MAP &&
	     atomic_load_explicit(&resolving->resolver->had_quick, memory_order_relaxed)))
		return;
	answers = get_answers(resolving->resolver);
	if (answers)
		answer_cache_put(answers, &resolving->state, answer);
}

/* ---- batches --------------------------------------------------------------------------- */

enum {
	GROUP = 32 /* addresses that are looked up side by side */
};

/* Side by side, so that one waits for its memory while the others go on. The addresses are in
 * executable memory. */
static void warm(const struct resolving *resolving, const uint64_t *addresses, size_t count)
{
	const struct live_code *live = resolver_get_live(resolving);
	const struct written *written = atomic_load(resolver_written_place(resolving));

	if (live && live->source)
		runtime_source_warm(live->source, addresses, count);
	else if (written && written->source)
		perfmap_source_warm(written->source, !resolving->refreshed, addresses, count);
}

/* At most a group, which were not answered before. */
static void resolve_anew(const struct resolving *resolving, const uint64_t *addresses,
			 const size_t *numbers, size_t count, struct sym_result *result)
{
	const struct sym_snapshot *snapshot = resolving->snapshot;
	uint64_t in_memory[GROUP];
	size_t found[GROUP], memory_count = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t address = addresses[numbers[i]];

		found[i] = address_space_find(snapshot->space, address);
		if (found[i] != ADDRESS_SPACE_NONE && snapshot_is_memory(snapshot, found[i]) &&
		    snapshot->space->mappings[found[i]].protection & SYM_EXECUTE)
			in_memory[memory_count++] = address;
	}
	if (memory_count > 1)
		warm(resolving, in_memory, memory_count);
	for (size_t i = 0; i < count; i++) {
		struct sym_answer *answer = result_blank(result, numbers[i], addresses[numbers[i]]);

		resolve_one(resolving, found[i], answer);
		remember(resolving, answer);
	}
}

static void resolve_carefully(const struct resolving *resolving, const uint64_t *addresses,
			      size_t first, size_t count, struct sym_result *result)
{
	const struct answer_cache *answers =
		atomic_load_explicit(&resolving->resolver->answers, memory_order_acquire);
	size_t rest[GROUP], rest_count = 0;

	for (size_t i = first; answers && count > 1 && i < first + count; i++)
		answer_cache_fetch(answers, addresses[i]);
	for (size_t i = first; i < first + count; i++)
		if (!recall(resolving, addresses[i], result, i))
			rest[rest_count++] = i;
	resolve_anew(resolving, addresses, rest, rest_count, result);
}

static void resolve_quickly(const struct resolving *resolving, const uint64_t *addresses,
			    size_t count, struct sym_result *result)
{
	struct quick_batch batch = { resolving->quick, addresses, count, result };
	size_t rest[QUICK_LANES];

	quick_batch_begin(&batch);
	while (batch.done < count) {
		size_t rest_count = quick_batch_turn(&batch, rest);

		for (size_t i = 0; i < rest_count; i++)
			resolve_carefully(resolving, addresses, rest[i], 1, result);
	}
}

static void resolve_one_quickly(const struct resolving *resolving, uint64_t address,
				struct sym_result *result)
{
	if (!quick_resolve(resolving->quick, address, result))
		resolve_carefully(resolving, &address, 0, 1, result);
}

static __attribute__((noinline)) struct sym_error *
resolve_many(struct sym_resolver *resolver, const uint64_t *addresses, const uint64_t *times_ns,
	     size_t count, struct sym_result *result)
{
	struct resolving resolving = begin_resolving(resolver);
	struct sym_error *error = NULL;

	if (resolving.quick && count == 1)
		resolve_one_quickly(&resolving, addresses[0], result);
	else if (resolving.quick)
		resolve_quickly(&resolving, addresses, count, result);
	for (size_t i = 0; !resolving.quick && i < count; i += GROUP)
		resolve_carefully(&resolving, addresses, i, count - i < GROUP ? count - i : GROUP,
				  result);
	if (times_ns)
		resolver_answer_then(&resolving, times_ns, result);
	/* Images that were unmapped may end with the next refresh after this. */
	if (result->want)
		error = resolver_describe(&resolving, times_ns, result);
	end_resolving(&resolving);
	return error;
}

/* What can be used without being counted; NULL: nothing. */
static inline const struct quick_look_up *quick_at_once(struct sym_resolver *resolver)
{
	const struct quick_look_up *quick =
		atomic_load_explicit(&resolver->quick, memory_order_acquire);

	if (__builtin_expect(!quick, 0) && is_alone(resolver))
		quick = atomic_load_explicit(&resolver->quick_now, memory_order_acquire);
	return quick;
}

static __attribute__((noinline)) struct sym_error *
resolve_unusual(struct sym_resolver *resolver, const struct quick_look_up *quick,
		const uint64_t *addresses, size_t count, struct sym_result *result)
{
	struct sym_error *error = result_begin(result, count);

	if (error || (count == 1 && quick && quick_resolve(quick, addresses[0], result)))
		return error;
	return resolve_many(resolver, addresses, NULL, count, result);
}

struct sym_error *sym_resolver_resolve_at(struct sym_resolver *resolver, const uint64_t *addresses,
					  const uint64_t *times_ns, size_t count,
					  struct sym_result *result)
{
	struct sym_error *error = result_begin(result, count);

	return error ? error : resolve_many(resolver, addresses, times_ns, count, result);
}

/* One address where nothing is in the way. */
static inline __attribute__((always_inline)) bool
resolve_usual(const struct quick_look_up *quick, uint64_t address, struct sym_result *result)
{
	struct quick_found found;
	const char *path;

	if (!quick || __builtin_expect(!result->capacity, 0) ||
	    !quick_find_usual(quick, address, &path, &found) ||
	    !result_is_plain(result, 0, quick_kind(quick, &found)))
		return false;
	result_empty(result, 1);
	quick_write(quick, address, path, &found, &result->slots[0].answer);
	return true;
}

/* The same for those who are counted. */
static __attribute__((noinline)) struct sym_error *resolve_counted(struct sym_resolver *resolver,
								   const uint64_t *addresses,
								   size_t count,
								   struct sym_result *result)
{
	struct reading reading = reading_begin(&resolver->readers);
	bool done = resolve_usual(atomic_load(&resolver->quick_now), addresses[0], result);

	reading_end(&resolver->readers, &reading);
	return done ? NULL : resolve_unusual(resolver, NULL, addresses, count, result);
}

struct sym_error *sym_resolver_resolve(struct sym_resolver *resolver, const uint64_t *addresses,
				       size_t count, struct sym_result *result)
{
	const struct quick_look_up *quick = quick_at_once(resolver);

	if (__builtin_expect(count == 1, 1)) {
		if (resolve_usual(quick, addresses[0], result))
			return NULL;
		if (!quick && atomic_load(&resolver->refreshed))
			return resolve_counted(resolver, addresses, count, result);
	}
	return resolve_unusual(resolver, quick, addresses, count, result);
}

/* ---- at a glance ---------------------------------------------------------------------- */

/* Notes the mapping of the address if it is one of jitted code, so that the next address there need
 * not look for it. */
static bool enter_counted(const struct resolving *resolving, uint64_t address,
			  struct sym_glance *glance)
{
	struct sym_resolver *resolver = resolving->resolver;
	const struct sym_snapshot *snapshot = resolving->snapshot;
	size_t found = address_space_find(snapshot->space, address);
	const struct sym_mapping *mapping;
	struct sym_image *module = NULL;
	const struct live_code *live;
	struct sym_error *error;

	if (found == ADDRESS_SPACE_NONE)
		return false;
	mapping = &snapshot->space->mappings[found];
	error = snapshot_image_of(snapshot, found, &module);
	sym_error_destroy(error);
	if (error || module || !(mapping->protection & SYM_EXECUTE))
		return false;
	live = resolver_get_live(resolving);
	if (!(live && live->source) && !is_kernel_code(mapping))
		resolver_learn(resolving, live, resolver_get_written(resolving), found);
	glance->reserved.resolver = resolver;
	glance->reserved.live = live ? live->source : NULL;
	glance->reserved.start = mapping->start_address;
	glance->reserved.size_bytes = mapping->end_address - mapping->start_address;
	glance->image_path = mapping->path;
	return true;
}

static bool enter_mapping(struct sym_resolver *resolver, uint64_t address,
			  struct sym_glance *glance)
{
	/* First: what is read afterwards is of this generation or a later one. */
	uint64_t generation = atomic_load(&resolver->generation);
	struct resolving resolving = begin_resolving(resolver);
	bool entered = enter_counted(&resolving, address, glance);

	end_resolving(&resolving);
	glance->reserved.generation = generation;
	return entered;
}

static void take_glance(struct sym_glance *glance, uint64_t address, enum sym_source_kind source,
			const struct source_match *match)
{
	glance->name = match->name;
	glance->tier = match->tier;
	glance->offset_bytes = address - match->start;
	glance->size_bytes = match->size_bytes;
	glance->source = source;
	glance->kind = match->kind;
}

/* The one that was noted may have ended with a refresh, unless it is the snapshot's. */
static const struct runtime_source *source_at_glance(const struct resolving *resolving,
						     const struct sym_glance *glance)
{
	const struct live_code *live =
		resolving->refreshed ? atomic_load(&resolving->resolver->live) : NULL;

	return live ? live->source : glance->reserved.live;
}

/* As resolve_memory(). */
static __attribute__((noinline)) int glance_at(struct sym_resolver *resolver, uint64_t address,
					       struct sym_glance *glance)
{
	struct resolving resolving = begin_resolving(resolver);
	const struct runtime_source *live =
		glance->reserved.live ? source_at_glance(&resolving, glance) : NULL;
	enum sym_source_kind source;
	const struct written *written;
	struct source_match match;

	source = resolver_look_up_live(&resolving, live, address, &match);
	written = source == SYM_SOURCE_NONE ? resolver_get_written(&resolving) : NULL;
	if (written)
		source = resolver_look_up_written(&resolving, written, address, &match);
	end_resolving(&resolving);
	if (source == SYM_SOURCE_NONE)
		return 0;
	take_glance(glance, address, source, &match);
	return 1;
}

static __attribute__((noinline)) int glance_anew(struct sym_resolver *resolver, uint64_t address,
						 struct sym_glance *glance)
{
	if (glance->size < sizeof(*glance) || !enter_mapping(resolver, address, glance))
		return 0;
	return glance_at(resolver, address, glance);
}

/* The quick way writes the path of another mapping over that of the one that was noted; and where
 * there was one, another may be made. */
static __attribute__((noinline)) int glance_carefully(struct sym_resolver *resolver,
						      uint64_t address, struct sym_glance *glance)
{
	if (glance->size < sizeof(*glance) || glance->reserved.resolver != resolver ||
	    atomic_load_explicit(&resolver->had_quick, memory_order_relaxed) ||
	    glance->reserved.generation != atomic_load(&resolver->generation) ||
	    address - glance->reserved.start >= glance->reserved.size_bytes)
		return glance_anew(resolver, address, glance);
	return glance_at(resolver, address, glance);
}

static inline __attribute__((always_inline)) int fill_glance(const struct quick_look_up *quick,
							     const struct quick_found *found,
							     const char *path,
							     struct sym_glance *glance)
{
	glance->name = found->name;
	QUICK_APART();
	glance->tier = quick->tiers[found->code];
	QUICK_APART();
	glance->image_path = path;
	QUICK_APART();
	glance->offset_bytes = found->offset_bytes;
	QUICK_APART();
	glance->size_bytes = found->size_bytes;
	glance->source = SYM_SOURCE_PERF_MAP;
	QUICK_APART();
	glance->kind = (enum sym_symbol_kind)quick->kinds[found->code];
	return 1;
}

/* As sym_resolver_glance(); below 0: it takes more than this. */
static int glance_quickly(const struct quick_look_up *quick, uint64_t address,
			  struct sym_glance *glance)
{
	struct quick_place place;
	struct quick_found found;
	struct index_spot spot;

	if (!quick_find(quick, address, &place, &spot, &found))
		return quick_is_miss(quick, &spot) ? 0 : -1;
	return fill_glance(quick, &found, place.path, glance);
}

static __attribute__((noinline)) int glance_unusual(struct sym_resolver *resolver,
						    const struct quick_look_up *quick,
						    uint64_t address, struct sym_glance *glance)
{
	int found = -1;

	if (glance->size >= sizeof(*glance) && quick) {
		found = glance_quickly(quick, address, glance);
	} else if (glance->size >= sizeof(*glance) && atomic_load(&resolver->refreshed)) {
		struct reading reading = reading_begin(&resolver->readers);

		quick = atomic_load(&resolver->quick_now);
		if (quick)
			found = glance_quickly(quick, address, glance);
		reading_end(&resolver->readers, &reading);
	}
	return found < 0 ? glance_carefully(resolver, address, glance) : found;
}

int sym_resolver_glance(struct sym_resolver *resolver, uint64_t address, struct sym_glance *glance)
{
	const struct quick_look_up *quick = quick_at_once(resolver);
	struct quick_found found;
	const char *path;

	if (__builtin_expect(glance->size < sizeof(*glance), 0) || !quick ||
	    !quick_find_usual(quick, address, &path, &found))
		return glance_unusual(resolver, quick, address, glance);
	return fill_glance(quick, &found, path, glance);
}
