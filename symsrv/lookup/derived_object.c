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
#include "symsrv/upstream/verify.h"

/* A file with 10 million functions. */
static const size_t most_names_bytes = (size_t)1 << 30;
/* The framework in one composite image has 150 MB. */
static const uint64_t most_image_bytes = 256 << 20;
/* Level 19 takes 40 times as long and saves nothing. */
static const int names_level = 9;

enum key_kind derived_object_phase(enum key_kind wanted, unsigned int phase)
{
	static const enum key_kind names[] = { KEY_NAMES, KEY_DEBUGINFO, KEY_EXECUTABLE };
	static const enum key_kind map[] = { KEY_MAP, KEY_PE };

	if (wanted == KEY_NAMES || wanted == KEY_NAMES_ZSTD)
		return phase < sizeof(names) / sizeof(*names) ? names[phase] : KEY_NONE;
	if (wanted == KEY_MAP)
		return phase < sizeof(map) / sizeof(*map) ? map[phase] : KEY_NONE;
	if (wanted == KEY_PE_MAP || wanted == KEY_PE_R2RMAP)
		return phase ? KEY_NONE : KEY_PE;
	return phase ? KEY_NONE : wanted;
}

bool derived_object_is(enum key_kind wanted)
{
	return derived_object_phase(wanted, 0) != wanted || derived_object_phase(wanted, 1);
}

static bool read_object(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, source->offset + offset);
}

static int load_object(const struct object *file, struct buf *ret)
{
	char *room = buf_reserve(ret, file->size_bytes);

	if (!room)
		return ret->failure == BUF_TOO_BIG ? -EBADMSG : -ENOMEM;
	ret->size_bytes = file->size_bytes;
	return path_read_at(file->fd, room, file->size_bytes, file->offset);
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

static int make_map(const struct derivation *derivation, struct buf *ret)
{
	if (derivation->file->size_bytes > most_image_bytes)
		return -EBADMSG;
	return derivation->maker->make(derivation->maker, derivation->file,
				       derivation->wanted == KEY_PE_MAP ? SYM_MAP_RELATIVE
									: SYM_MAP_R2RMAP,
				       derivation->deadline_ms, ret);
}

/* An r2rmap must have the signature that was asked for. */
static int check_made(const struct store_incoming *incoming, const struct key *key)
{
	uint32_t contents;
	char reason[160];

	return verify_content(store_incoming_fd(incoming), store_incoming_bytes(incoming), key,
			      &contents, reason, sizeof(reason));
}

static int publish_made(struct store *store, const struct buf *bytes, const struct object *file,
			const char *text)
{
	struct store_record record = { .key = (char *)text, .contents = SYM_CONTENT_SYMBOL_TABLE };
	struct store_incoming *incoming;
	struct key key;
	int failure = key_from_text(&key, text) ? store_begin(store, &incoming) : -EBADMSG;

	if (failure)
		return failure;
	failure = store_reserve(incoming, bytes->size_bytes);
	if (!failure)
		failure = store_append(incoming, bytes->data, bytes->size_bytes);
	if (!failure)
		failure = check_made(incoming, &key);
	if (failure) {
		store_abandon(incoming);
		return failure;
	}
	snprintf(record.name, sizeof(record.name), "%s",
		 key.kind == KEY_MAP ? key.name : file->name);
	snprintf(record.source, sizeof(record.source), "%s", file->source);
	return store_publish(incoming, &record);
}

int derived_object_make(const struct derivation *derivation)
{
	struct buf bytes;
	int failure;

	buf_init(&bytes, most_names_bytes);
	failure = derivation->kind == KEY_NAMES ? load_object(derivation->file, &bytes)
		  : derivation->kind == KEY_PE  ? make_map(derivation, &bytes)
						: make_names(derivation->file, &bytes);
	if (!failure && derivation->wanted == KEY_NAMES_ZSTD)
		failure = compress_names(&bytes);
	if (!failure)
		failure =
			publish_made(derivation->store, &bytes, derivation->file, derivation->text);
	buf_deinit(&bytes);
	return failure;
}
