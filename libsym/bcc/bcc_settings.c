/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/bcc_settings.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsym/libsym.h"

static bool is_set_to(const char *name, const char *value)
{
	const char *found = getenv(name);

	return found && !strcmp(found, value);
}

/* The words of the option --jit of dotnet-mapgen bcc. */
static const char *const jit_words[] = {
	[SYM_JIT_AUTO] = "auto",       [SYM_JIT_CONTRACT] = "memory",
	[SYM_JIT_RUNDOWN] = "rundown", [SYM_JIT_PERF_MAP] = "perfmap",
	[SYM_JIT_NONE] = "none",
};

void bcc_settings_read(struct bcc_settings *ret)
{
	const char *refresh = getenv("LIBSYM_BCC_REFRESH_MS");
	const char *jit = getenv("LIBSYM_BCC_JIT");
	char *end;
	unsigned long value;

	*ret = (struct bcc_settings){
		.names = is_set_to("LIBSYM_BCC_NAMES", "short")    ? BCC_NAMES_SHORT
			 : is_set_to("LIBSYM_BCC_NAMES", "csharp") ? BCC_NAMES_CSHARP
								   : BCC_NAMES_FULL,
		.no_tiers = is_set_to("LIBSYM_BCC_TIERS", "strip"),
		.folded = is_set_to("LIBSYM_BCC_FOLDED", "1"),
		.report = is_set_to("LIBSYM_BCC_REPORT", "1"),
		.notice = is_set_to("LIBSYM_BCC_NOTICE", "1"),
		.no_limits = is_set_to("LIBSYM_BCC_NO_LIMITS", "1"),
		.jit = SYM_JIT_AUTO,
		.refresh_ms = 250,
	};
	for (uint32_t way = SYM_JIT_AUTO; jit && way <= SYM_JIT_NONE; way++)
		if (!strcmp(jit, jit_words[way]))
			ret->jit = way;
	if (!refresh)
		return;
	value = strtoul(refresh, &end, 10);
	if (end != refresh && !*end && value <= 3600000)
		ret->refresh_ms = (uint32_t)value;
}

bool bcc_settings_are_same(const struct bcc_settings *a, const struct bcc_settings *b)
{
	return a->names == b->names && a->no_tiers == b->no_tiers && a->folded == b->folded &&
	       a->report == b->report && a->notice == b->notice && a->no_limits == b->no_limits &&
	       a->jit == b->jit && a->refresh_ms == b->refresh_ms && a->clock_ns == b->clock_ns;
}

uint64_t bcc_settings_now_ns(const struct bcc_settings *settings)
{
	struct timespec now;

	if (settings->clock_ns)
		return settings->clock_ns(NULL);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
