/* SPDX-License-Identifier: MIT */
/*
 * Scope guards: a local variable declared with one of these is released when its scope ends, so no
 * function needs a chain of labels. This header covers memory, descriptors and streams. A module
 * that owns a type defines its guard beside the destructor with DEFINE_GUARD().
 */
#ifndef LIBSYM_BASE_CLEANUP_H
#define LIBSYM_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Defines guard_NAME(): calls RELEASE on a `TYPE` local unless it is NULL. */
#define DEFINE_GUARD(name, type, release)                                                          \
	static inline void guard_##name(type *held)                                                \
	{                                                                                          \
		if (*held)                                                                         \
			release(*held);                                                            \
	}

#define GUARDED(name) __attribute__((cleanup(guard_##name)))

static inline void guard_free(void *held)
{
	free(*(void **)held);
}

static inline void guard_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

DEFINE_GUARD(file, FILE *, fclose)
DEFINE_GUARD(dir, DIR *, closedir)

#define AUTO_FREE  GUARDED(free)
#define AUTO_CLOSE GUARDED(fd)

/* Moves a pointer out of its guard. The caller owns it from here. */
#define STEAL(pointer)                                                                             \
	({                                                                                         \
		__typeof__(pointer) taken = (pointer);                                             \
		(pointer) = NULL;                                                                  \
		taken;                                                                             \
	})

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
