/* SPDX-License-Identifier: MIT */
/*
 * When the fetch function is called, how often, with what request, and which answers are accepted.
 * The files are built here: an image with one exported function, and its debug file with one more.
 */
#include "libsym/libsym.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/hex.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

enum {
	EXPORTED = ELF_BUILDER_TEXT_VADDR,
	HIDDEN = ELF_BUILDER_TEXT_VADDR + 0x40,
	THREADS = 4,
	QUESTIONS = 200
};

static const struct elf_builder_symbol symbols[] = {
	{ "exported", EXPORTED, 0x20, STB_GLOBAL, STT_FUNC },
	{ "hidden", HIDDEN, 0x20, STB_LOCAL, STT_FUNC },
};

static char *scratch;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	scratch_remove(scratch);
}

TestSuite(debug_fetch, .init = set_up, .fini = tear_down);

/* A file with the first `count` symbols; heap path. */
static char *file_of(const char *name, size_t count, struct elf_builder_options options)
{
	char *path = scratch_path(scratch, name);
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, count, options, &size_bytes);

	scratch_write(path, bytes, size_bytes);
	free(bytes);
	return path;
}

static char *stripped(const char *name, uint8_t build_id)
{
	return file_of(name, 1,
		       (struct elf_builder_options){ .dynamic_only = true, .build_id = build_id });
}

static char *debug_file(const char *name, uint8_t build_id)
{
	return file_of(name, 2, (struct elf_builder_options){ .build_id = build_id });
}

/* The behaviour of a fetch function, and what it was called with. */
struct bringer {
	const char *path; /* the fetched path; NULL: none */
	int failure;
	atomic_uint calls;
	unsigned int askers; /* that must have begun before it returns */
	atomic_uint begun;
	char build_id[41];
	char image_path[512];
	char debug_link[64];
	uint32_t debug_link_sum, kind;
};

static int bring(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	struct bringer *bringer = context;

	cr_expect_null(*path_ret);
	hex_write_bytes(bringer->build_id, request->build_id, request->build_id_size_bytes);
	snprintf(bringer->image_path, sizeof(bringer->image_path), "%s", request->image_path);
	if (request->debug_link)
		snprintf(bringer->debug_link, sizeof(bringer->debug_link), "%s",
			 request->debug_link);
	bringer->debug_link_sum = request->debug_link_sum;
	bringer->kind = request->kind;
	for (int turn = 0; atomic_load(&bringer->begun) < bringer->askers && wait_turn(turn);
	     turn++)
		;
	atomic_fetch_add(&bringer->calls, 1);
	if (bringer->path)
		*path_ret = strdup(bringer->path);
	return bringer->failure;
}

static struct sym_image *open_with(const char *path, struct bringer *bringer)
{
	struct sym_image *image = NULL;

	cr_assert_null(sym_image_open(path, &image));
	cr_assert_null(sym_image_set_fetch(image, bring, bringer));
	cr_expect_eq(bringer->calls, 0);
	return image;
}

static void expect_answer(struct sym_image *image, uint64_t vaddr, enum sym_status status,
			  const char *name, const char *reason)
{
	struct sym_result *result = NULL;
	const struct sym_answer *answer;

	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result));
	answer = sym_result_at(result, 0);
	cr_expect_eq(answer->status, status, "0x%lx: %s", (unsigned long)vaddr,
		     sym_status_text(answer->status));
	if (name)
		cr_expect_str_eq(answer->name, name);
	else
		cr_expect_null(answer->name);
	if (reason)
		cr_expect(answer->reason && strstr(answer->reason, reason), "%s", answer->reason);
	sym_result_destroy(result);
}

Test(debug_fetch, adds_names_that_the_image_lacks)
{
	char *path = stripped("lib.so", 0x11), *debug = debug_file("lib.debug", 0x11);
	struct bringer bringer = { .path = debug };
	struct sym_image *image = open_with(path, &bringer);

	expect_answer(image, HIDDEN + 4, SYM_RESOLVED, "hidden", NULL);
	expect_answer(image, HIDDEN, SYM_RESOLVED, "hidden", NULL);
	expect_answer(image, EXPORTED, SYM_RESOLVED, "exported", NULL);
	expect_answer(image, HIDDEN + 0x20, SYM_NO_MATCH, NULL, NULL);
	cr_expect_eq(bringer.calls, 1);
	cr_expect_eq(bringer.kind, SYM_FETCH_DEBUG_FILE);
	cr_expect_str_eq(bringer.build_id, "1111111111111111111111111111111111111111");
	cr_expect_str_eq(bringer.image_path, path);
	cr_expect_str_empty(bringer.debug_link);
	cr_expect_null(sym_image_rejected_debug_file(image));
	sym_image_close(image);
	free(debug);
	free(path);
}

