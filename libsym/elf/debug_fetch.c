/* SPDX-License-Identifier: MIT */
#include "libsym/elf/debug_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/elf/debugfile.h"
#include "libsym/limits.h"

struct fetched {
	struct object_file *object; /* NULL: none */
	char *problem;              /* NULL: none */
};

/* The parameters of make_answer(). */
struct question {
	struct debug_fetch *fetch;
	struct object_file *object;
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
	object_file_close(fetched->object);
	free(fetched->problem);
	free(fetched);
}

DEFINE_GUARD(fetched, struct fetched *, fetched_destroy)

static void destroy_answer(void *made)
{
	fetched_destroy(made);
}

void debug_fetch_deinit(struct debug_fetch *fetch)
{
	lazy_deinit(&fetch->answer);
}

/* Returns a heap path from the caller's fetch function, or NULL. `why` gets the reason of a
 * failure. */
static char *fetch_path(const struct question *question, struct elf_sections *sections,
			struct buf *why)
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
	/* Without build-id and link, the fetched file could not be checked. */
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
	struct sym_error *error = elf_sections_read(question->object, &sections);
	char *path AUTO_FREE = NULL;

	if (error)
		return error;
	path = fetch_path(question, &sections, why);
	return path ? debugfile_open_given(&sections, path, why, &fetched->object) : NULL;
}

/* An object that cannot be read has no debug file. Only out of memory is tried again. */
static void *make_answer(const void *context)
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
		fetched->problem = buf_steal(&why, NULL);
	buf_deinit(&why);
	again = sym_error_is_no_memory(error);
	sym_error_destroy(error);
	return again ? NULL : STEAL(fetched);
}

struct sym_error *debug_fetch_get(struct debug_fetch *fetch, struct object_file *object,
				  const char *path, struct object_file **ret)
{
	struct question question = { .fetch = fetch, .object = object, .path = path };
	const struct fetched *fetched;

	*ret = NULL;
	if (!fetch || !fetch->fetch || object->kind != SYM_IMAGE_ELF)
		return NULL;
	fetched = lazy_get(&fetch->answer, make_answer, destroy_answer, &question);
	if (!fetched)
		return &sym_error_no_memory;
	*ret = fetched->object;
	return NULL;
}

const char *debug_fetch_problem(const struct debug_fetch *fetch)
{
	const struct fetched *fetched = lazy_peek(&fetch->answer);

	return fetched ? fetched->problem : NULL;
}
