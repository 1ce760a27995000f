/* SPDX-License-Identifier: MIT */
/*
 * The page cache over another process's memory.
 * A hash table maps a page number to a page. Slabs hold the pages. A list has the pages to fetch.
 * The content of an unreadable page is never guessed.
 */
#include "libsym/process/remote_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/limits.h"

/* Adjacent pages that were read together. */
struct slab {
	struct slab *next;
	uint8_t bytes[];
};

/* number 0 marks a free slot: page 0 of a process is never read. */
struct page {
	uint64_t number;
	const uint8_t *bytes; /* NULL while only requested; `unreadable` when nothing is there */
};

struct copy {
	uint64_t address;
	uint8_t *room;
	size_t size_bytes;
	size_t *done_ret;
};

struct remote_memory {
	struct remote_front front; /* first: see there */
	struct remote_memory_ops ops;
	void *context;

	struct page *pages; /* open addressing, a power of two */
	size_t page_capacity, page_count;
	struct slab *slabs;

	uint64_t *wanted; /* page numbers */
	size_t wanted_count, wanted_capacity;
	struct copy *copies;
	size_t copy_count, copy_capacity;

	bool no_memory, too_big;
	struct remote_memory_cost cost;
	uint64_t round;
	struct budget_account *account; /* NULL: none */
	uint64_t charged_bytes, copied_bytes;
};

static const uint8_t unreadable[1];

static void forget_windows(struct remote_memory *memory)
{
	memset(memory->front.windows, 0xff, sizeof(memory->front.windows));
}

struct sym_error *remote_memory_create(const struct remote_memory_ops *ops, void *context,
				       struct remote_memory **ret)
{
	struct remote_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return &sym_error_no_memory;
	memory->page_capacity = 1024;
	memory->pages = calloc(memory->page_capacity, sizeof(*memory->pages));
	if (!memory->pages) {
		free(memory);
		return &sym_error_no_memory;
	}
	forget_windows(memory);
	memory->ops = *ops;
	memory->context = context;
	*ret = memory;
	return NULL;
}

static void free_slabs(struct remote_memory *memory)
{
	while (memory->slabs) {
		struct slab *next = memory->slabs->next;

		free(memory->slabs);
		memory->slabs = next;
	}
}

void remote_memory_close(struct remote_memory *memory)
{
	if (!memory)
		return;
	if (memory->ops.close)
		memory->ops.close(memory->context);
	free_slabs(memory);
	free(memory->pages);
	free(memory->wanted);
	free(memory->copies);
	budget_release(memory->account, memory->charged_bytes);
	free(memory);
}

void remote_memory_charge(struct remote_memory *memory, struct budget_account *account)
{
	memory->account = account;
}

/* Charges the pages to be read. Forgotten pages leave their memory to others. */
static struct sym_error *remote_memory_charge_pages(struct remote_memory *memory)
{
	uint64_t copied_bytes = memory->copied_bytes, bytes;
	struct sym_error *error = budget_check_time(memory->account, NULL);

	for (size_t i = 0; i < memory->copy_count; i++)
		copied_bytes += memory->copies[i].size_bytes;
	bytes = copied_bytes + (uint64_t)memory->page_count * REMOTE_PAGE_BYTES;
	if (!error && bytes > memory->charged_bytes)
		error = budget_charge(memory->account, bytes - memory->charged_bytes, NULL);
	if (error)
		return error;
	memory->copied_bytes = copied_bytes;
	if (bytes > memory->charged_bytes)
		memory->charged_bytes = bytes;
	return NULL;
}

void remote_set_pending(struct remote_memory *memory)
{
	if (memory->front.state == REMOTE_OK)
		memory->front.state = REMOTE_PENDING;
}

void remote_set_unreadable(struct remote_memory *memory)
{
	if (memory->front.state == REMOTE_OK)
		memory->front.state = REMOTE_UNREADABLE;
}

uint64_t remote_memory_round(const struct remote_memory *memory)
{
	return memory->round;
}

const struct remote_memory_cost *remote_memory_cost(const struct remote_memory *memory)
{
	return &memory->cost;
}

