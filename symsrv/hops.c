/* SPDX-License-Identifier: MIT */
#include "symsrv/hops.h"

#include <stdio.h>
#include <string.h>

/* Eight servers write 600 bytes; a header of many thousand is refused by upstreams, nginx's limit
 * for a line is 8192. */
static const size_t longest_chain_bytes = 2048;
static const char name_prefix[] = "_symsrv-";

static bool is_plain(const char *text)
{
	if (strlen(text) > longest_chain_bytes)
		return false;
	for (; *text; text++)
		if ((*text < ' ' || *text > '~') && *text != '\t')
			return false;
	return true;
}

struct passed {
	unsigned int names, addresses;
};

static struct passed count_passed(const char *chain)
{
	struct passed passed = { 0 };

	while (*(chain += strspn(chain, " \t,"))) {
		if (!strncmp(chain, name_prefix, sizeof(name_prefix) - 1))
			passed.names++;
		else
			passed.addresses++;
		chain += strcspn(chain, ",");
	}
	return passed;
}

void hops_read(const struct hops_request *request, const char *own_name, uint64_t limit,
	       struct hops *ret)
{
	const char *forwarded = request->forwarded ? request->forwarded : "";
	struct passed passed;

	*ret = (struct hops){ 0 };
	if (!is_plain(forwarded))
		return;
	passed = count_passed(forwarded);
	ret->depth = passed.names;
	if ((request->via && strstr(request->via, own_name)) || strstr(forwarded, own_name) ||
	    passed.addresses > limit || passed.names > limit)
		return;
	ret->may_go_on = true;
	if (asprintf(&ret->chain, "%s%s%s, _%s", forwarded, *forwarded ? ", " : "", request->client,
		     own_name) < 0)
		ret->chain = NULL;
}
