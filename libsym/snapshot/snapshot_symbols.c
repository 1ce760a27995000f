/* SPDX-License-Identifier: MIT */
/*
 * All symbols of a process as one disjoint list.
 *
 * Where symbols overlap, the first of these wins:
 * 1. the image itself
 * 2. the runtime, except stubs without a kind
 * 3. the perf map, the later of two lines
 * 4. stubs without a kind
 * 5. bounds of functions without a name
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_ranges.h"
#include "libsym/base/grow.h"
#include "libsym/base/huge_memory.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"
#include "libsym/snapshot/snapshot_runtime.h"
#include "libsym/snapshot/snapshot_symbols.h"

struct joining {
	struct sym_snapshot *snapshot;
	uint32_t flags;
	const struct jitted_code *reported;    /* by the runtime since; NULL: the snapshot's */
	struct join_cache *cache;              /* NULL: nothing is kept */
	const struct perfmap_source *perf_map; /* NULL before it was added, or when there is none */
	struct symbols_builder joined;
	struct symbols_builder unnamed; /* their texts are in `joined` */
	/* With room for all lines of maps. */
	struct address_ranges listed; /* executable, of the images whose methods are listed */
	struct address_ranges
		mapped; /* executable, of the ELF image that is being added; empty when unknown */
	/*
	 * Executable memory of a live process when its perf map was read. Only lines in it count.
	 */
	bool knows_code;
	struct address_ranges code;
};

/* The methods of a NativeAOT program are functions of its ELF file. */
static bool lists_functions(const struct joining *joining, uint32_t image_index)
{
	const struct sym_process_info *info = sym_snapshot_process(joining->snapshot);

	if (joining->flags & SYM_SYMBOLS_ELF)
		return true;
	return joining->flags & SYM_SYMBOLS_PRECOMPILED && info->runtime_shape &&
	       !strcmp(info->runtime_shape, "nativeaot") &&
	       info->runtime_image_index == image_index;
}

static bool is_wanted(const struct joining *joining, const struct sym_image *image)
{
	if (!image->object || image_trouble(image) || image->load_base == UINT64_MAX)
		return false;
	if (image->object->kind == SYM_IMAGE_ELF)
		return joining->flags & SYM_SYMBOLS_UNNAMED ||
		       lists_functions(joining, image->index);
	return joining->flags & SYM_SYMBOLS_PRECOMPILED &&
	       object_file_is_precompiled(image->object);
}

/*
 * A file may be mapped twice, the second time only in part (V8 maps its builtins once more beside
 * its jitted code). Around that part is other memory.
 */
static void note_mapped(struct joining *joining, const struct sym_image *image)
{
	const struct address_space *space = joining->snapshot->space;
	struct address_ranges *mapped = &joining->mapped;

	mapped->count = 0;
	for (size_t i = 0; image->object->kind == SYM_IMAGE_ELF && i < space->mapping_count; i++) {
		const struct sym_mapping *line = &space->mappings[i];

		if (line->image_index != image_index(image) || !(line->protection & SYM_EXECUTE))
			continue;
		if (mapped->count && mapped->items[mapped->count - 1].end == line->start_address)
			mapped->items[mapped->count - 1].end = line->end_address;
		else
			mapped->items[mapped->count++] =
				(struct address_range){ line->start_address, line->end_address };
	}
}

/* Adds the mapped part of a symbol. */
static void add_mapped(const struct joining *joining, struct symbols_builder *builder,
		       const struct sym_symbol *symbol)
{
	const struct address_ranges *mapped = &joining->mapped;

	if (!mapped->count)
		symbols_builder_add_borrowed(builder, symbol);
	for (size_t i = address_ranges_first_ending_after(mapped, symbol->start); i < mapped->count;
	     i++) {
		const struct address_range *range = &mapped->items[i];
		struct sym_symbol piece = *symbol;
		uint64_t end = symbol->start + symbol->size_bytes;

		if (end <= range->start && symbol->start < range->start)
			break;
		if (piece.start < range->start)
			piece.start = range->start;
		if (end > range->end)
			end = range->end;
		piece.size_bytes = end - piece.start;
		symbols_builder_add_borrowed(builder, &piece);
	}
}