void remote_memory_forget(struct remote_memory *memory)
{
	memset(memory->pages, 0, memory->page_capacity * sizeof(*memory->pages));
	memory->page_count = 0;
	forget_windows(memory);
	memory->wanted_count = 0;
	memory->front.last_wanted = 0;
	memory->copy_count = 0;
	memory->no_memory = memory->too_big = false;
	free_slabs(memory);
}

/* Finds the slot of a page, or the free slot for it. */
static inline struct page *page_slot(struct page *pages, size_t capacity, uint64_t number)
{
	size_t i = (size_t)((number * 0x9E3779B97F4A7C15u) >> 20) & (capacity - 1);

	while (pages[i].number && pages[i].number != number)
		i = (i + 1) & (capacity - 1);
	return &pages[i];
}

static bool page_table_grow(struct remote_memory *memory)
{
	size_t capacity = memory->page_capacity * 2;
	struct page *pages = calloc(capacity, sizeof(*pages));

	if (!pages)
		return false;
	for (size_t i = 0; i < memory->page_capacity; i++)
		if (memory->pages[i].number)
			*page_slot(pages, capacity, memory->pages[i].number) = memory->pages[i];
	free(memory->pages);
	memory->pages = pages;
	memory->page_capacity = capacity;
	return true;
}

static void page_note(struct remote_memory *memory, struct page *slot, uint64_t number)
{
	if (memory->page_count >= LIMIT_REMOTE_PAGES) {
		memory->too_big = true;
		return;
	}
	if (!grow_items((void **)&memory->wanted, &memory->wanted_capacity, memory->wanted_count,
			sizeof(*memory->wanted))) {
		memory->no_memory = true;
		return;
	}
	memory->wanted[memory->wanted_count++] = number;
	*slot = (struct page){ .number = number };
	if (++memory->page_count * 2 > memory->page_capacity && !page_table_grow(memory))
		memory->no_memory = true;
}

/* User-space addresses that can have a page: neither page 0 nor the kernel's half. */
static bool is_page_address(uint64_t address, size_t size_bytes)
{
	uint64_t limit = (uint64_t)1 << 57;

	return address >= REMOTE_PAGE_BYTES && address < limit && size_bytes <= limit - address;
}

void remote_want_pages(struct remote_memory *memory, uint64_t address, size_t size_bytes)
{
	uint64_t number = address / REMOTE_PAGE_BYTES, last;

	if (!size_bytes || !is_page_address(address, size_bytes))
		return;
	last = (address + size_bytes - 1) / REMOTE_PAGE_BYTES;
	memory->front.last_wanted = last;
	for (; number <= last; number++) {
		struct page *slot = page_slot(memory->pages, memory->page_capacity, number);

		if (memory->no_memory || memory->too_big)
			return;
		if (!slot->number)
			page_note(memory, slot, number);
	}
}

void remote_want_copy(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes,
		      size_t *done_ret)
{
	*done_ret = 0;
	if (!size_bytes || !is_page_address(address, size_bytes))
		return;
	if (!grow_items((void **)&memory->copies, &memory->copy_capacity, memory->copy_count,
			sizeof(*memory->copies))) {
		memory->no_memory = true;
		return;
	}
	memory->copies[memory->copy_count++] = (struct copy){ address, room, size_bytes, done_ret };
}

/* Bytes of a page, or NULL with the state set. */
static const uint8_t *page_bytes(struct remote_memory *memory, uint64_t number)
{
	struct page *slot;

	slot = page_slot(memory->pages, memory->page_capacity, number);
	if (slot->bytes == unreadable) {
		memory->front.state = REMOTE_UNREADABLE;
		return NULL;
	}
	if (slot->number && slot->bytes) {
		memory->front.windows[number % REMOTE_WINDOWS] =
			(struct remote_window){ number, slot->bytes };
		return slot->bytes;
	}
	return NULL;
}

