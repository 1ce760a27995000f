/* SPDX-License-Identifier: MIT */
#include "libsym/debug_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/debugfile.h"
#include "libsym/limits.h"

struct fetched {
	struct image *image; /* NULL: none */
	char *trouble;       /* NULL: none */
};

/* What making it needs. */
struct question {
	struct debug_fetch *fetch;
	struct image *image;
	const char *path;
};

void debug_fetch_init(struct debug_fetch *fetch)
{
	*fetch = (struct debug_fetch){ .fetch = NULL };
	lazy_init(&fetch->answer);
}

static void fetched_destroy(struct fetched *fetched)
{
	if (!fetched)
		return;
	image_close(fetched->image);
	free(fetched->trouble);
	free(fetched);
}

DEFINE_GUARD(fetched, struct fetched *, fetched_destroy)

void debug_fetch_deinit(struct debug_fetch *fetch)
{
	fetched_destroy(lazy_deinit(&fetch->answer));
}

/* A heap path that the caller brought, or NULL; what went wrong is in `why`. */
static char *ask(const struct question *question, struct elf_sections *sections, struct buf *why)
{
	struct elf_build_id id = elf_sections_build_id(sections);
	struct debugfile_link link = { .name = NULL };
	struct sym_fetch_request request = {
		.kind = SYM_FETCH_DEBUG_FILE,
		.image_path = question->path,
	};
	char *path = NULL;
	int failure;

	if (debugfile_read_link(sections, &link)) {
		request.debug_link = link.name;
		request.debug_link_sum = link.sum;
	}
	/* What could not be checked is not asked for. */
	if (id.size_bytes < 2 && !link.name)
		return NULL;
	request.build_id = id.bytes;
	request.build_id_size_bytes = (uint32_t)id.size_bytes;
	failure = question->fetch->fetch(question->fetch->context, &request, &path);
	if (!failure)
		return path;
	free(path);
	buf_printf(why, "its debug file could not be fetched: %s", strerror(failure));
	return NULL;
}

static struct sym_error *fetch_now(const struct question *question, struct fetched *fetched,
				   struct buf *why)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error = elf_sections_read(question->image, &sections);
	char *path AUTO_FREE = NULL;

	if (error)
		return error;
	path = ask(question, &sections, why);
	return path ? debugfile_open_given(&sections, path, why, &fetched->image) : NULL;
}

/* An image that cannot be read has no debug file; only want of memory is tried again. */
static void *make(const void *context)
{
	struct fetched *fetched GUARDED(fetched) = calloc(1, sizeof(*fetched));
	struct sym_error *error;
	struct buf why;
	bool again;

	if (!fetched)
		return NULL;
	buf_init(&why, LIMIT_NAME_BYTES);
	error = fetch_now(context, fetched, &why);
	if (!error && why.size_bytes)
		fetched->trouble = buf_steal(&why, NULL);
	buf_deinit(&why);
	again = error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
	sym_error_destroy(error);
	return again ? NULL : STEAL(fetched);
}

struct image *debug_fetch_get(struct debug_fetch *fetch, struct image *image, const char *path)
{
	struct question question = { .fetch = fetch, .image = image, .path = path };
	const struct fetched *fetched;

	if (!fetch || !fetch->fetch || image->kind != SYM_IMAGE_ELF)
		return NULL;
	fetched = lazy_get(&fetch->answer, make, &question);
	return fetched ? fetched->image : NULL;
}

const char *debug_fetch_trouble(const struct debug_fetch *fetch)
{
	const struct fetched *fetched = lazy_peek(&fetch->answer);

	return fetched ? fetched->trouble : NULL;
}