/* The first alias in table order stays. The list of an image has that order. */
static void add_first_of_aliases(struct joining *joining, const struct sym_symbols *list,
				 uint32_t image_index)
{
	for (size_t i = 0; i < list->count; i++) {
		struct sym_symbol symbol = list->items[i];

		if (i && list->items[i - 1].start == symbol.start)
			continue;
		symbol.image_index = image_index;
		add_mapped(joining, &joining->joined, &symbol);
	}
}

/* In a disjoint list what is added later wins. The first alias in table order must win. */
static void order_native(const struct sym_symbols *list, struct symbols_builder *ret)
{
	for (int named = 0; named < 2; named++)
		for (size_t i = 0; i < list->count; i++) {
			const struct sym_symbol *symbol = &list->items[i];

			if ((symbol->kind != SYM_SYMBOL_UNNAMED) != named ||
			    (i && list->items[i - 1].start == symbol->start))
				continue;
			symbols_builder_add_borrowed(ret, symbol);
		}
}

/* Cuts functions without a name to what the symbols of the same image leave. */
static struct sym_error *make_native_disjoint(struct symbols_builder *builder)
{
	struct symbols_builder ordered AUTO_SYMBOLS_BUILDER = { 0 };
	struct sym_symbols *disjoint;
	struct sym_error *error;

	order_native(&builder->list, &ordered);
	error = symbols_freeze_disjoint(&ordered, &disjoint);
	if (error)
		return error;
	free(builder->list.items);
	builder->list.items = STEAL(disjoint->items);
	builder->list.count = builder->capacity = disjoint->count;
	sym_symbols_destroy(disjoint);
	return NULL;
}

static void add_native(struct joining *joining, const struct sym_symbols *list,
		       uint32_t image_index)
{
	bool named = lists_functions(joining, image_index);

	for (size_t i = 0; i < list->count; i++) {
		struct sym_symbol symbol = list->items[i];

		symbol.image_index = image_index;
		if (symbol.kind != SYM_SYMBOL_FUNCTION)
			add_mapped(joining, &joining->unnamed, &symbol);
		else if (named)
			add_mapped(joining, &joining->joined, &symbol);
	}
}

/* An image that cannot be read has an empty list and a problem. */
static struct sym_error *list_image(struct sym_image *image, uint32_t flags,
				    struct symbols_builder *builder)
{
	struct source_sink sink = {
		.builder = builder,
		.base = image->load_base,
		.image_index = image_index(image),
		.stubs = true,
		.unnamed = flags & SYM_SYMBOLS_UNNAMED,
		.linkage_names = flags & SYM_SYMBOLS_LINKAGE_NAMES,
	};
	struct sym_error *error = image_list_symbols(image, &sink);

	if (!error && builder->failure) {
		error = builder->failure;
		builder->failure = NULL;
	}
	if (!error && sink.unnamed && image->object->kind == SYM_IMAGE_ELF)
		error = make_native_disjoint(builder);
	if (!error || sym_error_is_no_memory(error))
		return error;
	image_set_trouble(image, error);
	symbols_builder_deinit(builder);
	symbols_builder_init(builder);
	return NULL;
}

/* ---- what is kept ----------------------------------------------------------- */

static void kept_list_destroy(struct kept_list *kept)
{
	struct symbols_builder builder = { .list = kept->list };

	symbols_builder_deinit(&builder);
	free(kept->path);
	free(kept);
}

void join_cache_deinit(struct join_cache *cache)
{
	for (size_t i = 0; i < cache->count; i++)
		kept_list_destroy(cache->lists[i]);
	free(cache->lists);
	perfmap_source_close(cache->perf_map);
	*cache = (struct join_cache){ 0 };
}

void join_cache_sweep(struct join_cache *cache)
{
	size_t kept = 0;

	for (size_t i = 0; i < cache->count; i++)
		if (cache->lists[i]->in_use)
			cache->lists[kept++] = cache->lists[i];
		else
			kept_list_destroy(cache->lists[i]);
	cache->count = kept;
}

