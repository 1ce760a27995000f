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
static const uint64_t most_image_memory_bytes = (uint64_t)512 << 20;
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

/* 0; -EBADMSG: some of its methods would have no row, or it has no precompiled code. */
static int map_of_image(struct sym_image *image, enum key_kind wanted, char **text_ret,
			size_t *size_bytes_ret)
{
	enum sym_map_format format = wanted == KEY_PE_MAP ? SYM_MAP_RELATIVE : SYM_MAP_R2RMAP;
	struct sym_error *error;
	uint64_t unnamed;
	const char *why;
	bool no_memory;

	error = sym_image_unnamed_methods(image, format, &unnamed, &why);
	if (!error && unnamed)
		return -EBADMSG;
	if (!error)
		error = sym_image_map(image, format, text_ret, size_bytes_ret);
	no_memory = error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
	if (!error)
		return 0;
	sym_error_destroy(error);
	return no_memory ? -ENOMEM : -EBADMSG;
}

/* The map of a PE image. The image is anybody's, so its reader has a limit. */
static int make_map(const struct object *file, enum key_kind wanted, struct buf *ret)
{
	const struct sym_budget_opts limits = {
		.size = sizeof(limits),
		.memory_bytes = most_image_memory_bytes,
		.own_memory_bytes = most_image_memory_bytes,
	};
	struct sym_image_opts opts = { .size = sizeof(opts) };
	struct sym_image *image = NULL;
	char *text AUTO_FREE = NULL;
	struct sym_error *error;
	size_t size_bytes;
	int failure = -EBADMSG;
	char path[64];

	if (file->size_bytes > most_image_bytes)
		return -EBADMSG;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	error = sym_budget_create(&limits, &opts.budget);
	if (!error)
		error = sym_image_open_with(path, &opts, &image);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		failure = -ENOMEM;
	if (!error)
		failure = map_of_image(image, wanted, &text, &size_bytes);
	sym_error_destroy(error);
	sym_image_close(image);
	sym_budget_destroy(opts.budget);
	if (!failure && !buf_append(ret, text, size_bytes))
		failure = -ENOMEM;
	return failure;
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

int derived_object_make(struct store *store, const struct object *file, enum key_kind kind,
			enum key_kind wanted, const char *text)
{
	struct buf bytes;
	int failure;

	buf_init(&bytes, most_names_bytes);
	failure = kind == KEY_NAMES ? load_object(file, &bytes)
		  : kind == KEY_PE  ? make_map(file, wanted, &bytes)
				    : make_names(file, &bytes);
	if (!failure && wanted == KEY_NAMES_ZSTD)
		failure = compress_names(&bytes);
	if (!failure)
		failure = publish_made(store, &bytes, file, text);
	buf_deinit(&bytes);
	return failure;
}
