/* SPDX-License-Identifier: MIT */
/* Headers of a request, one per line, as any client may send them: the answer lies inside the
 * object, and a chain of servers ends. */
#include <stdlib.h>
#include <string.h>

#include "symsrv/http/answer.h"
#include "symsrv/upstream/proxy_loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const struct object *object, const struct request_headers *headers)
{
	struct answer_plan plan = { 0 };

	answer_plan(object, headers, &plan);
	if (plan.status != 200 && plan.status != 206 && plan.status != 304 && plan.status != 406 &&
	    plan.status != 416)
		abort();
	if (plan.status == 206 &&
	    (!plan.count || plan.count > object->size_bytes ||
	     plan.first > object->size_bytes - plan.count || !plan.content_range[0]))
		abort();
}

static void check_hops(const struct proxy_loop_request *request)
{
	static const char own_name[] = "symsrv-0123456789abcdef";
	struct proxy_loop proxy_loop;

	proxy_loop_read(request, own_name, 8, &proxy_loop);
	if (proxy_loop.may_go_on &&
	    ((request->forwarded && strstr(request->forwarded, own_name)) ||
	     (request->via && strstr(request->via, own_name)) || proxy_loop.depth > 8))
		abort();
	if (proxy_loop.chain && strlen(proxy_loop.chain) > 4096)
		abort();
	free(proxy_loop.chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t sizes[] = { 0, 1, 1000, UINT64_MAX };
	struct request_headers headers = { 0 };
	const char *forwarded = NULL, *via = NULL;
	char *text = calloc(1, size + 1), *rest = text, *line;
	struct object object = { .etag = "\"sha256-ab\"", .modified_s = 1700000000 };
	size_t i;

	if (!text)
		return 0;
	memcpy(text, data, size);
	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		*value++ = 0;
		value += strspn(value, " ");
		request_headers_take(&headers, line, value);
		if (!strcmp(line, "X-Forwarded-For"))
			forwarded = value;
		if (!strcmp(line, "Via"))
			via = value;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		object.size_bytes = sizes[i];
		check_plan(&object, &headers);
	}
	check_hops(&(struct proxy_loop_request){ forwarded, via, "127.0.0.1" });
	free(text);
	return 0;
}
