/* SPDX-License-Identifier: MIT */
/* Small parts of symsrv: ranges and tags, answers, proxy chains, networks, breaker, negative cache,
 * table of objects, settings, upstreams. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/http/answer.h"
#include "symsrv/store/negative_cache.h"
#include "symsrv/upstream/circuit_breaker.h"
#include "symsrv/upstream/proxy_loop.h"
#include "symsrv/upstream/upstream_set.h"
#include "symsrv/util/settings.h"

/* -------- ranges -------- */

static enum http_range range(const char *value, uint64_t *first, uint64_t *count)
{
	*first = *count = 7777;
	return http_range_parse(value, 1000, first, count);
}

static void expect_part(const char *value, uint64_t want_first, uint64_t want_count)
{
	uint64_t first, count;

	cr_expect_eq(range(value, &first, &count), HTTP_RANGE_PART, "%s", value);
	cr_expect_eq(first, want_first, "%s", value);
	cr_expect_eq(count, want_count, "%s", value);
}

Test(http_text, parts_of_a_body)
{
	expect_part("bytes=0-0", 0, 1);
	expect_part("bytes=0-", 0, 1000);
	expect_part("bytes=999-", 999, 1);
	expect_part("bytes=500-2000", 500, 500);
	expect_part("bytes=-1", 999, 1);
	expect_part("bytes=-5000", 0, 1000);
	expect_part("BYTES = 1-2 ", 1, 2);
	expect_part("bytes=0-18446744073709551615", 0, 1000);
}

Test(http_text, ranges_behind_the_end_cannot_be_satisfied)
{
	uint64_t first, count;

	cr_expect_eq(range("bytes=1000-", &first, &count), HTTP_RANGE_UNSATISFIABLE);
	cr_expect_eq(range("bytes=-0", &first, &count), HTTP_RANGE_UNSATISFIABLE);
	cr_expect_eq(http_range_parse("bytes=0-", 0, &first, &count), HTTP_RANGE_UNSATISFIABLE);
	cr_expect_eq(http_range_parse("bytes=-1", 0, &first, &count), HTTP_RANGE_UNSATISFIABLE);
}

Test(http_text, what_is_no_single_range_is_ignored)
{
	static const char *const values[] = {
		"",
		"bytes",
		"bytes=",
		"bytes=-",
		"bytes=a-b",
		"bytes=5-2",
		"bytes=0-1,3-4",
		"bytes=1-2x",
		"items=0-1",
		"bytes=18446744073709551616-",
		"bytes=--1",
		"bytes=1",
		"bytes=+1-2",
		"bytes=0-99999999999999999999",
	};
	uint64_t first, count;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		cr_expect_eq(range(values[i], &first, &count), HTTP_RANGE_NONE, "%s", values[i]);
	cr_expect_eq(first, 7777u);
}

Test(http_text, tags_match_in_lists)
{
	cr_expect(http_tags_match("\"a\"", "\"a\""));
	cr_expect(http_tags_match("\"x\", W/\"a\" ,\"y\"", "\"a\""));
	cr_expect(http_tags_match("*", "\"a\""));
	cr_expect_not(http_tags_match("\"ab\"", "\"a\""));
	cr_expect_not(http_tags_match("a", "\"a\""));
	cr_expect_not(http_tags_match("", "\"a\""));
	cr_expect_not(http_tags_match("\"x", "\"a\""));
}

Test(http_text, dates_are_english)
{
	char text[HTTP_DATE_BYTES];

	http_date(784111777, text);
	cr_expect_str_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT");
	http_date(INT64_MAX, text);
	cr_expect_str_eq(text, "");
}

/* -------- answers -------- */

static struct object *sample_object(void)
{
	struct object *object = object_create("debuginfo/ab", open("/dev/null", O_RDONLY));

	object->size_bytes = 1000;
	object->modified_s = 784111777;
	snprintf(object->etag, sizeof(object->etag), "\"sha256-1\"");
	return object;
}

static unsigned int status_of(struct request_headers headers, struct answer_plan *plan)
{
	struct object *object = sample_object();

	*plan = (struct answer_plan){ 0 };
	answer_plan(object, &headers, plan);
	object_release(object);
	return plan->status;
}