/* The first mapping of an image, which identifies its file; NULL without a file. */
static const struct sym_mapping *mapping_of(const struct sym_snapshot *snapshot,
					    const struct sym_image *image)
{
	for (size_t i = 0; i < snapshot->space->mapping_count; i++)
		if (snapshot->space->mappings[i].image_index == image_index(image))
			return snapshot->space->mappings[i].inode ? &snapshot->space->mappings[i]
								  : NULL;
	return NULL;
}

/* A file that was overwritten in place counts as another file. */
static int64_t touched_ns(const struct sym_image *image)
{
	return image->object ? image->object->file.touched_ns : 0;
}

static struct kept_list *find_kept(const struct join_cache *cache, const struct sym_image *image,
				   const struct sym_mapping *mapping)
{
	for (size_t i = 0; i < cache->count; i++) {
		struct kept_list *kept = cache->lists[i];

		if (kept->load_base == image->load_base && kept->inode == mapping->inode &&
		    kept->device_major == mapping->device_major &&
		    kept->device_minor == mapping->device_minor &&
		    kept->touched_ns == touched_ns(image) && !strcmp(kept->path, image->path))
			return kept;
	}
	return NULL;
}

/* Takes ownership of the content of `builder`. */
static struct sym_error *keep_list(struct join_cache *cache, const struct sym_image *image,
				   const struct sym_mapping *mapping,
				   struct symbols_builder *builder, struct kept_list **ret)
{
	struct kept_list *kept;

	if (!grow_items((void **)&cache->lists, &cache->capacity, cache->count,
			sizeof(*cache->lists)))
		return &sym_error_no_memory;
	kept = calloc(1, sizeof(*kept));
	if (kept)
		kept->path = strdup(image->path);
	if (!kept || !kept->path) {
		free(kept);
		return &sym_error_no_memory;
	}
	kept->load_base = image->load_base;
	kept->inode = mapping->inode;
	kept->device_major = mapping->device_major;
	kept->device_minor = mapping->device_minor;
	kept->touched_ns = touched_ns(image);
	kept->list = builder->list;
	symbols_builder_init(builder);
	cache->lists[cache->count++] = kept;
	*ret = kept;
	return NULL;
}

/* ---- joining ------------------------------------------------------------------ */

static struct sym_error *add_image_symbols(struct joining *joining, struct sym_image *image,
					   bool *listed_ret)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	const struct sym_mapping *mapping =
		joining->cache ? mapping_of(joining->snapshot, image) : NULL;
	struct kept_list *kept = mapping ? find_kept(joining->cache, image, mapping) : NULL;
	struct sym_symbols *list = &builder.list;
	bool unnamed = joining->flags & SYM_SYMBOLS_UNNAMED;
	struct sym_error *error = kept ? NULL : list_image(image, joining->flags, &builder);

	if (!error && mapping && !kept && !image_trouble(image))
		error = keep_list(joining->cache, image, mapping, &builder, &kept);
	if (error)
		return error;
	if (kept) {
		kept->in_use = true;
		list = &kept->list;
	} else {
		symbols_builder_absorb_names(&joining->joined, list);
	}
	note_mapped(joining, image);
	if (unnamed && image->object->kind == SYM_IMAGE_ELF)
		add_native(joining, list, image_index(image));
	else
		add_first_of_aliases(joining, list, image_index(image));
	*listed_ret = list->count > 0 && image->object->kind != SYM_IMAGE_ELF;
	return NULL;
}

static void note_code(struct joining *joining, const bool *is_listed)
{
	const struct address_space *space = joining->snapshot->space;

	for (size_t i = 0; i < space->mapping_count; i++) {
		const struct sym_mapping *line = &space->mappings[i];

		if (line->image_index != UINT32_MAX && is_listed[line->image_index] &&
		    line->protection & SYM_EXECUTE)
			joining->listed.items[joining->listed.count++] =
				(struct address_range){ line->start_address, line->end_address };
	}
}

