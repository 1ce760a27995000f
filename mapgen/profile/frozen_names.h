/* SPDX-License-Identifier: MIT */
/*
 * The names of a recording (mapgen/record/name_table.h), read back: what was at an address of a
 * process at a time. The text comes from a foreign file: a malformed line is skipped and counted.
 */
#ifndef MAPGEN_PROFILE_FROZEN_NAMES_H
#define MAPGEN_PROFILE_FROZEN_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"
#include "mapgen/profile/frame_table.h"

struct frozen_names;
struct symbolize_client;

/* `text` is taken over on success (heap); it is changed. Errors: NO_MEMORY. */
struct sym_error *frozen_names_open(char *text, size_t size_bytes, struct frozen_names **ret)
	__attribute__((warn_unused_result));
void frozen_names_close(struct frozen_names *names);

/* Asks a server for the names of native functions of which only the bounds were known. Call it
 * before a frame is asked for; the names live as long as the client. */
void frozen_names_symbolize(struct frozen_names *names, struct symbolize_client *client);

/* The functions of address_names.h; `names`: a struct frozen_names. */
struct sym_error *frozen_names_frame(void *names, struct frame_table *frames, int32_t pid,
				     uint64_t time_ns, uint64_t address, uint32_t *ret)
	__attribute__((warn_unused_result));
uint32_t frozen_names_epoch(void *names, int32_t pid, uint64_t time_ns);

/* The thread id of the host for one of the process's PID namespace; the same where nothing says it.
 * `names`: a struct frozen_names.
 */
int32_t frozen_names_host_tid(void *names, int32_t pid, int32_t tid);

/* Lines that made no sense. */
size_t frozen_names_bad_lines(const struct frozen_names *names);

#endif