Test(answer, headers_decide_what_is_sent)
{
	struct answer_plan plan;

	cr_expect_eq(status_of((struct request_headers){ 0 }, &plan), 200);
	cr_expect_eq(status_of((struct request_headers){ .range = "bytes=1-2" }, &plan), 206);
	cr_expect_str_eq(plan.content_range, "bytes 1-2/1000");
	cr_expect_eq(status_of((struct request_headers){ .range = "bytes=1000-" }, &plan), 416);
	cr_expect_str_eq(plan.content_range, "bytes */1000");
	cr_expect_eq(status_of((struct request_headers){ .if_none_match = "\"sha256-1\"" }, &plan),
		     304);
	cr_expect_eq(status_of((struct request_headers){ .max_size = "999" }, &plan), 406);
	cr_expect_eq(status_of((struct request_headers){ .max_size = "1000" }, &plan), 200);
	cr_expect_eq(status_of((struct request_headers){ .max_size = "-1" }, &plan), 200);
}

Test(answer, what_has_not_changed_since_is_not_sent)
{
	struct request_headers headers = { .if_modified_since = "Sun, 06 Nov 1994 08:49:37 GMT" };
	struct answer_plan plan;

	cr_expect_eq(status_of(headers, &plan), 304);
	headers.if_none_match = "\"sha256-2\"";
	cr_expect_eq(status_of(headers, &plan), 200, "the tag decides");
	headers = (struct request_headers){ .if_modified_since = "Sun, 06 Nov 1994 08:49:38 GMT" };
	cr_expect_eq(status_of(headers, &plan), 200, "what was sent may be of a newer file");
}

Test(answer, a_part_of_another_version_is_not_sent)
{
	struct request_headers headers = { .range = "bytes=1-2" };
	struct answer_plan plan;

	headers.if_range = "\"sha256-2\"";
	cr_expect_eq(status_of(headers, &plan), 200);
	headers.if_range = "\"sha256-1\"";
	cr_expect_eq(status_of(headers, &plan), 206);
	headers.if_range = "Sun, 06 Nov 1994 08:49:37 GMT";
	cr_expect_eq(status_of(headers, &plan), 206);
	headers.if_range = "Sun, 06 Nov 1994 08:49:38 GMT";
	cr_expect_eq(status_of(headers, &plan), 200);
}

/* -------- servers that a request has passed -------- */

/* "" when the request must not go on; static. */
static const char *chain_after(const char *forwarded, const char *via, uint64_t limit)
{
	static char text[4096];
	struct proxy_loop proxy_loop;

	proxy_loop_read(&(struct proxy_loop_request){ forwarded, via, "10.0.0.1" }, "symsrv-abc",
			limit, &proxy_loop);
	cr_expect_eq(proxy_loop.may_go_on, proxy_loop.chain != NULL);
	snprintf(text, sizeof(text), "%s", proxy_loop.chain ? proxy_loop.chain : "");
	free(proxy_loop.chain);
	return text;
}

Test(proxy_loop, a_request_that_was_here_before_goes_no_further)
{
	cr_expect_str_eq(chain_after(NULL, NULL, 8), "10.0.0.1, _symsrv-abc");
	cr_expect_str_eq(chain_after("10.0.0.1, _symsrv-abc", NULL, 8), "");
	cr_expect_str_eq(chain_after(NULL, "1.1 symsrv-abc", 8), "");
	cr_expect_str_eq(chain_after("1, 2", "1.1 other", 3), "1, 2, 10.0.0.1, _symsrv-abc");
	cr_expect_str_eq(chain_after("1, 2, 3, 4", NULL, 3), "");
}

Test(proxy_loop, several_lines_are_one_list)
{
	struct proxy_loop_lines lines;

	buf_init(&lines.forwarded, 100);
	buf_init(&lines.via, 100);
	proxy_loop_take(&lines, "X-Forwarded-For", "10.0.0.1");
	proxy_loop_take(&lines, "x-forwarded-for", "10.0.0.2, _symsrv-abc");
	proxy_loop_take(&lines, "VIA", "1.1 proxy");
	proxy_loop_take(&lines, "Host", "x");
	cr_expect_str_eq(buf_string(&lines.forwarded), "10.0.0.1, 10.0.0.2, _symsrv-abc");
	cr_expect_str_eq(buf_string(&lines.via), "1.1 proxy");
	buf_deinit(&lines.forwarded);
	buf_deinit(&lines.via);
}

