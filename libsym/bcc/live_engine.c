/* SPDX-License-Identifier: MIT */
/*
 * Names of a process with libsym, behind libbcc's functions: native code, images with precompiled
 * code, jitted code.
 * sym_live decides when the process is refreshed: at most every refresh_ms, for at most a twentieth
 * of the time.
 *
 * Names returned before bcc_symcache_refresh() stay valid until the next one, so that a caller may
 * collect a stack before it prints it.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/bcc/answer_counts.h"
#include "libsym/bcc/bcc_budget.h"
#include "libsym/bcc/bcc_settings.h"
#include "libsym/bcc/display_names.h"
#include "libsym/bcc/elf_file.h"
#include "libsym/bcc/symcache.h"
#include "libsym/libsym.h"

enum {
	SHARE_PERCENT = 5,
	KEPT_MS = 10000, /* how long an engine without a cache is kept */
};

struct live_engine {
	int pid;
	struct bcc_symbol_option option;
	struct bcc_settings settings;
	struct sym_live *live; /* NULL: the process could not be opened yet */
	struct sym_live *before;
	struct sym_result *result;
	struct display_names display_names,
		old_labels; /* current labels; labels of the previous generation */
	uint64_t generation;
	char *map_path; /* the perf map in use, in libbcc's form; NULL: none, or not needed yet */
	bool map_asked;
	bool was_rundown;
	uint64_t cost_ms; /* of opening and of the first answer */
	uint64_t used_ms;
	uint64_t not_before_ms;      /* earliest time to open it again */
	struct answer_counts counts; /* for the report */
};

static uint64_t now_ms(const struct live_engine *engine)
{
	return bcc_settings_now_ns(&engine->settings) / 1000000;
}

/*
 * The file with the image's path below $BCC_SYMFS. libsym uses it only if it has the image's
 * build-id.
 */
static int find_in_symfs(void *symfs, const struct sym_fetch_request *request, char **path_ret)
{
	char *path;

	if (request->kind != SYM_FETCH_DEBUG_FILE || request->image_path[0] != '/')
		return 0;
	if (asprintf(&path, "%s%s", (const char *)symfs, request->image_path) < 0)
		return ENOMEM;
	if (access(path, R_OK))
		free(path);
	else
		*path_ret = path;
	return 0;
}

/* Opens the process again. On failure the known data stay. */
static void open_live(struct live_engine *engine)
{
	struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot),
					      .jit = engine->settings.jit,
					      .budget = bcc_budget_get(&engine->settings) };
	const struct sym_live_opts opts = { .size = sizeof(opts),
					    .share_percent = SHARE_PERCENT,
					    .interval_ms = engine->settings.refresh_ms,
					    .snapshot = &snapshot,
					    .clock_ns = engine->settings.clock_ns };
	char *symfs = getenv("BCC_SYMFS");
	uint64_t begin_ms = now_ms(engine);
	struct sym_live *live = NULL;

	if (symfs && *symfs) {
		snapshot.fetch = find_in_symfs;
		snapshot.fetch_context = symfs;
	}
	/* The label of a method in the map is the name in its line. */
	if (!engine->settings.no_tiers && !engine->settings.names)
		snapshot.flags = SYM_SNAPSHOT_TIER_IN_NAME;
	if (engine->pid > 0)
		sym_error_destroy(sym_live_open(engine->pid, &opts, &live));
	engine->cost_ms = now_ms(engine) - begin_ms;
	engine->not_before_ms = now_ms(engine) + engine->settings.refresh_ms;
	if (!live)
		return;
	sym_live_close(engine->before);
	engine->before = engine->live;
	engine->live = live;
	engine->counts.looks++;
}

/* Names in labels are freed by the second change afterwards, and so are the labels. */
static void note_generation(struct live_engine *engine)
{
	display_names_deinit(&engine->old_labels);
	engine->old_labels = engine->display_names;
	engine->display_names = (struct display_names){ 0 };
	free(engine->map_path);
	engine->map_path = NULL;
	engine->map_asked = false;
	if (engine->live)
		engine->generation = sym_live_generation(engine->live);
}

