/* SPDX-License-Identifier: MIT */
#include "libsym/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/result.h"
#include "libsym/source/kernel_source.h"

struct sym_kernel {
	struct kernel_source *source;
};

void sym_kernel_close(struct sym_kernel *kernel)
{
	if (!kernel)
		return;
	kernel_source_close(kernel->source);
	free(kernel);
}

struct sym_error *kernel_open_at(int directory, const char *name, struct sym_kernel **ret)
{
	int fd AUTO_CLOSE = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct sym_kernel *kernel AUTO_KERNEL = calloc(1, sizeof(*kernel));
	struct sym_error *error;

	if (!kernel)
		return &sym_error_no_memory;
	if (fd < 0)
		return sym_error_from_errno(errno, name, "cannot open");
	error = kernel_source_open(fd, name, &kernel->source);
	if (error)
		return error;
	*ret = STEAL(kernel);
	return NULL;
}

struct sym_error *sym_kernel_open(const char *root, struct sym_kernel **ret)
{
	int directory AUTO_CLOSE = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return sym_error_from_errno(errno, root, "cannot open");
	/* Without a root the path that a message has is the one that a person types. */
	return kernel_open_at(directory, root ? "proc/kallsyms" : "/proc/kallsyms", ret);
}

const char *sym_kernel_trouble(const struct sym_kernel *kernel)
{
	return kernel_source_trouble(kernel->source);
}

void kernel_answer(const struct sym_kernel *kernel, struct sym_answer *answer)
{
	const char *trouble = kernel_source_trouble(kernel->source);
	struct source_match match;

	answer->image_path = "[kernel.kallsyms]";
	if (!kernel_source_find(kernel->source, answer->address, &match, &answer->image_path)) {
		answer->status = trouble ? SYM_NO_SYMBOLS : SYM_NO_MATCH;
		answer->reason = trouble;
		return;
	}
	answer->status = SYM_RESOLVED;
	answer->source = SYM_SOURCE_KERNEL;
	answer->name = match.name;
	answer->kind = match.kind;
	answer->offset_bytes = answer->address - match.start;
	answer->size_bytes = match.size_bytes;
}

struct sym_error *sym_kernel_resolve(const struct sym_kernel *kernel, const uint64_t *addresses,
				     size_t count, struct sym_result *result)
{
	struct sym_error *error = result_prepare(result, addresses, count);

	for (size_t i = 0; !error && i < count; i++)
		kernel_answer(kernel, &result->slots[i].answer);
	return error;
}

struct sym_error *sym_kernel_symbols(const struct sym_kernel *kernel, struct sym_symbols **ret)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };

	for (size_t i = 0; i < kernel_source_count(kernel->source); i++) {
		struct sym_symbol symbol;

		kernel_source_at(kernel->source, i, &symbol);
		symbols_builder_add(&builder, &symbol, symbol.name, strlen(symbol.name));
	}
	return symbols_freeze(&builder, ret);
}