/*
 * A merged map has lines for functions without a name and for linkage stubs. Their images list them
 * again, or they are not wanted.
 */
static bool is_text_of_ours(const struct joining *joining, const struct sym_symbol *symbol)
{
	const struct address_space *space;
	bool is_stub;
	size_t line;

	/* A map can be read without a process. */
	if (!joining->snapshot)
		return false;
	is_stub = path_ends_with(symbol->name, "@plt");
	if (!is_stub && !strstr(symbol->name, "!0x"))
		return false;
	space = joining->snapshot->space;
	line = address_space_find(space, symbol->start);
	return line != ADDRESS_SPACE_NONE && space->mappings[line].image_index != UINT32_MAX &&
	       (is_stub || eh_frame_source_is_text(symbol->name, space->mappings[line].path));
}

/* As resolver_is_stub_in_file(). */
static bool is_stub_in_file(const struct joining *joining, const struct sym_symbol *symbol)
{
	struct sym_image *image = NULL;
	size_t line;

	if (symbol->kind != SYM_SYMBOL_STUB || !joining->snapshot)
		return false;
	line = address_space_find(joining->snapshot->space, symbol->start);
	if (line == ADDRESS_SPACE_NONE)
		return false;
	sym_error_destroy(snapshot_image_of(joining->snapshot, line, &image));
	return image != NULL;
}

static void close_perf_map(void *source)
{
	perfmap_source_close(source);
}

/* Lines may be about code newer than the snapshot, so the mappings are read again. */
static struct sym_error *note_live_code(struct joining *joining)
{
	const struct process *process = joining->snapshot->process;
	struct address_space *now AUTO_ADDRESS_SPACE = NULL;
	const struct address_space *space = joining->snapshot->space;
	struct sym_error *error;

	if (process->recorded || !(joining->flags & SYM_SYMBOLS_IN_CODE))
		return NULL;
	error = address_space_read(process, &now);
	error = sym_error_only_no_memory(error);
	if (error)
		return error;
	if (now)
		space = now;
	joining->knows_code = true;
	for (size_t i = 0; i < space->mapping_count; i++)
		if (space->mappings[i].protection & SYM_EXECUTE &&
		    !address_ranges_append(&joining->code, space->mappings[i].start_address,
					   space->mappings[i].end_address))
			return &sym_error_no_memory;
	return NULL;
}

/* Every user can write any line. It is cut to executable memory. False: nothing remains. */
static bool cut_to_code(const struct joining *joining, struct sym_symbol *symbol)
{
	const struct address_ranges *code = &joining->code;
	size_t i;

	if (!joining->knows_code)
		return true;
	i = address_ranges_first_ending_after(code, symbol->start);
	if (i == code->count || symbol->start < code->items[i].start)
		return false;
	if (symbol->size_bytes > code->items[i].end - symbol->start)
		symbol->size_bytes = code->items[i].end - symbol->start;
	return true;
}

/* `stubs_only`: adds those again that win over the runtime. */
static void add_lines(struct joining *joining, const struct perfmap_source *source, bool stubs_only)
{
	for (size_t i = 0; i < perfmap_source_count(source); i++) {
		struct sym_symbol symbol;

		perfmap_source_at(source, i, &symbol);
		if ((!stubs_only || symbol.kind == SYM_SYMBOL_STUB) &&
		    cut_to_code(joining, &symbol) &&
		    !address_ranges_contain(&joining->listed, symbol.start, 1) &&
		    !is_text_of_ours(joining, &symbol) && !is_stub_in_file(joining, &symbol))
			symbols_builder_add_borrowed(&joining->joined, &symbol);
	}
}

/* The list keeps the source, which owns the names. */
static void take_perf_map(struct joining *joining, struct perfmap_source *source)
{
	symbols_builder_adopt(&joining->joined, source, close_perf_map);
	add_lines(joining, source, false);
}

static struct sym_error *add_perf_map(struct joining *joining)
{
	struct join_cache *cache = joining->cache;
	struct perfmap_source *source = cache ? cache->perf_map : NULL;
	struct sym_error *error = NULL;
	struct buf why;