static void live_engine_refresh(void *held)
{
	struct live_engine *engine = held;

	open_live(engine);
	note_generation(engine);
}

static void note_rundown(struct live_engine *engine)
{
	const struct sym_jit_info *info;
	struct sym_error *error;

	if (engine->was_rundown)
		return;
	error = sym_live_jit(engine->live, &info);
	sym_error_destroy(error);
	if (error || info->method != SYM_JIT_RUNDOWN)
		return;
	engine->was_rundown = true;
	if (engine->settings.notice)
		fprintf(stderr,
			"libsym-bcc: asked the runtime of process %d for its methods over its "
			"diagnostics socket (%s)\n",
			engine->pid, info->contract_reason ? info->contract_reason : "");
}

/* ---- answers ------------------------------------------------------------------ */

/* For a process in another namespace libbcc uses the map's path in there. */
static const char *map_path(struct live_engine *engine)
{
	struct sym_snapshot *snapshot = sym_live_snapshot(engine->live);
	int pid = sym_snapshot_process(snapshot)->pid;
	const struct sym_perf_map_info *info;
	struct sym_error *error;
	char inside[PATH_MAX];

	if (engine->map_asked)
		return engine->map_path;
	engine->map_asked = true;
	error = sym_snapshot_perf_map(snapshot, &info);
	if (error)
		sym_error_destroy(error);
	else if (info->path && !strncmp(info->path, "/proc/", 6) &&
		 bcc_perf_map_path(inside, sizeof(inside), pid))
		engine->map_path = strdup(inside);
	else if (info->path)
		engine->map_path = strdup(info->path);
	return engine->map_path;
}

/* A function with known bounds has a text that serves as a name. */
static bool has_name(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY;
}

/* NULL when the process is not open. */
static const struct sym_answer *live_engine_ask(struct live_engine *engine, uint64_t address)
{
	struct sym_error *error;

	engine->used_ms = now_ms(engine);
	/* Descriptors may have been missing. */
	if (!engine->live && engine->used_ms >= engine->not_before_ms)
		open_live(engine);
	if (!engine->live)
		return NULL;
	/* Its times may have to begin again. */
	bcc_budget_get(&engine->settings);
	error = sym_live_resolve(engine->live, &address, NULL, 1, engine->result);
	if (engine->generation != sym_live_generation(engine->live))
		note_generation(engine);
	if (!engine->counts.asked)
		engine->cost_ms += now_ms(engine) - engine->used_ms;
	if (!error)
		return sym_result_at(engine->result, 0);
	sym_error_destroy(error);
	return NULL;
}

static void give_name(struct live_engine *engine, const struct sym_answer *answer,
		      struct bcc_symbol *sym)
{
	const char *tier = engine->settings.no_tiers ? NULL : answer->tier;
	enum bcc_names names =
		answer->source == SYM_SOURCE_ELF ? BCC_NAMES_FULL : engine->settings.names;

	sym->name = answer->linkage_name ? answer->linkage_name : answer->name;
	sym->demangle_name = answer->linkage_name ? answer->name : NULL;
	if (tier || names || (engine->settings.folded && strchr(answer->name, ';')))
		sym->name = display_names_get(&engine->display_names, answer->name, tier, names,
					      engine->settings.folded);
	if (sym->demangle_name && engine->settings.folded && strchr(answer->name, ';'))
		sym->demangle_name = sym->name;
	sym->offset = answer->offset_bytes;
	/* libbcc uses the map as module of everything that the map names. */
	sym->module = answer->source == SYM_SOURCE_PERF_MAP ? map_path(engine) : NULL;
	if (!sym->module && answer->image_path[0])
		sym->module = answer->image_path;
	if (answer->source == SYM_SOURCE_RUNTIME)
		note_rundown(engine);
	engine->counts.by_source[answer->source % ANSWER_SOURCES]++;
}

