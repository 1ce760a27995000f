/* SPDX-License-Identifier: MIT */
/*
 * Names of kernel code: libsym's, in libbcc's form.
 *
 * libbcc reads the list of the kernel once, and names every address above the first symbol. But
 * modules and BPF programs come and go, and their memory is used again. libsym notices that, so
 * there is nothing to refresh.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/text_set.h"
#include "libsym/bcc/symcache.h"
#include "libsym/libsym.h"

struct kernel_engine {
	struct sym_kernel *kernel; /* NULL: not opened yet, or not possible */
	struct sym_result *result;
	struct text_set modules; /* names without brackets, which live as long as the engine */
};

static bool open_kernel(struct kernel_engine *engine)
{
	struct sym_error *error = NULL;

	if (!engine->result)
		error = sym_result_create(&engine->result);
	if (!error && !engine->kernel)
		error = sym_kernel_open(NULL, &engine->kernel);
	sym_error_destroy(error);
	return engine->kernel;
}

/* Makes libbcc's form of "[NAME]"; NULL when out of memory. */
static const char *module_name(struct kernel_engine *engine, const char *bracketed)
{
	size_t bytes = strlen(bracketed);

	if (!strcmp(bracketed, "[kernel.kallsyms]"))
		return "kernel";
	return text_set_add(&engine->modules, bracketed + 1, bytes < 2 ? 0 : bytes - 2);
}

static int kernel_engine_resolve(void *held, uint64_t address, struct bcc_symbol *sym)
{
	struct kernel_engine *engine = held;
	const struct sym_answer *answer;
	struct sym_error *error;

	if (!open_kernel(engine))
		return -1;
	error = sym_kernel_resolve(engine->kernel, &address, 1, engine->result);
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

struct wanted_symbol {
	const char *name;
	uint64_t address; /* 0: not found */
};

static void match_symbol(const char *name, const char *module, uint64_t address, void *payload)
{
	struct wanted_symbol *wanted = payload;

	(void)module;
	if (!strcmp(name, wanted->name))
		wanted->address = address;
}

/* kallsyms skips lines while a module or a program is freed. This list is complete then. */
static void find_in_list(struct kernel_engine *engine, struct wanted_symbol *wanted)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error;
	size_t found = SYM_NONE;

	if (!open_kernel(engine))
		return;
	error = sym_kernel_symbols(engine->kernel, &symbols);
	if (!error)
		found = sym_symbols_find(symbols, wanted->name, SYM_NONE);
	if (found != SYM_NONE)
		wanted->address = sym_symbols_at(symbols, found)->start;
	sym_error_destroy(error);
	sym_symbols_destroy(symbols);
}

/* Finds the last of several symbols with the name, as libbcc does. */
static int resolve_name(void *held, const char *module, const char *name, uint64_t *ret)
{
	struct wanted_symbol wanted = { .name = name };

	(void)module;
	if (bcc_procutils_each_ksym(match_symbol, &wanted) == 0 && !wanted.address)
		find_in_list(held, &wanted);
	if (!wanted.address)
		return -1;
	*ret = wanted.address;
	return 0;
}

static void kernel_engine_destroy(void *held)
{
	struct kernel_engine *engine = held;

	text_set_deinit(&engine->modules);
	sym_result_destroy(engine->result);
	sym_kernel_close(engine->kernel);
	free(engine);
}

void *kernel_engine_create(void)
{
	return calloc(1, sizeof(struct kernel_engine));
}

const struct engine_ops kernel_engine_ops = {
	.resolve = kernel_engine_resolve,
	.resolve_name = resolve_name,
	.destroy = kernel_engine_destroy,
};
