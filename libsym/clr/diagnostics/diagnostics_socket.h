/* SPDX-License-Identifier: MIT */
/*
 * The diagnostics socket of a live .NET process: finding it, checking its owner, and one command
 * for each connection.
 * A socket is used only if the process itself listens on it.
 * All waiting has a deadline.
 * It handles the frames of messages, not the meaning of commands.
 *
 *	"DOTNET_IPC_V1\0" ; u16 size of all ; u8 command set ; u8 command ; u16 0 ; payload
 *
 * Spec: dotnet/diagnostics documentation/design-docs/ipc-protocol.md.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_DIAGNOSTICS_SOCKET_H
#define LIBSYM_CLR_DIAGNOSTICS_DIAGNOSTICS_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/rights.h"
#include "libsym/budget_api.h"
#include "libsym/error.h"

struct diagnostics_place {
	int root_fd;           /* root directory of the process (O_PATH); -1: the caller's */
	const char *directory; /* inside that root: its TMPDIR, or /tmp */
	int32_t pid;           /* as the caller counts */
	int32_t namespace_pid; /* as the process itself counts */
	uint32_t uid;
	const struct rights *rights; /* of the process, borrowed; NULL: the caller's */
	uint64_t start_time_ticks;
	struct budget_account *account; /* charged for waiting; NULL: none */
};

/* Monotonic clock, in ms. */
int64_t diagnostics_now_ms(void);

/*
 * IO when the process is stopped: it would execute the command later, when no reader waits any
 * more. NULL when its state is unknown.
 */
struct sym_error *diagnostics_check_running(const struct diagnostics_place *place)
	__attribute__((warn_unused_result));

/* IO when the process did not answer before, or no time is left to wait. */
struct sym_error *diagnostics_check_patience(const struct diagnostics_place *place)
	__attribute__((warn_unused_result));

/*
 * Connects. `deadline_ms`: as diagnostics_now_ms().
 * Errors: NOT_FOUND when there is no socket (runtime not ready, DOTNET_EnableDiagnostics=0, another
 * TMPDIR); PERMISSION when another user owns it or connecting is not permitted; IO when there is no
 * answer in time or the process is stopped.
 */
struct sym_error *diagnostics_connect(const struct diagnostics_place *place, int64_t deadline_ms,
				      int *fd_ret) __attribute__((warn_unused_result));

/* Sends one command, with at most 60 KB of payload. */
struct sym_error *diagnostics_send(int fd, uint8_t set, uint8_t command, const void *payload,
				   size_t payload_bytes, int64_t deadline_ms)
	__attribute__((warn_unused_result));

#define DIAGNOSTICS_OK              0
#define DIAGNOSTICS_UNKNOWN_COMMAND 0x80131385u

/*
 * Reads the reply.
 * Waiting is charged to the account of `place`, and ends when that has no time left.
 * Then, and when no answer comes in time, the process is recorded as one that does not answer.
 * *result_ret is DIAGNOSTICS_OK or the HRESULT of a failure.
 * Errors: IO also for a process that is stopped during the call.
 */
struct sym_error *diagnostics_receive(const struct diagnostics_place *place, int fd,
				      struct buf *payload, uint32_t *result_ret,
				      int64_t deadline_ms) __attribute__((warn_unused_result));

/*
 * Appends the following bytes until the peer closes the connection.
 * Errors: IO, also for a process that is stopped during the call; LIMIT (the maximum of `buf`).
 */
struct sym_error *diagnostics_drain(const struct diagnostics_place *place, int fd, struct buf *buf,
				    int64_t idle_ms, int64_t deadline_ms)
	__attribute__((warn_unused_result));

#endif