static void give_place(struct live_engine *engine, const struct sym_answer *answer,
		       struct bcc_symbol *sym)
{
	if (answer->image) {
		sym->module = answer->image_path;
		sym->offset = sym_image_kind(answer->image) == SYM_IMAGE_ELF &&
					      answer->image_position != UINT64_MAX
				      ? answer->image_position
				      : answer->address;
		return;
	}
	sym->module = bcc_mapping_is_file_backed(answer->image_path) ? answer->image_path
								     : map_path(engine);
	sym->offset = sym->module ? answer->address : 0;
}

/*
 * The last instruction of a function may be a call that does not return. Then a stack has the
 * address after it, the first one outside the function. No code with a name can be there.
 */
static bool give_ended(struct live_engine *engine, uint64_t address, struct bcc_symbol *sym)
{
	const struct sym_answer *answer = address ? live_engine_ask(engine, address - 1) : NULL;

	if (!answer || !has_name(answer) || !answer->size_bytes ||
	    answer->offset_bytes + 1 != answer->size_bytes)
		return false;
	give_name(engine, answer, sym);
	sym->offset++;
	return true;
}

static int live_engine_resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct live_engine *engine = held;
	const struct sym_answer *answer = live_engine_ask(engine, address);

	engine->counts.asked++;
	if (!answer)
		return -1;
	if (has_name(answer)) {
		give_name(engine, answer, sym);
		return 0;
	}
	if (give_ended(engine, address, sym))
		return 0;
	answer = live_engine_ask(engine, address);
	if (answer)
		give_place(engine, answer, sym);
	return -1;
}

/* ---- names to addresses ----------------------------------------------------------- */

static void match_map_line(const struct sym_symbols *symbols, uint32_t image_index,
			   const struct live_engine *engine, struct wanted_name *wanted)
{
	size_t count = sym_symbols_count(symbols);
	struct display_names display_names = { 0 };

	for (size_t i = 0; i < count && !wanted->start; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (image_index != UINT32_MAX && symbol->image_index != image_index)
			continue;
		if (!strcmp(symbol->name, wanted->name) ||
		    !strcmp(display_names_get(&display_names, symbol->name, symbol->tier,
					      engine->settings.names, engine->settings.folded),
			    wanted->name))
			wanted->start = symbol->start;
	}
	display_names_deinit(&display_names);
}

/* Searches the precompiled methods of one image. */
static void find_precompiled(struct live_engine *engine, uint32_t image_index,
			     struct wanted_name *wanted)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error = sym_snapshot_symbols(sym_live_snapshot(engine->live),
						       SYM_SYMBOLS_PRECOMPILED, &symbols);

	if (error)
		sym_error_destroy(error);
	else
		match_map_line(symbols, image_index, engine, wanted);
	sym_symbols_destroy(symbols);
}

/* Searches methods outside images. For a process that has ended, the known ones. */
static void find_jitted(struct live_engine *engine, struct wanted_name *wanted)
{
	const struct sym_symbols *symbols = NULL;

	sym_error_destroy(sym_live_symbols(engine->live, SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_RUNTIME,
					   &symbols, NULL));
	if (symbols)
		match_map_line(symbols, UINT32_MAX, engine, wanted);
}

/* True when the file at the path is the one that the process has mapped. */
static bool has_mapped(const struct sym_snapshot *snapshot, uint32_t image_index, const char *path)
{
	size_t count = sym_snapshot_mapping_count(snapshot);
	struct stat file;

	if (stat(path, &file))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (mapping->image_index == image_index && mapping->inode)
			return mapping->inode == file.st_ino;
	}
	return false;
}

/* Searches the functions of the mapped file, wherever that is now. */
static void find_in_mapped(struct sym_image *image, struct wanted_name *wanted)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error =
		sym_image_symbols(image, SYM_IMAGE_SYMBOLS_LINKAGE_NAMES, &symbols);
	size_t found = error ? SYM_NONE : sym_symbols_find(symbols, wanted->name, SYM_NONE);

	sym_error_destroy(error);
	if (found != SYM_NONE)
		wanted->start = sym_symbols_at(symbols, found)->start;
	sym_symbols_destroy(symbols);
}

