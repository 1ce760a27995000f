/* SPDX-License-Identifier: MIT */
/*
 * The kernel while it is recorded: gives the frames of the kernel their names. In the table of
 * names it is the process -1.
 */
#ifndef MAPGEN_RECORD_RECORDED_KERNEL_H
#define MAPGEN_RECORD_RECORDED_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"
#include "mapgen/record/name_table.h"

enum {
	RECORDED_KERNEL_PID = -1
};

/* All zero before the first call. */
struct recorded_kernel {
	struct sym_kernel *kernel;
	struct sym_result *result;
	uint32_t number; /* in the table of names */
	struct address_table known;
};

void recorded_kernel_deinit(struct recorded_kernel *kernel);

/* Names the frames of the kernel in a call chain of a sample, which is not aligned. */
struct sym_error *recorded_kernel_name(struct recorded_kernel *kernel, struct name_table *names,
				       const uint8_t *chain, size_t count, uint64_t time_ns)
	__attribute__((warn_unused_result));

#endif
