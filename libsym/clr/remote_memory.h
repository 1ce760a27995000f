/* SPDX-License-Identifier: MIT */
/*
 * The memory of another process, read page by page through a cache. Knows
 * nothing of runtimes; where the bytes come from (a live process, a core file,
 * a test) is behind two functions.
 *
 * Reading is deferred. A read of a page that is not there yet yields 0 and
 * notes the page; remote_memory_fetch() then reads everything that was noted
 * in as few system calls as there can be, and the reader starts over:
 *
 *	do {
 *		for each item that is not done
 *			remote_begin(memory), read it, look at remote_state(memory)
 *		error = remote_memory_fetch(memory, &again);
 *	} while (!error && again);
 *
 * So code that follows pointers stays straight, and ten thousand methods cost
 * a few dozen calls. Like base/reader, the first failure sticks: after it every
 * read yields 0 and notes nothing, until remote_begin().
 */
#ifndef LIBSYM_CLR_REMOTE_MEMORY_H
#define LIBSYM_CLR_REMOTE_MEMORY_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "libsym/base/prefetch.h"
#include "libsym/error.h"

struct remote_memory;

struct remote_memory_ops {
	/*
	 * Reads `pieces` (bases are addresses in the process) into `rooms` (same lengths, same
	 * count, at most REMOTE_MAX_PIECES) in order, up to the first byte that
	 * cannot be read. Returns how many bytes were read, or -EFAULT when not even
	 * the first could be; any other negative errno ends all reading.
	 */
	ssize_t (*read)(void *context, const struct iovec *rooms, const struct iovec *pieces,
			size_t count);
	/* Turns a negative errno of read() into words. */
	struct sym_error *(*error)(void *context, int errno_value);
	void (*close)(void *context); /* may be NULL */
};

#define REMOTE_MAX_PIECES 1024
#define REMOTE_PAGE_BYTES 4096

/* On failure `context` stays the caller's. */
struct sym_error *remote_memory_create(const struct remote_memory_ops *ops, void *context,
				       struct remote_memory **ret);

/*
 * The memory of a running process: process_vm_readv(), and where that is
 * forbidden but /proc/PID/mem is not, that. Nothing is read yet: PERMISSION and
 * NOT_FOUND come from the first fetch.
 */
struct sym_error *remote_memory_open_process(int32_t pid, struct remote_memory **ret);

void remote_memory_close(struct remote_memory *memory);

enum remote_state {
	REMOTE_OK = 0,
	REMOTE_PENDING,    /* a page was noted: fetch and start over */
	REMOTE_UNREADABLE, /* nothing is there */
};

/*
 * What a remote_memory begins with, for the inline functions here and nobody
 * else: a field of a page that was read lately costs a few instructions.
 */
#define REMOTE_WINDOWS 8192

struct remote_front {
	enum remote_state state;
	uint64_t last_wanted; /* number of the page that was noted last; 0: none */
	struct remote_window {
		uint64_t number; /* of the page; UINT64_MAX: none */
		const uint8_t *bytes;
	} windows[REMOTE_WINDOWS]; /* by the low bits of the number */
};

/* Forgets the failure of the item before. */
static inline void remote_begin(struct remote_memory *memory)
{
	((struct remote_front *)memory)->state = REMOTE_OK;
}

static inline enum remote_state remote_state(const struct remote_memory *memory)
{
	return ((const struct remote_front *)memory)->state;
}

/* For layers above that wait for a copy, or find nonsense: as if a read had been pending or had
 * failed. */
void remote_set_pending(struct remote_memory *memory);
void remote_set_unreadable(struct remote_memory *memory);

/* Number of fetches so far. */
uint64_t remote_memory_round(const struct remote_memory *memory);

/* Whole or not at all; on failure `room` is zero. */
bool remote_read(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes);

/*
 * The bytes in the cache itself, until remote_memory_forget(); NULL when they are not at hand,
 * cross the end of a page, or an earlier read failed. Notes nothing and fails nothing: after NULL,
 * remote_read() tells.
 */
static inline const uint8_t *remote_peek(const struct remote_memory *memory, uint64_t address,
					 size_t size_bytes)
{
	const struct remote_front *front = (const struct remote_front *)memory;
	uint64_t number = address / REMOTE_PAGE_BYTES;
	const struct remote_window *window = &front->windows[number % REMOTE_WINDOWS];
	size_t within = (size_t)(address % REMOTE_PAGE_BYTES);

	if (window->number != number || within > REMOTE_PAGE_BYTES - size_bytes ||
	    front->state != REMOTE_OK)
		return NULL;
	return window->bytes + within;
}

/* Constant sizes only: it becomes one load. */
static inline __attribute__((always_inline)) void
remote_field(struct remote_memory *memory, uint64_t address, void *value, size_t size_bytes)
{
	const uint8_t *bytes = remote_peek(memory, address, size_bytes);

	if (bytes)
		memcpy(value, bytes, size_bytes);
	else
		remote_read(memory, address, value, size_bytes);
}