Test(proxy_loop, a_server_that_adds_address_and_name_counts_once)
{
	static const char three[] = "1, _symsrv-a, 2, _symsrv-b, 3, _symsrv-c";
	struct proxy_loop proxy_loop;

	cr_expect_str_neq(chain_after(three, NULL, 3), "");
	cr_expect_str_eq(chain_after(three, NULL, 2), "");
	cr_expect_str_neq(chain_after("1", NULL, 1), "");
	cr_expect_str_eq(chain_after("1", NULL, 0), "");
	cr_expect_str_eq(chain_after("_symsrv-a, _symsrv-b", NULL, 1), "",
			 "names without addresses");
	proxy_loop_read(&(struct proxy_loop_request){ three, NULL, "4" }, "symsrv-abc", 8,
			&proxy_loop);
	cr_expect_eq(proxy_loop.depth, 3u);
	free(proxy_loop.chain);
}

Test(proxy_loop, what_no_server_writes_is_not_passed_on)
{
	static char long_text[10001];

	memset(long_text, 'a', sizeof(long_text) - 1);
	cr_expect_str_eq(chain_after(long_text, NULL, 8), "");
	cr_expect_str_eq(chain_after("a\x01", NULL, 8), "");
	cr_expect_str_eq(chain_after("a\xff", NULL, 8), "");
}

Test(proxy_loop, those_who_did_not_ask_are_named_once)
{
	char list[PROXY_LOOP_UNASKED_BYTES] = "";
	char name[32];

	proxy_loop_add_unqueried(list, "symsrv-ab", "symsrv-ab");
	cr_expect_str_eq(list, "", "it asks itself");
	proxy_loop_add_unqueried(list, "symsrv-ab, symsrv-abc", "symsrv-ab");
	proxy_loop_add_unqueried(list, " symsrv-abc,,symsrv-cd", NULL);
	cr_expect_str_eq(list, "symsrv-abc, symsrv-cd");
	proxy_loop_add_unqueried(list, "<b>", NULL);
	cr_expect_str_eq(list, "symsrv-abc, symsrv-cd, another");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "symsrv-%d", i);
		proxy_loop_add_unqueried(list, name, NULL);
	}
	cr_expect_lt(strlen(list), sizeof(list));
}

Test(proxy_loop, only_who_came_from_elsewhere_may_hear_more)
{
	static const char chain[] = "1, _symsrv-a, 2, _symsrv-me";

	cr_expect_not(proxy_loop_differ("", chain, "2, _symsrv-me"));
	cr_expect(proxy_loop_differ("symsrv-a", chain, "1, _symsrv-b, 2, _symsrv-me"));
	cr_expect_not(proxy_loop_differ("symsrv-a", chain, "3, _symsrv-a, 4, _symsrv-me"));
	cr_expect_not(proxy_loop_differ("symsrv-me, symsrv-c", chain, "2, _symsrv-me"));
}

/* -------- networks -------- */

static bool contains(const char *rule_text, const char *address)
{
	struct text_list rules = { 0 };
	struct sockaddr_storage storage;
	struct cidr_rule rule;
	bool found;

	cr_assert(cidr_rule_parse(rule_text, &rule), "%s", rule_text);
	cr_assert(net_address_from_text(address, &storage), "%s", address);
	cr_assert(text_list_add(&rules, rule_text));
	found = cidr_rules_contain(&rules, (const struct sockaddr *)&storage);
	text_list_deinit(&rules);
	return found;
}

Test(cidr_rules, networks_have_their_addresses_and_no_others)
{
	cr_expect(contains("10.0.0.0/8", "10.255.255.255"));
	cr_expect_not(contains("10.0.0.0/8", "11.0.0.0"));
	cr_expect(contains("192.168.3.128/25", "192.168.3.129"));
	cr_expect_not(contains("192.168.3.128/25", "192.168.3.127"));
	cr_expect(contains("1.2.3.4", "1.2.3.4"));
	cr_expect_not(contains("1.2.3.4", "1.2.3.5"));
	cr_expect(contains("0.0.0.0/0", "8.8.8.8"));
	cr_expect_not(contains("0.0.0.0/0", "2001:4860::1"));
	cr_expect(contains("fd00::/8", "fdff::1"));
	cr_expect(contains("::/0", "8.8.8.8"));
}

