/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as the body of POST /v1/resolve, or as a list of objects: what is accepted has
 * keys that have a text. */
#include <stdlib.h>

#include "symsrv/lookup/object_list.h"
#include "symsrv/resolve/resolve_request.h"
#include "symsrv/resolve/symbolicate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const uint8_t *data, size_t size)
{
	struct object_list list;
	char text[KEY_TEXT_BYTES];
	struct key again;

	if (!object_list_parse((const char *)data, size, &list))
		for (size_t i = 0; i < list.count; i++) {
			key_text(&list.items[i].key, text);
			if (!key_from_text(&again, text) || again.kind != list.items[i].key.kind)
				abort();
		}
	object_list_deinit(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resolve_request request;
	char text[KEY_TEXT_BYTES];

	if (!resolve_request_parse((const char *)data, size, &request))
		for (size_t i = 0; i < request.module_count; i++) {
			struct key again;

			key_text(&request.modules[i].key, text);
			if (!key_from_text(&again, text) ||
			    again.kind != request.modules[i].key.kind)
				abort();
		}
	resolve_request_deinit(&request);
	if (!symbolicate_parse((const char *)data, size, &request)) {
		json_decref(symbolicate_answer((const char *)data, size, NULL));
		if (request.module_count > RESOLVE_MAX_MODULES)
			abort();
	}
	resolve_request_deinit(&request);
	check_list(data, size);
	return 0;
}