Test(debug_fetch, does_not_fetch_for_names_in_the_image)
{
	char *path = stripped("lib.so", 0x11), *full = debug_file("full.so", 0x11);
	struct bringer bringer = { .path = NULL };
	struct sym_image *image = open_with(path, &bringer);

	expect_answer(image, EXPORTED + 4, SYM_RESOLVED, "exported", NULL);
	cr_expect_eq(bringer.calls, 0);
	sym_image_close(image);
	image = open_with(full, &bringer);
	expect_answer(image, HIDDEN, SYM_RESOLVED, "hidden", NULL);
	expect_answer(image, HIDDEN + 0x20, SYM_NO_MATCH, NULL, NULL);
	cr_expect_eq(bringer.calls, 0, "an image with .symtab was asked about");
	sym_image_close(image);
	free(full);
	free(path);
}

Test(debug_fetch, fetches_once_if_there_is_no_file)
{
	char *path = stripped("lib.so", 0x11);
	struct bringer bringer = { .path = NULL };
	struct sym_image *image = open_with(path, &bringer);
	struct sym_symbols *list = NULL;

	for (uint64_t i = 0; i < 50; i++)
		expect_answer(image, HIDDEN + i, SYM_NO_MATCH, NULL, NULL);
	cr_assert_null(sym_image_symbols(image, 0, &list));
	cr_expect_eq(sym_symbols_count(list), 1);
	cr_expect_eq(bringer.calls, 1);
	cr_expect_null(sym_image_rejected_debug_file(image));
	sym_symbols_destroy(list);
	sym_image_close(image);
	free(path);
}

Test(debug_fetch, serves_lists_with_the_same_file)
{
	char *path = stripped("lib.so", 0x11), *debug = debug_file("lib.debug", 0x11);
	struct bringer bringer = { .path = debug };
	struct sym_image *image = open_with(path, &bringer);

	for (int i = 0; i < 2; i++) {
		struct sym_symbols *list = NULL;

		cr_assert_null(sym_image_symbols(image, 0, &list));
		cr_assert_eq(sym_symbols_count(list), 2);
		cr_expect_str_eq(sym_symbols_at(list, 1)->name, "hidden");
		sym_symbols_destroy(list);
	}
	expect_answer(image, HIDDEN, SYM_RESOLVED, "hidden", NULL);
	cr_expect_eq(bringer.calls, 1);
	sym_image_close(image);
	free(debug);
	free(path);
}

struct asker {
	pthread_t thread;
	struct bringer *bringer;
	struct sym_image *image;
	unsigned int named;
};

static void *ask_often(void *context)
{
	struct asker *asker = context;
	struct sym_result *result = NULL;
	uint64_t vaddrs[QUESTIONS];

	for (unsigned int i = 0; i < QUESTIONS; i++)
		vaddrs[i] = HIDDEN + i % 0x20;
	atomic_fetch_add(&asker->bringer->begun, 1);
	if (sym_result_create(&result) ||
	    sym_image_resolve(asker->image, SYM_POSITION_VADDR, vaddrs, QUESTIONS, result))
		return NULL;
	for (unsigned int i = 0; i < QUESTIONS; i++)
		asker->named += sym_result_at(result, i)->status == SYM_RESOLVED;
	sym_result_destroy(result);
	return NULL;
}