Test(cidr_rules, an_ipv4_address_in_ipv6_dress_is_the_same)
{
	cr_expect(contains("127.0.0.0/8", "::ffff:127.0.0.1"));
	cr_expect(contains("169.254.0.0/16", "64:ff9b::169.254.169.254"));
	cr_expect_not(contains("127.0.0.0/8", "::1"));
}

Test(cidr_rules, texts_that_are_no_network_are_refused)
{
	static const char *const texts[] = { "",           "10.0.0.0/33", "10.0.0.0/",
					     "10.0.0.0/x", "10.0.0.0/-1", "::/129",
					     "localhost",  "10.0.0",      "10.0.0.0/8x" };
	struct cidr_rule rule;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		cr_expect_not(cidr_rule_parse(texts[i], &rule), "%s", texts[i]);
}

Test(cidr_rules, internal_addresses_are_known)
{
	static const char *const internal[] = {
		"127.0.0.1",  "10.1.2.3",       "172.16.0.1", "192.168.0.1", "169.254.169.254",
		"100.64.0.1", "0.0.0.0",        "224.0.0.1",  "::1",         "fe80::1",
		"fd00::1",    "::ffff:10.0.0.1"
	};
	static const char *const outside[] = { "8.8.8.8", "172.32.0.1", "100.128.0.1", "2600::1" };
	struct sockaddr_storage address;

	for (size_t i = 0; i < sizeof(internal) / sizeof(*internal); i++) {
		net_address_from_text(internal[i], &address);
		cr_expect(net_is_internal((const struct sockaddr *)&address), "%s", internal[i]);
	}
	for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
		net_address_from_text(outside[i], &address);
		cr_expect_not(net_is_internal((const struct sockaddr *)&address), "%s", outside[i]);
	}
}

/* -------- breaker -------- */

Test(breaker, rests_as_long_as_it_was_told_but_not_for_ever)
{
	struct circuit_breaker breaker = { 0 };

	circuit_breaker_rests(&breaker, 1000, 60000);
	cr_expect_not(circuit_breaker_allows(&breaker, 60999));
	cr_expect(circuit_breaker_allows(&breaker, 61000));
	circuit_breaker_succeeded(&breaker);
	circuit_breaker_rests(&breaker, 0, INT64_C(86400000));
	cr_expect(circuit_breaker_allows(&breaker, 300000));
}

Test(breaker, opens_after_failures_in_a_row_and_lets_one_try)
{
	struct circuit_breaker breaker = { 0 };

	for (int i = 0; i < 5; i++) {
		cr_expect(circuit_breaker_allows(&breaker, 0));
		circuit_breaker_failed(&breaker, 0);
	}
	cr_expect_not(circuit_breaker_allows(&breaker, 1));
	cr_expect(circuit_breaker_allows(&breaker, 10000));
	cr_expect_not(circuit_breaker_allows(&breaker, 10001));
	circuit_breaker_succeeded(&breaker);
	cr_expect(circuit_breaker_allows(&breaker, 10002));
}

Test(breaker, rests_longer_each_time)
{
	struct circuit_breaker breaker = { 0 };

	for (int i = 0; i < 5; i++)
		circuit_breaker_failed(&breaker, 0);
	cr_expect(circuit_breaker_allows(&breaker, 10000));
	circuit_breaker_failed(&breaker, 10000);
	cr_expect_not(circuit_breaker_allows(&breaker, 29999));
	cr_expect(circuit_breaker_allows(&breaker, 30000));
}

Test(breaker, a_success_forgets_the_failures)
{
	struct circuit_breaker breaker = { 0 };

	for (int i = 0; i < 20; i++) {
		circuit_breaker_failed(&breaker, 0);
		circuit_breaker_failed(&breaker, 0);
		circuit_breaker_succeeded(&breaker);
	}
	cr_expect(circuit_breaker_allows(&breaker, 0));
}

