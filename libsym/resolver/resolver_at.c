/* SPDX-License-Identifier: MIT */
/*
 * Addresses that were seen at a time. A JIT puts new code where old code was, and only a jitdump
 * has times. Everything else is as of now.
 */
#include "libsym/resolver/kernel.h"
#include "libsym/resolver/resolver.h"
#include "libsym/symbols/result.h"

/* NULL when there is none. Having no jitdump does not cause the perf map to be read. */
static struct jitdump_source *find_jitdump(const struct resolving *resolving)
{
	const struct self_reported_code *written = atomic_load(&resolving->resolver->written);

	if (!written && snapshot_uses_perf_map(resolving->snapshot) &&
	    snapshot_find_jitdump(resolving->snapshot) != ADDRESS_SPACE_NONE)
		written = resolver_get_self_reported(resolving);
	return written ? written->jitdump : NULL;
}

/*
 * Jitted code, or code that was freed since. Code in the runtime's own data is not older, and an
 * image's code was there.
 */
static bool may_have_been_other(const struct sym_answer *answer)
{
	bool named = answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY;

	return !(named && answer->image) && answer->source != SYM_SOURCE_RUNTIME &&
	       !kernel_has_address(answer->address);
}

/* Replaces an answer that was made as of now. */
static void answer_then(struct jitdump_source *jitdump, uint64_t time_ns, size_t number,
			struct sym_result *result)
{
	const struct sym_answer now = result->slots[number];
	struct sym_answer *answer;
	struct source_match match;
	enum jitdump_then then = jitdump_source_find_at(jitdump, now.address, time_ns, &match);

	if (then == JITDUMP_THEN_UNKNOWN)
		return;
	/* Where there is no jitted code now, only a certain result is used. */
	if ((now.status == SYM_UNMAPPED || now.image) && then != JITDUMP_THEN_NAMED)
		return;
	if (then == JITDUMP_THEN_GONE && now.status != SYM_RESOLVED)
		return;
	if (then == JITDUMP_THEN_NAMED && resolver_is_stub_in_file(&now, &match))
		return;
	answer = result_blank(result, number, now.address);
	answer->image_path = now.image_path;
	if (then == JITDUMP_THEN_GONE) {
		answer->status = SYM_NO_MATCH;
		answer->reason = "code had left this place by then, according to the jitdump";
	} else {
		resolver_take_match(answer, SYM_SOURCE_JITDUMP, &match);
	}
}

void resolver_answer_then(const struct resolving *resolving, const uint64_t *times_ns,
			  struct sym_result *result)
{
	struct jitdump_source *jitdump = NULL;

	for (size_t i = 0; i < result->count; i++) {
		if (!times_ns[i] || !may_have_been_other(&result->slots[i]))
			continue;
		if (!jitdump)
			jitdump = find_jitdump(resolving);
		if (!jitdump)
			return;
		answer_then(jitdump, times_ns[i], i, result);
	}
}
