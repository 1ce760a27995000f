/* SPDX-License-Identifier: MIT */
/*
 * The cost of one object's DWARF, if the budget limits it. libdw allocates memory and spends time
 * without a limit. So the cost of each part is estimated before it is read, and the growth of the
 * process is measured. If libdw runs in a child process, the kernel enforces the limits.
 */
#ifndef LIBSYM_DWARF_DWARF_COST_H
#define LIBSYM_DWARF_DWARF_COST_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libsym/base/reader.h"
#include "libsym/dwarf/dwarf_files.h"

/* The rest of a parent's account, for its child. */
struct dwarf_room {
	uint64_t left_bytes; /* UINT64_MAX: no limit */
	int64_t left_ns;     /* INT64_MAX: no limit */
};

/* Memory that a child has used so far, and whether it refused more. */
struct dwarf_bill {
	uint64_t growth_bytes; /* memory that its parent does not have */
	uint32_t excess;       /* enum budget_excess: what it refused */
};

struct dwarf_cost {
	struct dwarf_charge charge; /* for the sections */
	uint64_t start_bytes;       /* resident memory at the first measurement; 0: not measured */
	uint64_t room_bytes;        /* what the budget had left at first */
	unsigned int steps;
	/* In the parent: what a child was charged for so far. */
	uint64_t child_bytes;
	int64_t child_ns;
};

struct dwarf_cost dwarf_cost_of(struct budget_account *account, const char *path);

/* Charges one more unit. Like the functions below, returns false and records the excess if the
 * budget does not cover it. */
bool dwarf_cost_charge_unit(struct dwarf_cost *cost);
/* All abbreviations of the file. */
bool dwarf_cost_may_abbreviate(struct dwarf_cost *cost, Elf *elf);
/* The entries of a unit of `unit_bytes`, for which libdw needs `times` as much. */
bool dwarf_cost_may_read(struct dwarf_cost *cost, uint64_t unit_bytes, uint64_t times);
/* The lines of a unit, which begin at `offset` of `section`. */
bool dwarf_cost_may_line(const struct dwarf_cost *cost, uint64_t offset, struct reader section);

/* Memory and time that a child may still use. */
struct dwarf_room dwarf_cost_room(const struct dwarf_cost *cost);
/* In a child process that reads DWARF and then exits: call the first once, before it begins, and
 * the second before each further piece of work. */
void dwarf_cost_enter_child(struct dwarf_cost *cost);
void dwarf_cost_limit_child(struct dwarf_cost *cost, struct dwarf_room room);
struct dwarf_bill dwarf_cost_bill(const struct dwarf_cost *cost);
/* In the parent, after a piece of work: charges the memory and CPU time of the child `pid`, and
 * records what the child refused. False: the account does not cover it. */
bool dwarf_cost_charge_child(struct dwarf_cost *cost, pid_t pid, const struct dwarf_bill *bill);
/* The child has ended; `spent_ns` is all its CPU time. */
void dwarf_cost_end_child(struct dwarf_cost *cost, int64_t spent_ns);
/* enum budget_excess */
unsigned int dwarf_cost_excess(const struct dwarf_cost *cost);

#endif
