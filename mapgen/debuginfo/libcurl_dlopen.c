/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/libcurl_dlopen.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static bool libcurl_load(struct curl_api *api)
{
	const struct {
		const char *name;
		void *place;
	} functions[] = {
		{ "curl_global_init", &api->global_init },
		{ "curl_easy_init", &api->easy_init },
		{ "curl_easy_cleanup", &api->easy_cleanup },
		{ "curl_easy_reset", &api->easy_reset },
		{ "curl_easy_setopt", &api->easy_setopt },
		{ "curl_easy_getinfo", &api->easy_getinfo },
		{ "curl_easy_perform", &api->easy_perform },
		{ "curl_easy_strerror", &api->easy_strerror },
	};
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
		*(void **)functions[i].place = dlsym(library, functions[i].name);
		if (!*(void **)functions[i].place)
			return false;
	}
	return library && !api->global_init(CURL_GLOBAL_DEFAULT);
}

const struct curl_api *curl_api_get(const char **reason_ret)
{
	static struct curl_api api;
	static bool loaded;

	if (!loaded)
		loaded = libcurl_load(&api);
	if (loaded)
		return &api;
	*reason_ret = dlerror() ?: "it does not start";
	return NULL;
}
