/* SPDX-License-Identifier: MIT */
/*
 * Names of kernel code from /proc/kallsyms: the symbol with the greatest start
 * that is not above the address. The list tells no sizes. libbcc names every
 * address above the first symbol, also where no code is; here a name reaches
 * 1 MiB at most, which is more than any function of the kernel has.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/bcc/symcache.h"

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

struct kernel_engine {
	struct buf symbols;
	struct buf text;
	size_t count;
	bool strict;
	bool loaded;
	/* The module of the line before; a module's symbols stand together. */
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

static void load(struct kernel_engine *engine)
{
	engine->loaded = true;
	if (bcc_procutils_each_ksym(take_symbol, engine) < 0 || !engine->count)
		return;
	qsort(engine->symbols.data, engine->count, sizeof(struct kernel_symbol), compare_symbols);
}

/* libbcc reads the list once and never again unless it was empty. */
static void refresh(void *held)
{
	struct kernel_engine *engine = held;

	if (engine->strict && engine->count)
		return;
	buf_clear(&engine->symbols);
	buf_clear(&engine->text);
	engine->count = 0;
	load(engine);
}

static int resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct kernel_engine *engine = held;
	const struct kernel_symbol *symbols;
	size_t low = 0, high;

	if (!engine->loaded)
		load(engine);
	symbols = (const struct kernel_symbol *)engine->symbols.data;
	high = engine->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -1;
	symbols += low - 1;
	if (!engine->strict && address - symbols->address >= LONGEST_FUNCTION_BYTES)
		return -1;
	sym->name = engine->text.data + symbols->name;
	sym->module = engine->text.data + symbols->module;
	sym->offset = address - symbols->address;
	return 0;
}

/* Of several symbols with the name the last, as libbcc does. */
static int resolve_name(void *held, const char *module, const char *name, uint64_t *ret)
{
	struct kernel_engine *engine = held;
	const struct kernel_symbol *symbols;

	(void)module;
	if (!engine->loaded)
		load(engine);
	symbols = (const struct kernel_symbol *)engine->symbols.data;
	for (size_t i = engine->count; i-- > 0;)
		if (!strcmp(engine->text.data + symbols[i].name, name)) {
			*ret = symbols[i].address;
			return 0;
		}
	return -1;
}

static void destroy(void *held)
{
	struct kernel_engine *engine = held;

	buf_deinit(&engine->symbols);
	buf_deinit(&engine->text);
	free(engine);
}

void *kernel_engine_create(bool strict)
{
	struct kernel_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->strict = strict;
	buf_init(&engine->symbols, LONGEST_TEXT_BYTES);
	buf_init(&engine->text, LONGEST_TEXT_BYTES);
	return engine;
}

const struct engine_ops kernel_engine_ops = {
	.resolve = resolve,
	.resolve_name = resolve_name,
	.refresh = refresh,
	.destroy = destroy,
};
