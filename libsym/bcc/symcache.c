/* SPDX-License-Identifier: MIT */
/*
 * The caches of bcc_syms.h: handles that remain safe when the caller errs, one lock for each cache,
 * and readable forms of C++ names. The engines (symcache.h) find names.
 *
 * A handle consists of the number of a slot and the count of caches that the slot has held.
 * So a freed handle, or one of libbcc, matches no slot.
 * Slots are never freed.
 * Engines of freed caches are kept for a moment (engine_pool.h).
 */
#include "libsym/bcc/symcache.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/bcc/answer_counts.h"
#include "libsym/bcc/bcc_settings.h"
#include "libsym/bcc/engine_pool.h"
#include "libsym/bcc/thread_owner.h"

enum {
	SLOTS_PER_BLOCK = 256,
	BLOCKS = 4096,
	GENERATION_SHIFT = 24, /* 2^20 slots, in steps of 16 bytes: no handle looks misaligned */
	SLOT_SHIFT = 4,
};

struct slot {
	pthread_mutex_t lock;
	uint64_t generation; /* odd while the slot is in use */
	const struct engine_ops *ops;
	void *engine;
	int pid;
	uint32_t next_free; /* as first_free, while the slot is not in use */
	struct bcc_symbol_option option;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct slot *) blocks[BLOCKS];
static uint32_t slot_count;
static uint32_t first_free = UINT32_MAX; /* free list; UINT32_MAX: empty */

extern char *__cxa_demangle(const char *mangled, char *room, size_t *size_bytes, int *status);

static struct slot *slot_at(uint32_t index)
{
	struct slot *block =
		atomic_load_explicit(&blocks[index / SLOTS_PER_BLOCK], memory_order_acquire);

	return block ? &block[index % SLOTS_PER_BLOCK] : NULL;
}

/* The slot of a handle, whether or not it still has that cache; NULL for an invalid handle. */
static inline struct slot *slot_of(void *handle)
{
	uint64_t value = (uintptr_t)handle;

	if (!handle || value & ((1u << SLOT_SHIFT) - 1))
		return NULL;
	return slot_at((uint32_t)(value >> SLOT_SHIFT) & ((1u << 20) - 1));
}

/* Locks the slot of a handle; NULL for an invalid or freed handle. */
static struct slot *lock_slot(void *handle)
{
	struct slot *slot = slot_of(handle);

	if (!slot)
		return NULL;
	pthread_mutex_lock(&slot->lock);
	if (slot->generation == (uintptr_t)handle >> GENERATION_SHIFT && slot->engine)
		return slot;
	pthread_mutex_unlock(&slot->lock);
	return NULL;
}

/* With the table locked. UINT32_MAX when it is full. */
static uint32_t take_slot(void)
{
	struct slot *block;
	uint32_t index;

	if (first_free != UINT32_MAX) {
		index = first_free;
		first_free = slot_at(index)->next_free;
		return index;
	}
	if (slot_count == SLOTS_PER_BLOCK * BLOCKS)
		return UINT32_MAX;
	if (slot_count % SLOTS_PER_BLOCK == 0) {
		block = calloc(SLOTS_PER_BLOCK, sizeof(*block));
		if (!block)
			return UINT32_MAX;
		for (int i = 0; i < SLOTS_PER_BLOCK; i++)
			pthread_mutex_init(&block[i].lock, NULL);
		atomic_store_explicit(&blocks[slot_count / SLOTS_PER_BLOCK], block,
				      memory_order_release);
	}
	return slot_count++;
}

/* At exit: frees engines without a cache. A cache that was not freed belongs to its owner. */
__attribute__((destructor)) static void end_kept(void)
{
	engine_pool_drop();
	for (uint32_t i = 0; i < slot_count; i++) {
		struct slot *slot = slot_at(i);

		if (slot->engine && slot->ops->report)
			slot->ops->report(slot->engine);
	}
	answer_counts_report();
}

/* The live engine is for the process, whichever of its threads is given. */
static void *create_engine(int *pid, const struct bcc_symbol_option *option,
			   const struct engine_ops **ops_ret)
{
	struct bcc_settings settings;
	void *engine;

	bcc_settings_read(&settings);
	if (*pid < 0) {
		*ops_ret = &kernel_engine_ops;
		return kernel_engine_create();
	}
	*ops_ret = &live_engine_ops;
	*pid = thread_owner(*pid, bcc_settings_now_ns(&settings));
	engine = engine_pool_take(*pid, option, &settings);
	return engine ? engine : live_engine_create(*pid, option, &settings);
}

