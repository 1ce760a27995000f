/* SPDX-License-Identifier: MIT */
/*
 * The debuginfod web API: paths below /buildid/ to keys and back. Knows the grammar, not HTTP.
 *
 *   HEX/executable   HEX/debuginfo   HEX/section/NAME   HEX/source/ABSOLUTE-PATH
 *   HEX/symtab       of symsrv: the names-only file
 *
 * HEX: lower case, an even number of digits. elfutils, debuginfod(8) WEBAPI.
 */
#ifndef SYMSRV_KEY_DEBUGINFOD_H
#define SYMSRV_KEY_DEBUGINFOD_H

#include <stdbool.h>

#include "libsym/base/buf.h"
#include "symsrv/key/key.h"

/*
 * Parses a decoded path without "/buildid/". *section_ret: name of the section that is asked for
 * (the key is then of the debug file), else NULL. Strings are borrowed from `path`.
 */
bool debuginfod_parse(const char *path, struct key *key, const char **section_ret);

/* Appends "buildid/...", percent-encoded; returns false if the protocol has no path for the key. */
bool debuginfod_format(struct buf *buf, const struct key *key);

#endif