bool remote_read(struct remote_memory *memory, uint64_t address, void *room, size_t size_bytes)
{
	uint8_t *to = room;
	uint64_t at = address;
	size_t left = size_bytes;

	if (memory->front.state == REMOTE_OK && !is_page_address(address, size_bytes))
		memory->front.state = REMOTE_UNREADABLE;
	while (left && memory->front.state == REMOTE_OK) {
		size_t within = (size_t)(at % REMOTE_PAGE_BYTES);
		size_t chunk =
			REMOTE_PAGE_BYTES - within < left ? REMOTE_PAGE_BYTES - within : left;
		const uint8_t *bytes = page_bytes(memory, at / REMOTE_PAGE_BYTES);

		if (!bytes && memory->front.state == REMOTE_OK) {
			remote_want(memory, at, left);
			memory->front.state = REMOTE_PENDING;
		}
		if (!bytes)
			break;
		memcpy(to, bytes + within, chunk);
		to += chunk;
		at += chunk;
		left -= chunk;
	}
	if (memory->front.state == REMOTE_OK)
		return true;
	if (size_bytes)
		memset(room, 0, size_bytes);
	return false;
}

/* ---- fetching ------------------------------------------------------------- */

/* One batch for ops->read. */
struct batch {
	struct iovec rooms[REMOTE_MAX_PIECES];
	struct iovec pieces[REMOTE_MAX_PIECES];
	size_t *done[REMOTE_MAX_PIECES]; /* NULL for runs of pages */
	size_t count;
};

static void batch_add(struct batch *batch, uint64_t address, void *room, size_t size_bytes,
		      size_t *done)
{
	batch->pieces[batch->count] = (struct iovec){ (void *)(uintptr_t)address, size_bytes };
	batch->rooms[batch->count] = (struct iovec){ room, size_bytes };
	batch->done[batch->count++] = done;
}

static void page_arrive(struct remote_memory *memory, uint64_t number, const uint8_t *bytes)
{
	page_slot(memory->pages, memory->page_capacity, number)->bytes = bytes;
	memory->front.windows[number % REMOTE_WINDOWS] = (struct remote_window){ number, bytes };
}

static void piece_skip(struct batch *batch, size_t i, size_t bytes)
{
	batch->pieces[i].iov_base = (uint8_t *)batch->pieces[i].iov_base + bytes;
	batch->rooms[i].iov_base = (uint8_t *)batch->rooms[i].iov_base + bytes;
	batch->pieces[i].iov_len -= bytes;
	batch->rooms[i].iov_len -= bytes;
}

/* Records `bytes` that arrived for piece `i`, from its current start. */
static void piece_advance(struct remote_memory *memory, struct batch *batch, size_t i, size_t bytes)
{
	uint64_t address = (uint64_t)(uintptr_t)batch->pieces[i].iov_base;
	const uint8_t *room = batch->rooms[i].iov_base;

	memory->cost.bytes += bytes;
	if (batch->done[i])
		*batch->done[i] += bytes;
	else
		for (size_t at = 0; at + REMOTE_PAGE_BYTES <= bytes; at += REMOTE_PAGE_BYTES)
			page_arrive(memory, (address + at) / REMOTE_PAGE_BYTES, room + at);
	piece_skip(batch, i, bytes);
}

/*
 * The byte at the front of piece `i` cannot be read: marks its page, or ends a copy there. Returns
 * false when the piece is used up.
 */
static bool piece_fail(struct remote_memory *memory, struct batch *batch, size_t i)
{
	uint64_t address = (uint64_t)(uintptr_t)batch->pieces[i].iov_base;

	memory->cost.unreadable_pages++;
	if (batch->done[i])
		return false;
	page_slot(memory->pages, memory->page_capacity, address / REMOTE_PAGE_BYTES)->bytes =
		unreadable;
	piece_skip(batch, i, REMOTE_PAGE_BYTES);
	return batch->pieces[i].iov_len > 0;
}

static struct sym_error *batch_run(struct remote_memory *memory, struct batch *batch)
{
	size_t i = 0;

