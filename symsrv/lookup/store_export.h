/* SPDX-License-Identifier: MIT */
/* symsrv --export DIR: writes the objects of a store as a tree of files that clients read without a
 * server. */
#ifndef SYMSRV_LOOKUP_STORE_EXPORT_H
#define SYMSRV_LOOKUP_STORE_EXPORT_H

/* Returns the exit status: 0 done, 1 failed, 3 some objects were damaged or could not be written.
 */
int store_export_run(const char *store, const char *directory);

#endif
