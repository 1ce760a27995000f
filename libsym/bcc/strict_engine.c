/* SPDX-License-Identifier: MIT */
/*
 * Answers as libbcc 0.26 gives them, right or wrong, for callers that compare with it or rely on
 * it.
 *
 * The observed rules of libbcc:
 * - The process is read once, and again when /proc/PID/exe is another file.
 * - Modules are known by name, in the order of maps. The first one that contains an address is
 *   used, then only the perf map, which contains everything.
 * - Symbols are sorted by start. From the nearest one below, the search goes back as long as
 *   symbols end above the nearest one's start. So the outer of nested ranges is missed after an
 *   inner one, symbols of size 0 are never found, and of two with one start either may be found.
 * - A perf map is read when it is first needed, and never again.
 * - The address of a name in a library is its value plus the start of the library's first
 *   executable mapping. That is wrong when that mapping is not the start of the file.
 */
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/ascending.h"
#include "libsym/base/buf.h"
#include "libsym/bcc/symcache.h"

enum {
	MOST_BYTES = 1 << 30, /* of one table */
};

enum module_kind {
	MODULE_OTHER,
	MODULE_EXECUTABLE,
	MODULE_LIBRARY,
	MODULE_PERF_MAP,
};

struct range {
	uint64_t start, end, file_offset;
};

struct symbol {
	uint64_t start, size_bytes;
	char *name;
};

struct module {
	char *name; /* as in maps */
	char *path; /* the path to open */
	enum module_kind kind;
	bool loaded;
	uint64_t text_start, text_offset;
	struct buf ranges;  /* struct range */
	struct buf symbols; /* struct symbol */
	struct module *next;
};

struct strict_engine {
	int pid;
	struct bcc_symbol_option option;
	ino_t executable;
	struct module *modules, **last;
};

static ino_t executable_of(int pid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &status) == 0 ? status.st_ino : 0;
}

static const struct range *ranges_of(const struct module *module, size_t *count_ret)
{
	*count_ret = module->ranges.size_bytes / sizeof(struct range);
	return (const struct range *)module->ranges.data;
}

static const struct symbol *symbols_of(const struct module *module, size_t *count_ret)
{
	*count_ret = module->symbols.size_bytes / sizeof(struct symbol);
	return (const struct symbol *)module->symbols.data;
}

static void module_free(struct module *module)
{
	size_t count;
	const struct symbol *symbols = symbols_of(module, &count);

	for (size_t i = 0; i < count; i++)
		free(symbols[i].name);
	buf_deinit(&module->symbols);
	buf_deinit(&module->ranges);
	free(module->name);
	free(module->path);
	free(module);
}

static void forget_modules(struct strict_engine *engine)
{
	struct module *module = engine->modules, *next;

	for (; module; module = next) {
		next = module->next;
		module_free(module);
	}
	engine->modules = NULL;
	engine->last = &engine->modules;
}

static enum module_kind kind_of(struct module *module)
{
	int type = bcc_elf_get_type(module->path);

	if (type == ET_DYN) {
		bcc_elf_get_text_scn_info(module->path, &module->text_start, &module->text_offset);
		return MODULE_LIBRARY;
	}
	if (type == ET_EXEC)
		return MODULE_EXECUTABLE;
	return type < 0 && bcc_is_valid_perf_map(module->path) ? MODULE_PERF_MAP : MODULE_OTHER;
}

static struct module *module_new(int pid, const char *name, bool below_root)
{
	struct module *module = calloc(1, sizeof(*module));
	char path[PATH_MAX + 64];

	if (!module)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	if (!below_root || (bcc_is_perf_map(name) && access(path, R_OK) < 0))
		snprintf(path, sizeof(path), "%s", name);
	buf_init(&module->ranges, MOST_BYTES);
	buf_init(&module->symbols, MOST_BYTES);
	module->name = strdup(name);
	module->path = strdup(path);
	if (!module->name || !module->path) {
		module_free(module);
		return NULL;
	}
	module->kind = kind_of(module);
	return module;
}

static int add_module(mod_info *info, int enter_ns, void *payload)
{
	struct range range = { info->start_addr, info->end_addr, info->file_offset };
	struct strict_engine *engine = payload;
	struct module *module = engine->modules;

	while (module && strcmp(module->name, info->name) != 0)
		module = module->next;
	if (!module) {
		module = module_new(engine->pid, info->name, enter_ns);
		if (!module)
			return -1;
		if (bcc_is_perf_map(info->name) && module->kind == MODULE_OTHER) {
			module_free(module);
			return 0;
		}
		*engine->last = module;
		engine->last = &module->next;
	}
	buf_append(&module->ranges, &range, sizeof(range));
	return module->kind == MODULE_PERF_MAP ? -1 : 0;
}

static void strict_engine_refresh(void *held)
{
	struct strict_engine *engine = held;

	forget_modules(engine);
	engine->executable = executable_of(engine->pid);
	bcc_procutils_each_module(engine->pid, add_module, engine);
}