	while (i < batch->count) {
		ssize_t bytes = memory->ops.read(memory->context, batch->rooms + i,
						 batch->pieces + i, batch->count - i);
		size_t left, first = i;

		memory->cost.calls++;
		if (bytes < 0 && bytes != -EFAULT)
			return memory->ops.error(memory->context, (int)-bytes);
		left = bytes > 0 ? (size_t)bytes : 0;
		while (i < batch->count && left >= batch->pieces[i].iov_len) {
			left -= batch->pieces[i].iov_len;
			piece_advance(memory, batch, i, batch->pieces[i].iov_len);
			i++;
		}
		if (i == batch->count)
			break;
		if (!batch->done[i])
			left -= left % REMOTE_PAGE_BYTES;
		if (left)
			piece_advance(memory, batch, i, left);
		else if (i == first && !piece_fail(memory, batch, i))
			i++;
	}
	batch->count = 0;
	return NULL;
}

static struct sym_error *fetch_pages(struct remote_memory *memory, struct batch *batch)
{
	struct sym_error *error;
	size_t i = 0;

	ascending_sort(memory->wanted, memory->wanted_count);
	while (i < memory->wanted_count) {
		size_t run = 1;
		struct slab *slab;

		while (i + run < memory->wanted_count &&
		       memory->wanted[i + run] == memory->wanted[i] + run)
			run++;
		slab = malloc(sizeof(*slab) + run * REMOTE_PAGE_BYTES);
		if (!slab)
			return &sym_error_no_memory;
		slab->next = memory->slabs;
		memory->slabs = slab;
		batch_add(batch, memory->wanted[i] * REMOTE_PAGE_BYTES, slab->bytes,
			  run * REMOTE_PAGE_BYTES, NULL);
		i += run;
		if (batch->count < REMOTE_MAX_PIECES)
			continue;
		error = batch_run(memory, batch);
		if (error)
			return error;
	}
	return NULL;
}

struct sym_error *remote_memory_fetch(struct remote_memory *memory, bool *again_ret)
{
	bool again = memory->wanted_count || memory->copy_count;
	AUTO_FREE struct batch *batch = NULL;
	struct sym_error *error;

	if (memory->no_memory)
		return &sym_error_no_memory;
	if (memory->too_big)
		return sym_error_create(SYM_ERROR_LIMIT,
					"more than %zu pages of the process would be read",
					LIMIT_REMOTE_PAGES);
	if (again) {
		error = remote_memory_charge_pages(memory);
		if (error) {
			memory->copy_count = 0;
			return error;
		}
		batch = malloc(sizeof(*batch));
		if (!batch)
			return &sym_error_no_memory;
		batch->count = 0;
		error = fetch_pages(memory, batch);
		for (size_t i = 0; !error && i < memory->copy_count; i++) {
			struct copy *copy = &memory->copies[i];

			batch_add(batch, copy->address, copy->room, copy->size_bytes,
				  copy->done_ret);
			if (batch->count == REMOTE_MAX_PIECES)
				error = batch_run(memory, batch);
		}
		if (!error && batch->count)
			error = batch_run(memory, batch);
		/* Also after a failure: the caller gives up and frees its rooms. */
		memory->copy_count = 0;
		if (error)
			return error;
	}
	memory->wanted_count = 0;
	memory->round++;
	*again_ret = again;
	return NULL;
}

struct sym_error *remote_read_now(struct remote_memory *memory, uint64_t address, void *room,
				  size_t size_bytes, const char *what)
{
	bool again;

	remote_begin(memory);
	while (!remote_read(memory, address, room, size_bytes)) {
		struct sym_error *error = NULL;

		if (remote_state(memory) == REMOTE_PENDING)
			error = remote_memory_fetch(memory, &again);
		else
			error = sym_error_create(SYM_ERROR_IO,
						 "cannot read %s at address 0x%" PRIx64, what,
						 address);
		if (error)
			return error;
		remote_begin(memory);
	}
	return NULL;
}

bool remote_string(struct remote_memory *memory, uint64_t address, char *room, size_t room_bytes)
{
	for (size_t i = 0; i < room_bytes; i++) {
		room[i] = (char)remote_u8(memory, address + i);
		if (remote_state(memory) != REMOTE_OK)
			return false;
		if (!room[i])
			return true;
	}
	return false;
}