Test(debug_fetch, fetches_once_for_four_threads)
{
	char *path = stripped("lib.so", 0x11), *debug = debug_file("lib.debug", 0x11);
	struct bringer bringer = { .path = debug, .askers = THREADS };
	struct asker askers[THREADS] = { 0 };
	struct sym_image *image = open_with(path, &bringer);

	for (int i = 0; i < THREADS; i++) {
		askers[i].image = image;
		askers[i].bringer = &bringer;
		cr_assert_eq(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(askers[i].thread, NULL);
		cr_expect_eq(askers[i].named, QUESTIONS);
	}
	cr_expect_eq(bringer.calls, 1);
	sym_image_close(image);
	free(debug);
	free(path);
}

/* Maps a library as the dynamic linker does. */
static uint64_t map_library(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *base;

	cr_assert_geq(fd, 0);
	base = mmap(NULL, ELF_BUILDER_TEXT_OFFSET + ELF_BUILDER_TEXT_BYTES, PROT_READ, MAP_PRIVATE,
		    fd, 0);
	cr_assert_neq(base, MAP_FAILED);
	cr_assert_eq(mprotect((char *)base + ELF_BUILDER_TEXT_OFFSET, ELF_BUILDER_TEXT_BYTES,
			      PROT_READ | PROT_EXEC),
		     0);
	close(fd);
	return (uint64_t)(uintptr_t)base + ELF_BUILDER_TEXT_OFFSET;
}

Test(debug_fetch, serves_the_images_of_a_process)
{
	char *path = file_of("lib.so", 1,
			     (struct elf_builder_options){ .dynamic_only = true,
							   .build_id = 0x11,
							   .position_independent = true });
	char *debug = debug_file("lib.debug", 0x11);
	struct bringer bringer = { .path = debug };
	struct sym_snapshot_opts opts = {
		.size = sizeof(opts), .jit = SYM_JIT_NONE, .fetch = bring, .fetch_context = &bringer
	};
	uint64_t text = map_library(path),
		 addresses[2] = { text + 4, text + HIDDEN - EXPORTED + 4 };
	struct sym_snapshot *snapshot = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	const struct sym_answer *answer;
	struct sym_error *error;

	cr_assert_null(sym_snapshot_open(getpid(), &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_resolver_resolve(resolver, addresses, 1, result));
	cr_expect_str_eq(sym_result_at(result, 0)->name, "exported");
	cr_expect_eq(bringer.calls, 0);
	cr_assert_null(sym_resolver_resolve(resolver, addresses, 2, result));
	answer = sym_result_at(result, 1);
	cr_expect_eq(answer->status, SYM_RESOLVED, "%s", answer->reason);
	cr_expect_str_eq(answer->name, "hidden");
	cr_expect_eq(answer->source, SYM_SOURCE_ELF);
	cr_expect_eq(answer->offset_bytes, 4);
	cr_expect_eq(bringer.calls, 1);
	cr_assert_eq(unlink(debug), 0);
	cr_assert_null(sym_resolver_resolve(resolver, addresses, 2, result));
	cr_expect_str_eq(sym_result_at(result, 1)->name, "hidden");
	error = sym_image_set_fetch(sym_snapshot_image_at(snapshot, 0), bring, &bringer);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	free(debug);
	free(path);
}

/* A file in a given directory is found before anything is fetched. */
Test(debug_fetch, does_not_fetch_what_a_directory_has)
{
	char *path = file_of("lib.so", 1,
			     (struct elf_builder_options){ .dynamic_only = true,
							   .build_id = 0x11,
							   .position_independent = true });
	char *ids = scratch_path(scratch, ".build-id"), *below = scratch_path(ids, "11");
	char *debug;
	const char *dirs[] = { "/nowhere", scratch, NULL };
	struct bringer bringer = { 0 };
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .jit = SYM_JIT_NONE,
					  .fetch = bring,
					  .fetch_context = &bringer,
					  .debug_dirs = dirs };
	uint64_t address = map_library(path) + HIDDEN - EXPORTED + 4;
	struct sym_snapshot *snapshot = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;

	cr_assert_eq(mkdir(ids, 0755) | mkdir(below, 0755), 0);
	debug = debug_file(".build-id/11/11111111111111111111111111111111111111.debug", 0x11);
	cr_assert_null(sym_snapshot_open(getpid(), &opts, &snapshot));
	/* The list was copied. */
	dirs[1] = NULL;
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_RESOLVED);
	cr_expect_str_eq(sym_result_at(result, 0)->name, "hidden");
	cr_expect_eq(bringer.calls, 0);
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	free(debug);
	free(below);
	free(ids);
	free(path);
}