/* Fields, little-endian; 0 on failure. */
static inline uint8_t remote_u8(struct remote_memory *memory, uint64_t address)
{
	uint8_t value;

	remote_field(memory, address, &value, sizeof(value));
	return value;
}

/* A C string with its NUL; false when it cannot be read or has no end in the room. */
bool remote_string(struct remote_memory *memory, uint64_t address, char *room, size_t room_bytes);

static inline uint16_t remote_u16(struct remote_memory *memory, uint64_t address)
{
	uint16_t value;

	remote_field(memory, address, &value, sizeof(value));
	return le16toh(value);
}

static inline uint32_t remote_u32(struct remote_memory *memory, uint64_t address)
{
	uint32_t value;

	remote_field(memory, address, &value, sizeof(value));
	return le32toh(value);
}

static inline uint64_t remote_u64(struct remote_memory *memory, uint64_t address)
{
	uint64_t value;

	remote_field(memory, address, &value, sizeof(value));
	return le64toh(value);
}

/* Room for a structure whose fields are read together. */
#define REMOTE_STRUCTURE_BYTES 512

/*
 * A structure, whole or not at all (zeros, with the state set): in the cache itself, or in `room`
 * where it is not in one piece. At most REMOTE_STRUCTURE_BYTES; until remote_memory_forget().
 */
static inline const uint8_t *remote_structure(struct remote_memory *memory, uint64_t address,
					      uint8_t room[REMOTE_STRUCTURE_BYTES],
					      size_t size_bytes)
{
	const uint8_t *bytes = remote_peek(memory, address, size_bytes);

	if (bytes)
		return bytes;
	remote_read(memory, address, room, size_bytes);
	return room;
}

/* Fields of such a structure. */
static inline uint16_t structure_u16(const uint8_t *structure, uint32_t offset)
{
	uint16_t value;

	memcpy(&value, structure + offset, sizeof(value));
	return le16toh(value);
}

static inline uint32_t structure_u32(const uint8_t *structure, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, structure + offset, sizeof(value));
	return le32toh(value);
}

static inline uint64_t structure_u64(const uint8_t *structure, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, structure + offset, sizeof(value));
	return le64toh(value);
}

/* remote_want() where it is not known whether the pages are there. */
void remote_want_pages(struct remote_memory *memory, uint64_t address, size_t size_bytes);

/* Notes pages before they are read, so that they come with the next fetch. Unlike a read it is no
 * failure. */
static inline void remote_want(struct remote_memory *memory, uint64_t address, size_t size_bytes)
{
	const struct remote_front *front = (const struct remote_front *)memory;
	uint64_t number = address / REMOTE_PAGE_BYTES;

	if ((front->windows[number % REMOTE_WINDOWS].number != number &&
	     front->last_wanted != number) ||
	    size_bytes > REMOTE_PAGE_BYTES - (size_t)(address % REMOTE_PAGE_BYTES))
		remote_want_pages(memory, address, size_bytes);
}

/* Tells the processor that an address will be read soon. */
static inline void remote_prefetch(const struct remote_memory *memory, uint64_t address)
{
	const struct remote_front *front = (const struct remote_front *)memory;
	uint64_t number = address / REMOTE_PAGE_BYTES;
	const struct remote_window *window = &front->windows[number % REMOTE_WINDOWS];

	if (window->number == number)
		prefetch(window->bytes + address % REMOTE_PAGE_BYTES);
}

/*
 * Notes a range that is to be read past the cache, straight into `room`, with
 * the next fetch. *done_ret is written then: the bytes that could be read,
 * counted from the start. Both must stay where they are until that fetch.
 */
void remote_want_copy(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes,
		      size_t *done_ret);

/* Reads what was noted. *again_ret: something was noted, so items that were pending can go on. */
struct sym_error *remote_memory_fetch(struct remote_memory *memory, bool *again_ret);

/* Reads at once, with a system call where a page is missing. Unreadable memory is an IO error that
 * names `what`. */
struct sym_error *remote_read_now(struct remote_memory *memory, uint64_t address, void *room,
				  size_t size_bytes, const char *what);

/* Forgets every page, so that what is read from now on is newer than this call. */
void remote_memory_forget(struct remote_memory *memory);

struct remote_memory_cost {
	uint64_t calls; /* of ops->read */
	uint64_t bytes;
	uint64_t unreadable_pages;
};

const struct remote_memory_cost *remote_memory_cost(const struct remote_memory *memory);

DEFINE_GUARD(remote_memory, struct remote_memory *, remote_memory_close)
#define AUTO_REMOTE_MEMORY GUARDED(remote_memory)

#endif