	if (!cache || !cache->has_perf_map) {
		buf_init(&why, LIMIT_NAME_BYTES);
		error = snapshot_read_perf_map(joining->snapshot, 0, &why, &source);
		buf_deinit(&why);
	}
	if (error)
		return error;
	if (cache) {
		cache->perf_map = source;
		cache->has_perf_map = true;
	}
	if (source)
		error = note_live_code(joining);
	if (error && !cache)
		perfmap_source_close(source);
	if (error)
		return error;
	if (source && cache)
		add_lines(joining, source, false);
	else if (source)
		take_perf_map(joining, source);
	joining->perf_map = source;
	return NULL;
}

/* Completes a method without its signature from the perf map. */
static void take_whole_name(const struct joining *joining, struct sym_symbol *symbol)
{
	const struct source_match known = { .start = symbol->start,
					    .size_bytes = symbol->size_bytes,
					    .name = symbol->name,
					    .kind = symbol->kind };
	struct source_match line;

	if (symbol->kind == SYM_SYMBOL_STUB || !joining->perf_map ||
	    perfmap_source_find(joining->perf_map, symbol->start, &line) != SOURCE_HIT ||
	    !runtime_source_yields_to(&known, &line))
		return;
	symbol->name = line.name;
	symbol->tier = line.tier;
	symbol->source = SYM_SOURCE_PERF_MAP;
}

/* Adds the pieces that yield to the perf map, or the others. Returns whether there were any. */
static bool add_pieces(struct joining *joining, const struct runtime_source *source, bool yielding)
{
	bool any = false;

	for (size_t i = 0; i < runtime_source_count(source); i++) {
		struct sym_symbol symbol;

		if (runtime_source_at(source, i, &symbol) != yielding)
			continue;
		if (yielding)
			take_whole_name(joining, &symbol);
		symbols_builder_add_borrowed(&joining->joined, &symbol);
		any = true;
	}
	return any;
}

/* The snapshot outlives its lists, and so do the runtime's names. */
static struct sym_error *add_runtime(struct joining *joining)
{
	const struct runtime_source *source;
	const struct jitted_code *code = joining->reported;
	struct sym_error *error = code ? NULL : snapshot_live_code(joining->snapshot, &code);

	if (error)
		return error;
	source = code->source ?: code->below;
	if (!source)
		return NULL;
	if (code->source && code->below) {
		add_pieces(joining, code->below, true);
		add_pieces(joining, code->below, false);
	}
	if (add_pieces(joining, source, true) && joining->perf_map)
		add_lines(joining, joining->perf_map, true);
	add_pieces(joining, source, false);
	return NULL;
}

/*
 * The images are listed first because the perf map needs their extents. But they win, so their
 * symbols are moved after those of the map. Symbols without a name come first.
 */
static struct sym_error *put_in_order(struct joining *joining, size_t image_symbols)
{
	struct sym_symbols *list = &joining->joined.list;
	const struct sym_symbols *unnamed = &joining->unnamed.list;
	size_t others = list->count - image_symbols, total = unnamed->count + list->count;
	struct sym_symbol *ordered;

	if (!unnamed->count && (!image_symbols || !others))
		return NULL;
	ordered = huge_memory_allocate(total * sizeof(*ordered));
	if (!ordered)
		return &sym_error_no_memory;
	if (unnamed->count)
		memcpy(ordered, unnamed->items, unnamed->count * sizeof(*ordered));
	if (others)
		memcpy(ordered + unnamed->count, list->items + image_symbols,
		       others * sizeof(*ordered));
	if (image_symbols)
		memcpy(ordered + unnamed->count + others, list->items,
		       image_symbols * sizeof(*ordered));
	free(list->items);
	list->items = ordered;
	list->count = joining->joined.capacity = total;
	return NULL;
}

static struct sym_error *snapshot_symbols_join(struct joining *joining, bool *is_listed,
					       struct sym_symbols **ret)
{
	struct sym_snapshot *snapshot = joining->snapshot;
	struct sym_error *error = NULL;
	size_t image_symbols;

