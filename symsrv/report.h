/* SPDX-License-Identifier: MIT */
/* What the server tells about itself: /metrics, /metadata and the page at /. Text only; may block.
 */
#ifndef SYMSRV_REPORT_H
#define SYMSRV_REPORT_H

#include "symsrv/inquiry.h"
#include "symsrv/metrics.h"

struct reported {
	const struct holdings *holdings;
	struct metrics *metrics;
	int64_t started_ms;
	unsigned int connections;
	bool is_ready;
};

void report_metrics(const struct reported *reported, struct buf *buf);

/* The page; `id`: a build-id or file name to look up, or NULL. */
void report_page(const struct reported *reported, const char *id, struct buf *buf);

/* JSON as debuginfod 0.195 answers it; false when key or value make no sense. */
bool report_metadata(const struct reported *reported, const char *key, const char *value,
		     struct buf *buf);

#endif