void *bcc_symcache_new(int pid, struct bcc_symbol_option *option)
{
	static const struct bcc_symbol_option usual = { 1, 1, 1, 1u << 2 | 1u << STT_GNU_IFUNC };
	const struct bcc_symbol_option used = option ? *option : usual;
	const struct engine_ops *ops;
	void *engine = create_engine(&pid, &used, &ops);
	uint64_t generation;
	struct slot *slot;
	uint32_t index;

	if (!engine)
		return NULL;
	pthread_mutex_lock(&table_lock);
	index = take_slot();
	pthread_mutex_unlock(&table_lock);
	if (index == UINT32_MAX) {
		ops->destroy(engine);
		return NULL;
	}
	slot = slot_at(index);
	pthread_mutex_lock(&slot->lock);
	slot->ops = ops;
	slot->engine = engine;
	slot->pid = pid;
	slot->option = used;
	generation = ++slot->generation;
	pthread_mutex_unlock(&slot->lock);
	return (void *)(uintptr_t)(generation << GENERATION_SHIFT | (uint64_t)index << SLOT_SHIFT);
}

/* libbcc selects the destructor by the sign of `pid`. Here the cache knows its kind. */
void bcc_free_symcache(void *symcache, int pid)
{
	struct slot *slot = lock_slot(symcache);
	uint32_t index = (uint32_t)((uintptr_t)symcache >> SLOT_SHIFT) & ((1u << 20) - 1);

	(void)pid;
	if (!slot)
		return;
	slot->generation++;
	if (slot->ops->still_good)
		engine_pool_put(slot->engine, slot->pid, &slot->option);
	else
		slot->ops->destroy(slot->engine);
	slot->engine = NULL;
	pthread_mutex_unlock(&slot->lock);
	pthread_mutex_lock(&table_lock);
	slot->next_free = first_free;
	first_free = index;
	pthread_mutex_unlock(&table_lock);
}

/* Sets the readable form of the engine's name, or the name itself. */
static void make_readable(struct bcc_symbol *sym)
{
	if (sym->demangle_name)
		sym->demangle_name = strdup(sym->demangle_name);
	else if (!strncmp(sym->name, "_Z", 2) || !strncmp(sym->name, "___Z", 4))
		sym->demangle_name = __cxa_demangle(sym->name, NULL, NULL, NULL);
	if (!sym->demangle_name)
		sym->demangle_name = sym->name;
}

static int symcache_resolve(void *symcache, uint64_t address, bool readable, struct bcc_symbol *sym)
{
	struct slot *slot;
	int found;

	if (!sym)
		return -1;
	*sym = (struct bcc_symbol){ 0 };
	slot = lock_slot(symcache);
	if (!slot)
		return -1;
	found = slot->ops->resolve(slot->engine, address, sym);
	/* The readable form is made before another thread can free the name. */
	if (!readable)
		sym->demangle_name = NULL;
	else if (found == 0)
		make_readable(sym);
	pthread_mutex_unlock(&slot->lock);
	return found;
}

int bcc_symcache_resolve_no_demangle(void *symcache, uint64_t addr, struct bcc_symbol *sym)
{
	return symcache_resolve(symcache, addr, false, sym);
}

int bcc_symcache_resolve(void *symcache, uint64_t addr, struct bcc_symbol *sym)
{
	return symcache_resolve(symcache, addr, true, sym);
}

void bcc_symbol_free_demangle_name(struct bcc_symbol *sym)
{
	if (sym && sym->demangle_name && sym->demangle_name != sym->name)
		free((char *)sym->demangle_name);
}

int bcc_symcache_resolve_name(void *resolver, const char *module, const char *name, uint64_t *addr)
{
	struct slot *slot;
	int found;

	if (!name || !addr)
		return -1;
	slot = lock_slot(resolver);
	if (!slot)
		return -1;
	found = slot->ops->resolve_name(slot->engine, module, name, addr);
	pthread_mutex_unlock(&slot->lock);
	return found;
}

void bcc_symcache_refresh(void *resolver)
{
	struct slot *slot = lock_slot(resolver);

	if (!slot)
		return;
	if (slot->ops->refresh)
		slot->ops->refresh(slot->engine);
	pthread_mutex_unlock(&slot->lock);
}

int bcc_free_memory(void)
{
	engine_pool_drop();
	malloc_trim(0);
	return 0;
}