static bool find_in_image(struct live_engine *engine, struct sym_image *image, uint32_t index,
			  const char *name, uint64_t *ret)
{
	struct wanted_name wanted = { name, 0 };
	char path[PATH_MAX + 64];

	if (sym_image_kind(image) != SYM_IMAGE_ELF) {
		find_precompiled(engine, index, &wanted);
		*ret = wanted.start;
		return wanted.start;
	}
	if (sym_image_load_base(image) == UINT64_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%s", engine->pid, sym_image_path(image));
	if (has_mapped(sym_live_snapshot(engine->live), index, path))
		bcc_elf_foreach_sym(path, elf_file_match_name, &engine->option, &wanted);
	else
		find_in_mapped(image, &wanted);
	if (!wanted.start)
		return false;
	*ret = sym_image_load_base(image) + wanted.start;
	return true;
}

static int resolve_name(void *held, const char *module, const char *name, uint64_t *ret)
{
	struct live_engine *engine = held;
	struct wanted_name wanted = { name, 0 };
	uint64_t start;
	size_t count;

	if (!engine->live || !module)
		return -1;
	sym_live_update(engine->live, 1);
	if (engine->generation != sym_live_generation(engine->live))
		note_generation(engine);
	count = sym_snapshot_image_count(sym_live_snapshot(engine->live));
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(sym_live_snapshot(engine->live), i);

		if (strcmp(sym_image_path(image), module) != 0 ||
		    !find_in_image(engine, image, (uint32_t)i, name, &start))
			continue;
		*ret = start;
		return 0;
	}
	if (map_path(engine) ? strcmp(map_path(engine), module) != 0
			     : !strstr(module, "memfd:doublemapper"))
		return -1;
	find_jitted(engine, &wanted);
	if (!wanted.start)
		return -1;
	*ret = wanted.start;
	return 0;
}

/* ---- life --------------------------------------------------------------------------- */

/* Added to the worth of a free slot, which is 1. */
static uint64_t worth_ms(const void *held)
{
	const struct live_engine *engine = held;

	return engine->live && now_ms(engine) - engine->used_ms < KEPT_MS ? engine->cost_ms + 2 : 0;
}

/* True when an engine without a cache can serve the next cache of the process. */
static bool still_good(void *held, const struct bcc_settings *settings)
{
	struct live_engine *engine = held;
	struct sym_error *error;

	if (!worth_ms(engine) || !bcc_settings_are_same(settings, &engine->settings))
		return false;
	error = sym_snapshot_check(sym_live_snapshot(engine->live));
	sym_error_destroy(error);
	return !error;
}

static void live_engine_report(void *held)
{
	struct live_engine *engine = held;

	if (engine->settings.report && engine->counts.asked)
		answer_counts_add(engine->pid, &engine->counts);
}

static void live_engine_destroy(void *held)
{
	struct live_engine *engine = held;

	live_engine_report(engine);
	display_names_deinit(&engine->display_names);
	display_names_deinit(&engine->old_labels);
	sym_live_close(engine->before);
	sym_live_close(engine->live);
	sym_result_destroy(engine->result);
	free(engine->map_path);
	free(engine);
}

void *live_engine_create(int pid, const struct bcc_symbol_option *option,
			 const struct bcc_settings *settings)
{
	struct live_engine *engine = calloc(1, sizeof(*engine));
	struct sym_error *error;

	if (!engine)
		return NULL;
	engine->pid = pid;
	engine->option = *option;
	engine->settings = *settings;
	engine->used_ms = now_ms(engine);
	error = sym_result_create(&engine->result);
	if (error) {
		sym_error_destroy(error);
		free(engine);
		return NULL;
	}
	open_live(engine);
	return engine;
}

const struct engine_ops live_engine_ops = {
	.resolve = live_engine_resolve,
	.resolve_name = resolve_name,
	.refresh = live_engine_refresh,
	.still_good = still_good,
	.worth_ms = worth_ms,
	.report = live_engine_report,
	.destroy = live_engine_destroy,
};
