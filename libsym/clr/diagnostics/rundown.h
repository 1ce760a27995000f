/* SPDX-License-Identifier: MIT */
/*
 * A rundown: the list of methods that a live .NET runtime (Core 3.0 and later) sends when a tracing
 * session ends.
 * A session is started over the diagnostics socket and stopped at once, so the process traces
 * nothing.
 * It knows the commands and the payloads of the events; method_name.h makes full names.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/diagnostics/diagnostics_socket.h"
#include "libsym/error.h"
#include "libsym/format/dotnet/runtime_async.h"

struct rundown_module {
	uint64_t id;
	const char *path; /* of the assembly; "" without a file */
	/* Only in a session that continues: */
	bool is_gone;  /* it was unloaded */
	uint64_t time; /* of the event */
};

struct rundown_method {
	uint64_t module_id;
	uint64_t start_address;
	uint32_t size_bytes;
	uint32_t token; /* 0x06xxxxxx; 0x06000000 for dynamic methods */
	uint32_t flags;
	const char *owner; /* "Ns.Outer+Inner`1[Ns.A]"; "dynamicClass" */
	const char *name;
	struct runtime_async_text returned; /* from its signature */
	/* Only in a session that continues: */
	bool is_gone;  /* it was unloaded */
	uint64_t time; /* of the event */
	/* Only in rundown_lines.c: */
	uint32_t first_entry, entry_count; /* of its IL map */
};

enum rundown_method_flags {
	RUNDOWN_DYNAMIC = 1 << 0,
	RUNDOWN_JITTED = 1 << 3, /* neither this nor dynamic: precompiled */
};

/* Word for the tier in a method's flags, static; NULL when unknown. */
const char *rundown_tier(uint32_t flags);

struct rundown {
	struct rundown_module *modules; /* by id, each once */
	size_t module_count;
	struct rundown_method *methods; /* by start address, each start once */
	size_t method_count;
	bool is_complete; /* the runtime sent its end mark */
	bool has_gap;     /* in a session that continues: events were dropped or may have been */
	/* private */
	char *names;
};

/* Parses the bytes of a session. Errors: as nettrace_parse(). */
struct sym_error *rundown_parse(const void *data, size_t size_bytes, struct rundown *ret)
	__attribute__((warn_unused_result));
void rundown_deinit(struct rundown *rundown);

/*
 * Requests a rundown.
 * Errors: those of diagnostics_socket.h; UNSUPPORTED when the runtime does not have the command.
 */
struct sym_error *rundown_ask(const struct diagnostics_place *place, struct rundown *ret)
	__attribute__((warn_unused_result));

#endif
