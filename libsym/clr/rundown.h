/* SPDX-License-Identifier: MIT */
/*
 * A rundown: the list of its methods that a live .NET runtime (Core 3.0 and
 * later) gives when a tracing session ends. A session is begun over the
 * diagnostics socket and stopped at once, so the process is asked once and
 * traces nothing. Knows the commands and the payloads of the events; how a
 * method is called in full is method_name's business.
 */
#ifndef LIBSYM_CLR_RUNDOWN_H
#define LIBSYM_CLR_RUNDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/diagnostics_socket.h"
#include "libsym/error.h"
#include "libsym/format/awaiting.h"

struct rundown_module {
	uint64_t id;
	const char *path; /* of the assembly; "" for one without a file */
	/* of a session that goes on */
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
	struct awaiting_text returned; /* by its signature */
	/* of a session that goes on */
	bool is_gone;  /* it was unloaded */
	uint64_t time; /* of the event */
};

enum rundown_method_flags {
	RUNDOWN_DYNAMIC = 1 << 0,
	RUNDOWN_JITTED = 1 << 3, /* neither this nor dynamic: precompiled */
};

/* Word for the tier in a method's flags; NULL when not known. Static. */
const char *rundown_tier(uint32_t flags);

struct rundown {
	struct rundown_module *modules; /* by id, each once */
	size_t module_count;
	struct rundown_method *methods; /* by start address, each start once */
	size_t method_count;
	bool is_complete; /* the runtime said so at the end */
	bool has_gap;     /* of a session that goes on: the runtime had no room for some events, or
			     may have had none */
	/* private */
	char *names;
};

/* From the bytes of a session. Errors: as nettrace_parse(). */
struct sym_error *rundown_parse(const void *data, size_t size_bytes, struct rundown *ret)
	__attribute__((warn_unused_result));
void rundown_deinit(struct rundown *rundown);

/* The path of a module; NULL when the runtime did not name it. */
const char *rundown_module_path(const struct rundown *rundown, uint64_t id);

/* Asks. Errors: those of diagnostics_socket.h, UNSUPPORTED for a runtime that knows no such
 * command. */
struct sym_error *rundown_ask(const struct diagnostics_place *place, struct rundown *ret)
	__attribute__((warn_unused_result));

#endif
