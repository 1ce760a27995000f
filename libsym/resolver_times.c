/* SPDX-License-Identifier: MIT */
/*
 * Addresses that were seen at a time. A jit puts new code where old code was,
 * and only a jitdump says when; everything else is as it is now.
 */
#include "libsym/kernel.h"
#include "libsym/resolver.h"
#include "libsym/result.h"

/* NULL: there is none. A perf map is not read for want of it. */
static struct jitdump_source *find_jitdump(const struct resolving *resolving)
{
	const struct written *written = atomic_load(resolver_written_place(resolving));

	if (!written && snapshot_uses_perf_map(resolving->snapshot) &&
	    snapshot_find_jitdump(resolving->snapshot) != ADDRESS_SPACE_NONE)
		written = resolver_get_written(resolving);
	return written ? written->jitdump : NULL;
}

/* Jitted code, or code that has been freed since; what the runtime itself tells is not older, and
 * what an image names was there. */
static bool may_have_been_other(const struct sym_answer *answer)
{
	bool named = answer->status == SYM_RESOLVED || answer->status == SYM_UNNAMED;

	return !(named && answer->image) && answer->source != SYM_SOURCE_RUNTIME &&
	       !kernel_has_address(answer->address);
}

/* Of an address that is answered as of now. */
static void answer_then(struct jitdump_source *jitdump, uint64_t time_ns, size_t number,
			struct sym_result *result)
{
	const struct sym_answer now = result->slots[number].answer;
	struct sym_answer *answer;
	struct source_match match;
	enum jitdump_then then = jitdump_source_find_at(jitdump, now.address, time_ns, &match);

	if (then == JITDUMP_THEN_UNKNOWN)
		return;
	/* Where there is no jitted code now, only what is certain counts. */
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
		answer->reason = "code had left this place then, as the jitdump says";
	} else {
		resolver_take_match(answer, SYM_SOURCE_JITDUMP, &match);
	}
}

void resolver_answer_then(const struct resolving *resolving, const uint64_t *times_ns,
			  struct sym_result *result)
{
	struct jitdump_source *jitdump = NULL;

	for (size_t i = 0; i < result->count; i++) {
		if (!times_ns[i] || !may_have_been_other(&result->slots[i].answer))
			continue;
		if (!jitdump)
			jitdump = find_jitdump(resolving);
		if (!jitdump)
			return;
		answer_then(jitdump, times_ns[i], i, result);
	}
}
