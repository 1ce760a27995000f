/* SPDX-License-Identifier: MIT */
/* The directories of a store, and the files in them. Only the store includes this. */
#ifndef SYMSRV_STORE_STORE_LAYOUT_H
#define SYMSRV_STORE_STORE_LAYOUT_H

#include <dirent.h>

/* Name of an arrival in tmp/, before its number. */
#define STORE_ARRIVAL_PREFIX "arrival-"

/* Opens a directory of the store; NULL with errno. Refuses a symbolic link on the way (ELOOP). */
DIR *store_layout_open(int directory_fd, const char *name);

/* Creates missing directories; 0 or a negative errno (-ELOOP: one is a symbolic link). */
int store_layout_make(int directory_fd);

/* Removes the arrivals that a server left when it ended. */
void store_layout_empty_tmp(int directory_fd);

/* Gives an arrival the name of an object, also when its directory was removed to make room; 0 or a
 * negative errno. */
int store_layout_move(int directory_fd, const char *from, const char *path);

/* Flushes the name of an object, "objects/AA/REST", to the disk; 0 or a negative errno. */
int store_layout_sync(int directory_fd, const char *path);

#endif