Test(debug_fetch, passes_name_and_sum_of_a_link_and_checks_the_sum)
{
	char *debug = debug_file("lib.debug", 0), *other = debug_file("other.debug", 0x22), *path;
	size_t size_bytes;
	char *bytes = scratch_read(debug, &size_bytes);
	uint32_t sum = (uint32_t)crc32(0, (const unsigned char *)bytes, (unsigned int)size_bytes);
	struct bringer bringer = { .path = debug }, wrong = { .path = other };
	struct sym_image *image;

	/* A name that no file has, so that nothing is found without fetching. */
	path = file_of("lib.so", 1,
		       (struct elf_builder_options){ .dynamic_only = true,
						     .debug_link = "elsewhere.debug",
						     .debug_link_sum = sum });
	image = open_with(path, &bringer);
	expect_answer(image, HIDDEN, SYM_RESOLVED, "hidden", NULL);
	cr_expect_str_eq(bringer.debug_link, "elsewhere.debug");
	cr_expect_eq(bringer.debug_link_sum, sum);
	cr_expect_str_empty(bringer.build_id);
	sym_image_close(image);
	image = open_with(path, &wrong);
	expect_answer(image, HIDDEN, SYM_NO_MATCH, NULL, "the image has none");
	sym_image_close(image);
	free(bytes);
	free(path);
	free(other);
	free(debug);
}

Test(debug_fetch, rejects_a_file_with_another_build_id_and_reports_both)
{
	char *path = stripped("lib.so", 0x11), *debug = debug_file("lib.debug", 0x22);
	struct bringer bringer = { .path = debug };
	struct sym_image *image = open_with(path, &bringer);
	const char *said;

	expect_answer(image, HIDDEN, SYM_NO_MATCH, NULL,
		      "1111111111111111111111111111111111111111");
	said = sym_image_rejected_debug_file(image);
	cr_assert_not_null(said);
	cr_expect(strstr(said, debug), "%s", said);
	cr_expect(strstr(said, "2222222222222222222222222222222222222222"), "%s", said);
	cr_expect_eq(bringer.calls, 1);
	sym_image_close(image);
	free(debug);
	free(path);
}

Test(debug_fetch, rejects_anything_but_a_debug_file)
{
	char *path = stripped("lib.so", 0x11), *fifo = scratch_path(scratch, "fifo");
	char *text = scratch_path(scratch, "text"), *cut = scratch_path(scratch, "cut");
	char *none = scratch_path(scratch, "none"), *without_id = debug_file("without_id", 0);
	const char *const paths[] = { fifo, text, cut, none, scratch, without_id, "" };

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	scratch_write(text, "not an ELF file", 11);
	scratch_write(cut, "\177ELF\2\1", 6);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct bringer bringer = { .path = paths[i] };
		struct sym_image *image = open_with(path, &bringer);

		expect_answer(image, HIDDEN, SYM_NO_MATCH, NULL, "was provided as its debug file");
		expect_answer(image, EXPORTED, SYM_RESOLVED, "exported", NULL);
		cr_expect_not_null(sym_image_rejected_debug_file(image));
		sym_image_close(image);
	}
	free(without_id);
	free(none);
	free(cut);
	free(text);
	free(fifo);
	free(path);
}

Test(debug_fetch, reports_why_nothing_could_be_fetched)
{
	char *path = stripped("lib.so", 0x11);
	struct bringer bringer = { .path = path, .failure = ETIMEDOUT };
	struct sym_image *image = open_with(path, &bringer);

	expect_answer(image, HIDDEN, SYM_NO_MATCH, NULL, strerror(ETIMEDOUT));
	cr_expect_not_null(sym_image_rejected_debug_file(image));
	sym_image_close(image);
	free(path);
}

Test(debug_fetch, does_not_fetch_what_could_not_be_checked)
{
	char *path = stripped("lib.so", 0), *debug = debug_file("lib.debug", 0);
	struct bringer bringer = { .path = debug };
	struct sym_image *image = open_with(path, &bringer);

	expect_answer(image, HIDDEN, SYM_NO_MATCH, NULL, NULL);
	cr_expect_eq(bringer.calls, 0);
	sym_image_close(image);
	free(debug);
	free(path);
}

Test(debug_fetch, must_be_set_before_the_first_query)
{
	char *path = stripped("lib.so", 0x11);
	struct bringer bringer = { .path = NULL };
	struct sym_image *image = open_with(path, &bringer);
	struct sym_error *error;

	expect_answer(image, EXPORTED, SYM_RESOLVED, "exported", NULL);
	error = sym_image_set_fetch(image, bring, &bringer);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_image_close(image);
	free(path);
}