Test(breaker, a_trial_that_did_not_happen_leaves_room_for_another)
{
	struct circuit_breaker breaker = { 0 };

	for (int i = 0; i < 5; i++)
		circuit_breaker_failed(&breaker, 0);
	cr_expect(circuit_breaker_allows(&breaker, 10000));
	circuit_breaker_withdrawn(&breaker);
	cr_expect(circuit_breaker_allows(&breaker, 10001));
}

/* -------- negative cache -------- */

Test(negative, remembers_until_the_time_is_over)
{
	struct negative_cache *negative = negative_cache_create();

	negative_cache_add(negative, "debuginfo/ab", NULL, 100, 0);
	cr_expect(negative_cache_contains(negative, "debuginfo/ab", NULL, 99, 0));
	cr_expect_not(negative_cache_contains(negative, "debuginfo/ac", NULL, 99, 0));
	cr_expect_not(negative_cache_contains(negative, "debuginfo/ab", NULL, 100, 0));
	cr_expect_eq(negative_cache_count(negative), 0u);
	negative_cache_destroy(negative);
}

Test(negative, a_miss_without_a_name_says_nothing_about_one_with_a_name)
{
	struct negative_cache *negative = negative_cache_create();

	negative_cache_add(negative, "executable/ab", NULL, 100, 0);
	cr_expect_not(negative_cache_contains(negative, "executable/ab", "a", 0, 0));
	negative_cache_add(negative, "executable/ab", "a", 100, 0);
	cr_expect(negative_cache_contains(negative, "executable/ab", "a", 0, 0));
	cr_expect(negative_cache_contains(negative, "executable/ab", NULL, 0, 0));
	negative_cache_remove(negative, "executable/ab", "a");
	cr_expect_not(negative_cache_contains(negative, "executable/ab", "a", 0, 0));
	cr_expect_not(negative_cache_contains(negative, "executable/ab", NULL, 0, 0));
	negative_cache_destroy(negative);
}

Test(negative, a_miss_under_one_name_says_nothing_about_another)
{
	struct negative_cache *negative = negative_cache_create();

	negative_cache_add(negative, "pe/1-2/a.dll", "a.dll", 100, 0);
	cr_expect(negative_cache_contains(negative, "pe/1-2/a.dll", "a.dll", 0, 0));
	cr_expect_not(negative_cache_contains(negative, "pe/1-2/a.dll", "A.dll", 0, 0));
	negative_cache_destroy(negative);
}

Test(negative, says_nothing_in_another_state_than_the_one_it_is_of)
{
	struct negative_cache *negative = negative_cache_create();
	unsigned int clears = negative_cache_clears(negative);

	negative_cache_add(negative, "debuginfo/ab", NULL, 100, 6);
	cr_expect(negative_cache_contains(negative, "debuginfo/ab", NULL, 0, 6));
	cr_expect_not(negative_cache_contains(negative, "debuginfo/ab", NULL, 0, 7));
	negative_cache_clear(negative);
	cr_expect_eq(negative_cache_clears(negative), clears + 1);
	cr_expect_eq(negative_cache_count(negative), 0u);
	negative_cache_destroy(negative);
}

Test(negative, is_bounded)
{
	struct negative_cache *negative = negative_cache_create();
	char text[32];

	for (int i = 0; i < 300000; i++) {
		snprintf(text, sizeof(text), "debuginfo/%06x", i);
		negative_cache_add(negative, text, NULL, 100, 0);
	}
	cr_expect_leq(negative_cache_count(negative), 64u * 2048u);
	cr_expect(negative_cache_contains(negative, text, NULL, 0, 0));
	negative_cache_destroy(negative);
}

/* -------- table of objects -------- */

static unsigned int detached;

static void count_detached(void *attachment)
{
	(void)attachment;
	detached++;
}

Test(object_table, keeps_a_bounded_number_and_drops_the_least_used)
{
	struct lru_table *table = object_table_create(64); /* one in each shard */
	char text[32];

	detached = 0;
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "debuginfo/%04x", i);
		struct object *object = object_create(text, open("/dev/null", O_RDONLY));

		object->attachment = &detached;
		object->detach = count_detached;
		object_table_add(table, object);
		object_release(object);
	}
	cr_expect_geq(detached, 1000u - 64u);
	lru_table_destroy(table);
	cr_expect_eq(detached, 1000u);
}

