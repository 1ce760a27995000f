/* SPDX-License-Identifier: MIT */
/*
 * The diagnostics socket of a live .NET process: where it is, whose it is, and
 * one command a connection. Nothing is believed of a socket that the process
 * itself does not listen on; nothing is waited for without a deadline. Knows the
 * frame of messages, not what the commands mean.
 *
 *	"DOTNET_IPC_V1\0" ; u16 size of all ; u8 command set ; u8 command ; u16 0 ; payload
 *
 * Spec: dotnet/diagnostics documentation/design-docs/ipc-protocol.md.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_SOCKET_H
#define LIBSYM_CLR_DIAGNOSTICS_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"

struct diagnostics_place {
	int root_fd;           /* root directory of the process (O_PATH); -1: the caller's own */
	const char *directory; /* inside that root: its TMPDIR, or /tmp */
	int32_t pid;           /* as the caller counts */
	int32_t namespace_pid; /* as the process counts itself */
	uint32_t uid;
	uint64_t start_time_ticks;
};

/* Milliseconds of the monotonic clock. */
int64_t diagnostics_now_ms(void);

/*
 * IO when the process is stopped: what is asked of it then it does when it goes on, and nobody
 * waits any more. Nothing when that cannot be told.
 */
struct sym_error *diagnostics_check_running(const struct diagnostics_place *place)
	__attribute__((warn_unused_result));

/*
 * Connects. `deadline_ms` as diagnostics_now_ms() counts. NOT_FOUND: there is no socket (none was
 * made, DOTNET_EnableDiagnostics=0, or another TMPDIR); PERMISSION: it is somebody else's, or
 * connecting is refused; IO: no answer in time, or the process is stopped.
 */
struct sym_error *diagnostics_connect(const struct diagnostics_place *place, int64_t deadline_ms,
				      int *fd_ret) __attribute__((warn_unused_result));

/* Sends one command; at most 60 KB of payload. */
struct sym_error *diagnostics_send(int fd, uint8_t set, uint8_t command, const void *payload,
				   size_t payload_bytes, int64_t deadline_ms)
	__attribute__((warn_unused_result));

#define DIAGNOSTICS_OK              0
#define DIAGNOSTICS_UNKNOWN_COMMAND 0x80131385u

/*
 * Reads the reply. *result_ret is DIAGNOSTICS_OK, or the HRESULT of a refusal. Here and below a
 * process that is stopped meanwhile is not waited for (IO).
 */
struct sym_error *diagnostics_receive(const struct diagnostics_place *place, int fd,
				      struct buf *payload, uint32_t *result_ret,
				      int64_t deadline_ms) __attribute__((warn_unused_result));

/* Appends what follows until the other side closes. Errors: IO, LIMIT (the maximum of `buf`). */
struct sym_error *diagnostics_drain(const struct diagnostics_place *place, int fd, struct buf *buf,
				    int64_t idle_ms, int64_t deadline_ms)
	__attribute__((warn_unused_result));

#endif
