/* SPDX-License-Identifier: MIT */
/*
 * Precodes and their names: "[precode] " and the method that is called through it.
 * The name of a recyclable MethodDesc is used only while its method has code.
 */
#ifndef LIBSYM_CLR_PRECODE_NAMES_H
#define LIBSYM_CLR_PRECODE_NAMES_H

#include "libsym/clr/jit_scan.h"
#include "libsym/clr/precode.h"

/* A precode or a page of them. */
struct precode_name {
	struct precode precode;
	size_t name_offset;
	uint32_t name_bytes; /* 0: none */
	bool done;
};

struct precode_names {
	struct precode_name *items;
	size_t count;
	struct buf names;
};

/* Reads all of the code map of a scan. Errors: as precodes_read(). */
struct sym_error *precode_names_read(const struct jit_tools *tools,
				     const struct layout_precodes *layout,
				     const struct jit_scan *round, struct precode_names *ret)
	__attribute__((warn_unused_result));
void precode_names_deinit(struct precode_names *thunks);

#endif
