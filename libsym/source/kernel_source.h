/* SPDX-License-Identifier: MIT */
/*
 * Functions of the kernel and its modules by address, from kallsyms.
 * kallsyms has the start of a function only; this file decides where it ends.
 * It has no symbols when all addresses are zero, because they are hidden.
 */
#ifndef LIBSYM_SOURCE_KERNEL_SOURCE_H
#define LIBSYM_SOURCE_KERNEL_SOURCE_H

#include "libsym/source/source.h"

struct kernel_source;

enum kernel_part {
	KERNEL_ALL,
	KERNEL_MODULES /* all but the kernel's own text: modules, BPF programs, trampolines */
};

/* Reads the whole file. `path` is for messages. */
struct sym_error *kernel_source_open(int fd, const char *path, enum kernel_part part,
				     struct kernel_source **ret)
	__attribute__((warn_unused_result));
void kernel_source_close(struct kernel_source *source);

/* Why there are no symbols; NULL when there are; static. */
const char *kernel_source_trouble(const struct kernel_source *source);

size_t kernel_source_count(const struct kernel_source *source);
/* False when the symbol belongs to a module. */
bool kernel_source_at(const struct kernel_source *source, size_t i, struct sym_symbol *ret);

/* The name of the kernel's own text, which does not change while the kernel runs. */
extern const char kernel_source_own[];

/* *module_ret lives as long as the source: kernel_source_own, or "[MODULE]". */
bool kernel_source_find(const struct kernel_source *source, uint64_t address,
			struct source_match *ret, const char **module_ret);

DEFINE_GUARD(kernel_source, struct kernel_source *, kernel_source_close)
#define AUTO_KERNEL_SOURCE GUARDED(kernel_source)

#endif
