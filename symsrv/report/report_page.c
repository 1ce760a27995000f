/* SPDX-License-Identifier: MIT */
/*
 * The page for people: state of the store and of the upstreams, recent requests, and a field for a
 * look-up. One HTML text without scripts or foreign content; it reloads itself unless a look-up is
 * shown.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/report/report.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/version.h"

static const char head[] =
	"<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width\"><title>symsrv</title><style>"
	":root{color-scheme:light "
	"dark;--line:#8884;--soft:#8882;--good:#2a7d46;--bad:#b3372e;--mark:#2563a8}"
	"body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
	"h1{font-size:1.5rem;margin:0}h1 small{font-weight:normal;opacity:.6;font-size:.95rem}"
	"h2{font-size:1.05rem;margin:2rem 0 .5rem}"
	".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.75rem;"
	"margin-top:1rem}"
	".card{background:var(--soft);border-radius:.5rem;padding:.6rem .8rem}"
	".card b{display:block;font-size:1.35rem;font-weight:600}.card "
	"span{opacity:.7;font-size:.85rem}"
	"table{border-collapse:collapse;width:100%;font-size:.9rem}"
	"th{text-align:left;font-weight:600;opacity:.7}th,td{padding:.3rem .6rem .3rem "
	"0;border-bottom:1px solid var(--line)}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
	"code{font:.85rem ui-monospace,monospace;overflow-wrap:anywhere}"
	".good{color:var(--good)}.bad{color:var(--bad)}"
	"progress{width:100%;accent-color:var(--mark)}"
	"form{display:flex;gap:.5rem;margin-top:1.2rem}"
	"input{flex:1;font:inherit;padding:.4rem .6rem}button{font:inherit;padding:.4rem 1rem}"
	"</style>";

/* All foreign text passes through this. */
static void page_text(struct buf *buf, const char *value)
{
	static const char *const escapes[256] = {
		['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (; *value; value++) {
		const char *escape = escapes[(unsigned char)*value];

		if (escape)
			buf_append_string(buf, escape);
		else
			buf_append_char(buf, *value);
	}
}

static void page_size(struct buf *buf, uint64_t bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	for (; value >= 1000 && unit < 4; unit++)
		value /= 1000;
	buf_printf(buf, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void page_card(struct buf *buf, const char *value, const char *label)
{
	buf_append_string(buf, "<div class=card><b>");
	page_text(buf, value);
	buf_append_string(buf, "</b><span>");
	page_text(buf, label);
	buf_append_string(buf, "</span></div>");
}

static void card_number(struct buf *buf, unsigned long long value, const char *label)
{
	char number[32];

	snprintf(number, sizeof(number), "%llu", value);
	page_card(buf, number, label);
}

static void write_cards(const struct reported *reported, struct buf *buf)
{
	const struct metrics *metrics = reported->metrics;
	unsigned long long hits = metrics->results[RESULT_HIT];
	unsigned long long asked = hits + metrics->results[RESULT_FETCHED] +
				   metrics->results[RESULT_MISSING] +
				   metrics->results[RESULT_TRANSIENT];
	struct fetch_counts fetches;
	char rate[32];

	fetcher_counts(reported->holdings->fetcher, &fetches);
	snprintf(rate, sizeof(rate), asked ? "%.1f %%" : "–",
		 asked ? 100.0 * (double)hits / (double)asked : 0.0);
	buf_append_string(buf, "<div class=cards>");
	page_card(buf, rate, "served from here");
	card_number(buf, asked, "objects asked for");
	card_number(buf, metrics->results[RESULT_FETCHED], "fetched while waiting");
	card_number(buf, metrics->results[RESULT_MISSING], "missing");
	card_number(buf, metrics->results[RESULT_TRANSIENT], "could not be found out");
	card_number(buf, fetches.flights, "fetches under way");
	card_number(buf, fetches.waiters, "requests waiting");
	card_number(buf, reported->connections, "connections");
	buf_append_string(buf, "</div>");
}

static void write_store(const struct reported *reported, struct buf *buf)
{
	struct store_usage usage;
	struct index_counts index;

	store_usage(reported->holdings->store, &usage);
	file_index_counts(reported->holdings->index, &index);
	buf_append_string(buf, "<h2>Store</h2><p>");
	buf_printf(buf, "%llu object%s, ", (unsigned long long)usage.object_count,
		   usage.object_count == 1 ? "" : "s");
	page_size(buf, usage.used_bytes);
	buf_append_string(buf, " of ");
	page_size(buf, usage.max_bytes);
	buf_append_string(buf, "; ");
	page_size(buf, usage.free_bytes);
	buf_append_string(buf, " free on the disk");
	if (usage.evicted_count)
		buf_printf(buf, "; %llu evicted", (unsigned long long)usage.evicted_count);
	if (usage.corrupt_count)
		buf_printf(buf, "; <b class=bad>%llu damaged and removed</b>",
			   (unsigned long long)usage.corrupt_count);
	if (index.keys)
		buf_printf(buf, "; %zu keys of indexed files", index.keys);
	if (!usage.is_scanned || !index.is_scanned)
		buf_append_string(buf, "; still counting");
	buf_printf(buf, ".</p><progress max=%llu value=%llu></progress>",
		   (unsigned long long)usage.max_bytes, (unsigned long long)usage.used_bytes);
}

static void write_trouble(struct upstream *upstream, struct buf *buf)
{
	char trouble[160], clock[32] = "";
	time_t when = (time_t)upstream_last_trouble(upstream, trouble);
	struct tm parts;

	if (!trouble[0])
		return;
	if (gmtime_r(&when, &parts))
		strftime(clock, sizeof(clock), "%b %d %H:%M:%S", &parts);
	buf_printf(buf, "<br><small>%s: ", clock);
	page_text(buf, trouble);
	buf_append_string(buf, "</small>");
}

static void write_upstreams(const struct reported *reported, struct buf *buf)
{
	struct upstream_set *set = fetcher_upstreams(reported->holdings->fetcher);
	size_t i;

	buf_append_string(buf, "<h2>Upstreams</h2>");
	if (!set->count)
		buf_append_string(buf, "<p>None: only what lies here is served.</p>");
	else
		buf_append_string(
			buf,
			"<table><tr><th>name<th>kind<th>state<th class=n>asked<th class=n>found"
			"<th class=n>missing<th class=n>failed<th class=n>rejected<th "
			"class=n>bytes</tr>");
	for (i = 0; i < set->count; i++) {
		struct upstream *upstream = set->list[i];
		const struct upstream_counts *counts = &upstream->counts;
		bool is_open = upstream_state(upstream) != BREAKER_CLOSED;

		buf_append_string(buf, "<tr><td>");
		page_text(buf, upstream->name);
		buf_printf(buf, "<td>%s%s<td><span class=%s>%s</span>",
			   upstream_kind_text(upstream->kind),
			   upstream->is_trusted ? ", trusted" : "", is_open ? "bad" : "good",
			   is_open ? "resting after failures" : "available");
		write_trouble(upstream, buf);
		buf_printf(buf,
			   "<td class=n>%llu<td class=n>%llu<td class=n>%llu"
			   "<td class=n>%llu<td class=n%s>%llu<td class=n>",
			   (unsigned long long)counts->asked, (unsigned long long)counts->found,
			   (unsigned long long)counts->missing,
			   (unsigned long long)counts->transient + counts->denied + counts->refused,
			   counts->rejected ? " style='color:var(--bad)'" : "",
			   (unsigned long long)counts->rejected);
		page_size(buf, counts->bytes);
		buf_append_string(buf, "</tr>");
	}
	if (set->count)
		buf_append_string(buf, "</table>");
	upstream_set_release(set);
}

static void write_recent(const struct reported *reported, struct buf *buf)
{
	struct metrics_recent recent[METRICS_RECENT_COUNT];
	unsigned int count = metrics_recent(reported->metrics, recent);
	unsigned int i;

	buf_append_string(buf, "<h2>Recent requests</h2>");
	if (!count) {
		buf_append_string(buf, "<p>None yet.</p>");
		return;
	}
	buf_append_string(buf, "<table><tr><th>time (UTC)<th>path<th>from<th class=n>status"
			       "<th class=n>bytes<th class=n>ms</tr>");
	for (i = 0; i < count; i++) {
		char clock[16] = "";
		time_t when = recent[i].time_s;
		struct tm parts;

		if (gmtime_r(&when, &parts))
			strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
		buf_printf(buf, "<tr><td>%s<td><code>", clock);
		page_text(buf, recent[i].path);
		buf_printf(buf, "</code><td>%s<td class=n>%u<td class=n>",
			   metrics_result_text(recent[i].result), recent[i].status);
		page_size(buf, recent[i].bytes);
		buf_printf(buf, "<td class=n>%.1f</tr>", (double)recent[i].duration_us / 1000);
	}
	buf_append_string(buf, "</table>");
}

/* ---- looking up ---- */

struct page_search {
	const char *wanted; /* what to search for, in lower case */
	const char *where;  /* what is searched */
	struct buf *buf;
	unsigned int found;
};

static const unsigned int most_found = 50;

static bool page_visit(void *context, const char *key_line, const char *name)
{
	struct page_search *page_search = context;
	struct key key;
	char id[2 * KEY_MAX_ID + 1];

	if (!key_from_text(&key, key_line))
		return true;
	hex_write_bytes(id, key.id, key.id_bytes);
	if (strncmp(id, page_search->wanted, strlen(page_search->wanted)) != 0 &&
	    strcasecmp(path_file_name(name), page_search->wanted) != 0 &&
	    !(key.name && !strcmp(key.name, page_search->wanted)))
		return true;
	if (!page_search->found++)
		buf_append_string(page_search->buf,
				  "<table><tr><th>what<th>identity<th>name<th>where</tr>");
	if (key.kind == KEY_EXECUTABLE || key.kind == KEY_DEBUGINFO)
		buf_printf(page_search->buf, "<tr><td><a href=\"/buildid/%s/%s\">%s</a><td><code>",
			   id, key_kind_text(key.kind), key_kind_text(key.kind));
	else
		buf_printf(page_search->buf, "<tr><td>%s<td><code>", key_kind_text(key.kind));
	page_text(page_search->buf, strchr(key_line, '/') + 1);
	buf_append_string(page_search->buf, "</code><td>");
	page_text(page_search->buf, name);
	buf_printf(page_search->buf, "<td>%s</tr>", page_search->where);
	return page_search->found < most_found;
}

/* A look-up does not ask the upstreams; the link does. */
static void write_not_here(const char *id, struct buf *buf)
{
	size_t digits = strspn(id, "0123456789abcdef");

	buf_append_string(buf, "<p>Not here.");
	if (id[digits] || digits < 2 || digits % 2 || digits > 2 * KEY_MAX_ID)
		buf_append_string(buf, " A request for it would ask the upstreams.</p>");
	else
		buf_printf(buf,
			   " Ask the upstreams for its <a "
			   "href=\"/buildid/%s/debuginfo\">debuginfo</a> or "
			   "<a href=\"/buildid/%s/executable\">executable</a>.</p>",
			   id, id);
}

static void write_lookup(const struct reported *reported, const char *id, struct buf *buf)
{
	struct page_search page_search = { .wanted = id, .where = "store", .buf = buf };

	buf_append_string(buf, "<h2>Looked up: <code>");
	page_text(buf, id);
	buf_append_string(buf, "</code></h2>");
	store_each(reported->holdings->store, page_visit, &page_search);
	page_search.where = "index";
	file_index_each(reported->holdings->index, page_visit, &page_search);
	if (page_search.found)
		buf_append_string(buf, "</table>");
	else
		write_not_here(id, buf);
	if (page_search.found == most_found)
		buf_append_string(buf, "<p>There is more.</p>");
}

/* The lines that a person pastes on another machine. A Host header with other characters is not
 * printed: what a shell would run must not come from elsewhere. */
static void write_use(const char *host, struct buf *buf)
{
	if (!host || !*host ||
	    host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789.-:[]")])
		host = "127.0.0.1:8002";
	buf_printf(buf,
		   "<h2>To use it</h2><pre>export DEBUGINFOD_URLS=http://%s</pre>"
		   "<p>for gdb, perf and every client of debuginfod; for .NET:</p><pre>"
		   "dotnet-mapgen fetch-symbols --server=http://%s PID\n"
		   "dotnet-symbol --server-path http://%s/symbols FILE</pre>",
		   host, host, host);
}

void report_page(const struct reported *reported, const char *id, const char *host, struct buf *buf)
{
	int64_t up_s = (clock_now_ms() - reported->started_ms) / 1000;

	buf_append_string(buf, head);
	if (!id)
		buf_append_string(buf, "<meta http-equiv=refresh content=10>");
	buf_printf(buf,
		   "</head><body><h1>symsrv <small>%s, up %lld:%02lld:%02lld, "
		   "<span class=%s>%s</span></small></h1>",
		   SYMSRV_VERSION, (long long)(up_s / 3600), (long long)(up_s / 60 % 60),
		   (long long)(up_s % 60), reported->is_ready ? "good" : "bad",
		   reported->is_ready ? "ready" : "not ready");
	buf_append_string(buf, "<form><input name=id placeholder=\"build-id or file name\" "
			       "aria-label=\"build-id or file name\" value=\"");
	page_text(buf, id ? id : "");
	buf_append_string(buf, "\"><button>Look up</button></form>");
	if (id)
		write_lookup(reported, id, buf);
	write_cards(reported, buf);
	write_use(host, buf);
	write_store(reported, buf);
	write_upstreams(reported, buf);
	write_recent(reported, buf);
	buf_append_string(buf, "</body></html>\n");
}
