/* SPDX-License-Identifier: MIT */
/*
 * Symbols of the fetched debug file (debug_fetch.h).
 * It is fetched when no file on this machine names a position.
 * Its symbols are read as those of any ELF file.
 */
#include <stdlib.h>

#include "libsym/base/lazy.h"
#include "libsym/elf/debug_fetch.h"
#include "libsym/source/source.h"

/* Built as a whole. */
struct opened {
	void *elf; /* opened by source_elf; NULL: no symbols */
};

struct fetched_source {
	struct debug_fetch *debug_fetch;
	struct object_file *object;
	const char *path;
	struct lazy opened;
};

static void destroy_opened(void *made)
{
	struct opened *opened = made;

	if (opened->elf)
		source_elf.close(opened->elf);
	free(opened);
}

static void close_source(void *source)
{
	struct fetched_source *own = source;

	lazy_deinit(&own->opened);
	free(own);
}

static struct sym_error *open_source(const struct source_input *input, struct buf *why, void **ret)
{
	struct fetched_source *own;

	(void)why;
	if (!input->debug_fetch || !input->debug_fetch->fetch || input->has_all_symbols)
		return NULL;
	own = calloc(1, sizeof(*own));
	if (!own)
		return &sym_error_no_memory;
	own->debug_fetch = input->debug_fetch;
	own->object = input->object;
	own->path = input->path;
	lazy_init(&own->opened);
	*ret = own;
	return NULL;
}

/* A file that cannot be read has no symbols. After a lack of memory it is tried again. */
static void *open_now(const void *context)
{
	const struct fetched_source *own = context;
	struct opened *opened = calloc(1, sizeof(*opened));
	struct source_input input = { .roots.fd = -1 };
	struct sym_error *error;
	struct buf why;
	bool again;

	if (!opened)
		return NULL;
	error = debug_fetch_get(own->debug_fetch, own->object, own->path, &input.object);
	buf_init(&why, 1 << 12);
	if (input.object)
		error = source_elf.open(&input, &why, &opened->elf);
	buf_deinit(&why);
	again = sym_error_is_no_memory(error);
	sym_error_destroy(error);
	if (!again)
		return opened;
	free(opened);
	return NULL;
}

static const struct opened *get_opened(struct fetched_source *own)
{
	return lazy_get(&own->opened, open_now, destroy_opened, own);
}

static enum source_outcome fetched_source_find(void *source, uint64_t position,
					       struct source_match *ret)
{
	const struct opened *opened = get_opened(source);

	if (!opened)
		return SOURCE_SHORT;
	return opened->elf ? source_elf.find(opened->elf, position, ret) : SOURCE_MISS;
}

static struct sym_error *fetched_source_list(void *source, const struct source_sink *sink)
{
	const struct opened *opened = get_opened(source);

	if (!opened)
		return &sym_error_no_memory;
	return opened->elf ? source_elf.list(opened->elf, sink) : NULL;
}

static const char *symbol_file(const void *source)
{
	const struct opened *opened = lazy_peek(&((const struct fetched_source *)source)->opened);

	return opened && opened->elf ? source_elf.symbol_file(opened->elf) : NULL;
}

const struct source_ops source_fetched = {
	.kind = SYM_SOURCE_ELF,
	.for_elf = true,
	.is_extra = true,
	.open = open_source,
	.find = fetched_source_find,
	.list = fetched_source_list,
	.close = close_source,
	.symbol_file = symbol_file,
};