	for (size_t i = 0; !error && i < snapshot->image_count; i++)
		if (is_wanted(joining, snapshot->images[i]))
			error = add_image_symbols(joining, snapshot->images[i], &is_listed[i]);
	if (error)
		return error;
	note_code(joining, is_listed);
	image_symbols = joining->joined.list.count;
	if (joining->flags & SYM_SYMBOLS_PERF_MAP && snapshot_uses_perf_map(snapshot))
		error = add_perf_map(joining);
	if (!error && joining->flags & SYM_SYMBOLS_RUNTIME && snapshot_uses_runtime(snapshot))
		error = add_runtime(joining);
	if (!error && joining->unnamed.failure) {
		error = joining->unnamed.failure;
		joining->unnamed.failure = NULL;
	}
	if (!error && !joining->joined.failure)
		error = put_in_order(joining, image_symbols);
	return error ? error : symbols_freeze_disjoint(&joining->joined, ret);
}

static struct sym_error *join_with(struct joining *joining, struct sym_symbols **ret)
{
	struct sym_snapshot *snapshot = joining->snapshot;
	struct sym_error *error = snapshot_open_all(snapshot);
	bool *is_listed AUTO_FREE = NULL;

	if (error)
		return error;
	is_listed = calloc(snapshot->image_count + 1, sizeof(*is_listed));
	joining->listed.items =
		calloc(snapshot->space->mapping_count + 1, sizeof(*joining->listed.items));
	joining->mapped.items =
		calloc(snapshot->space->mapping_count + 1, sizeof(*joining->mapped.items));
	error = joining->listed.items && joining->mapped.items && is_listed
			? snapshot_symbols_join(joining, is_listed, ret)
			: &sym_error_no_memory;
	address_ranges_deinit(&joining->listed);
	address_ranges_deinit(&joining->mapped);
	address_ranges_deinit(&joining->code);
	symbols_builder_deinit(&joining->unnamed);
	symbols_builder_deinit(&joining->joined);
	return error;
}

static const uint32_t default_flags =
	SYM_SYMBOLS_PRECOMPILED | SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_RUNTIME;

/* ARGUMENT for an unknown flag. */
static struct sym_error *snapshot_check_join(uint32_t flags)
{
	const uint32_t known = default_flags | SYM_SYMBOLS_ELF | SYM_SYMBOLS_UNNAMED |
			       SYM_SYMBOLS_LINKAGE_NAMES | SYM_SYMBOLS_IN_CODE;

	if (flags & ~known)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", flags);
	return NULL;
}

struct sym_error *snapshot_join(struct sym_snapshot *snapshot, uint32_t flags,
				const struct jitted_code *code, struct join_cache *cache,
				struct sym_symbols **ret)
{
	struct joining joining = {
		.snapshot = snapshot,
		.flags = flags ? flags : default_flags,
		.reported = code,
		.cache = cache,
	};
	struct sym_error *error = snapshot_check_join(flags);

	if (error)
		return error;
	for (size_t i = 0; cache && i < cache->count; i++)
		cache->lists[i]->in_use = false;
	return join_with(&joining, ret);
}

struct sym_error *sym_snapshot_symbols(struct sym_snapshot *snapshot, uint32_t flags,
				       struct sym_symbols **ret)
{
	return snapshot_join(snapshot, flags, NULL, NULL, ret);
}

struct sym_error *sym_perf_map_read(int fd, struct sym_symbols **ret, uint64_t *bad_lines_ret)
{
	struct joining alone = { 0 };
	struct perfmap_source *source;
	const struct perfmap_input input = { .fd = fd, .path = "perf map" };
	struct sym_error *error = perfmap_source_open(&input, 1, 0, &source);
	uint64_t bad_lines;

	if (error)
		return error;
	bad_lines = perfmap_source_bad_lines(source);
	take_perf_map(&alone, source);
	error = symbols_freeze(&alone.joined, ret);
	symbols_builder_deinit(&alone.joined);
	if (!error && bad_lines_ret)
		*bad_lines_ret = bad_lines;
	return error;
}
