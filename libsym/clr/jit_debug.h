/* SPDX-License-Identifier: MIT */
/*
 * The debug information of jitted methods in the memory of a live runtime (.NET 10 and 11):
 *
 *   start of the code - 8 -> header of the code -> MethodDesc, debug information
 *   MethodDesc -> MethodTable -> Module
 *
 * The methods of one call are read together, so that ten thousand need a few dozen system calls.
 * A method is read only if the header describes code of the expected size.
 */
#ifndef LIBSYM_CLR_JIT_DEBUG_H
#define LIBSYM_CLR_JIT_DEBUG_H

#include "libsym/clr/module_place.h"
#include "libsym/format/dotnet/debug_info.h"
#include "libsym/process/remote_memory.h"

struct jit_debug;

/*
 * Takes ownership of `memory` on success.
 * `runtime_base`: as for jit_reader_open().
 * Errors: NOT_FOUND and UNSUPPORTED when this runtime cannot be read.
 */
struct sym_error *jit_debug_open(struct remote_memory *memory, uint64_t runtime_base,
				 struct jit_debug **ret) __attribute__((warn_unused_result));
/* As jit_debug_open(), with the offsets of a known contract. Errors: NO_MEMORY. */
struct sym_error *jit_debug_create(struct remote_memory *memory, const struct layout *layout,
				   const struct layout_debug *debug_layout, struct jit_debug **ret)
	__attribute__((warn_unused_result));
void jit_debug_close(struct jit_debug *debug);

struct remote_memory *jit_debug_memory(struct jit_debug *debug);
const struct layout *jit_debug_layout(const struct jit_debug *debug);

/* One method: question and answer. */
struct jit_debug_body {
	uint64_t start_address;
	uint64_t size_bytes;
	uint64_t method_desc; /* 0: not read */
	uint64_t module;      /* address of the Module; 0: not read */
	uint32_t rid;         /* MethodDef; 0: not read */
	struct module_place place;
	const char *failure; /* NULL, or why it cannot be read; static */
	/* private */
	int step;
	uint64_t header, blob;
	const struct jit_module *found_module;
	size_t blob_bytes;
};

/*
 * Receives the debug information of a method; its bytes are valid during the call. `info` is NULL
 * for a method that has none.
 */
typedef void jit_debug_visit(void *context, struct jit_debug_body *body,
			     const struct debug_info *info);

/*
 * Reads `count` methods. A body that was read has no failure.
 * Errors: those of reading; LIMIT; NO_MEMORY.
 */
struct sym_error *jit_debug_read(struct jit_debug *debug, struct jit_debug_body *bodies,
				 size_t count, jit_debug_visit *visit, void *context)
	__attribute__((warn_unused_result));

DEFINE_GUARD(jit_debug, struct jit_debug *, jit_debug_close)
#define AUTO_JIT_DEBUG GUARDED(jit_debug)

#endif
