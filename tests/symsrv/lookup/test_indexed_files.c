/* SPDX-License-Identifier: MIT */
/*
 * Indexed files that change while a server has them open, by a clock that the test sets. An opened
 * file is served for five seconds without a look at its path.
 */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/lookup/lookup.h"

enum {
	FIRST = 0x11111111, /* time stamps of images */
	SECOND = 0x22222222,
	IMAGE_BYTES = 0x400,
};

static struct world {
	char top[64];
	struct holdings holdings;
	struct text_list directories;
	int64_t now_ms;
	sem_t ended;
} world;

static int64_t read_clock(void)
{
	return world.now_ms;
}

static void make_directory(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", world.top, name);
	cr_assert_eq(mkdir(path, 0700), 0);
	if (strcmp(name, "store") != 0)
		cr_assert(text_list_add(&world.directories, path));
}

static void begin(void)
{
	char store[128];

	snprintf(world.top, sizeof(world.top), "/tmp/indexed-files-XXXXXX");
	cr_assert_not_null(mkdtemp(world.top));
	make_directory("store");
	make_directory("one");
	make_directory("two");
	snprintf(store, sizeof(store), "%s/store", world.top);
	cr_assert_eq(store_open(store, 1 << 30, &world.holdings.store), 0);
	world.now_ms = 1000000;
	world.holdings.own_name = "symsrv-of-test";
	world.holdings.now_ms = read_clock;
	world.holdings.index = file_index_create(false);
	world.holdings.objects = object_table_create(64);
	world.holdings.negative = negative_cache_create();
	cr_assert_eq(workers_create(1, &world.holdings.workers), 0);
	cr_assert_eq(workers_create(1, &world.holdings.checkers), 0);
	sem_init(&world.ended, 0, 0);
}

static void end(void)
{
	char command[128];

	workers_destroy(world.holdings.checkers);
	workers_destroy(world.holdings.workers);
	lru_table_destroy(world.holdings.objects);
	negative_cache_destroy(world.holdings.negative);
	file_index_destroy(world.holdings.index);
	store_close(world.holdings.store);
	text_list_deinit(&world.directories);
	snprintf(command, sizeof(command), "rm -rf %s", world.top);
	cr_assert_eq(system(command), 0);
}

TestSuite(indexed_files, .init = begin, .fini = end);

static void put_u32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof(value));
}

/* A PE image as an index knows it: by time stamp and size. It replaces the one at its path. */
static void put_image(const char *directory, uint32_t timestamp)
{
	uint8_t bytes[IMAGE_BYTES] = "MZ";
	char path[128], new_path[128];
	FILE *file;

	put_u32(bytes + 0x3c, 0x40);
	memcpy(bytes + 0x40, "PE\0\0\x64\x86", 6);
	put_u32(bytes + 0x48, timestamp);
	put_u32(bytes + 0x54, 240 | 0x2022u << 16); /* bytes of the optional header, flags */
	put_u32(bytes + 0x58, 0x20b);
	put_u32(bytes + 0x58 + 56, IMAGE_BYTES);
	snprintf(path, sizeof(path), "%s/%s/a.dll", world.top, directory);
	snprintf(new_path, sizeof(new_path), "%s/%s/new", world.top, directory);
	file = fopen(new_path, "w");
	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	cr_assert_eq(rename(new_path, path), 0);
}

static void scan(void)
{
	const bool stop = false;

	cr_assert(file_index_scan(world.holdings.index, &world.directories, 0, &stop));
}

static void on_done(struct lookup *lookup)
{
	(void)lookup;
	sem_post(&world.ended);
}

/* The caller releases the object. NULL: it is missing. */
static struct object *look_for(uint32_t timestamp)
{
	struct lookup lookup = { .holdings = &world.holdings,
				 .key = { .kind = KEY_PE,
					  .timestamp = timestamp,
					  .number = IMAGE_BYTES,
					  .name = "a.dll",
					  .spelling = "a.dll" },
				 .is_local = true,
				 .deadline_ms = INT64_MAX,
				 .done = on_done };

	lookup_start(&lookup);
	sem_wait(&world.ended);
	cr_expect_eq(lookup.outcome, lookup.object ? LOOKUP_FOUND : LOOKUP_MISSING);
	return lookup.object;
}

static void expect_image(uint32_t timestamp)
{
	struct object *object = look_for(timestamp);
	uint32_t found = 0;

	cr_assert_not_null(object);
	cr_expect_eq(pread(object->fd, &found, sizeof(found), 0x48), sizeof(found));
	cr_expect_eq(found, timestamp, "the bytes of another image");
	object_release(object);
}

Test(indexed_files, that_become_others_are_never_served_as_before)
{
	put_image("one", FIRST);
	scan();
	expect_image(FIRST);
	put_image("one", SECOND);
	world.now_ms += 4999;
	expect_image(FIRST); /* the file that is open still */
	world.now_ms += 1;
	cr_expect_null(look_for(FIRST));
	cr_expect(file_index_was_moved(world.holdings.index), "no scan is asked for");
	scan();
	cr_expect_null(look_for(FIRST));
	expect_image(SECOND);
}

Test(indexed_files, with_one_identity_serve_for_each_other)
{
	struct object *before, *after;
	char path[128];

	put_image("one", FIRST);
	put_image("two", FIRST);
	scan();
	before = look_for(FIRST);
	cr_assert_not_null(before);
	snprintf(path, sizeof(path), "%s/one/a.dll", world.top);
	cr_assert_eq(unlink(path), 0);
	world.now_ms += 5000;
	after = look_for(FIRST);
	cr_assert_not_null(after);
	cr_expect_str_neq(after->etag, before->etag);
	object_release(before);
	object_release(after);
}

/* A key that no scan has seen is missing without a scan. */
Test(indexed_files, that_were_never_there_ask_for_no_scan)
{
	put_image("one", FIRST);
	scan();
	cr_expect_null(look_for(SECOND));
	cr_expect(!file_index_was_moved(world.holdings.index));
}
