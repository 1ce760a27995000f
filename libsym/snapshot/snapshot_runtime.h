/* SPDX-License-Identifier: MIT */
/* The runtime in the process of a snapshot, for its readers (clr/). */
#ifndef LIBSYM_SNAPSHOT_SNAPSHOT_RUNTIME_H
#define LIBSYM_SNAPSHOT_SNAPSHOT_RUNTIME_H

#include "libsym/clr/clr_target.h"
#include "libsym/snapshot/snapshot.h"

/* The snapshot is borrowed. */
struct clr_target snapshot_clr_target(const struct sym_snapshot *snapshot);

/* jitted_code_get() for the snapshot's process. */
struct sym_error *snapshot_live_code(const struct sym_snapshot *snapshot,
				     const struct jitted_code **ret)
	__attribute__((warn_unused_result));

#endif