Test(object_table, an_object_in_use_outlives_its_place)
{
	struct lru_table *table = object_table_create(64);
	struct object *object = object_create("pe/1-2/a", open("/dev/null", O_RDONLY)), *found;

	object_table_add(table, object);
	object_release(object);
	found = object_table_find(table, "pe/1-2/a", 0);
	cr_assert_eq(found, object);
	lru_table_remove(table, "pe/1-2/a");
	cr_expect_null(object_table_find(table, "pe/1-2/a", 0));
	cr_expect_geq(fcntl(found->fd, F_GETFD), 0);
	object_release(found);
	lru_table_destroy(table);
}

Test(object_table, what_may_change_is_looked_up_again)
{
	struct lru_table *table = object_table_create(64);
	struct object *object = object_create("pe/1-2/a", open("/dev/null", O_RDONLY)), *found;

	object->valid_until_ms = 50;
	object_table_add(table, object);
	object_release(object);
	found = object_table_find(table, "pe/1-2/a", 49);
	cr_expect_not_null(found);
	object_release(found);
	cr_expect_null(object_table_find(table, "pe/1-2/a", 50));
	lru_table_destroy(table);
}

Test(object_table, a_file_that_was_written_to_is_looked_up_again)
{
	struct lru_table *table = object_table_create(64);
	char path[] = "/tmp/symsrv-object-XXXXXX";
	int fd = mkstemp(path);
	struct object *object = object_create("pe/1-2/a", fd), *found;
	const struct timespec times[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };

	cr_assert_eq(futimens(fd, times), 0);
	object->unchanged_since = times[1];
	object_table_add(table, object);
	found = object_table_find(table, "pe/1-2/a", 0);
	cr_expect_eq(found, object);
	object_release(found);
	cr_assert_eq(write(fd, "x", 1), 1);
	cr_expect_null(object_table_find(table, "pe/1-2/a", 0));
	unlink(path);
	object_release(object);
	lru_table_destroy(table);
}

/* -------- settings -------- */

static char message[256];

#define PARSE(options, ...)                                                                        \
	({                                                                                         \
		const char *arguments[] = { "symsrv", __VA_ARGS__, NULL };                         \
		settings_parse(options, (int)(sizeof(arguments) / sizeof(*arguments)) - 1,         \
			       arguments, message, sizeof(message));                               \
	})

Test(settings, values_have_units)
{
	struct options options;

	cr_assert(PARSE(&options, "--store", "/s", "--max-bytes=3M", "--negative-ttl", "2m",
			"--wait-timeout=1500ms"));
	cr_expect_eq(options.max_bytes, 3u << 20);
	cr_expect_eq(options.negative_cache_ms, 120000u);
	cr_expect_eq(options.wait_ms, 1500u);
	cr_expect_eq(options.connections, 8192u);
	settings_deinit(&options);
}

Test(settings, lists_grow)
{
	struct options options;

	cr_assert(PARSE(&options, "--store", "/s", "--upstream", "dir=/a", "--upstream=dir=/b"));
	cr_expect_eq(options.upstreams.count, 2u);
	cr_expect_str_eq(options.upstreams.texts[1], "dir=/b");
	settings_deinit(&options);
}

Test(settings, mistakes_are_named)
{
	struct options options;

	cr_expect_not(PARSE(&options, "--max-bytes", "1"));
	cr_expect_str_eq(message, "--store: is needed");
	cr_expect_not(PARSE(&options, "--store", "/s", "--max-bytes", "1X"));
	cr_expect_str_eq(message, "--max-bytes: not a valid value");
	cr_expect_not(PARSE(&options, "--store", "/s", "--max-bytes", "99999999999T"));
	cr_expect_not(PARSE(&options, "--store", "/s", "--threads", "-1"));
	cr_expect_not(PARSE(&options, "--store"));
	cr_expect_str_eq(message, "--store: needs a value");
	cr_expect_not(PARSE(&options, "--nope"));
	cr_expect_str_eq(message, "no such option: --nope");
	cr_expect_not(PARSE(&options, "--store", "/s", "--ask", "nobody"));
	cr_expect_not(PARSE(&options, "--store", "/s", "--max-fetches", "4294967296"));
	cr_expect_str_eq(message, "--max-fetches: not a valid value");
	cr_expect_not(PARSE(&options, "--store", "/s", "--wait-timeout", "9223372036854775807ms"));
	cr_expect_str_eq(message, "--wait-timeout: not a valid value");
	cr_expect_not(PARSE(&options, "--store", "/s", "--scrub=yes"));
}

