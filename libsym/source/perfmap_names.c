/* SPDX-License-Identifier: MIT */
#include "libsym/source/perfmap_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/block_digest.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/huge_memory.h"
#include "libsym/base/sparse_memory.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/perfmap_tier.h"

const char perfmap_names_lost[] = "the perf map was written anew or cut after it was read";

enum {
	FEWEST = 64,  /* come alone */
	STRETCH = 64, /* blocks that come together, of as much text at most as this: */
	STRETCH_BYTES = 1 << 20,
	FEWEST_RESERVED = 1 << 20,
	FEWEST_OPEN = 1 << 18,
	OWN_BYTES = 1 << 16,
	FEWEST_PLACES = 16
};

static const uint64_t most_reserved = (uint64_t)PERFMAP_NAMES_BLOCKS * PERFMAP_NAMES_BLOCK_BYTES;

/* Where there are not as many addresses, fewer do for most maps. */
static bool reserve(struct perfmap_names *names)
{
	for (uint64_t size = most_reserved; !names->text && size >= FEWEST_RESERVED; size /= 2) {
		names->text = sparse_memory_reserve(size);
		names->reserved_bytes = size;
	}
	return names->text != NULL;
}

struct perfmap_names *perfmap_names_create(bool tier_in_name, size_t most_kept_bytes)
{
	struct perfmap_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	pthread_mutex_init(&names->lock, NULL);
	names->tier_in_name = tier_in_name;
	names->most_kept_bytes = most_kept_bytes;
	names->here = sparse_memory_create(PERFMAP_NAMES_BLOCKS);
	if (!names->here || !reserve(names)) {
		perfmap_names_destroy(names);
		return NULL;
	}
	return names;
}

