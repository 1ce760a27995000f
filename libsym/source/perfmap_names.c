/* SPDX-License-Identifier: MIT */
#include "libsym/source/perfmap_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/block_digest.h"
#include "libsym/base/huge_memory.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_tier.h"

const char perfmap_names_lost[] = "the perf map was written anew or cut after it was read";

enum {
	FEWEST = 64,  /* come alone */
	STRETCH = 64, /* blocks that come together, of as much text at most as this: */
	STRETCH_BYTES = 1 << 20,
	FEWEST_BLOCKS = 16,
	SMALLEST_ROOM = 1 << 15,
	LARGEST_ROOM = 2 << 20
};

struct perfmap_names *perfmap_names_create(bool tier_in_name, size_t most_kept_bytes)
{
	struct perfmap_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->tier_in_name = tier_in_name;
	names->most_kept_bytes = most_kept_bytes;
	pthread_mutex_init(&names->lock, NULL);
	return names;
}

void perfmap_names_destroy(struct perfmap_names *names)
{
	if (!names)
		return;
	while (names->rooms) {
		struct perfmap_names_room *next = names->rooms->next;

		free(names->rooms);
		names->rooms = next;
	}
	free(names->places);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

static size_t room_of(size_t size_bytes)
{
	return (size_bytes + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

/* Each room is twice the one before. With the lock, as what follows. */
static bool add_room(struct perfmap_names *names, size_t size_bytes)
{
	size_t capacity_bytes = names->rooms ? 2 * names->rooms->capacity_bytes : SMALLEST_ROOM;
	struct perfmap_names_room *room;
	size_t populated_bytes;

	if (capacity_bytes > LARGEST_ROOM)
		capacity_bytes = LARGEST_ROOM;
	if (capacity_bytes < names->expected_bytes)
		capacity_bytes = names->expected_bytes;
	if (capacity_bytes < size_bytes)
		capacity_bytes = size_bytes;
	populated_bytes = names->expected_bytes;
	names->expected_bytes = 0;
	room = huge_memory_allocate(sizeof(*room) + capacity_bytes);
	if (!room)
		return false;
	/* More may be no more than what a file says it is. */
	if (populated_bytes <= PERFMAP_NAMES_KEPT_BYTES)
		huge_memory_populate(room, populated_bytes);
	*room = (struct perfmap_names_room){ names->rooms, 0, capacity_bytes };
	names->rooms = room;
	return true;
}

/* Memory that stays as long as the names, for pointers too; NULL when there is none. */
static char *take_room(struct perfmap_names *names, size_t size_bytes)
{
	struct perfmap_names_room *room = names->rooms;

	size_bytes = room_of(size_bytes);
	if (!room || room->capacity_bytes - room->used_bytes < size_bytes) {
		if (!add_room(names, size_bytes))
			return NULL;
		room = names->rooms;
	}
	room->used_bytes += size_bytes;
	return room->bytes + room->used_bytes - size_bytes;
}

static void give_back_last(struct perfmap_names *names, size_t size_bytes)
{
	names->rooms->used_bytes -= room_of(size_bytes);
}

static char *take_room_locked(struct perfmap_names *names, size_t size_bytes)
{
	char *text;

	pthread_mutex_lock(&names->lock);
	text = take_room(names, size_bytes);
	pthread_mutex_unlock(&names->lock);
	return text;
}

/* What is there stays where readers have it; new tables are twice as large. */
static bool grow(struct perfmap_names *names)
{
	uint32_t capacity = names->capacity ? 2 * names->capacity : FEWEST_BLOCKS;
	perfmap_names_text *old = atomic_load(&names->texts), *texts;
	struct perfmap_names_place *places;

	texts = (perfmap_names_text *)take_room(names, capacity * sizeof(*texts));
	if (!texts)
		return false;
	places = reallocarray(names->places, capacity, sizeof(*places));
	if (!places)
		return false;
	names->places = places;
	for (uint32_t i = 0; i < capacity; i++)
		atomic_init(&texts[i], i < names->capacity ? atomic_load(&old[i]) : NULL);
	names->capacity = capacity;
	atomic_store_explicit(&names->texts, texts, memory_order_release);
	return true;
}

static enum perfmap_names_outcome add_block(struct perfmap_names *names, uint32_t *ret)
{
	bool has_room;

	if (perfmap_names_are_full(names))
		return PERFMAP_NAMES_FULL;
	pthread_mutex_lock(&names->lock);
	has_room = names->block_count < names->capacity || grow(names);
	pthread_mutex_unlock(&names->lock);
	if (!has_room)
		return PERFMAP_NAMES_NO_MEMORY;
	*ret = names->block_count++;
	/* Nowhere, until it is closed, which a failure may prevent. */
	names->places[*ret] = (struct perfmap_names_place){ .fd = -1 };
	return PERFMAP_NAMES_ADDED;
}

static perfmap_names_text *text_of(const struct perfmap_names *names, uint32_t block)
{
	return atomic_load_explicit(&names->texts, memory_order_relaxed) + block;
}

static struct perfmap_names_place *place_of(const struct perfmap_names *names, uint32_t block)
{
	return &names->places[block];
}

/* ---- a block ------------------------------------------------------------------------- */

/* Ends each name of the text with a NUL. What lies between names does not matter. */
static void end_names(char *text, size_t size_bytes, bool tier_in_name)
{
	char *end = text + size_bytes, *newline;
	const char *tier;

	for (; (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1) {
		*newline = '\0';
		if (!tier_in_name && newline > text && newline[-1] == ']')
			text[perfmap_split_tier(text, (size_t)(newline - text), &tier)] = '\0';
	}
}

/* The block has got all its names; the text of one that is kept is copied. */
static bool close_block(struct perfmap_names *names)
{
	size_t size_bytes = (size_t)(names->end - names->begin);
	char *copy = NULL;

	if (names->kept_bytes < names->most_kept_bytes) {
		copy = take_room_locked(names, size_bytes);
		if (!copy)
			return false;
		memcpy(copy, names->begin, size_bytes);
		end_names(copy, size_bytes, names->tier_in_name);
		names->kept_bytes += size_bytes;
	}
	*place_of(names, names->block) = (struct perfmap_names_place){
		.digest = copy ? 0 : block_digest(names->begin, size_bytes),
		.offset = names->text_offset + (uint64_t)(names->begin - names->text),
		.size_bytes = (uint32_t)size_bytes,
		.fd = names->fd,
	};
	atomic_store_explicit(text_of(names, names->block), copy, memory_order_release);
	names->begin = names->end = NULL;
	return true;
}

void perfmap_names_expect(struct perfmap_names *names, uint64_t size_bytes)
{
	size_t left_bytes = names->most_kept_bytes > names->kept_bytes
				    ? names->most_kept_bytes - names->kept_bytes
				    : 0;

	/* And the tables of its blocks. */
	size_bytes += size_bytes / PERFMAP_NAMES_BLOCK_BYTES * 4 * sizeof(perfmap_names_text);
	names->expected_bytes = size_bytes < left_bytes ? (size_t)size_bytes : left_bytes;
}

void perfmap_names_begin(struct perfmap_names *names, int fd, uint64_t offset, const char *text)
{
	names->begin = names->end = NULL;
	names->fd = fd;
	names->text = text;
	names->text_offset = offset;
}

bool perfmap_names_end(struct perfmap_names *names)
{
	if (names->begin && !close_block(names))
		return false;
	atomic_store_explicit(&names->ended_count, names->block_count, memory_order_release);
	return true;
}

/* ---- adding ------------------------------------------------------------------------------ */

/* A block with room for a name; others go on in it. */
static enum perfmap_names_outcome make_own(struct perfmap_names *names, size_t bytes)
{
	size_t capacity = bytes < PERFMAP_NAMES_BLOCK_BYTES ? PERFMAP_NAMES_BLOCK_BYTES : bytes;
	uint32_t block;
	enum perfmap_names_outcome outcome = add_block(names, &block);
	char *own;

	if (outcome != PERFMAP_NAMES_ADDED)
		return outcome;
	own = take_room_locked(names, capacity);
	if (!own)
		return PERFMAP_NAMES_NO_MEMORY;
	atomic_store_explicit(text_of(names, block), own, memory_order_release);
	names->own = own;
	names->own_bytes = 0;
	names->own_capacity = capacity;
	names->own_block = block;
	return PERFMAP_NAMES_ADDED;
}

static enum perfmap_names_outcome add_own(struct perfmap_names *names, const char *name,
					  size_t name_bytes, uint32_t *number_ret)
{
	if (!names->own || names->own_bytes >= PERFMAP_NAMES_BLOCK_BYTES ||
	    names->own_capacity - names->own_bytes <= name_bytes) {
		enum perfmap_names_outcome outcome = make_own(names, name_bytes + 1);

		if (outcome != PERFMAP_NAMES_ADDED)
			return outcome;
	}
	memcpy(names->own + names->own_bytes, name, name_bytes);
	names->own[names->own_bytes + name_bytes] = '\0';
	*number_ret = names->own_block << PERFMAP_NAMES_OFFSET_BITS | (uint32_t)names->own_bytes;
	names->own_bytes += name_bytes + 1;
	return PERFMAP_NAMES_ADDED;
}

enum perfmap_names_outcome perfmap_names_add_apart(struct perfmap_names *names, const char *name,
						   size_t name_bytes, size_t whole_bytes,
						   uint32_t *number_ret)
{
	enum perfmap_names_outcome outcome;

	if (!perfmap_names_ends_plainly(name, name_bytes, whole_bytes))
		return add_own(names, name, name_bytes, number_ret);
	if (!perfmap_names_end(names))
		return PERFMAP_NAMES_NO_MEMORY;
	outcome = add_block(names, &names->block);
	if (outcome != PERFMAP_NAMES_ADDED)
		return outcome;
	names->begin = name;
	return perfmap_names_add(names, name, name_bytes, whole_bytes, number_ret);
}

/* ---- asking ------------------------------------------------------------------------------ */

/* As much as the file has. */
static size_t read_at(int fd, uint64_t offset, char *room, size_t size_bytes)
{
	size_t done = 0;

	while (done < size_bytes) {
		ssize_t got = pread(fd, room + done, size_bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static bool is_neighbour(const struct perfmap_names *names, uint32_t block, uint32_t other)
{
	return other / STRETCH == block / STRETCH &&
	       place_of(names, other)->fd == place_of(names, block)->fd;
}

/* Blocks first to last, and the text from the beginning of the first to the end of the last. */
struct stretch {
	uint32_t first, last;
	uint64_t offset;
	size_t size_bytes;
};

static void set_bounds(const struct perfmap_names *names, struct stretch *stretch)
{
	const struct perfmap_names_place *last = place_of(names, stretch->last);

	stretch->offset = place_of(names, stretch->first)->offset;
	stretch->size_bytes = (size_t)(last->offset - stretch->offset) + last->size_bytes;
}

static struct stretch choose_stretch(const struct perfmap_names *names, uint32_t block)
{
	struct stretch alone = { .first = block, .last = block }, stretch = alone;
	uint32_t end = atomic_load_explicit(&names->ended_count, memory_order_acquire);

	set_bounds(names, &alone);
	if (names->brought_count < FEWEST || names->brought_count < end / PERFMAP_NAMES_FEW)
		return alone;
	while (stretch.first && is_neighbour(names, block, stretch.first - 1))
		stretch.first--;
	while (stretch.last + 1 < end && is_neighbour(names, block, stretch.last + 1))
		stretch.last++;
	set_bounds(names, &stretch);
	return stretch.size_bytes <= STRETCH_BYTES ? stretch : alone;
}

/* Publishes those blocks whose bytes are what they were; how many. */
static uint32_t take_stretch(struct perfmap_names *names, const struct stretch *stretch, char *text,
			     size_t size_bytes)
{
	uint32_t taken = 0;

	for (uint32_t block = stretch->first; block <= stretch->last; block++) {
		const struct perfmap_names_place *place = place_of(names, block);
		/* What was read again after a failure lies before what had been read. */
		uint64_t at = place->offset - stretch->offset;

		if (atomic_load_explicit(text_of(names, block), memory_order_relaxed) ||
		    at > size_bytes || place->size_bytes > size_bytes - at ||
		    block_digest(text + at, place->size_bytes) != place->digest)
			continue;
		end_names(text + at, place->size_bytes, names->tier_in_name);
		atomic_store_explicit(text_of(names, block), text + at, memory_order_release);
		taken++;
	}
	return taken;
}

static void bring(struct perfmap_names *names, uint32_t block)
{
	struct stretch stretch = choose_stretch(names, block);
	char *text = take_room(names, stretch.size_bytes);
	uint32_t taken = 0;

	if (text)
		taken = take_stretch(names, &stretch, text,
				     read_at(place_of(names, block)->fd, stretch.offset, text,
					     stretch.size_bytes));
	if (text && !taken)
		give_back_last(names, stretch.size_bytes);
	names->brought_count += taken;
}

__attribute__((noinline)) const char *perfmap_names_bring(const struct perfmap_names *names,
							  uint32_t number)
{
	struct perfmap_names *mine = (struct perfmap_names *)names;
	uint32_t block = number >> PERFMAP_NAMES_OFFSET_BITS;
	const char *text;

	pthread_mutex_lock(&mine->lock);
	if (!atomic_load(text_of(names, block)))
		bring(mine, block);
	text = atomic_load(text_of(names, block));
	pthread_mutex_unlock(&mine->lock);
	return text ? text + number % PERFMAP_NAMES_BLOCK_BYTES : NULL;
}
