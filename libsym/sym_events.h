/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: events that a .NET runtime sends over its diagnostics socket, and where its
 * code fires them.
 */
#ifndef LIBSYM_SYM_EVENTS_H
#define LIBSYM_SYM_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_image;
struct sym_snapshot;

/** A source of events, and which of them are sent. */
struct sym_event_provider {
	const char *name;      /**< as "Microsoft-Windows-DotNETRuntime" */
	uint64_t keywords;     /**< groups of events, a bit each */
	uint32_t level;        /**< 1 critical to 5 verbose */
	uint32_t reserved;     /**< 0 */
	const char *arguments; /**< "KEY=VALUE;KEY=VALUE"; NULL: none */
	/** Only these events; .NET 10 on, older runtimes send all. NULL: all. */
	const uint32_t *ids;
	size_t id_count;
};

enum sym_event_session_flags {
	/** Events carry the managed frames of their stack. .NET 8 and older always send them. */
	SYM_EVENT_STACKS = 1 << 0
};

/** Options of an event session; 0 in a field selects the default. */
struct sym_event_session_opts {
	size_t size;                                /**< sizeof(struct sym_event_session_opts) */
	const struct sym_event_provider *providers; /**< at least one */
	size_t provider_count;
	uint32_t flags;     /**< enum sym_event_session_flags */
	uint32_t buffer_mb; /**< of events that were not read yet, in the runtime; default: 64 */
};

/** A session: the runtime sends events in the format nettrace until it ends. */
struct sym_event_session;

/**
 * Starts an event session.
 *
 * @param snapshot  Of a live process; borrowed during the call.
 * @param opts  Copied.
 * @param ret  The session; close it with sym_event_session_close().
 *
 * Errors: NOT_FOUND when the process has no diagnostics socket; IO when it is stopped or does not
 * answer in 10 s; UNSUPPORTED when its runtime has no sessions; PERMISSION; ARGUMENT.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_event_session_open(struct sym_snapshot *snapshot, const struct sym_event_session_opts *opts,
		       struct sym_event_session **ret);

/**
 * Ends a session. What was not read is lost.
 *
 * @param session  NULL is accepted.
 */
SYM_API void sym_event_session_close(struct sym_event_session *session);

/** Returns a descriptor that is readable when sym_event_session_read() has something to do. */
SYM_API int sym_event_session_fd(const struct sym_event_session *session);

/** Returns 1 when events carry the managed frames of their stack, asked for or not; else 0. */
SYM_API int sym_event_session_has_stacks(const struct sym_event_session *session);

/**
 * Copies what has arrived of the stream; does not wait.
 *
 * Read often: while the buffer of the runtime is full it drops events.
 *
 * @param room  `size_bytes` bytes.
 * @param count_ret  Bytes that were copied; 0 when nothing has arrived.
 * @param ended_ret  1 at the end of the stream: nothing more will come; else 0.
 *
 * Errors: IO.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_event_session_read(struct sym_event_session *session,
								void *room, size_t size_bytes,
								size_t *count_ret, int *ended_ret);

/**
 * Asks the runtime to send what it has and to end the stream. Read on until it has ended.
 *
 * Errors: IO when the process is stopped or does not take the command in 1 s; NOT_FOUND.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_event_session_stop(struct sym_event_session *session);

/**
 * Finds where the runtime hands an event to LTTng, which it does right after it has written the
 * event to its sessions, in the thread that fires it.
 *
 * A uprobe there has the native and managed stack of each event, while a session has the event
 * enabled.
 * The instruction is a conditional jump, which the kernel emulates.
 *
 * x86-64 builds of .NET Core 3.1 and later with glibc have such places; a later runtime may have
 * none or several for an event.
 *
 * @param image  libcoreclr.so, or a single-file program.
 * @param names  As "GCStart_V2"; `count` of them.
 * @param offsets_ret  For each name the offset into the file; UINT64_MAX: none, or several.
 *
 * Errors: IO, FORMAT, NO_MEMORY. An image without such places is no error.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_image_find_event_stubs(struct sym_image *image,
								    const char *const *names,
								    size_t count,
								    uint64_t *offsets_ret);

#ifdef __cplusplus
}
#endif

#endif
