/* SPDX-License-Identifier: MIT */
/* An object that is created on first use and never changes afterwards. Several threads may ask for
 * it; one creates it. It is stored with its destructor, so the owner need not know its type. */
#ifndef LIBSYM_BASE_LAZY_H
#define LIBSYM_BASE_LAZY_H

#include <pthread.h>
#include <stdatomic.h>

struct lazy {
	pthread_mutex_t lock; /* held while the object is created */
	_Atomic(void *) made;
	void (*destroy)(void *made); /* valid once an object was created */
};

static inline void lazy_init(struct lazy *lazy)
{
	pthread_mutex_init(&lazy->lock, NULL);
	atomic_init(&lazy->made, NULL);
	lazy->destroy = NULL;
}

/* Destroys the object, if it was created. No thread may use the struct any more. */
static inline void lazy_deinit(struct lazy *lazy)
{
	void *made = atomic_load(&lazy->made);

	pthread_mutex_destroy(&lazy->lock);
	if (made)
		lazy->destroy(made);
}

/* The object; NULL if it was not created yet. */
static inline void *lazy_peek(const struct lazy *lazy)
{
	return atomic_load_explicit(&((struct lazy *)lazy)->made, memory_order_acquire);
}

/* Stores an object that was created elsewhere, before other threads can ask for it. */
static inline void lazy_set(struct lazy *lazy, void *made, void (*destroy)(void *made))
{
	lazy->destroy = destroy;
	atomic_store_explicit(&lazy->made, made, memory_order_release);
}

/* `make` returns NULL if out of memory; the next call then tries again. */
static inline void *lazy_get(struct lazy *lazy, void *(*make)(const void *context),
			     void (*destroy)(void *made), const void *context)
{
	void *made = lazy_peek(lazy);

	if (made)
		return made;
	pthread_mutex_lock(&lazy->lock);
	made = atomic_load(&lazy->made);
	if (!made) {
		made = make(context);
		lazy_set(lazy, made, destroy);
	}
	pthread_mutex_unlock(&lazy->lock);
	return made;
}

#endif
