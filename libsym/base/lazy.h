/* SPDX-License-Identifier: MIT */
/*
 * A thing that is made as a whole when somebody first asks for it, and never changes
 * afterwards: several threads may ask at once, one makes it. Who holds it destroys it.
 */
#ifndef LIBSYM_BASE_LAZY_H
#define LIBSYM_BASE_LAZY_H

#include <pthread.h>
#include <stdatomic.h>

struct lazy {
	pthread_mutex_t lock; /* of making */
	_Atomic(void *) made;
};

static inline void lazy_init(struct lazy *lazy)
{
	pthread_mutex_init(&lazy->lock, NULL);
	atomic_init(&lazy->made, NULL);
}

/* What was made, for its owner to destroy; NULL when nobody asked. Nobody may ask any more. */
static inline void *lazy_deinit(struct lazy *lazy)
{
	pthread_mutex_destroy(&lazy->lock);
	return atomic_load(&lazy->made);
}

/* What was made; NULL while nobody has asked. */
static inline void *lazy_peek(const struct lazy *lazy)
{
	return atomic_load_explicit(&((struct lazy *)lazy)->made, memory_order_acquire);
}

/* What was made elsewhere already, before anybody else can ask. */
static inline void lazy_set(struct lazy *lazy, void *made)
{
	atomic_store_explicit(&lazy->made, made, memory_order_release);
}

/* `make` returns NULL for want of memory: then the next who asks tries again. */
static inline void *lazy_get(struct lazy *lazy, void *(*make)(const void *context),
			     const void *context)
{
	void *made = lazy_peek(lazy);

	if (made)
		return made;
	pthread_mutex_lock(&lazy->lock);
	made = atomic_load(&lazy->made);
	if (!made) {
		made = make(context);
		lazy_set(lazy, made);
	}
	pthread_mutex_unlock(&lazy->lock);
	return made;
}

#endif