static void refresh_if_other(struct strict_engine *engine)
{
	ino_t executable = executable_of(engine->pid);

	if (executable && executable != engine->executable)
		strict_engine_refresh(engine);
}

/* ---- look-ups -------------------------------------------------------------------- */

static int add_symbol(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct module *module = payload;
	struct symbol symbol = { start, size_bytes, strdup(name) };

	if (!symbol.name || !buf_append(&module->symbols, &symbol, sizeof(symbol)))
		free(symbol.name);
	return 0;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void load_symbols(const struct strict_engine *engine, struct module *module)
{
	if (module->loaded)
		return;
	module->loaded = true;
	if (module->kind == MODULE_PERF_MAP)
		bcc_perf_map_foreach_sym(module->path, add_symbol, module);
	else if (module->kind != MODULE_OTHER)
		bcc_elf_foreach_sym(module->path, add_symbol, (void *)&engine->option, module);
	if (module->symbols.size_bytes)
		qsort(module->symbols.data, module->symbols.size_bytes / sizeof(struct symbol),
		      sizeof(struct symbol), compare_symbols);
}

static bool strict_engine_covers(const struct module *module, uint64_t address,
				 uint64_t *offset_ret)
{
	size_t count;
	const struct range *range = ranges_of(module, &count);

	for (; count; count--, range++) {
		if (address < range->start || address >= range->end)
			continue;
		*offset_ret = address;
		if (module->kind == MODULE_LIBRARY)
			*offset_ret = __so_calc_mod_offset(range->start, range->file_offset,
							   module->text_start, module->text_offset,
							   address);
		return true;
	}
	return false;
}

static bool find_symbol(const struct strict_engine *engine, struct module *module, uint64_t offset,
			struct bcc_symbol *sym)
{
	const struct symbol *symbols, *nearest;
	size_t count, low;

	load_symbols(engine, module);
	sym->module = module->name;
	sym->offset = offset;
	symbols = symbols_of(module, &count);
	low = ascending_items_up_to(symbols, count, sizeof(*symbols), offset);
	if (!low)
		return false;
	nearest = symbols + low - 1;
	for (const struct symbol *symbol = nearest; low > 0; symbol--, low--) {
		if (offset < symbol->start + symbol->size_bytes) {
			sym->name = symbol->name;
			sym->offset = offset - symbol->start;
			return true;
		}
		if (nearest->start > symbol->start + symbol->size_bytes)
			return false;
	}
	return false;
}

static int strict_engine_resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct strict_engine *engine = held;
	const char *covering = NULL;
	uint64_t offset;

	refresh_if_other(engine);
	for (struct module *module = engine->modules; module; module = module->next) {
		if ((covering && module->kind != MODULE_PERF_MAP) ||
		    !strict_engine_covers(module, address, &offset))
			continue;
		if (find_symbol(engine, module, offset, sym))
			return 0;
		if (module->kind != MODULE_PERF_MAP)
			covering = module->name;
	}
	if (covering)
		sym->module = covering;
	return -1;
}

struct wanted_name {
	const char *name;
	uint64_t start;
	bool found;
};

/*
 * The search continues in a perf map. So the last symbol of a name wins there, and the first one in
 * ELF files.
 */
static int match_name(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct wanted_name *wanted = payload;

	(void)size_bytes;
	if (strcmp(name, wanted->name) != 0)
		return 0;
	wanted->start = start;
	wanted->found = true;
	return -1;
}

static int resolve_name(void *held, const char *module_name, const char *name, uint64_t *ret)
{
	struct strict_engine *engine = held;
	struct wanted_name wanted = { .name = name };
	struct module *module;
	size_t count;

	refresh_if_other(engine);
	if (!module_name)
		return -1;
	module = engine->modules;
	while (module && strcmp(module->name, module_name) != 0)
		module = module->next;
	if (!module)
		return -1;
	if (module->kind == MODULE_PERF_MAP)
		bcc_perf_map_foreach_sym(module->path, match_name, &wanted);
	else if (module->kind != MODULE_OTHER)
		bcc_elf_foreach_sym(module->path, match_name, &engine->option, &wanted);
	if (!wanted.found)
		return -1;
	*ret = wanted.start;
	if (module->kind == MODULE_LIBRARY)
		*ret += ranges_of(module, &count)->start;
	return 0;
}

static void strict_engine_destroy(void *held)
{
	struct strict_engine *engine = held;

	forget_modules(engine);
	free(engine);
}

void *strict_engine_create(int pid, const struct bcc_symbol_option *option)
{
	struct strict_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->pid = pid;
	engine->option = *option;
	engine->last = &engine->modules;
	strict_engine_refresh(engine);
	return engine;
}

const struct engine_ops strict_engine_ops = {
	.resolve = strict_engine_resolve,
	.resolve_name = resolve_name,
	.refresh = strict_engine_refresh,
	.destroy = strict_engine_destroy,
};