Test(settings, the_command_line_wins_over_the_file)
{
	char path[] = "/tmp/symsrv-settings-XXXXXX";
	struct options options;
	int fd = mkstemp(path);
	static const char text[] =
		"# comment\n\nmax-bytes 5M\nthreads = 3\nupstream dir=/from-file\n";

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert(PARSE(&options, "--store", "/s", "--config", path, "--max-bytes", "7M"));
	unlink(path);
	cr_expect_eq(options.max_bytes, 7u << 20);
	cr_expect_eq(options.threads, 3u);
	cr_expect_eq(options.upstreams.count, 1u);
	settings_deinit(&options);
	close(fd);
}

/* -------- upstreams -------- */

static struct upstream_set *set_of(const char *text)
{
	struct upstream_set *set = NULL;
	struct options options;

	cr_assert(PARSE(&options, "--store", "/s", "--upstream", text));
	if (!upstream_set_create(&options, NULL, message, sizeof(message), &set))
		set = NULL;
	settings_deinit(&options);
	return set;
}

Test(upstreams, passwords_are_taken_out_of_the_url)
{
	struct upstream_set *set = set_of("a@ssqp=https://user:secret@host:81/symbols/");

	cr_assert_not_null(set);
	cr_expect_str_eq(set->list[0]->url, "https://host:81/symbols");
	cr_expect_str_eq(set->list[0]->user, "user");
	cr_expect_str_eq(set->list[0]->password, "secret");
	upstream_set_release(set);
	set = set_of("ssqp=http://host:81/x");
	cr_expect_str_eq(set->list[0]->name, "host:81");
	upstream_set_release(set);
}

/* The path of an object would have followed it. */
Test(upstreams, a_url_with_a_query_is_refused)
{
	static const char *const urls[] = { "a@ssqp=http://host/symbols?sig=abc",
					    "ssqp=http://user:secret@host?sig=abc",
					    "symsrv=https://host/#part" };
	struct upstream_set *set;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		cr_expect_null(set_of(urls[i]), "%s", urls[i]);
		cr_expect_str_eq(message, "upstream number 1: its URL has a query or fragment, "
					  "behind which no path can stand");
	}
	set = set_of("a@dir=/symbols?sig=abc#part");
	cr_assert_not_null(set, "a directory may be called anything");
	cr_expect_str_eq(set->list[0]->url, "/symbols?sig=abc#part");
	upstream_set_release(set);
}

Test(upstreams, names_that_nobody_has_are_refused)
{
	struct upstream_set *set = NULL;
	struct options options;

	cr_assert(PARSE(&options, "--store", "/s", "--upstream", "a@dir=/a", "--trust", "a"));
	cr_expect(upstream_set_create(&options, NULL, message, sizeof(message), &set));
	upstream_set_release(set);
	settings_deinit(&options);
	cr_assert(PARSE(&options, "--store", "/s", "--upstream", "a@dir=/a", "--trust", "b"));
	cr_expect_not(upstream_set_create(&options, NULL, message, sizeof(message), &set));
	cr_expect_str_eq(message, "--trust: no upstream is called b");
	settings_deinit(&options);
	cr_assert(PARSE(&options, "--store", "/s", "--upstream", "a@dir=/a", "--credentials",
			"ab=/f"));
	cr_expect_not(upstream_set_create(&options, NULL, message, sizeof(message), &set));
	cr_expect_str_eq(message, "--credentials: no upstream is called ab");
	settings_deinit(&options);
}

Test(upstreams, user_and_password_are_decoded)
{
	struct upstream_set *set = set_of("a@ssqp=https://us%40er:p%3Aw%2Fx:%25@host/s%20s");

	cr_assert_not_null(set);
	cr_expect_str_eq(set->list[0]->url, "https://host/s%20s");
	cr_expect_str_eq(set->list[0]->user, "us@er");
	cr_expect_str_eq(set->list[0]->password, "p:w/x:%");
	upstream_set_release(set);
	set = set_of("ssqp=https://user@host");
	cr_expect_str_eq(set->list[0]->password, "");
	upstream_set_release(set);
	cr_expect_null(set_of("ssqp=https://user:100%@host"), "half an escape");
}

