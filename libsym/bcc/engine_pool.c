/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/engine_pool.h"

#include <pthread.h>
#include <string.h>

enum {
	KEPT = 32
};

struct kept {
	void *engine; /* NULL: a free slot */
	int pid;
	struct bcc_symbol_option option;
	uint64_t turn; /* order of insertion */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept all_kept[KEPT];
static uint64_t turns;

static bool same_option(const struct bcc_symbol_option *a, const struct bcc_symbol_option *b)
{
	return a->use_debug_file == b->use_debug_file &&
	       a->check_debug_file_crc == b->check_debug_file_crc &&
	       a->use_symbol_type == b->use_symbol_type;
}

void *engine_pool_take(int pid, const struct bcc_symbol_option *option,
		       const struct bcc_settings *settings)
{
	void *engine = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < KEPT && !engine; i++) {
		struct kept *kept = &all_kept[i];

		if (!kept->engine || kept->pid != pid || !same_option(&kept->option, option))
			continue;
		engine = kept->engine;
		*kept = (struct kept){ NULL };
	}
	pthread_mutex_unlock(&lock);
	if (engine && !live_engine_ops.still_good(engine, settings)) {
		live_engine_ops.destroy(engine);
		return NULL;
	}
	return engine;
}

/*
 * With the lock held: the slot of an outdated engine, a free slot, or the one that is cheapest to
 * make again; of several the oldest.
 */
static struct kept *choose_place(void)
{
	struct kept *chosen = NULL;
	uint64_t least = 0;

	for (int i = 0; i < KEPT; i++) {
		struct kept *kept = &all_kept[i];
		uint64_t worth = kept->engine ? live_engine_ops.worth_ms(kept->engine) : 1;

		if (!worth)
			return kept;
		if (chosen && (worth > least || (worth == least && kept->turn > chosen->turn)))
			continue;
		chosen = kept;
		least = worth;
	}
	return chosen;
}

void engine_pool_put(void *engine, int pid, const struct bcc_symbol_option *option)
{
	struct kept *place;
	void *old;

	pthread_mutex_lock(&lock);
	place = choose_place();
	old = place->engine;
	*place = (struct kept){ engine, pid, *option, ++turns };
	pthread_mutex_unlock(&lock);
	if (old)
		live_engine_ops.destroy(old);
}

void engine_pool_drop(void)
{
	struct kept dropped[KEPT];

	pthread_mutex_lock(&lock);
	memcpy(dropped, all_kept, sizeof(dropped));
	memset(all_kept, 0, sizeof(all_kept));
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < KEPT; i++)
		if (dropped[i].engine)
			live_engine_ops.destroy(dropped[i].engine);
}
