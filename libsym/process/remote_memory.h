/* SPDX-License-Identifier: MIT */
/*
 * The memory of another process, read page by page through a cache.
 * It knows no runtime. Two functions supply the bytes: from a live process, a core file or a test.
 *
 * Reading is deferred.
 * A read of a missing page returns 0 and records the page.
 * remote_memory_fetch() then reads all recorded pages with few system calls, and the reader starts
 * again:
 *
 *	do {
 *		for each item that is not done
 *			remote_begin(memory), read it, look at remote_state(memory)
 *		error = remote_memory_fetch(memory, &again);
 *	} while (!error && again);
 *
 * So code that follows pointers stays straight, and ten thousand methods cost a few dozen calls.
 * As in base/reader the first failure sticks: later reads return 0 and record nothing, until
 * remote_begin().
 */
#ifndef LIBSYM_PROCESS_REMOTE_MEMORY_H
#define LIBSYM_PROCESS_REMOTE_MEMORY_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "libsym/budget_api.h"
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
	/* Makes an error of a negative errno of read(). */
	struct sym_error *(*error)(void *context, int errno_value);
	void (*close)(void *context); /* may be NULL */
};

#define REMOTE_MAX_PIECES 1024
#define REMOTE_PAGE_BYTES 4096

/* On failure `context` stays the caller's. */
struct sym_error *remote_memory_create(const struct remote_memory_ops *ops, void *context,
				       struct remote_memory **ret);

/*
 * Opens the memory of a running process by process_vm_readv(), or by /proc/PID/mem where only that
 * is permitted.
 * Nothing is read yet: PERMISSION and NOT_FOUND come from the first fetch.
 */
struct sym_error *remote_memory_open_process(int32_t pid, struct remote_memory **ret);

void remote_memory_close(struct remote_memory *memory);
/*
 * Charges all further reading to `account`, until the memory is closed. The time limit applies too.
 */
void remote_memory_charge(struct remote_memory *memory, struct budget_account *account);

enum remote_state {
	REMOTE_OK = 0,
	REMOTE_PENDING,    /* a page was requested: fetch and start again */
	REMOTE_UNREADABLE, /* nothing is there */
};

/*
 * The start of struct remote_memory, for the inline functions here only. A field of a recently read
 * page costs a few instructions.
 */
#define REMOTE_WINDOWS 8192

struct remote_front {
	enum remote_state state;
	uint64_t last_wanted; /* number of the page that was requested last; 0: none */
	struct remote_window {
		uint64_t number; /* of the page; UINT64_MAX: none */
		const uint8_t *bytes;
	} windows[REMOTE_WINDOWS]; /* by the low bits of the number */
};

/* Clears the failure of the previous item. */
static inline void remote_begin(struct remote_memory *memory)
{
	((struct remote_front *)memory)->state = REMOTE_OK;
}

static inline enum remote_state remote_state(const struct remote_memory *memory)
{
	return ((const struct remote_front *)memory)->state;
}

/*
 * For layers above that wait for a copy or find invalid data: as if a read were pending or had
 * failed.
 */
void remote_set_pending(struct remote_memory *memory);
void remote_set_unreadable(struct remote_memory *memory);

/* Number of fetches so far. */
uint64_t remote_memory_round(const struct remote_memory *memory);

/* Whole or not at all; on failure `room` is zero. */
bool remote_read(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes);

/*
 * A pointer to the bytes in the cache, valid until remote_memory_forget().
 * NULL when they are not in the cache, cross the end of a page, or an earlier read failed.
 * It requests nothing and sets no failure; after NULL call remote_read().
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

/* Constant sizes only: compiles to one load. */
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
 * A structure, whole; on failure zeros, with the state set.
 * It is in the cache, or in `room` when it crosses pages. At most REMOTE_STRUCTURE_BYTES.
 * Valid until remote_memory_forget().
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

/* As remote_want(), when it is unknown whether the pages are cached. */
void remote_want_pages(struct remote_memory *memory, uint64_t address, size_t size_bytes);

/*
 * Requests pages before they are read, so that the next fetch reads them. Unlike a read it is not a
 * failure.
 */
static inline void remote_want(struct remote_memory *memory, uint64_t address, size_t size_bytes)
{
	const struct remote_front *front = (const struct remote_front *)memory;
	uint64_t number = address / REMOTE_PAGE_BYTES;

	if ((front->windows[number % REMOTE_WINDOWS].number != number &&
	     front->last_wanted != number) ||
	    size_bytes > REMOTE_PAGE_BYTES - (size_t)(address % REMOTE_PAGE_BYTES))
		remote_want_pages(memory, address, size_bytes);
}

/*
 * Requests a range to be read past the cache, straight into `room`, by the next fetch.
 * *done_ret then receives the number of bytes read, from the start.
 * Both must stay in place until that fetch.
 */
void remote_want_copy(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes,
		      size_t *done_ret);

/* Reads what was requested. *again_ret: pending items can continue. */
struct sym_error *remote_memory_fetch(struct remote_memory *memory, bool *again_ret);

/*
 * Reads at once, with a system call when a page is missing. Unreadable memory is an IO error that
 * names `what`.
 */
struct sym_error *remote_read_now(struct remote_memory *memory, uint64_t address, void *room,
				  size_t size_bytes, const char *what);

/* Drops every page, so that later reads are newer than this call. */
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
