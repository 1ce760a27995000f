/* SPDX-License-Identifier: MIT */
/*
 * Source Link: where the source files of a build are on a server. A compiler puts this JSON into
 * the PDB (custom debug information CC110556-A091-4D38-9FEC-25AB9A351A6A):
 *
 *   {"documents": {"C:\\store\\*": "https://example.com/4d38/?file=*", ...}}
 *
 * A path that ends in an asterisk stands for all files whose path begins like it; the rest of the
 * path takes the place of the asterisk in the URL. The longest path that fits counts. Case is
 * ignored. dotnet/designs, accepted/2020/diagnostics/source-link.md; SourceLinkMap.cs of
 * dotnet/sourcelink. Pure: nothing is downloaded.
 */
#ifndef MAPGEN_DEBUGINFO_SOURCE_LINK_H
#define MAPGEN_DEBUGINFO_SOURCE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"

struct source_link;

/*
 * Accepts only http:// and https:// URLs without blanks and control characters: the URLs go to
 * terminals and web pages.
 * Errors: FORMAT for other texts; LIMIT for very long ones; NO_MEMORY.
 */
struct sym_error *source_link_parse(const char *text, size_t size_bytes, struct source_link **ret)
	__attribute__((warn_unused_result));
void source_link_destroy(struct source_link *link);

/* Appends the URL of a file. False, with nothing appended, when no path fits. */
bool source_link_write_url(const struct source_link *link, const char *file, struct buf *buf);

DEFINE_GUARD(source_link, struct source_link *, source_link_destroy)
#define AUTO_SOURCE_LINK GUARDED(source_link)

#endif
