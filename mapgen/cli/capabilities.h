/* SPDX-License-Identifier: MIT */
/*
 * The capabilities of root that each command needs. A command gives up all others before it begins,
 * so that a fault in it does less harm. A test compares the table in SECURITY.md with this one.
 */
#ifndef MAPGEN_CLI_CAPABILITIES_H
#define MAPGEN_CLI_CAPABILITIES_H

#include <stdint.h>

#include "mapgen/cli/options.h"

/* Bits 1 << CAP_...; UINT64_MAX is all of them, for the tool that the command runs. */
uint64_t capabilities_of(enum command_id command);

/*
 * Limits the process to the capabilities in `kept`: effective, permitted, and in the bounding set,
 * which limits programs that it runs. None stays ambient or inheritable, and no program gets more
 * (no_new_privs). Must be called before a second thread starts. Returns 0 or a negative errno.
 */
int capabilities_keep(uint64_t kept);

/*
 * Capabilities that `record --events` keeps beside its row until it is known how probes are placed:
 * only events of the uprobe PMU need it, where there is neither a BPF link nor tracefs.
 */
uint64_t capabilities_of_raw_uprobes(void);

/* Gives up these for the calling thread and those that it starts. Returns 0 or a negative errno. */
int capabilities_drop(uint64_t dropped);

#endif
