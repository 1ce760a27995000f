/* SPDX-License-Identifier: MIT */
/*
 * Messages between the server and a process that reads foreign debug information, over a stream
 * socket. A message is a head of fixed size, bytes, and sometimes a descriptor. Neither side
 * believes the other: sizes have a limit, and the server gives up at a deadline.
 */
#ifndef SYMSRV_RESOLVE_SYMBOL_MESSAGE_H
#define SYMSRV_RESOLVE_SYMBOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

enum symbol_message_kind {
	/* of the server */
	SYMBOL_MESSAGE_IMAGE = 1, /* the image: a descriptor; number: enum sym_position_kind */
	SYMBOL_MESSAGE_ASK,       /* bytes: addresses, 8 each; number: enum sym_field */
	SYMBOL_MESSAGE_FILE,      /* the file that was wanted: a descriptor, or none */
	SYMBOL_MESSAGE_MAP,       /* a PE image: a descriptor; number: enum sym_map_format */
	/* of the process */
	SYMBOL_MESSAGE_ANSWERS,    /* bytes: symbol_answer.h; number: how many */
	SYMBOL_MESSAGE_WANT,       /* a file that belongs to the image; bytes: JSON */
	SYMBOL_MESSAGE_MAP_TEXT,   /* bytes: the map */
	SYMBOL_MESSAGE_UNREADABLE, /* the image cannot be read; bytes: why; number: ENOMEM or 0 */
};

struct symbol_message {
	uint32_t kind;
	uint32_t number;
	struct buf bytes;
	int fd; /* -1: none */
};

/* `max_bytes`: of the bytes of a message that is received. */
void symbol_message_init(struct symbol_message *message, size_t max_bytes);
void symbol_message_deinit(struct symbol_message *message);

/* Sends a message; `passed_fd` is -1, or a descriptor that the other side gets a copy of. False
 * when the other side has ended. */
bool symbol_message_send(int fd, enum symbol_message_kind kind, uint32_t number, const void *bytes,
			 size_t size_bytes, int passed_fd);

enum symbol_receipt {
	SYMBOL_RECEIVED,
	SYMBOL_ENDED, /* the other side has ended, or sent what is no message */
	SYMBOL_LATE
};

/* Waits until `deadline_ms` of clock_now_ms(); -1: without end. Replaces what `message` holds. */
enum symbol_receipt symbol_message_receive(int fd, int64_t deadline_ms,
					   struct symbol_message *message);

static inline void guard_symbol_message(struct symbol_message *message)
{
	symbol_message_deinit(message);
}

#define AUTO_SYMBOL_MESSAGE __attribute__((cleanup(guard_symbol_message)))

#endif
