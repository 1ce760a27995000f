/* SPDX-License-Identifier: MIT */
/*
 * Names of kernel code from /proc/kallsyms: the nearest symbol at or below the address.
 *
 * The list has no sizes. libbcc names every address above the first symbol, even where there is no
 * code.
 * Here a name covers at most 1 MiB, which is more than any function of the kernel has.
 *
 * libbcc reads the list once. But modules and BPF programs come and go, and their memory is used
 * again.
 * So libsym answers for everything except the kernel's own text.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/buf.h"
#include "libsym/bcc/symcache.h"
#include "libsym/libsym.h"

enum {
	LONGEST_FUNCTION_BYTES = 1 << 20,
	LONGEST_TEXT_BYTES = 1 << 28,
};

struct kernel_symbol {
	uint64_t address;
	uint32_t name; /* offsets into the text */
	uint32_t module;
	uint32_t order; /* in the list */
	uint32_t reserved;
};

struct module_name {
	struct module_name *next;
	char text[];
};

struct kernel_engine {
	struct buf symbols;
	struct buf text;
	size_t count;
	bool loaded;
	struct sym_kernel *now; /* modules and programs; NULL: not opened yet, or not possible */
	struct sym_result *result;
	struct module_name *modules; /* names without brackets, which live as long as the engine */
	/* The module of the previous line. The symbols of a module are adjacent. */
	uint32_t last_module;
};

static uint32_t put_text(struct kernel_engine *engine, const char *text)
{
	uint32_t at = (uint32_t)engine->text.size_bytes;

	buf_append(&engine->text, text, strlen(text) + 1);
	return at;
}

static void take_symbol(const char *name, const char *module, uint64_t address, void *payload)
{
	struct kernel_engine *engine = payload;
	struct kernel_symbol symbol = { .address = address, .order = (uint32_t)engine->count };

	if (!engine->text.size_bytes ||
	    strcmp(engine->text.data + engine->last_module, module) != 0)
		engine->last_module = put_text(engine, module);
	symbol.module = engine->last_module;
	symbol.name = put_text(engine, name);
	if (!engine->text.failure && buf_append(&engine->symbols, &symbol, sizeof(symbol)))
		engine->count++;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static void kernel_engine_load(struct kernel_engine *engine)
{
	engine->loaded = true;
	if (bcc_procutils_each_ksym(take_symbol, engine) < 0 || !engine->count)
		return;
	qsort(engine->symbols.data, engine->count, sizeof(struct kernel_symbol), compare_symbols);
}

static void kernel_engine_refresh(void *held)
{
	struct kernel_engine *engine = held;

	buf_clear(&engine->symbols);
	buf_clear(&engine->text);
	engine->count = 0;
	kernel_engine_load(engine);
}

/* ---- what comes and goes ------------------------------------------------------ */

static bool open_now(struct kernel_engine *engine)
{
	struct sym_error *error = NULL;

	if (!engine->result)
		error = sym_result_create(&engine->result);
	if (!error && !engine->now)
		error = sym_kernel_open(NULL, &engine->now);
	sym_error_destroy(error);
	return engine->now;
}

/* Makes libbcc's form of "[NAME]"; NULL when out of memory. */
static const char *module_name(struct kernel_engine *engine, const char *bracketed)
{
	size_t bytes = strlen(bracketed) < 2 ? 0 : strlen(bracketed) - 2;
	struct module_name *module = engine->modules;

	while (module &&
	       (strlen(module->text) != bytes || memcmp(module->text, bracketed + 1, bytes) != 0))
		module = module->next;
	if (module)
		return module->text;
	module = calloc(1, sizeof(*module) + bytes + 1);
	if (!module)
		return NULL;
	memcpy(module->text, bracketed + 1, bytes);
	module->next = engine->modules;
	engine->modules = module;
	return module->text;
}

static int resolve_now(struct kernel_engine *engine, uint64_t address, struct bcc_symbol *sym)
{
	const struct sym_answer *answer;
	struct sym_error *error;

	if (!open_now(engine))
		return -1;
	error = sym_kernel_resolve(engine->now, &address, 1, engine->result);
	if (error) {
		sym_error_destroy(error);
		return -1;
	}
	answer = sym_result_at(engine->result, 0);
	if (answer->status != SYM_RESOLVED)
		return -1;
	sym->name = answer->name;
	sym->module = module_name(engine, answer->image_path);
	sym->offset = answer->offset_bytes;
	return sym->module ? 0 : -1;
}

static int resolve_name_now(struct kernel_engine *engine, const char *name, uint64_t *ret)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error;
	size_t found = SYM_NONE;

	if (!open_now(engine))
		return -1;
	error = sym_kernel_symbols(engine->now, &symbols);
	if (!error)
		found = sym_symbols_find(symbols, name, SYM_NONE);
	if (found != SYM_NONE)
		*ret = sym_symbols_at(symbols, found)->start;
	sym_error_destroy(error);
	sym_symbols_destroy(symbols);
	return found == SYM_NONE ? -1 : 0;
}

/* ---- answers ------------------------------------------------------------------ */

static bool is_own(const struct kernel_engine *engine, const struct kernel_symbol *symbol)
{
	return !strcmp(engine->text.data + symbol->module, "kernel");
}

static int kernel_engine_resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct kernel_engine *engine = held;
	const struct kernel_symbol *symbols;
	size_t low;

	if (!engine->loaded)
		kernel_engine_load(engine);
	symbols = (const struct kernel_symbol *)engine->symbols.data;
	low = ascending_items_up_to(symbols, engine->count, sizeof(*symbols), address);
	if (!low)
		return -1;
	symbols += low - 1;
	if (address - symbols->address >= LONGEST_FUNCTION_BYTES || !is_own(engine, symbols))
		return resolve_now(engine, address, sym);
	sym->name = engine->text.data + symbols->name;
	sym->module = engine->text.data + symbols->module;
	sym->offset = address - symbols->address;
	return 0;
}

/* Finds the last of several symbols with the name, as libbcc does. */
static int resolve_name(void *held, const char *module, const char *name, uint64_t *ret)
{
	struct kernel_engine *engine = held;
	const struct kernel_symbol *symbols;

	(void)module;
	if (!engine->loaded)
		kernel_engine_load(engine);
	symbols = (const struct kernel_symbol *)engine->symbols.data;
	for (size_t i = engine->count; i-- > 0;)
		if (is_own(engine, &symbols[i]) &&
		    !strcmp(engine->text.data + symbols[i].name, name)) {
			*ret = symbols[i].address;
			return 0;
		}
	return resolve_name_now(engine, name, ret);
}

static void kernel_engine_destroy(void *held)
{
	struct kernel_engine *engine = held;

	while (engine->modules) {
		struct module_name *next = engine->modules->next;

		free(engine->modules);
		engine->modules = next;
	}
	sym_result_destroy(engine->result);
	sym_kernel_close(engine->now);
	buf_deinit(&engine->symbols);
	buf_deinit(&engine->text);
	free(engine);
}

void *kernel_engine_create(void)
{
	struct kernel_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	buf_init(&engine->symbols, LONGEST_TEXT_BYTES);
	buf_init(&engine->text, LONGEST_TEXT_BYTES);
	return engine;
}

const struct engine_ops kernel_engine_ops = {
	.resolve = kernel_engine_resolve,
	.resolve_name = resolve_name,
	.refresh = kernel_engine_refresh,
	.destroy = kernel_engine_destroy,
};
