/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/proxy_loop.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Eight servers write 600 bytes. Upstreams refuse headers of many thousand bytes; nginx accepts
 * lines of up to 8192. */
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

void proxy_loop_take(struct proxy_loop_lines *lines, const char *name, const char *value)
{
	if (!strcasecmp(name, "X-Forwarded-For"))
		add_line(&lines->forwarded, value);
	else if (!strcasecmp(name, "Via"))
		add_line(&lines->via, value);
}

void proxy_loop_read(const struct proxy_loop_request *request, const char *own_name, uint64_t limit,
		     struct proxy_loop *ret)
{
	const char *forwarded = request->forwarded ? request->forwarded : "";
	struct passed passed;

	*ret = (struct proxy_loop){ 0 };
	if (!is_plain(forwarded))
		return;
	passed = count_passed(forwarded);
	ret->depth = passed.names;
	ret->came_back =
		(request->via && strstr(request->via, own_name)) || strstr(forwarded, own_name);
	if (ret->came_back || passed.addresses > limit || passed.names > limit)
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

bool proxy_loop_add_unqueried(char list[PROXY_LOOP_UNASKED_BYTES], const char *names,
			      const char *but)
{
	bool has_but = false;

	while (*(names += strspn(names, " \t,"))) {
		size_t length = strcspn(names, " \t,"), end = strlen(list);
		const char *name = names;

		names += length;
		if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") < length) {
			name = "another";
			length = strlen(name);
		}
		if (but && strlen(but) == length && !memcmp(but, name, length)) {
			has_but = true;
			continue;
		}
		if (is_in(list, name, length) || end + length + 3 > PROXY_LOOP_UNASKED_BYTES)
			continue;
		snprintf(list + end, PROXY_LOOP_UNASKED_BYTES - end, "%s%.*s", end ? ", " : "",
			 (int)length, name);
	}
	return has_but;
}

bool proxy_loop_differ(const char *unqueried, const char *chain, const char *other_chain)
{
	char name[PROXY_LOOP_UNASKED_BYTES + 1];

	while (*(unqueried += strspn(unqueried, " ,"))) {
		size_t length = strcspn(unqueried, " ,");

		snprintf(name, sizeof(name), "_%.*s", (int)length, unqueried);
		if (strstr(chain, name) && !strstr(other_chain, name))
			return true;
		unqueried += length;
	}
	return false;
}
