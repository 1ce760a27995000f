/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>

#include "symsrv/upstream/fleet.h"
#include "symsrv/upstream/s3.h"

#define NODES 5

/* The set of node `self` of a fleet whose first `count` nodes exist. */
static struct upstream_set *set_of(unsigned int self, unsigned int count)
{
	static char urls[NODES][32];
	char *peers[NODES];
	char order[] = "order";
	struct options options = { .ask = order, .peers = { peers, count }, .self = urls[self] };
	struct upstream_set *set = NULL;
	char message[256];

	for (unsigned int i = 0; i < NODES; i++) {
		snprintf(urls[i], sizeof(urls[i]), "http://node%u:8002", i);
		peers[i] = urls[i];
	}
	cr_assert(upstream_set_create(&options, NULL, message, sizeof(message), &set), "%s",
		  message);
	return set;
}

static unsigned int owner_of(const struct upstream_set *set, unsigned int self, uint32_t number,
			     enum key_kind kind)
{
	struct key key = { .kind = kind, .id_bytes = 20 };
	struct upstream *owner;

	memcpy(key.id, &number, sizeof(number));
	owner = fleet_owner(set, &key, 0);
	return owner ? (unsigned int)(owner->url[strlen("http://node")] - '0') : self;
}

Test(fleet, all_servers_agree_on_the_owner)
{
	struct upstream_set *sets[NODES];
	unsigned int shares[NODES] = { 0 };

	for (unsigned int i = 0; i < NODES; i++)
		sets[i] = set_of(i, NODES);
	for (uint32_t number = 0; number < 1000; number++) {
		unsigned int owner = owner_of(sets[0], 0, number, KEY_DEBUGINFO);

		shares[owner]++;
		for (unsigned int i = 1; i < NODES; i++)
			cr_assert_eq(owner_of(sets[i], i, number, KEY_DEBUGINFO), owner);
		cr_assert_eq(owner_of(sets[0], 0, number, KEY_NAMES), owner);
	}
	for (unsigned int i = 0; i < NODES; i++) {
		cr_expect(shares[i] > 100 && shares[i] < 300, "node %u has %u", i, shares[i]);
		upstream_set_release(sets[i]);
	}
}

Test(fleet, a_server_that_leaves_moves_only_its_own_objects)
{
	struct upstream_set *all = set_of(0, NODES), *fewer = set_of(0, NODES - 1);

	for (uint32_t number = 0; number < 1000; number++) {
		unsigned int owner = owner_of(all, 0, number, KEY_DEBUGINFO);

		if (owner != NODES - 1)
			cr_assert_eq(owner_of(fewer, 0, number, KEY_DEBUGINFO), owner);
	}
	upstream_set_release(all);
	upstream_set_release(fewer);
}

Test(s3, reads_credentials_as_aws_tools_write_them)
{
	struct s3_credentials found;

	cr_assert(s3_credentials_parse("[default]\r\naws_access_key_id=AK\r\n"
				       "aws_secret_access_key = s/e+c=r \n\n# region = x\n",
				       &found));
	cr_expect_str_eq(found.access_key, "AK");
	cr_expect_str_eq(found.secret_key, "s/e+c=r");
	cr_expect_str_eq(found.region, "us-east-1");
	cr_expect_null(found.token);
	s3_credentials_deinit(&found);
	cr_expect(!s3_credentials_parse("aws_access_key_id = AK\n", &found));
	cr_expect(!s3_credentials_parse("", &found));
	cr_expect_null(found.access_key);
}

Test(s3, finds_the_code_of_an_error)
{
	char code[S3_CODE_BYTES];

	s3_error_code("<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", code);
	cr_expect_str_eq(code, "NoSuchKey");
	s3_error_code("<Code>a\nb</Code>", code);
	cr_expect_str_eq(code, "");
	s3_error_code("<Code>NoEnd", code);
	cr_expect_str_eq(code, "");
	s3_error_code("", code);
	cr_expect_str_eq(code, "");
}

Test(fleet, an_outage_is_logged_once_whichever_failure_is_first)
{
	struct upstream_set *set = set_of(0, 2);
	struct upstream *peer = set->list[0];

	/* Five requests fail at a time, and are counted before the first one is logged. */
	for (unsigned int i = 0; i < 5; i++)
		upstream_report(peer, UPSTREAM_FAILED, 1000);
	cr_expect_eq(upstream_state(peer), BREAKER_OPEN);
	cr_expect_not(upstream_refusal_is_news(peer, "HTTP status 503", 1000));
	cr_expect_not(upstream_refusal_is_news(peer, "connection refused", 1000));
	cr_expect(upstream_refusal_is_news(peer, "HTTP status 403", 1000), "another fault");
	upstream_set_release(set);
}
