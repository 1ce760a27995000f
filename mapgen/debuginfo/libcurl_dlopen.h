/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when something is fetched. With the thirty libraries that it needs it takes three
 * times as long to load as the rest of the program, and most commands fetch nothing.
 */
#ifndef MAPGEN_DEBUGINFO_LIBCURL_DLOPEN_H
#define MAPGEN_DEBUGINFO_LIBCURL_DLOPEN_H

#include <curl/curl.h>

struct curl_api {
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	void (*easy_cleanup)(CURL *curl);
	void (*easy_reset)(CURL *curl);
	CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
	CURLcode (*easy_perform)(CURL *curl);
	const char *(*easy_strerror)(CURLcode code);
};

/* Loads and starts libcurl at the first call; not for several threads. NULL: it failed, and
 * *reason_ret says why, until something else is loaded. */
const struct curl_api *curl_api_get(const char **reason_ret);

#endif
