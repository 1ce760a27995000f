/* SPDX-License-Identifier: MIT */
/*
 * Names of a process by libsym, behind libbcc's functions: native code, images
 * with precompiled code, jitted code that the runtime or a perf map tells. The
 * caller knows nothing of snapshots, so this file decides when to look anew:
 *
 * - when the process is another than it was (exec, or its id given to somebody
 *   else), which is checked every CHECK_MS, not at every address as libbcc does;
 * - when an address has no name that could have got one since: jitted code, a
 *   perf map that grew, a library that was loaded. At most every refresh_ms, and
 *   never for more than one part in COST_SHARE of the time; an address that
 *   stayed without a name does not ask again;
 * - when jitted code was last looked at MOST_AGE_MS ago: its memory is used again;
 * - for what has changed, when that was last seen MAPPED_MS ago: a library may lie where another
 *   one was, and code where other code was.
 *
 * A look that finds the process gone is thrown away: what was known stays.
 * The names of the look before the last one stay too, so that a caller who
 * collects a stack before printing it is not cut off in the middle.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libsym/bcc/answer_counts.h"
#include "libsym/bcc/bcc_settings.h"
#include "libsym/bcc/labels.h"
#include "libsym/bcc/symcache.h"
#include "libsym/bcc/vdso_names.h"
#include "libsym/libsym.h"

enum {
	CHECK_MS = 100,
	COST_SHARE = 20,
	MOST_AGE_MS = 10000,
	MAPPED_MS = 1000,  /* how old may be what is taken up without asking the runtime */
	SLOW_MS = 20,      /* of a look-up that has read something: several ticks of the clock */
	ANSWERLESS = 4096, /* places in the table of addresses without a name */
	REMEMBERED = 8192, /* places in the table of answers; a profile has few addresses */
};

/* An answer with a name, as it was given. */
struct remembered {
	uint64_t address;
	const char *name;     /* NULL: a free place */
	const char *readable; /* NULL: the name itself */
	const char *module;
	uint64_t offset;
	uint64_t source;
};

/* The process at one moment. */
struct look {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct labels labels, old_labels; /* the latter: before the perf map was another */
	struct remembered *remembered;    /* by address; NULL without memory */
	struct sym_glance glance;
	uint64_t taken_ms;
	uint64_t cost_ms;
	char *map_path; /* the perf map in use, as libbcc calls it; NULL: none, or not asked yet */
	bool map_asked;
	bool knows_jitted;
};

struct live_engine {
	int pid;
	struct bcc_symbol_option option;
	struct bcc_settings settings;
	struct look *now, *before;
	struct sym_result *result;
	uint64_t check_at;           /* when to check the process next: quick_clock() */
	uint64_t not_before_ms;      /* when to look anew at the earliest */
	uint64_t append_ms;          /* when to read what was appended to the map next */
	uint64_t mapped_at_ms;       /* when to see what is mapped next */
	uint64_t *answerless;        /* addresses, by their low bits; NULL until there is one */
	struct answer_counts counts; /* for the report */
	bool was_rundown;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The same clock for those who only compare: nanoseconds in the lower 30 bits, seconds above. */
static inline uint64_t quick_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec;
}

static uint64_t quick_clock_after(uint64_t ms)
{
	const uint64_t second = 1000000000, low = ((uint64_t)1 << 30) - 1;
	uint64_t now = quick_clock(), ns = (now & low) + ms * 1000000;

	return ((now >> 30) + ns / second) << 30 | ns % second;
}

static void look_destroy(struct look *look)
{
	if (!look)
		return;
	labels_deinit(&look->labels);
	labels_deinit(&look->old_labels);
	sym_resolver_destroy(look->resolver);
	sym_snapshot_close(look->snapshot);
	free(look->map_path);
	free(look->remembered);
	free(look);
}

/* The file of the same path below $BCC_SYMFS; libsym takes it only when it has the image's id. */
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

