/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/derived_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/elf/elf_names_only.h"
#include "libsym/libsym.h"

/* A file with 10 million functions. */
static const size_t most_names_bytes = (size_t)1 << 30;
/* Level 19 takes 40 times as long and saves nothing. */
static const int names_level = 9;

enum key_kind derived_object_phase(enum key_kind wanted, unsigned int phase)
{
	static const enum key_kind names[] = { KEY_NAMES, KEY_DEBUGINFO, KEY_EXECUTABLE };

	if (wanted == KEY_NAMES || wanted == KEY_NAMES_ZSTD)
		return phase < sizeof(names) / sizeof(*names) ? names[phase] : KEY_NONE;
	return phase ? KEY_NONE : wanted;
}

static bool read_object(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, source->offset + offset);
}

static int load_object(const struct object *file, struct buf *ret)
{
	char *bytes AUTO_FREE = NULL;
	int failure;

	if (file->size_bytes > most_names_bytes)
		return -EBADMSG;
	bytes = malloc(file->size_bytes + 1);
	if (!bytes)
		return -ENOMEM;
	failure = path_read_at(file->fd, bytes, file->size_bytes, file->offset);
	if (!failure && !buf_append(ret, bytes, file->size_bytes))
		failure = -ENOMEM;
	return failure;
}

/* The names-only file of a debug file or a program. */
static int make_names(const struct object *file, struct buf *ret)
{
	const struct byte_source source = {
		.read = read_object,
		.fd = file->fd,
		.offset = file->offset,
		.size_bytes = file->size_bytes,
	};
	const char *failure;

	if (elf_names_only_make(&source, ret, &failure))
		return 0;
	return ret->failure ? -ENOMEM : -EBADMSG;
}

static int compress_names(struct buf *names)
{
	size_t room = ZSTD_compressBound(names->size_bytes);
	char *bytes AUTO_FREE = malloc(room);
	size_t size_bytes;

	if (!bytes)
		return -ENOMEM;
	size_bytes = ZSTD_compress(bytes, room, names->data, names->size_bytes, names_level);
	if (ZSTD_isError(size_bytes))
		return -ENOMEM;
	buf_clear(names);
	return buf_append(names, bytes, size_bytes) ? 0 : -ENOMEM;
}

static int publish_made(struct store *store, const struct buf *bytes, const struct object *file,
			const char *text)
{
	struct store_record record = { .key = (char *)text, .contents = SYM_CONTENT_SYMBOL_TABLE };
	struct store_incoming *incoming;
	int failure = store_begin(store, &incoming);

	if (failure)
		return failure;
	failure = store_reserve(incoming, bytes->size_bytes);
	if (!failure)
		failure = store_append(incoming, bytes->data, bytes->size_bytes);
	if (failure) {
		store_abandon(incoming);
		return failure;
	}
	snprintf(record.name, sizeof(record.name), "%s", file->name);
	snprintf(record.source, sizeof(record.source), "%s", file->source);
	return store_publish(incoming, &record);
}

int derived_object_make(struct store *store, const struct object *file, enum key_kind kind,
			enum key_kind wanted, const char *text)
{
	struct buf bytes;
	int failure;

	buf_init(&bytes, most_names_bytes);
	failure = kind == KEY_NAMES ? load_object(file, &bytes) : make_names(file, &bytes);
	if (!failure && wanted == KEY_NAMES_ZSTD)
		failure = compress_names(&bytes);
	if (!failure)
		failure = publish_made(store, &bytes, file, text);
	buf_deinit(&bytes);
	return failure;
}