Test(upstreams, what_is_none_is_refused_without_showing_it)
{
	static const char *const texts[] = { "ssqp",
					     "ssqp=",
					     "ssqp=ftp://host",
					     "ssqp=host",
					     "other=http://host",
					     "dir=relative",
					     "=http://host",
					     "ssqp=http://",
					     "a b@ssqp=http://h",
					     "ssqp=http://h # comment" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		cr_expect_null(set_of(texts[i]), "%s", texts[i]);
	cr_expect_null(set_of("ssqp=gopher://user:secret@host"));
	cr_expect_null(strstr(message, "secret"));
}

static void expect_paths(const char *upstream, const struct key *key, const char *joined)
{
	struct upstream_set *set = set_of(upstream);
	struct buf all, path;

	cr_assert_not_null(set);
	buf_init(&all, 4096);
	buf_init(&path, 4096);
	for (unsigned int i = 0; i < 10; i++) {
		buf_clear(&path);
		if (!upstream_path(set->list[0], key, i, &path))
			break;
		buf_printf(&all, "%s\n", buf_string(&path));
	}
	cr_expect_str_eq(buf_string(&all), joined);
	buf_deinit(&all);
	buf_deinit(&path);
	upstream_set_release(set);
}

Test(upstreams, each_kind_is_asked_for_its_own_paths)
{
	struct key debug = { .kind = KEY_DEBUGINFO, .id = { 0xab, 0xcd }, .id_bytes = 2 };
	struct key pe = { .kind = KEY_PE,
			  .timestamp = 0x9757f3a6,
			  .number = 0x36c00,
			  .name = "a.dll",
			  .spelling = "A.dll" };

	struct key pdb = { .kind = KEY_PDB,
			   .id = { 0xab, 0xcd },
			   .id_bytes = 2,
			   .number = 10,
			   .name = "a.pdb",
			   .spelling = "A.pdb" };

	expect_paths("ssqp=http://h", &debug, "");
	expect_paths("ssqp=http://h", &pdb,
		     "a.pdb/abcda/a.pdb\nA.pdb/abcda/A.pdb\nA.pdb/ABCDA/A.pdb\n");
	expect_paths("symsrv=http://h", &pdb,
		     "symbols/a.pdb/abcda/a.pdb\nsymbols/A.pdb/abcda/A.pdb\n");
	expect_paths("debuginfod=http://h", &debug, "buildid/abcd/debuginfo\n");
	expect_paths("symsrv=http://h", &debug, "buildid/abcd/debuginfo\n");
	expect_paths("dir=/d", &debug,
		     ".build-id/ab/cd.debug\nbuildid/abcd/debuginfo\nabcd/debuginfo\n");
	expect_paths("ssqp=http://h", &pe,
		     "a.dll/9757F3A636c00/a.dll\nA.dll/9757F3A636c00/A.dll\n");
	expect_paths("debuginfod=http://h", &pe, "");
	expect_paths("symsrv=http://h", &pe,
		     "symbols/a.dll/9757F3A636c00/a.dll\nsymbols/A.dll/9757F3A636c00/A.dll\n");
	expect_paths("dir=/d", &pe, "a.dll/9757F3A636c00/a.dll\nA.dll/9757F3A636c00/A.dll\n");
}

Test(upstreams, an_upstream_that_stays_keeps_its_record_over_a_reload)
{
	struct upstream_set *old = set_of("a@ssqp=http://h"), *set;
	struct options options;

	old->list[0]->counts.asked = 5;
	cr_assert(PARSE(&options, "--store", "/s", "--upstream", "b@ssqp=http://i", "--upstream",
			"a@ssqp=http://h"));
	cr_assert(upstream_set_create(&options, old, message, sizeof(message), &set));
	upstream_set_release(old);
	cr_expect_eq(set->list[1]->counts.asked, 5u);
	cr_expect_eq(set->list[0]->counts.asked, 0u);
	upstream_set_release(set);
	settings_deinit(&options);
}