void perfmap_names_destroy(struct perfmap_names *names)
{
	if (!names)
		return;
	sparse_memory_destroy(names->text, names->reserved_bytes);
	sparse_memory_destroy(names->here, PERFMAP_NAMES_BLOCKS);
	free(names->places);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

static uint32_t block_of(uint64_t number)
{
	return (uint32_t)(number >> PERFMAP_NAMES_BLOCK_BITS);
}

/* In whole blocks. */
static uint64_t blocks_of(uint64_t size_bytes)
{
	return (size_bytes + PERFMAP_NAMES_BLOCK_BYTES - 1) &
	       ~((uint64_t)PERFMAP_NAMES_BLOCK_BYTES - 1);
}

static bool is_here(const struct perfmap_names *names, uint32_t block)
{
	return atomic_load_explicit(&names->here[block], memory_order_relaxed);
}

/* Its names have been written. */
static void publish(struct perfmap_names *names, uint32_t block)
{
	atomic_store_explicit(&names->here[block], 1, memory_order_release);
}

/* ---- numbers ----------------------------------------------------------------------------- */

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* What is going to be kept is written at once. */
static void populate(const struct perfmap_names *names)
{
	uint64_t size_bytes = least(names->expected_bytes, names->most_kept_bytes);

	/* More may be no more than what a file says it is. */
	if (!names->used_bytes)
		huge_memory_populate(names->text, least(size_bytes, PERFMAP_NAMES_KEPT_BYTES));
}

/* Makes the memory of so many more numbers one that may be written. */
static bool open_more(struct perfmap_names *names, uint64_t size_bytes)
{
	/* Text comes in pieces, each of which begins with a block. */
	uint64_t expected_bytes = names->expected_bytes + names->expected_bytes / 8;
	uint64_t wanted_bytes = 2 * names->open_bytes,
		 needed_bytes = names->used_bytes + size_bytes;

	if (needed_bytes <= names->open_bytes)
		return true;
	if (wanted_bytes < FEWEST_OPEN)
		wanted_bytes = FEWEST_OPEN;
	if (wanted_bytes < names->used_bytes + expected_bytes)
		wanted_bytes = blocks_of(names->used_bytes + expected_bytes);
	if (wanted_bytes < needed_bytes)
		wanted_bytes = needed_bytes;
	wanted_bytes = least(wanted_bytes, names->reserved_bytes);
	/* Where that is too much (vm.overcommit_memory is 2), there may be what is needed. */
	if (!sparse_memory_open(names->text, wanted_bytes)) {
		wanted_bytes = needed_bytes;
		if (!sparse_memory_open(names->text, wanted_bytes))
			return false;
	}
	names->open_bytes = wanted_bytes;
	populate(names);
	names->expected_bytes = 0;
	return true;
}

static bool grow_places(struct perfmap_names *names, uint32_t count)
{
	uint32_t capacity = names->place_capacity ? 2 * names->place_capacity : FEWEST_PLACES;
	struct perfmap_names_place *places;

	if (count <= names->place_capacity)
		return true;
	if (capacity < count)
		capacity = count;
	pthread_mutex_lock(&names->lock);
	places = reallocarray(names->places, capacity, sizeof(*places));
	if (places) {
		names->places = places;
		names->place_capacity = capacity;
	}
	pthread_mutex_unlock(&names->lock);
	return places != NULL;
}

/* Numbers of so many bytes, from *ret on, which is one of a block; their places are nowhere. */
static enum perfmap_names_outcome take_numbers(struct perfmap_names *names, uint64_t size_bytes,
					       uint32_t *ret)
{
	uint32_t first = block_of(names->used_bytes), end;

	size_bytes = blocks_of(size_bytes);
	if (names->reserved_bytes - names->used_bytes < size_bytes) {
		names->is_full = true;
		/* Less was reserved where there was no room for more. */
		return names->reserved_bytes < most_reserved ? PERFMAP_NAMES_NO_MEMORY
							     : PERFMAP_NAMES_FULL;
	}
	end = first + block_of(size_bytes);
	if (!open_more(names, size_bytes) || !grow_places(names, end))
		return PERFMAP_NAMES_NO_MEMORY;
	memset(&names->places[first], 0, (end - first) * sizeof(*names->places));
	*ret = (uint32_t)names->used_bytes;
	names->used_bytes += size_bytes;
	return PERFMAP_NAMES_ADDED;
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

/* The text of the open block, whose names end where they were added to. */
static void keep_block(struct perfmap_names *names, size_t size_bytes)
{
	char *block = names->text + names->block_number;

	memcpy(block + (names->begin - names->block), names->begin, size_bytes);
	for (uint32_t i = 0; i < names->name_count; i++)
		block[names->name_ends[i]] = '\0';
	names->kept_bytes += size_bytes;
	publish(names, block_of(names->block_number));
}

/* The block has got all its names. */
static void close_block(struct perfmap_names *names)
{
	size_t size_bytes = (size_t)(names->end - names->begin);
	size_t begin_bytes = (size_t)(names->begin - names->block);

	names->places[block_of(names->block_number)] = (struct perfmap_names_place){
		.digest = names->keeps ? 0 : block_digest(names->begin, size_bytes),
		.offset = names->added_offset + (uint64_t)(names->begin - names->added),
		.fd = names->fd,
		.begin_bytes = begin_bytes % PERFMAP_NAMES_BLOCK_BYTES,
		.size_bytes = (uint32_t)size_bytes,
	};
	if (names->keeps)
		keep_block(names, size_bytes);
	names->block = names->begin = names->end = NULL;
}

void perfmap_names_expect(struct perfmap_names *names, uint64_t size_bytes)
{
	names->expected_bytes = size_bytes;
}

void perfmap_names_begin(struct perfmap_names *names, int fd, uint64_t offset, const char *text,
			 size_t size_bytes, bool keeps_all)
{
	names->block = names->begin = names->end = NULL;
	names->has_numbers = false;
	names->fd = fd;
	names->keeps_all = keeps_all;
	names->added = text;
	names->added_bytes = size_bytes;
	names->added_offset = offset;
}

void perfmap_names_end(struct perfmap_names *names)
{
	if (names->block)
		close_block(names);
	atomic_store_explicit(&names->ended_blocks, block_of(names->used_bytes),
			      memory_order_release);
}

/* ---- adding ------------------------------------------------------------------------------ */

static enum perfmap_names_outcome add_own(struct perfmap_names *names, const char *name,
					  size_t name_bytes, uint32_t *number_ret)
{
	uint32_t number = names->own_number;

	if (names->own_left_bytes <= name_bytes) {
		size_t size_bytes = name_bytes < OWN_BYTES ? OWN_BYTES : name_bytes + 1;
		enum perfmap_names_outcome outcome = take_numbers(names, size_bytes, &number);

		if (outcome != PERFMAP_NAMES_ADDED)
			return outcome;
		names->own_left_bytes = (uint32_t)blocks_of(size_bytes);
	}
	memcpy(names->text + number, name, name_bytes);
	names->text[number + name_bytes] = '\0';
	publish(names, block_of(number));
	*number_ret = number;
	names->own_number = number + (uint32_t)name_bytes + 1;
	names->own_left_bytes -= (uint32_t)name_bytes + 1;
	return PERFMAP_NAMES_ADDED;
}

enum perfmap_names_outcome perfmap_names_number(struct perfmap_names *names, uint32_t *number_ret)
{
	enum perfmap_names_outcome outcome = PERFMAP_NAMES_ADDED;

	if (!names->has_numbers)
		outcome = take_numbers(names, names->added_bytes, &names->added_number);
	names->has_numbers = outcome == PERFMAP_NAMES_ADDED;
	*number_ret = names->added_number;
	return outcome;
}

/* The block in which a name begins, at `offset` of the text. */
static void open_block(struct perfmap_names *names, size_t offset)
{
	size_t block_bytes = offset & ~((size_t)PERFMAP_NAMES_BLOCK_BYTES - 1);

	if (names->block)
		close_block(names);
	names->block = names->added + block_bytes;
	names->block_number = names->added_number + (uint32_t)block_bytes;
	names->begin = names->added + offset;
	names->keeps = names->keeps_all || names->kept_bytes < names->most_kept_bytes;
	names->name_count = 0;
}

enum perfmap_names_outcome perfmap_names_add_apart(struct perfmap_names *names, const char *name,
						   size_t name_bytes, size_t whole_bytes,
						   uint32_t *number_ret)
{
	enum perfmap_names_outcome outcome;

	if (!perfmap_names_ends_plainly(name, name_bytes, whole_bytes))
		return add_own(names, name, name_bytes, number_ret);
	outcome = perfmap_names_number(names, number_ret);
	if (outcome != PERFMAP_NAMES_ADDED)
		return outcome;
	open_block(names, (size_t)(name - names->added));
	return perfmap_names_add(names, name, name_bytes, whole_bytes, number_ret);
}

/* How many of them begin in the block of the first one. */
static size_t count_of_block(const struct numbered_range *ranges, size_t count)
{
	uint32_t block = block_of(ranges[0].number);
	size_t here = 1;

	if (block_of(ranges[count - 1].number) == block)
		return count;
	while (block_of(ranges[here].number) == block)
		here++;
	return here;
}

/* Lines of the open block. */
static void add_to_block(struct perfmap_names *names, const struct numbered_range *ranges,
			 const uint32_t *ends, size_t count)
{
	names->end = names->added + (ends[count - 1] - names->added_number) + 1;
	for (size_t i = 0; names->keeps && i < count; i++) {
		unsigned int tier = names->tier_in_name ? 0 : perfmap_tier_of(ranges[i].value);

		names->name_ends[names->name_count++] =
			ends[i] - perfmap_tier_bytes[tier] - names->block_number;
	}
}

void perfmap_names_add_lines(struct perfmap_names *names, const struct numbered_range *ranges,
			     const uint32_t *ends, size_t count)
{
	while (count) {
		size_t here = count_of_block(ranges, count);

		if (!names->block || block_of(ranges->number) != block_of(names->block_number))
			open_block(names, ranges->number - names->added_number);
		add_to_block(names, ranges, ends, here);
		ranges += here;
		ends += here;
		count -= here;
	}
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
	return other / STRETCH == block / STRETCH && names->places[other].size_bytes &&
	       names->places[other].fd == names->places[block].fd;
}

/* Blocks first to last, and the text from the beginning of the first to the end of the last. */
struct stretch {
	uint32_t first, last;
	uint64_t offset;
	size_t size_bytes;
};

static void set_bounds(const struct perfmap_names *names, struct stretch *stretch)
{
	const struct perfmap_names_place *last = &names->places[stretch->last];

	stretch->offset = names->places[stretch->first].offset;
	stretch->size_bytes = (size_t)(last->offset - stretch->offset) + last->size_bytes;
}

static struct stretch choose_stretch(const struct perfmap_names *names, uint32_t block)
{
	struct stretch alone = { .first = block, .last = block }, stretch = alone;
	uint32_t end = atomic_load_explicit(&names->ended_blocks, memory_order_acquire);

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

/* Copies and publishes those blocks whose bytes are what they were; how many. */
static uint32_t take_stretch(struct perfmap_names *names, const struct stretch *stretch,
			     const char *text, size_t size_bytes)
{
	uint32_t taken = 0;

	for (uint32_t block = stretch->first; block <= stretch->last; block++) {
		const struct perfmap_names_place *place = &names->places[block];
		/* What was read again after a failure lies before what had been read. */
		uint64_t at = place->offset - stretch->offset;
		char *copy = names->text + (size_t)block * PERFMAP_NAMES_BLOCK_BYTES +
			     place->begin_bytes;

		if (is_here(names, block) || at > size_bytes ||
		    place->size_bytes > size_bytes - at ||
		    block_digest(text + at, place->size_bytes) != place->digest)
			continue;
		memcpy(copy, text + at, place->size_bytes);
		end_names(copy, place->size_bytes, names->tier_in_name);
		publish(names, block);
		taken++;
	}
	return taken;
}

static void bring(struct perfmap_names *names, uint32_t block)
{
	struct stretch stretch = choose_stretch(names, block);
	char *text AUTO_FREE = malloc(stretch.size_bytes);

	if (text)
		names->brought_count += take_stretch(
			names, &stretch, text,
			read_at(names->places[block].fd, stretch.offset, text, stretch.size_bytes));
}

__attribute__((noinline)) const char *perfmap_names_bring(const struct perfmap_names *names,
							  uint32_t number)
{
	struct perfmap_names *mine = (struct perfmap_names *)names;

	pthread_mutex_lock(&mine->lock);
	if (!is_here(names, block_of(number)))
		bring(mine, block_of(number));
	pthread_mutex_unlock(&mine->lock);
	return perfmap_names_here(names, number);
}
