/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/event_report.h"

#include <stdlib.h>

void event_report_destroy(struct event_report *report)
{
	if (!report)
		return;
	gc_log_deinit(&report->gc);
	event_rows_deinit(&report->exceptions);
	event_rows_deinit(&report->locks);
	event_rows_deinit(&report->methods);
	event_rows_deinit(&report->kinds);
	event_rows_deinit(&report->counters);
	event_rows_deinit(&report->activities);
	free(report->lock_waits);
	free(report->pool);
	free(report->lines);
	buf_deinit(&report->texts);
	free(report->cut);
	free(report);
}

const char *event_report_pool_reason(uint32_t reason)
{
	static const char *const texts[] = {
		"warmup",      "initializing", "random move", "climbing move",       "change point",
		"stabilizing", "starvation",   "timed out",   "cooperative blocking"
	};

	return reason < sizeof(texts) / sizeof(*texts) ? texts[reason] : "unknown";
}
