/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/url_origin.h"

#include <curl/curl.h>
#include <strings.h>

static char *part_of(CURLU *url, CURLUPart part)
{
	char *text = NULL;

	curl_url_get(url, part, &text, CURLU_DEFAULT_PORT);
	return text;
}

bool url_same_origin(const char *left, const char *right)
{
	static const CURLUPart parts[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };
	CURLU *a = curl_url();
	CURLU *b = curl_url();
	bool same = a && b && !curl_url_set(a, CURLUPART_URL, left, 0) &&
		    !curl_url_set(b, CURLUPART_URL, right, 0);
	size_t i;

	for (i = 0; same && i < sizeof(parts) / sizeof(*parts); i++) {
		char *one = part_of(a, parts[i]);
		char *other = part_of(b, parts[i]);

		same = one && other && !strcasecmp(one, other);
		curl_free(one);
		curl_free(other);
	}
	curl_url_cleanup(a);
	curl_url_cleanup(b);
	return same;
}
