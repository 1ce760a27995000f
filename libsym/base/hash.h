/* SPDX-License-Identifier: MIT */
/*
 * The only includer of uthash. By default uthash calls exit() when an insert
 * finds no memory; with HASH_NONFATAL_OOM the insert is taken back instead,
 * and the element is marked so that the caller can see it.
 *
 * An element type that is kept in a table has `UT_hash_handle hh` and uses
 * HASH_FIND/HASH_ADD_KEYPTR/HASH_DEL/HASH_ITER directly; after an add,
 * hash_added(element) tells whether it is in the table.
 */
#ifndef LIBSYM_BASE_HASH_H
#define LIBSYM_BASE_HASH_H

#define HASH_NONFATAL_OOM            1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)
#include <uthash.h>

#define hash_added(element) ((element)->hh.tbl != NULL)

#endif
