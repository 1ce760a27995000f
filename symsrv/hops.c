/* SPDX-License-Identifier: MIT */
#include "symsrv/hops.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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

static void add_line(struct buf *list, const char *value)
{
	if (list->size_bytes)
		buf_append_string(list, ", ");
	buf_append_string(list, value);
}

void hops_take(struct hops_lines *lines, const char *name, const char *value)
{
	if (!strcasecmp(name, "X-Forwarded-For"))
		add_line(&lines->forwarded, value);
	else if (!strcasecmp(name, "Via"))
		add_line(&lines->via, value);
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

static bool is_in(const char *list, const char *name, size_t length)
{
	while (*(list += strspn(list, " ,"))) {
		size_t count = strcspn(list, " ,");

		if (count == length && !memcmp(list, name, length))
			return true;
		list += count;
	}
	return false;
}

void hops_add_unasked(char list[HOPS_UNASKED_BYTES], const char *names, const char *but)
{
	while (*(names += strspn(names, " \t,"))) {
		size_t length = strcspn(names, " \t,"), end = strlen(list);
		const char *name = names;

		names += length;
		if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") < length) {
			name = "another";
			length = strlen(name);
		}
		if ((but && strlen(but) == length && !memcmp(but, name, length)) ||
		    is_in(list, name, length) || end + length + 3 > HOPS_UNASKED_BYTES)
			continue;
		snprintf(list + end, HOPS_UNASKED_BYTES - end, "%s%.*s", end ? ", " : "",
			 (int)length, name);
	}
}

bool hops_differ(const char *unasked, const char *chain, const char *other_chain)
{
	char name[HOPS_UNASKED_BYTES + 1];

	while (*(unasked += strspn(unasked, " ,"))) {
		size_t length = strcspn(unasked, " ,");

		snprintf(name, sizeof(name), "_%.*s", (int)length, unasked);
		if (strstr(chain, name) && !strstr(other_chain, name))
			return true;
		unasked += length;
	}
	return false;
}
