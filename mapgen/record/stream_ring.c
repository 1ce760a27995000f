/* SPDX-License-Identifier: MIT */
/*
 *   "Nettrace" ; u32 20 ; "!FastSerialization.1" ; objects ; 01
 *   object: 05 ; 05 01 u32 version u32 least-reader u32 length, name, 06 ; payload ; 06
 *   payload of Trace: 48 bytes; of all blocks: u32 size, zeros up to a multiple of 4 in the file,
 *   so many bytes
 *
 * See nettrace.h. A block that moves in the file gets other zeros.
 */
#include "mapgen/record/stream_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"

enum {
	HEADER_BYTES = 32,
	TYPE_BYTES = 15, /* of an object, before its name */
	TRACE_BYTES = 48,
	MOST_NAME_BYTES = 32,
	TAG_BEGIN = 5,
	TAG_NULL = 1,
};

struct object {
	char name[MOST_NAME_BYTES + 1];
	size_t head_bytes;      /* up to the payload */
	size_t padding_bytes;   /* behind the size of a block */
	uint32_t content_bytes; /* of a block, behind size and padding */
	size_t size_bytes;
	bool is_block;
};

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* False when there is no whole object at this offset of the file. */
static bool read_object(const uint8_t *bytes, size_t size_bytes, uint64_t offset,
			struct object *ret)
{
	uint32_t name_bytes;

	if (size_bytes < TYPE_BYTES || bytes[0] != TAG_BEGIN)
		return false;
	name_bytes = u32_at(bytes + TYPE_BYTES - 4);
	if (name_bytes > MOST_NAME_BYTES || size_bytes < TYPE_BYTES + name_bytes + 1 + 4)
		return false;
	*ret = (struct object){ .head_bytes = TYPE_BYTES + name_bytes + 1 };
	memcpy(ret->name, bytes + TYPE_BYTES, name_bytes);
	ret->is_block = strcmp(ret->name, "Trace") != 0;
	if (ret->is_block) {
		ret->content_bytes = u32_at(bytes + ret->head_bytes);
		ret->padding_bytes = (size_t)(-(offset + ret->head_bytes + 4) % 4);
		ret->size_bytes =
			ret->head_bytes + 4 + ret->padding_bytes + (size_t)ret->content_bytes + 1;
	} else {
		ret->size_bytes = ret->head_bytes + TRACE_BYTES + 1;
	}
	return ret->size_bytes <= size_bytes;
}

void stream_ring_init(struct stream_ring *ring)
{
	*ring = (struct stream_ring){ .segment = 1 };
}

void stream_ring_deinit(struct stream_ring *ring)
{
	free(ring->ranges);
	*ring = (struct stream_ring){ 0 };
}

/* The newest event counts for all ranges that end in these bytes: at worst one stays too long. */
static struct sym_error *add_range(struct stream_ring *ring, uint64_t size_bytes, uint64_t segment,
				   uint64_t last_ns)
{
	struct stream_range *last = ring->count ? &ring->ranges[ring->count - 1] : NULL;

	if (!last || last->segment != segment || last->end != ring->at) {
		if (!grow_items((void **)&ring->ranges, &ring->capacity, ring->count,
				sizeof(*ring->ranges)))
			return &sym_error_no_memory;
		last = &ring->ranges[ring->count++];
		*last = (struct stream_range){ .begin = ring->at, .segment = segment };
	}
	ring->at += size_bytes;
	last->end = ring->at;
	if (last_ns > last->last_ns)
		last->last_ns = last_ns;
	return NULL;
}

struct sym_error *stream_ring_take(struct stream_ring *ring, const uint8_t *bytes,
				   size_t size_bytes, uint64_t last_ns)
{
	struct sym_error *error = NULL;
	size_t done = 0;

	if (!ring->at && size_bytes >= HEADER_BYTES) {
		error = add_range(ring, HEADER_BYTES, 0, 0);
		done = HEADER_BYTES;
	}
	while (!error && done < size_bytes) {
		struct object object;
		bool stays;

		if (!read_object(bytes + done, size_bytes - done, ring->at, &object))
			break;
		stays = !object.is_block || !strcmp(object.name, "MetadataBlock");
		ring->segment += !strcmp(object.name, "SPBlock");
		error = add_range(ring, object.size_bytes, stays ? 0 : ring->segment, last_ns);
		done += object.size_bytes;
	}
	/* The tag that ends the stream. */
	if (!error && done < size_bytes)
		ring->at += size_bytes - done;
	return error;
}

/* Number of the first segment that has events since then. */
static uint64_t first_since(const struct stream_ring *ring, uint64_t from_ns)
{
	for (size_t i = 0; i < ring->count; i++)
		if (ring->ranges[i].segment && ring->ranges[i].last_ns >= from_ns)
			return ring->ranges[i].segment;
	return ring->segment;
}

void stream_ring_drop(struct stream_ring *ring, uint64_t from_ns, int fd)
{
	uint64_t first = first_since(ring, from_ns);
	size_t kept = 0;

	for (size_t i = 0; i < ring->count; i++) {
		const struct stream_range *range = &ring->ranges[i];

		if (!range->segment || range->segment >= first)
			ring->ranges[kept++] = *range;
		else
			(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)range->begin, (off_t)(range->end - range->begin));
	}
	ring->count = kept;
}

static bool put_object(const uint8_t *bytes, const struct object *object, FILE *to)
{
	static const uint8_t zeros[4];
	const uint8_t *content = bytes + object->head_bytes + 4 + object->padding_bytes;
	size_t padding;

	if (!object->is_block)
		return fwrite(bytes, object->size_bytes, 1, to) == 1;
	padding = (size_t)(-((uint64_t)ftello(to) + object->head_bytes + 4) % 4);
	return fwrite(bytes, object->head_bytes + 4, 1, to) == 1 &&
	       fwrite(zeros, 1, padding, to) == padding &&
	       fwrite(content, (size_t)object->content_bytes + 1, 1, to) == 1;
}

static bool put_range(const struct stream_range *range, int fd, FILE *to)
{
	size_t size_bytes = (size_t)(range->end - range->begin), done = 0;
	uint8_t *bytes AUTO_FREE = malloc(size_bytes);

	if (!bytes || pread(fd, bytes, size_bytes, (off_t)range->begin) != (ssize_t)size_bytes)
		return false;
	if (!range->begin) {
		done = HEADER_BYTES;
		if (fwrite(bytes, HEADER_BYTES, 1, to) != 1)
			return false;
	}
	while (done < size_bytes) {
		struct object object;

		if (!read_object(bytes + done, size_bytes - done, range->begin + done, &object))
			return true;
		if (!put_object(bytes + done, &object, to))
			return false;
		done += object.size_bytes;
	}
	return true;
}

struct sym_error *stream_ring_write(const struct stream_ring *ring, int fd, FILE *to)
{
	static const uint8_t end = TAG_NULL;
	bool is_good = true;

	for (size_t i = 0; is_good && i < ring->count; i++)
		is_good = put_range(&ring->ranges[i], fd, to);
	if (is_good && fwrite(&end, 1, 1, to) == 1 && !fflush(to))
		return NULL;
	return sym_error_create(SYM_ERROR_IO, "cannot keep events: %s", strerror(errno));
}
