/* SPDX-License-Identifier: MIT */
/* Reports of the server about itself: /metrics, /metadata and the page at /. Text only; may block.
 */
#ifndef SYMSRV_REPORT_REPORT_H
#define SYMSRV_REPORT_REPORT_H

#include "symsrv/lookup/lookup.h"
#include "symsrv/report/metrics.h"
#include "symsrv/resolve/map_processes.h"
#include "symsrv/resolve/symbol_workers.h"
#include "symsrv/util/memory_budget.h"

struct reported {
	const struct holdings *holdings;
	struct metrics *metrics;
	struct symbol_workers *processes;
	struct map_processes *maps;
	struct memory_budget *memory;
	struct prefetch *prefetch;
	struct uploads *uploads;
	int64_t started_ms;
	unsigned int connections;
	bool is_ready;
};

void report_metrics(const struct reported *reported, struct buf *buf);

/* Writes the page. `id`: a build-id or file name to look up, or NULL. `host`: the Host header, or
 * NULL. */
void report_page(const struct reported *reported, const char *id, const char *host,
		 struct buf *buf);

/* JSON as debuginfod 0.195 answers; false when key or value are malformed. */
bool report_metadata(const struct reported *reported, const char *key, const char *value,
		     struct buf *buf);

#endif
