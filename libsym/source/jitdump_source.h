/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its jitdump: addresses in, names out. Knows that
 * code moves, and that memory is used again: what holds is what was written
 * down last, by time stamp. Which file it is somebody else found out.
 */
#ifndef LIBSYM_SOURCE_JITDUMP_SOURCE_H
#define LIBSYM_SOURCE_JITDUMP_SOURCE_H

#include "libsym/source/source.h"

struct jitdump_source;

/*
 * Reads the file with pread(); the descriptor stays the caller's. Records of
 * other processes than `pid` (as the process counts itself; 0: any) are passed over.
 * A file that is cut is read as far as it goes. Errors: IO, FORMAT (no jitdump of this process),
 * LIMIT, NO_MEMORY.
 */
struct sym_error *jitdump_source_open(int fd, const char *path, uint32_t pid,
				      struct jitdump_source **ret)
	__attribute__((warn_unused_result));
void jitdump_source_close(struct jitdump_source *source);

/* Does the file end inside a record, or in one that makes no sense? Then later ones are missing. */
bool jitdump_source_is_cut(const struct jitdump_source *source);

uint64_t jitdump_source_records(const struct jitdump_source *source);

enum source_outcome jitdump_source_find(const struct jitdump_source *source, uint64_t address,
					struct source_match *ret);

DEFINE_GUARD(jitdump_source, struct jitdump_source *, jitdump_source_close)
#define AUTO_JITDUMP_SOURCE GUARDED(jitdump_source)

#endif
