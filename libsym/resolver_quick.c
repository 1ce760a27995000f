/* SPDX-License-Identifier: MIT */
/*
 * When a resolver gets a quick way (quick_look_up.h), and when it loses it: whoever had to go the
 * long way makes one, whoever exchanges something drops it.
 */
#include <string.h>

#include "libsym/resolver.h"

/* Nothing that could be made is tried more often: it would cost more than it saves. */
static const unsigned int most_quick_tries = 16;

/* What one is made of. */
struct ingredients {
	const struct sym_snapshot *snapshot;
	const struct written *written;
	const struct index_view *view; /* of its map */
};

/* With the lock, as below. NULL: there is no need, or no memory. */
static struct quick_look_up *make_quick(struct sym_resolver *resolver,
					const struct ingredients *ingredients, uint32_t group,
					const struct quick_look_up *known)
{
	const struct written *written = ingredients->written;

	if (quick_look_up_knows(known, group) || resolver->quick_tries == most_quick_tries)
		return NULL;
	resolver->quick_tries++;
	/* Before anybody can have seen it. */
	atomic_store(&resolver->had_quick, true);
	return quick_look_up_create(ingredients->snapshot, group,
				    perfmap_source_first(written->source), ingredients->view,
				    written->jitdump != NULL);
}

/* What is made stays. */
static void learn_first(struct sym_resolver *resolver, uint32_t group)
{
	const struct written *written = atomic_load(&resolver->first);
	struct ingredients ingredients = { resolver->snapshot, written,
					   perfmap_source_first_view(written->source) };
	struct quick_look_up *quick = make_quick(resolver, &ingredients, group, resolver->quicks);

	if (!quick)
		return;
	quick->before = resolver->quicks;
	resolver->quicks = quick;
	atomic_store(&resolver->quick, quick);
	/* It may have been meanwhile. */
	if (atomic_load(&resolver->refreshed))
		atomic_store(&resolver->quick, NULL);
}

static void learn_now(const struct resolving *resolving, uint32_t group)
{
	struct sym_resolver *resolver = resolving->resolver;
	struct quick_look_up *known = atomic_load(&resolver->quick_now), *quick;
	struct ingredients ingredients = { .snapshot = atomic_load(&resolver->now),
					   .written = atomic_load(&resolver->written) };

	/* What is exchanged from now on is dropped after that. */
	if (resolving->state.changes != atomic_load(&resolver->changes) ||
	    !ingredients.written->source)
		return;
	ingredients.view = perfmap_source_view(ingredients.written->source);
	quick = make_quick(resolver, &ingredients, group, known);
	if (!quick)
		return;
	if (known) {
		known->before = resolver->quicks_replaced;
		resolver->quicks_replaced = known;
	}
	atomic_store(&resolver->quick_now, quick);
}

void resolver_learn(const struct resolving *resolving, const struct live_code *live,
		    const struct written *written, size_t line)
{
	struct sym_resolver *resolver = resolving->resolver;
	uint32_t group = resolving->snapshot->lines[line].group;

	if (quick_look_up_knows(resolving->quick, group) || !written || !written->source ||
	    (live && live->source) || (!live && snapshot_uses_runtime(resolving->snapshot)))
		return;
	pthread_mutex_lock(&resolver->lock);
	if (resolving->refreshed)
		learn_now(resolving, group);
	else
		learn_first(resolver, group);
	pthread_mutex_unlock(&resolver->lock);
}

/* Each has its own in `before`. */
static struct quick_look_up *chain(struct quick_look_up *first, struct quick_look_up *others)
{
	struct quick_look_up *last = first;

	if (!first)
		return others;
	while (last->before)
		last = last->before;
	last->before = others;
	return first;
}

void resolver_changed(struct sym_resolver *resolver)
{
	struct quick_look_up *dropped;

	pthread_mutex_lock(&resolver->lock);
	dropped = chain(atomic_exchange(&resolver->quick_now, NULL),
			STEAL(resolver->quicks_replaced));
	atomic_fetch_add(&resolver->changes, 1);
	resolver->quick_tries = 0;
	pthread_mutex_unlock(&resolver->lock);
	resolver->quicks_dropped = chain(dropped, resolver->quicks_dropped);
}