/* NULL when the process cannot be looked at. */
static struct look *look_at(const struct live_engine *engine)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = engine->settings.jit };
	struct look *look = engine->pid > 0 ? calloc(1, sizeof(*look)) : NULL;
	struct sym_error *error;
	char *symfs;

	if (!look)
		return NULL;
	symfs = getenv("BCC_SYMFS");
	if (symfs && *symfs) {
		opts.fetch = find_in_symfs;
		opts.fetch_context = symfs;
	}
	/* The label of a method of the map is its line's name. */
	if (!engine->settings.no_tiers && !engine->settings.short_names)
		opts.flags = SYM_SNAPSHOT_TIER_IN_NAME;
	look->glance.size = sizeof(look->glance);
	look->taken_ms = now_ms();
	error = sym_snapshot_open(engine->pid, &opts, &look->snapshot);
	if (!error)
		error = sym_resolver_create(look->snapshot, &look->resolver);
	if (error) {
		sym_error_destroy(error);
		look_destroy(look);
		return NULL;
	}
	look->remembered = calloc(REMEMBERED, sizeof(*look->remembered));
	look->cost_ms = now_ms() - look->taken_ms;
	return look;
}

/* Is it still the process that was looked at? */
static bool still_same(const struct look *look)
{
	struct sym_error *error = sym_snapshot_check(look->snapshot);

	sym_error_destroy(error);
	return !error;
}

static void notice_rundown(struct live_engine *engine, const struct sym_jit_info *info)
{
	if (info->way != SYM_JIT_RUNDOWN || engine->was_rundown)
		return;
	engine->was_rundown = true;
	if (engine->settings.notice)
		fprintf(stderr,
			"libsym-bcc: asked the runtime of process %d for its methods over its "
			"diagnostics socket (%s)\n",
			engine->pid, info->contract_reason ? info->contract_reason : "");
}

/* Of jitted code that was read, or is now. */
static void learn_way(struct live_engine *engine, const struct look *look)
{
	const struct sym_jit_info *info;
	struct sym_error *error = sym_snapshot_jit(look->snapshot, &info);

	if (error)
		sym_error_destroy(error);
	else
		notice_rundown(engine, info);
}

/* Reads the jitted code now; false when the process was gone before that was done. */
static bool read_jitted(struct live_engine *engine, struct look *look)
{
	learn_way(engine, look);
	look->cost_ms = now_ms() - look->taken_ms;
	return still_same(look);
}

static void note_jitted(struct live_engine *engine, enum sym_source_kind source)
{
	struct look *look = engine->now;

	if (source == SYM_SOURCE_RUNTIME && !look->knows_jitted)
		learn_way(engine, look);
	look->knows_jitted = true;
}

static void forget_answerless(struct live_engine *engine)
{
	if (engine->answerless)
		memset(engine->answerless, 0, ANSWERLESS * sizeof(*engine->answerless));
}

static void take_look(struct live_engine *engine, struct look *look)
{
	look_destroy(engine->before);
	engine->before = engine->now;
	engine->now = look;
	engine->counts.looks++;
	engine->check_at = quick_clock_after(CHECK_MS);
	engine->mapped_at_ms = now_ms() + MAPPED_MS;
}

/* How long to wait after what cost so much. */
static uint64_t at_least(uint64_t pause_ms, uint64_t cost_ms)
{
	return cost_ms * COST_SHARE > pause_ms ? cost_ms * COST_SHARE : pause_ms;
}

/* Looks anew; keeps what is known when that does not succeed. */
static bool look_again(struct live_engine *engine)
{
	struct look *look = look_at(engine);
	bool whole = look && read_jitted(engine, look);

	engine->not_before_ms =
		now_ms() + at_least(engine->settings.refresh_ms, look ? look->cost_ms : 0);
	if (!whole) {
		look_destroy(look);
		return false;
	}
	take_look(engine, look);
	return true;
}

static void refresh(void *held)
{
	struct live_engine *engine = held;

	forget_answerless(engine);
	look_again(engine);
}

