/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a process to names: which mapping an address lies in, which
 * image or perf map is to be asked, and what to say when nobody knows. Holds
 * the perf map as it was when the first address asked for it. Several threads
 * may resolve with it at once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/result.h"
#include "libsym/snapshot.h"

struct jitted {
	const struct live_code *live;  /* belongs to the snapshot; NULL: not wanted */
	struct perfmap_source *source; /* NULL: there is no map, or none that may be used */
	enum sym_status status;        /* without a source */
	char *reason;                  /* without a source; NULL: the process writes no map */
};

struct sym_resolver {
	struct sym_snapshot *snapshot;
	pthread_mutex_t lock;
	_Atomic(struct jitted *) jitted;
};

struct sym_error *sym_resolver_create(struct sym_snapshot *snapshot, struct sym_resolver **ret)
{
	struct sym_resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return &sym_error_no_memory;
	resolver->snapshot = snapshot;
	pthread_mutex_init(&resolver->lock, NULL);
	*ret = resolver;
	return NULL;
}

static void jitted_destroy(struct jitted *jitted)
{
	if (!jitted)
		return;
	perfmap_source_close(jitted->source);
	free(jitted->reason);
	free(jitted);
}

void sym_resolver_destroy(struct sym_resolver *resolver)
{
	if (!resolver)
		return;
	jitted_destroy(atomic_load(&resolver->jitted));
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
}

static struct jitted *read_jitted(const struct sym_snapshot *snapshot)
{
	struct jitted *jitted = calloc(1, sizeof(*jitted));
	struct sym_error *error;
	struct buf why;

	if (!jitted)
		return NULL;
	buf_init(&why, LIMIT_NAME_BYTES);
	jitted->status = SYM_NO_SYMBOLS;
	error = snapshot_uses_runtime(snapshot) ? live_code_get(snapshot, &jitted->live) : NULL;
	if (!error && snapshot_uses_perf_map(snapshot))
		error = snapshot_read_perf_map(snapshot, &why, &jitted->source);
	if (error) {
		jitted->status = module_status_of_error(sym_error_code(error));
		buf_append_string(&why, sym_error_message(error));
		sym_error_destroy(error);
	}
	if (why.size_bytes)
		jitted->reason = buf_steal(&why, NULL);
	buf_deinit(&why);
	return jitted;
}

static const struct jitted *get_jitted(struct sym_resolver *resolver)
{
	struct jitted *jitted = atomic_load_explicit(&resolver->jitted, memory_order_acquire);

	if (jitted)
		return jitted;
	pthread_mutex_lock(&resolver->lock);
	jitted = atomic_load(&resolver->jitted);
	if (!jitted) {
		jitted = read_jitted(resolver->snapshot);
		atomic_store_explicit(&resolver->jitted, jitted, memory_order_release);
	}
	pthread_mutex_unlock(&resolver->lock);
	return jitted;
}

/* What the runtime itself tells wins over what it once wrote. */
static bool find_jitted(const struct jitted *jitted, struct sym_answer *answer)
{
	struct source_match match;

	if (jitted && jitted->live && jitted->live->source &&
	    runtime_source_find(jitted->live->source, answer->address, &match) == SOURCE_HIT)
		answer->source = SYM_SOURCE_RUNTIME;
	else if (jitted && jitted->source &&
		 perfmap_source_find(jitted->source, answer->address, &match) == SOURCE_HIT)
		answer->source = SYM_SOURCE_PERF_MAP;
	else
		return false;
	answer->status = SYM_RESOLVED;
	answer->name = match.name;
	answer->tier = match.tier;
	answer->kind = match.kind;
	answer->offset_bytes = answer->address - match.start;
	answer->size_bytes = match.size_bytes;
	answer->reason = NULL;
	return true;
}

/* Why there is no jitted name at all. */
static const char *no_names_reason(const struct jitted *jitted)
{
	const struct live_code *live = jitted->live;

	if (live && live->info.rundown_reason)
		return live->info.rundown_reason;
	if (live && live->info.contract_reason)
		return live->info.contract_reason;
	return "jitted code; the process writes no perf map";
}

/* Memory of no image: jitted code, heaps, stacks, what the kernel maps. */
static void resolve_memory(struct sym_resolver *resolver, const struct sym_mapping *mapping,
			   struct sym_answer *answer)
{
	const struct jitted *jitted = get_jitted(resolver);

