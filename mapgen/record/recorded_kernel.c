/* SPDX-License-Identifier: MIT */
#include "mapgen/record/recorded_kernel.h"

#include <linux/perf_event.h>
#include <string.h>

#include "libsym/error.h"

enum {
	MOST_KNOWN = 1 << 20, /* addresses; the kernel's code has a few thousand that are hot */
};

static const uint64_t kernel_begin = 1ull << 63;

void recorded_kernel_deinit(struct recorded_kernel *kernel)
{
	sym_result_destroy(kernel->result);
	sym_kernel_close(kernel->kernel);
	address_table_deinit(&kernel->known);
	*kernel = (struct recorded_kernel){ 0 };
}

static struct sym_error *open_kernel(struct recorded_kernel *kernel, struct name_table *names)
{
	struct sym_error *error = NULL;

	if (!kernel->result)
		error = sym_result_create(&kernel->result);
	if (!error)
		error = name_table_add_process(names, RECORDED_KERNEL_PID, RECORDED_KERNEL_PID, 0,
					       0, "kernel", &kernel->number);
	return error ? error : sym_kernel_open(NULL, &kernel->kernel);
}

static struct sym_error *name_one(struct recorded_kernel *kernel, struct name_table *names,
				  uint64_t address, uint64_t time_ns)
{
	struct sym_error *error = NULL;

	if (address_table_find(&kernel->known, address) || kernel->known.count == MOST_KNOWN)
		return NULL;
	if (!kernel->kernel)
		error = open_kernel(kernel, names);
	if (!error)
		error = sym_kernel_resolve(kernel->kernel, &address, 1, kernel->result);
	if (!error && !address_table_add(&kernel->known, address, kernel))
		error = &sym_error_no_memory;
	return error ? error
		     : name_table_add_answer(names, kernel->number,
					     sym_result_at(kernel->result, 0), time_ns);
}

struct sym_error *recorded_kernel_name(struct recorded_kernel *kernel, struct name_table *names,
				       const uint8_t *chain, size_t count, uint64_t time_ns)
{
	struct sym_error *error = NULL;
	bool is_first = true;

	for (size_t i = 0; !error && i < count; i++) {
		uint64_t address;

		memcpy(&address, chain + i * 8, sizeof(address));
		if (address < kernel_begin || address >= (uint64_t)PERF_CONTEXT_MAX)
			continue;
		/* All but the innermost are return addresses. */
		error = name_one(kernel, names, address - !is_first, time_ns);
		is_first = false;
	}
	return error;
}
