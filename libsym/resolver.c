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

/* The perf map as it was when the first address asked for it. */
struct written {
	struct perfmap_source *source; /* NULL: there is no map, or none that may be used */
	enum sym_status status;        /* without a source */
	char *reason;                  /* without a source; NULL: the process writes no map */
};

struct sym_resolver {
	struct sym_snapshot *snapshot;
	pthread_mutex_t lock;
	_Atomic(struct written *) written;
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

static void written_destroy(struct written *written)
{
	if (!written)
		return;
	perfmap_source_close(written->source);
	free(written->reason);
	free(written);
}

void sym_resolver_destroy(struct sym_resolver *resolver)
{
	if (!resolver)
		return;
	written_destroy(atomic_load(&resolver->written));
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
}

/* NULL when there was no memory: the next look-up tries again. */
static struct written *read_written(const struct sym_snapshot *snapshot)
{
	struct written *written = calloc(1, sizeof(*written));
	struct sym_error *error = NULL;
	struct buf why;

	if (!written)
		return NULL;
	buf_init(&why, LIMIT_NAME_BYTES);
	written->status = SYM_NO_SYMBOLS;
	if (snapshot_uses_perf_map(snapshot))
		error = snapshot_read_perf_map(snapshot, &why, &written->source);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY) {
		written_destroy(written);
		written = NULL;
	} else if (error) {
		written->status = module_status_of_error(sym_error_code(error));
		buf_append_string(&why, sym_error_message(error));
	}
	if (written && why.size_bytes)
		written->reason = buf_steal(&why, NULL);
	sym_error_destroy(error);
	buf_deinit(&why);
	return written;
}

static const struct written *get_written(struct sym_resolver *resolver)
{
	struct written *written = atomic_load_explicit(&resolver->written, memory_order_acquire);

	if (written)
		return written;
	pthread_mutex_lock(&resolver->lock);
	written = atomic_load(&resolver->written);
	if (!written) {
		written = read_written(resolver->snapshot);
		atomic_store_explicit(&resolver->written, written, memory_order_release);
	}
	pthread_mutex_unlock(&resolver->lock);
	return written;
}

/* NULL when it is not wanted, or for want of memory. */
static const struct live_code *get_live(const struct sym_snapshot *snapshot)
{
	const struct live_code *live = NULL;

	if (snapshot_uses_runtime(snapshot))
		sym_error_destroy(live_code_get(snapshot, &live));
	return live;
}

static void take_match(struct sym_answer *answer, enum sym_source_kind source,
		       const struct source_match *match)
{
	answer->status = SYM_RESOLVED;
	answer->source = source;
	answer->name = match->name;
	answer->tier = match->tier;
	answer->kind = match->kind;
	answer->offset_bytes = answer->address - match->start;
	answer->size_bytes = match->size_bytes;
	answer->reason = NULL;
}

static bool find_live(const struct live_code *live, struct sym_answer *answer)
{
	struct source_match match;

	if (!live || !live->source ||
	    runtime_source_find(live->source, answer->address, &match) != SOURCE_HIT)
		return false;
	take_match(answer, SYM_SOURCE_RUNTIME, &match);
	return true;
}

static bool find_written(const struct written *written, struct sym_answer *answer)
{
	struct source_match match;

	if (!written || !written->source ||
	    perfmap_source_find(written->source, answer->address, &match) != SOURCE_HIT)
		return false;
	/* What `merge` wrote for want of a name is no name for having been written. */
	if (answer->status == SYM_UNNAMED &&
	    eh_frame_source_is_text(match.name, answer->image_path))
		return false;
	take_match(answer, SYM_SOURCE_PERF_MAP, &match);
	return true;
}

/* Why jitted code has no name. */
static void explain_jitted(const struct live_code *live, const struct written *written,
			   struct sym_answer *answer)
{
	answer->status = SYM_NO_SYMBOLS;
	if (!written) {
		answer->status = SYM_UNREADABLE;
		answer->reason = "out of memory";
	} else if (written->source || (live && live->source)) {
		answer->status = SYM_NO_MATCH;
	} else if (written->reason) {
		answer->status = written->status;
		answer->reason = written->reason;
	} else if (live && live->info.rundown_reason) {
		answer->reason = live->info.rundown_reason;
	} else if (live && live->info.contract_reason) {
		answer->reason = live->info.contract_reason;
	} else {
		answer->reason = "jitted code; the process writes no perf map";
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
static void resolve_memory(struct sym_resolver *resolver, const struct sym_mapping *mapping,
			   struct sym_answer *answer)
{
	bool executable = mapping->protection & SYM_EXECUTE;
	const struct live_code *live = executable ? get_live(resolver->snapshot) : NULL;
	const struct written *written;

	if (find_live(live, answer))
		return;
	written = get_written(resolver);
	if (find_written(written, answer))
		return;
	answer->status = SYM_NO_SYMBOLS;
	if (!executable)
		answer->reason = "memory that is not executable";
	else if (is_kernel_code(mapping))
		answer->reason = "code of the kernel";
	else
		explain_jitted(live, written, answer);
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
	if (answer->status == SYM_NO_SYMBOLS || answer->status == SYM_UNNAMED ||
	    (answer->status == SYM_NO_MATCH && module->image->kind == SYM_IMAGE_ELF))
		find_written(get_written(resolver), answer);
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
		[SYM_RESOLVED] = "resolved",
		[SYM_UNMAPPED] = "not mapped",
		[SYM_NO_SYMBOLS] = "no symbols",
		[SYM_NO_MATCH] = "no symbol here",
		[SYM_STALE] = "not the mapped file",
		[SYM_UNREADABLE] = "not readable",
		[SYM_BAD_FORMAT] = "malformed file",
		[SYM_UNSUPPORTED] = "not supported",
		[SYM_UNNAMED] = "function without a name",
	};

	return (size_t)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}

const char *sym_source_text(enum sym_source_kind source)
{
	static const char *const texts[] = {
		[SYM_SOURCE_NONE] = "none",         [SYM_SOURCE_ELF] = "elf",
		[SYM_SOURCE_PERF_MAP] = "perfmap",  [SYM_SOURCE_RELATIVE_MAP] = "relmap",
		[SYM_SOURCE_READYTORUN] = "r2r",    [SYM_SOURCE_RUNTIME] = "runtime",
		[SYM_SOURCE_EH_FRAME] = "eh_frame", [SYM_SOURCE_DWARF] = "dwarf",
	};

	return (size_t)source < sizeof(texts) / sizeof(texts[0]) ? texts[source] : "unknown";
}