	if (find_jitted(jitted, answer))
		return;
	answer->status = SYM_NO_SYMBOLS;
	if (!(mapping->protection & SYM_EXECUTE)) {
		answer->reason = "memory that is not executable";
	} else if (mapping->path[0] == '[' && strncmp(mapping->path, "[anon:", 6) &&
		   strcmp(mapping->path, "[heap]")) {
		answer->reason = "code of the kernel";
	} else if (!jitted) {
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (jitted->source || (jitted->live && jitted->live->source)) {
		answer->status = SYM_NO_MATCH;
	} else if (jitted->reason) {
		answer->status = jitted->status;
		answer->reason = jitted->reason;
	} else {
		answer->reason = no_names_reason(jitted);
	}
}

/* A perf map may name what an image itself cannot: native code of a runtime that writes about
 * itself, images of others. */
static void resolve_image(struct sym_resolver *resolver, size_t mapping_index,
			  struct sym_answer *answer)
{
	const struct sym_snapshot *snapshot = resolver->snapshot;
	const struct sym_mapping *mapping = &snapshot->space->mappings[mapping_index];
	struct sym_image *module = snapshot->modules[mapping->image_index];
	uint64_t offset = answer->address - mapping->start_address + mapping->offset;

	answer->image = module;
	answer->image_path = module->path;
	if (snapshot->is_placed[mapping_index])
		answer->image_position = answer->address - module->load_base;
	else if (!module->image ||
		 !image_offset_to_position(module->image, offset, &answer->image_position))
		answer->image_position = UINT64_MAX;
	if (!(mapping->protection & SYM_EXECUTE) && !module_trouble(module)) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "a part of the file that is not executable";
		return;
	}
	if (answer->image_position == UINT64_MAX && !module_trouble(module)) {
		answer->status = SYM_NO_SYMBOLS;
		answer->reason = "this part of the file is loaded nowhere";
	} else {
		module_find(module, answer->image_position, answer);
	}
	/* Tables of methods are complete; symbol tables are often stripped. */
	if (answer->status == SYM_NO_SYMBOLS ||
	    (answer->status == SYM_NO_MATCH && module->image->kind == SYM_IMAGE_ELF))
		find_jitted(get_jitted(resolver), answer);
}

static void resolve_one(struct sym_resolver *resolver, struct sym_answer *answer)
{
	const struct address_space *space = resolver->snapshot->space;
	size_t found = address_space_find(space, answer->address);

	if (found == ADDRESS_SPACE_NONE) {
		answer->status = SYM_UNMAPPED;
		return;
	}
	answer->image_path = space->mappings[found].path;
	if (space->mappings[found].image_index != UINT32_MAX)
		resolve_image(resolver, found, answer);
	else
		resolve_memory(resolver, &space->mappings[found], answer);
}

struct sym_error *sym_resolver_resolve(struct sym_resolver *resolver, const uint64_t *addresses,
				       size_t count, struct sym_result *result)
{
	struct sym_error *error = result_prepare(result, addresses, count);

	for (size_t i = 0; !error && i < count; i++)
		resolve_one(resolver, &result->answers[i]);
	return error;
}

const char *sym_status_text(enum sym_status status)
{
	static const char *const texts[] = {
		[SYM_RESOLVED] = "resolved",         [SYM_UNMAPPED] = "not mapped",
		[SYM_NO_SYMBOLS] = "no symbols",     [SYM_NO_MATCH] = "no symbol here",
		[SYM_STALE] = "not the mapped file", [SYM_UNREADABLE] = "not readable",
		[SYM_BAD_FORMAT] = "malformed file", [SYM_UNSUPPORTED] = "not supported",
	};

	return (size_t)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}

const char *sym_source_text(enum sym_source_kind source)
{
	static const char *const texts[] = {
		[SYM_SOURCE_NONE] = "none",        [SYM_SOURCE_ELF] = "elf",
		[SYM_SOURCE_PERF_MAP] = "perfmap", [SYM_SOURCE_RELATIVE_MAP] = "relmap",
		[SYM_SOURCE_READYTORUN] = "r2r",   [SYM_SOURCE_RUNTIME] = "runtime",
	};

	return (size_t)source < sizeof(texts) / sizeof(texts[0]) ? texts[source] : "unknown";
}
