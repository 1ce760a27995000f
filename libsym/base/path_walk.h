/* SPDX-License-Identifier: MIT */
/*
 * Looking a path up below a root without openat2(): for kernels before 5.6 and
 * for seccomp filters that do not know the call. One component at a time, no
 * symbolic link is ever followed by the kernel. Knows nothing of what is found.
 */
#ifndef LIBSYM_BASE_PATH_WALK_H
#define LIBSYM_BASE_PATH_WALK_H

#include <stdbool.h>

/*
 * The file at `path` as if `root_fd` (any directory descriptor, O_PATH will do)
 * were "/". Returns an O_PATH descriptor (O_CLOEXEC) or a negative errno; -ELOOP
 * for a symbolic link anywhere when `no_symlinks`.
 */
int path_walk_open(int root_fd, const char *path, bool no_symlinks);

#endif