/* What was mapped or unmapped, and appended to the perf map, which is cheaper than another look. */
static bool take_up_changes(struct live_engine *engine)
{
	enum sym_refresh found = SYM_REFRESH_NOTHING;
	struct look *look = engine->now;
	struct sym_error *error;

	error = sym_resolver_refresh(look->resolver, &found);
	sym_error_destroy(error);
	/* One that failed in the middle may have taken up what is mapped. */
	if (error)
		found = SYM_REFRESH_MAPPED;
	if (found == SYM_REFRESH_NOTHING || found == SYM_REFRESH_ENDED)
		return false;
	/* A new line may cover an old one's bytes; a library may lie where another one was. */
	if (look->remembered)
		memset(look->remembered, 0, REMEMBERED * sizeof(*look->remembered));
	/* Names that labels were made of end with the next such change, and these with them. */
	if (found != SYM_REFRESH_APPENDED) {
		labels_deinit(&look->old_labels);
		look->old_labels = look->labels;
		look->labels = (struct labels){ 0 };
	}
	return true;
}

/* What was there may have gone, and something else lie in its place. */
static void check_mapped(struct live_engine *engine)
{
	uint64_t begin = now_ms();

	if (begin < engine->mapped_at_ms)
		return;
	take_up_changes(engine);
	engine->mapped_at_ms = begin + at_least(MAPPED_MS, now_ms() - begin);
}

/* Is it still the process, and is what is known of its code not too old? */
static __attribute__((noinline)) void check_now(struct live_engine *engine)
{
	const struct look *look = engine->now;

	engine->check_at = quick_clock_after(CHECK_MS);
	if (!look) {
		/* There may have been no descriptors. */
		if (now_ms() >= engine->not_before_ms)
			look_again(engine);
	} else if (!still_same(look)) {
		forget_answerless(engine);
		look_again(engine);
	} else if (look->knows_jitted &&
		   now_ms() - look->taken_ms >= at_least(MOST_AGE_MS, look->cost_ms)) {
		look_again(engine);
	} else if (!look->knows_jitted || !engine->was_rundown) {
		/* Who is asked for a rundown would be asked to go on telling. */
		check_mapped(engine);
	}
}

/* Every CHECK_MS. */
static inline void check(struct live_engine *engine)
{
	if (__builtin_expect(quick_clock() >= engine->check_at, 0))
		check_now(engine);
}

/* ---- answers ------------------------------------------------------------------ */

/* libbcc calls the map of a process in another namespace by its path in there. */
static const char *map_path(struct look *look)
{
	int pid = sym_snapshot_process(look->snapshot)->pid;
	const struct sym_perf_map_info *info;
	struct sym_error *error;
	char inside[PATH_MAX];

	if (look->map_asked)
		return look->map_path;
	look->map_asked = true;
	error = sym_snapshot_perf_map(look->snapshot, &info);
	if (error)
		sym_error_destroy(error);
	else if (info->path && !strncmp(info->path, "/proc/", 6) &&
		 bcc_perf_map_path(inside, sizeof(inside), pid))
		look->map_path = strdup(inside);
	else if (info->path)
		look->map_path = strdup(info->path);
	return look->map_path;
}

/* Can code have come to this address since the look was taken? */
static bool may_be_new(const struct sym_answer *answer)
{
	if (answer->status == SYM_UNMAPPED || !answer->image)
		return true;
	return sym_image_kind(answer->image) != SYM_IMAGE_ELF && answer->status == SYM_NO_SYMBOLS;
}

/* Where only the bounds of a function are known, what stands for its name serves as one. */
static bool has_name(const struct sym_answer *answer)
{
	return answer->status == SYM_RESOLVED || answer->status == SYM_UNNAMED;
}

static bool was_answerless(const struct live_engine *engine, uint64_t address)
{
	return engine->answerless && engine->answerless[address % ANSWERLESS] == address;
}

