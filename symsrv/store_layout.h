/* SPDX-License-Identifier: MIT */
/* The directories of a store, and what is left in them. Part of the store: nobody else includes
 * this. */
#ifndef SYMSRV_STORE_LAYOUT_H
#define SYMSRV_STORE_LAYOUT_H

/* What arrives is called so in tmp/, and a number. */
#define STORE_ARRIVAL_PREFIX "arrival-"

/* Makes those that are not there; 0 or a negative errno. */
int store_layout_make(int directory_fd);

/* Removes what was arriving when a server ended. */
void store_layout_empty_tmp(int directory_fd);

/* Gives what has arrived the name of an object, also where somebody has removed the directory of
 * that to make room; 0 or a negative errno. */
int store_layout_move(int directory_fd, const char *from, const char *path);

/* Brings the name of an object, "objects/AA/REST", to the disk; 0 or a negative errno. */
int store_layout_sync(int directory_fd, const char *path);

#endif
