/* SPDX-License-Identifier: MIT */
/*
 * A thread that keeps what a runtime sends in a file, at all times: the buffer in the runtime
 * fills up while the stream is not read, and then the runtime drops events.
 */
#ifndef MAPGEN_RECORD_STREAM_RECEIVER_H
#define MAPGEN_RECORD_STREAM_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct stream_receiver;

/* `session` and `fd`, a regular file that is written from its beginning on, are borrowed. */
struct sym_error *stream_receiver_start(struct sym_event_session *session, int fd,
					struct stream_receiver **ret)
	__attribute__((warn_unused_result));

/* Bytes in the file. Grows at any time. */
uint64_t stream_receiver_bytes(const struct stream_receiver *receiver);

/* Has the stream ended, or could it not be kept? */
bool stream_receiver_has_ended(const struct stream_receiver *receiver);

/* Waits for the end of the stream, at most so long. False: more has come, and it has not ended. */
bool stream_receiver_wait(struct stream_receiver *receiver, int idle_ms);

/* Ends the thread. *error_ret: why it stopped receiving before the end; NULL: it did not.
 * *bytes_ret: bytes in the file. */
void stream_receiver_stop(struct stream_receiver *receiver, struct sym_error **error_ret,
			  uint64_t *bytes_ret);

#endif