static void note_answerless(struct live_engine *engine, uint64_t address)
{
	if (!engine->answerless)
		engine->answerless = calloc(ANSWERLESS, sizeof(*engine->answerless));
	if (engine->answerless)
		engine->answerless[address % ANSWERLESS] = address;
}

static const struct sym_answer *ask(struct live_engine *engine, uint64_t address)
{
	uint64_t begin = now_ms(), passed_ms;
	struct sym_error *error =
		sym_resolver_resolve(engine->now->resolver, &address, 1, engine->result);

	/* Of the first look all is read when the first address asks for it. */
	passed_ms = now_ms() - begin;
	if (passed_ms >= SLOW_MS)
		engine->now->cost_ms += passed_ms;
	if (!error)
		return sym_result_at(engine->result, 0);
	sym_error_destroy(error);
	return NULL;
}

static struct remembered *place_of(const struct look *look, uint64_t address)
{
	return &look->remembered[address * 0x9e3779b97f4a7c15u >> 51];
}

static void keep(struct look *look, uint64_t address, const struct bcc_symbol *sym, uint64_t source)
{
	if (look->remembered)
		*place_of(look, address) = (struct remembered){
			address, sym->name, sym->demangle_name, sym->module, sym->offset, source,
		};
}

static void give_name(struct live_engine *engine, const struct sym_answer *answer,
		      struct bcc_symbol *sym)
{
	struct look *look = engine->now;
	const char *tier = engine->settings.no_tiers ? NULL : answer->tier;
	bool shorten = engine->settings.short_names && answer->source != SYM_SOURCE_ELF;

	sym->name = answer->linkage_name ? answer->linkage_name : answer->name;
	sym->demangle_name = answer->linkage_name ? answer->name : NULL;
	if (tier || shorten)
		sym->name = labels_get(&look->labels, answer->name, tier, shorten);
	sym->offset = answer->offset_bytes;
	/* libbcc calls the map the module of what a map names, wherever that lies. */
	sym->module = answer->source == SYM_SOURCE_PERF_MAP ? map_path(look) : NULL;
	if (!sym->module && answer->image_path[0])
		sym->module = answer->image_path;
	if (answer->source == SYM_SOURCE_PERF_MAP || answer->source == SYM_SOURCE_RUNTIME)
		note_jitted(engine, answer->source);
	keep(look, answer->address, sym, answer->source);
}

static void count_answer(struct live_engine *engine, uint64_t source)
{
	engine->counts.by_source[source % ANSWER_SOURCES]++;
}

static bool remember(struct live_engine *engine, uint64_t address, struct bcc_symbol *sym)
{
	const struct remembered *place;

	if (!engine->now || !engine->now->remembered)
		return false;
	place = place_of(engine->now, address);
	if (!place->name || place->address != address)
		return false;
	sym->name = place->name;
	sym->demangle_name = place->readable;
	sym->module = place->module;
	sym->offset = place->offset;
	count_answer(engine, place->source);
	return true;
}

static int give_place(struct live_engine *engine, const struct sym_answer *answer,
		      struct bcc_symbol *sym)
{
	if (answer->image) {
		sym->module = answer->image_path;
		sym->offset = sym_image_kind(answer->image) == SYM_IMAGE_ELF &&
					      answer->image_position != UINT64_MAX
				      ? answer->image_position
				      : answer->address;
		return -1;
	}
	if (vdso_names_find(engine->now->snapshot, answer, sym))
		return 0;
	sym->module = bcc_mapping_is_file_backed(answer->image_path) ? answer->image_path
								     : map_path(engine->now);
	sym->offset = sym->module ? answer->address : 0;
	return -1;
}

