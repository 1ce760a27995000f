/* SPDX-License-Identifier: MIT */
/* URLs of source files by the Source Link of their PDBs. Each text is read once. */
#ifndef MAPGEN_DEBUGINFO_SOURCE_URLS_H
#define MAPGEN_DEBUGINFO_SOURCE_URLS_H

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"

struct source_urls;

struct sym_error *source_urls_create(struct source_urls **ret) __attribute__((warn_unused_result));
void source_urls_destroy(struct source_urls *urls);

/*
 * The URL of a file that the PDB names. `pdb` NULL: native code.
 * `*reason_ret`: why there is none; NULL with a URL. Both live until the next call.
 */
const char *source_urls_find(struct source_urls *urls, const struct sym_pdb *pdb, const char *file,
			     const char **reason_ret);

DEFINE_GUARD(source_urls, struct source_urls *, source_urls_destroy)

#endif