/* For an address without a name: has it got one since? */
static const struct sym_answer *ask_anew(struct live_engine *engine,
					 const struct sym_answer *answer, uint64_t now)
{
	uint64_t address = answer->address;

	if (now >= engine->append_ms &&
	    now - engine->now->taken_ms >= engine->settings.refresh_ms) {
		engine->append_ms = now + engine->settings.refresh_ms;
		if (map_path(engine->now) && take_up_changes(engine))
			answer = ask(engine, address);
		if (!answer || has_name(answer))
			return answer;
	}
	if (now < engine->not_before_ms ||
	    now - engine->now->taken_ms < engine->settings.refresh_ms)
		return answer;
	if (still_same(engine->now) && look_again(engine))
		answer = ask(engine, address);
	if (answer && !has_name(answer))
		note_answerless(engine, address);
	return answer;
}

/*
 * The last instruction of a function may be a call that does not come back: a stack has the
 * address behind it, the first one that is not of the function. Nothing runs there, or it
 * would have a name.
 */
static bool give_ended(struct live_engine *engine, uint64_t address, struct bcc_symbol *sym)
{
	const struct sym_answer *answer = address ? ask(engine, address - 1) : NULL;

	if (!answer || !has_name(answer) || !answer->size_bytes ||
	    answer->offset_bytes + 1 != answer->size_bytes)
		return false;
	give_name(engine, answer, sym);
	sym->offset++;
	keep(engine->now, address, sym, answer->source);
	count_answer(engine, answer->source);
	return true;
}

/* libbcc calls the map the module of what a map names, wherever that lies. */
static __attribute__((noinline)) const char *module_of_method(struct look *look,
							      const struct sym_glance *glance)
{
	const char *path = glance->source == SYM_SOURCE_PERF_MAP ? map_path(look) : NULL;

	return path || !glance->image_path[0] ? path : glance->image_path;
}

/* A method whose label is its name: nothing is to be joined or remembered. */
static inline bool glance(struct live_engine *engine, uint64_t address, struct bcc_symbol *sym)
{
	struct look *look = engine->now;

	if (!look || engine->settings.short_names ||
	    !sym_resolver_glance(look->resolver, address, &look->glance) ||
	    (look->glance.tier && !engine->settings.no_tiers))
		return false;
	sym->name = look->glance.name;
	sym->offset = look->glance.offset_bytes;
	if (look->glance.source == SYM_SOURCE_PERF_MAP && look->map_path)
		sym->module = look->map_path;
	else
		sym->module = module_of_method(look, &look->glance);
	if (__builtin_expect(!look->knows_jitted, 0))
		note_jitted(engine, look->glance.source);
	count_answer(engine, look->glance.source);
	return true;
}

static __attribute__((noinline)) int resolve_carefully(struct live_engine *engine, uint64_t address,
						       struct bcc_symbol *sym)
{
	const struct sym_answer *answer;

	if (remember(engine, address, sym))
		return 0;
	answer = engine->now ? ask(engine, address) : NULL;
	if (!answer)
		return -1;
	if (!has_name(answer) && may_be_new(answer) && !was_answerless(engine, address))
		answer = ask_anew(engine, answer, now_ms());
	if (!answer)
		return -1;
	if (has_name(answer)) {
		give_name(engine, answer, sym);
		count_answer(engine, answer->source);
		return 0;
	}
	if (give_ended(engine, address, sym))
		return 0;
	answer = ask(engine, address);
	return answer ? give_place(engine, answer, sym) : -1;
}

static int resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct live_engine *engine = held;

	engine->counts.asked++;
	check(engine);
	if (__builtin_expect(glance(engine, address, sym), 1))
		return 0;
	return resolve_carefully(engine, address, sym);
}

/* ---- names to addresses ----------------------------------------------------------- */

struct wanted_name {
	const char *name;
	uint64_t start;
};

static int match_name(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct wanted_name *wanted = payload;

	(void)size_bytes;
	if (strcmp(name, wanted->name) != 0)
		return 0;
	wanted->start = start;
	return -1;
}

static void match_map_line(struct sym_symbols *symbols, uint32_t image_index,
			   const struct live_engine *engine, struct wanted_name *wanted)
{
	size_t count = sym_symbols_count(symbols);
	struct labels labels = { 0 };

	for (size_t i = 0; i < count && !wanted->start; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		if (image_index != UINT32_MAX && symbol->image_index != image_index)
			continue;
		if (!strcmp(symbol->name, wanted->name) ||
		    !strcmp(labels_get(&labels, symbol->name, symbol->tier,
				       engine->settings.short_names),
			    wanted->name))
			wanted->start = symbol->start;
	}
	labels_deinit(&labels);
}

/* Managed methods of one image, or of memory of no image. */
static void find_method(struct live_engine *engine, uint32_t image_index, uint32_t flags,
			struct wanted_name *wanted)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error = sym_snapshot_symbols(engine->now->snapshot, flags, &symbols);

	if (error)
		sym_error_destroy(error);
	else
		match_map_line(symbols, image_index, engine, wanted);
	sym_symbols_destroy(symbols);
}

/* Is what is at the path now the file that the process has mapped? */
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

/* Among the functions of the file that is mapped, wherever that is now. */
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
		find_method(engine, index, SYM_SYMBOLS_PRECOMPILED, &wanted);
		*ret = wanted.start;
		return wanted.start;
	}
	if (sym_image_load_base(image) == UINT64_MAX)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%s", engine->pid, sym_image_path(image));
	if (has_mapped(engine->now->snapshot, index, path))
		bcc_elf_foreach_sym(path, match_name, &engine->option, &wanted);
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

	check(engine);
	if (!engine->now || !module)
		return -1;
	count = sym_snapshot_image_count(engine->now->snapshot);
	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(engine->now->snapshot, i);

		if (strcmp(sym_image_path(image), module) != 0 ||
		    !find_in_image(engine, image, (uint32_t)i, name, &start))
			continue;
		*ret = start;
		return 0;
	}
	if (map_path(engine->now) ? strcmp(map_path(engine->now), module) != 0
				  : !strstr(module, "memfd:doublemapper"))
		return -1;
	find_method(engine, UINT32_MAX, SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_RUNTIME, &wanted);
	if (!wanted.start)
		return -1;
	*ret = wanted.start;
	return 0;
}

/* ---- life --------------------------------------------------------------------------- */

/* Beside what a free place is worth, which is 1. */
static uint64_t worth_ms(const void *held)
{
	const struct look *look = ((const struct live_engine *)held)->now;

	return look && now_ms() - look->taken_ms < MOST_AGE_MS ? look->cost_ms + 2 : 0;
}

/* An engine that nobody holds serves the next cache of the process while it is fresh. */
static bool still_good(void *held, const struct bcc_settings *settings)
{
	struct live_engine *engine = held;

	return worth_ms(engine) && bcc_settings_are_same(settings, &engine->settings) &&
	       still_same(engine->now);
}

static void report(void *held)
{
	struct live_engine *engine = held;

	if (engine->settings.report && engine->counts.asked)
		answer_counts_add(engine->pid, &engine->counts);
}

static void destroy(void *held)
{
	struct live_engine *engine = held;

	report(engine);
	look_destroy(engine->before);
	look_destroy(engine->now);
	sym_result_destroy(engine->result);
	free(engine->answerless);
	free(engine);
}

void *live_engine_create(int pid, const struct bcc_symbol_option *option,
			 const struct bcc_settings *settings)
{
	struct live_engine *engine = calloc(1, sizeof(*engine));
	struct sym_error *error;
	struct look *look;

	if (!engine)
		return NULL;
	engine->pid = pid;
	engine->option = *option;
	engine->settings = *settings;
	error = sym_result_create(&engine->result);
	if (error) {
		sym_error_destroy(error);
		free(engine);
		return NULL;
	}
	look = look_at(engine);
	if (look)
		take_look(engine, look);
	return engine;
}

const struct engine_ops live_engine_ops = {
	.resolve = resolve,
	.resolve_name = resolve_name,
	.refresh = refresh,
	.still_good = still_good,
	.worth_ms = worth_ms,
	.report = report,
	.destroy = destroy,
};
