/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "symsrv/store/store.h"
#include "symsrv/store/store_file.h"

static char directory[] = "/tmp/symsrv-store-XXXXXX";
static struct store *store;

static void open_store(uint64_t max_bytes)
{
	cr_assert_eq(store_open(directory, max_bytes, &store), 0);
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(directory));
	open_store(1 << 20);
}

static void end(void)
{
	char command[128];

	store_close(store);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert_eq(system(command), 0);
}

TestSuite(store, .init = begin, .fini = end);

static int put(const char *key, const void *bytes, size_t size_bytes)
{
	struct store_record record = { .key = (char *)key, .contents = 3 };
	struct store_incoming *incoming;
	int failure = store_begin(store, &incoming);

	cr_assert_eq(failure, 0);
	snprintf(record.name, sizeof(record.name), "name.so");
	snprintf(record.source, sizeof(record.source), "here");
	failure = store_append(incoming, bytes, size_bytes);
	if (failure) {
		store_abandon(incoming);
		return failure;
	}
	return store_publish(incoming, &record);
}

/* Whether the object is there with this content. */
static bool has(const char *key, const char *bytes)
{
	char room[256] = "";
	struct store_record record;
	int fd;

	if (store_find(store, key, &fd, &record))
		return false;
	cr_assert_eq(record.size_bytes, strlen(bytes));
	cr_assert_eq(path_read_at(fd, room, strlen(bytes), 0), 0);
	cr_assert_str_eq(room, bytes);
	cr_assert_str_eq(record.key, key);
	cr_assert_str_eq(record.name, "name.so");
	cr_assert_str_eq(record.source, "here");
	store_record_deinit(&record);
	close(fd);
	return true;
}

static void path_of(const char *key, char room[256])
{
	char path[STORE_OBJECT_PATH_BYTES];

	cr_assert_eq(store_object_path(key, path), 0);
	snprintf(room, 256, "%s/%s", directory, path);
}

static unsigned int files_in_tmp(void)
{
	char path[128];
	DIR *tmp;
	unsigned int count = 0;

	snprintf(path, sizeof(path), "%s/tmp", directory);
	tmp = opendir(path);
	for (struct dirent *file; (file = readdir(tmp));)
		count += file->d_name[0] != '.';
	closedir(tmp);
	return count;
}

Test(store, gives_back_what_it_was_given)
{
	cr_expect_not(has("debuginfo/ab", ""));
	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_expect(has("debuginfo/ab", "hello"));
	cr_expect_not(has("debuginfo/ac", ""));
	cr_expect_eq(files_in_tmp(), 0u);
}

Test(store, keeps_objects_over_a_restart)
{
	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	store_close(store);
	open_store(1 << 20);
	cr_expect(has("debuginfo/ab", "hello"));
}

Test(store, takes_keys_as_long_as_a_source_path)
{
	char key[4200];

	memset(key, 'x', sizeof(key));
	memcpy(key, "source/abcd//", 13);
	key[sizeof(key) - 1] = 0;
	cr_assert_eq(put(key, "int main;", 9), 0);
	cr_expect(has(key, "int main;"));
}

Test(store, an_abandoned_arrival_leaves_nothing)
{
	struct store_incoming *incoming;
	struct store_usage usage;

	cr_assert_eq(store_begin(store, &incoming), 0);
	cr_assert_eq(store_append(incoming, "hello", 5), 0);
	store_usage(store, &usage);
	cr_expect_eq(usage.arriving_bytes, 5u);
	store_abandon(incoming);
	store_usage(store, &usage);
	cr_expect_eq(usage.arriving_bytes, 0u);
	cr_expect_eq(files_in_tmp(), 0u);
}

Test(store, a_restarted_arrival_has_only_the_new_bytes)
{
	char key[] = "debuginfo/ab";
	struct store_record record = { .key = key };
	struct store_incoming *incoming;
	struct store_usage usage;

	snprintf(record.name, sizeof(record.name), "name.so");
	snprintf(record.source, sizeof(record.source), "here");
	cr_assert_eq(store_begin(store, &incoming), 0);
	cr_assert_eq(store_append(incoming, "first half of", 13), 0);
	cr_assert_eq(store_restart(incoming), 0);
	cr_assert_eq(store_append(incoming, "whole", 5), 0);
	store_usage(store, &usage);
	cr_expect_eq(usage.arriving_bytes, 5u);
	cr_assert_eq(store_publish(incoming, &record), 0);
	store_usage(store, &usage);
	cr_expect_eq(usage.arriving_bytes, 0u);
	cr_expect(has("debuginfo/ab", "whole"));
}

Test(store, is_used_by_one_server_at_a_time)
{
	struct store *other;

	cr_expect_eq(store_open(directory, 1, &other), -EWOULDBLOCK);
}

/* Opens the store again, with such a file left in its tmp/. */
static void open_with(const char *name)
{
	char path[256];
	int fd;

	store_close(store);
	snprintf(path, sizeof(path), "%s/tmp/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	open_store(1 << 20);
}

Test(store, what_a_crash_left_is_cleared_away)
{
	open_with("arrival-17");
	cr_expect_eq(files_in_tmp(), 0u);
}

/* A git repository has files called objects/AA/REST too, and a home directory may have a tmp. */
Test(store, files_of_others_stay)
{
	static const char *const directories[] = { "objects", "tmp" };

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		char other[] = "/tmp/symsrv-other-XXXXXX", path[256];
		struct store_scrub_result result;
		struct store *opened;

		cr_assert(mkdtemp(other));
		snprintf(path, sizeof(path), "%s/%s", other, directories[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
		cr_expect_eq(store_open(other, 1 << 20, &opened), -ENOTEMPTY);
		cr_expect_eq(store_scrub(other, NULL, NULL, &result), -ENOTEMPTY);
		/* Nothing was created in it. */
		cr_expect_eq(rmdir(path), 0);
		cr_expect_eq(rmdir(other), 0);
	}
}

Test(store, files_of_others_beside_what_arrives_stay)
{
	open_with("thesis.txt");
	cr_expect_eq(files_in_tmp(), 1u);
}

Test(store, directories_that_were_removed_are_made_again)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r %s/objects %s/tmp", directory, directory);
	cr_assert_eq(system(command), 0);
	cr_expect(store_is_writable(store));
	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_expect(has("debuginfo/ab", "hello"));
	/* Before the first check whether it is writable. */
	snprintf(command, sizeof(command), "rm -r %s/objects/*", directory);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(put("debuginfo/ac", "hello", 5), 0);
	cr_expect(has("debuginfo/ac", "hello"));
}

/* -------- damage -------- */

static void damage(const char *key, off_t offset)
{
	char path[256];
	int fd;

	path_of(key, path);
	fd = open(path, O_WRONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, "X", 1, offset), 1);
	close(fd);
}

Test(store, a_changed_byte_is_found_when_the_object_is_first_opened)
{
	struct store_usage usage;
	char path[256];

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	store_close(store);
	damage("debuginfo/ab", 1);
	open_store(1 << 20);
	cr_expect_not(has("debuginfo/ab", ""));
	store_usage(store, &usage);
	cr_expect_eq(usage.corrupt_count, 1u);
	path_of("debuginfo/ab", path);
	cr_expect_eq(access(path, F_OK), -1);
}

Test(store, a_cut_object_is_not_found_wherever_it_was_cut)
{
	char path[256];
	struct stat status;

	for (off_t cut = 0;; cut++) {
		cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
		path_of("debuginfo/ab", path);
		cr_assert_eq(stat(path, &status), 0);
		if (cut >= status.st_size)
			break;
		cr_assert_eq(truncate(path, cut), 0);
		cr_assert_not(has("debuginfo/ab", ""), "cut at %d", (int)cut);
	}
}

Test(store, an_object_in_the_place_of_another_is_not_served)
{
	char from[256], to[256];

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	path_of("debuginfo/ab", from);
	path_of("debuginfo/ac", to);
	cr_assert_eq(rename(from, to), 0);
	cr_expect_not(has("debuginfo/ac", ""));
}

/* -------- size -------- */

Test(store, evicts_what_was_not_used_for_longest)
{
	static char bytes[10000];
	struct store_usage usage;
	char key[32];

	store_set_max(store, 100000);
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "debuginfo/%04x", i);
		cr_assert_eq(put(key, bytes, sizeof(bytes)), 0);
	}
	store_usage(store, &usage);
	cr_expect_leq(usage.used_bytes, 100000u);
	cr_expect_geq(usage.used_bytes, 50000u);
	cr_expect_geq(usage.evicted_count, 190u);
	cr_expect_eq(files_in_tmp(), 0u);
}

static void *ask_meanwhile(void *context)
{
	_Atomic(int) *state =
		context; /* 1 while it is to be asked; then minus the number of calls */
	struct store_usage usage;
	int looks = 0;

	while (atomic_load(state) == 1) {
		store_usage(store, &usage);
		looks += usage.evicted_count > 0 && usage.object_count > 1;
	}
	atomic_store(state, -looks);
	return NULL;
}

/* A slow disk may take long for each of them. */
Test(store, answers_while_it_evicts_many)
{
	_Atomic(int) state = 1;
	const bool stop = false;
	char key[32];
	pthread_t thread;

	for (int i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "debuginfo/%04x", i);
		cr_assert_eq(put(key, "hello", 5), 0);
	}
	store_scan(store, &stop);
	cr_assert_eq(pthread_create(&thread, NULL, ask_meanwhile, &state), 0);
	store_set_max(store, 1);
	atomic_store(&state, 0);
	pthread_join(thread, NULL);
	cr_expect_lt(atomic_load(&state), -1, "no reservation was granted");
}

static void count(void *context)
{
	++*(unsigned int *)context;
}

Test(store, tells_when_it_evicts)
{
	char bytes[400000] = "";
	unsigned int told = 0;

	store_on_eviction(store, count, &told);
	cr_assert_eq(put("debuginfo/01", bytes, sizeof(bytes)), 0);
	cr_assert_eq(put("debuginfo/02", bytes, sizeof(bytes)), 0);
	cr_expect_eq(told, 0u);
	cr_assert_eq(put("debuginfo/03", bytes, sizeof(bytes)), 0);
	cr_expect_eq(told, 1u);
}

Test(store, a_file_from_the_future_is_not_kept_for_ever)
{
	const struct timespec times[2] = { { .tv_sec = 4102444800 }, { .tv_sec = 4102444800 } };
	char bytes[400000] = "", path[256];
	const bool stop = false;

	cr_assert_eq(put("debuginfo/01", bytes, sizeof(bytes)), 0);
	path_of("debuginfo/01", path);
	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	store_close(store);
	open_store(1 << 20);
	store_scan(store, &stop);
	cr_assert_eq(put("debuginfo/02", bytes, sizeof(bytes)), 0);
	cr_assert_eq(put("debuginfo/03", bytes, sizeof(bytes)), 0);
	path_of("debuginfo/01", path);
	cr_expect_eq(access(path, F_OK), -1);
	path_of("debuginfo/02", path);
	cr_expect_eq(access(path, F_OK), 0);
}

Test(store, an_object_larger_than_the_store_is_refused)
{
	static char bytes[200000];

	store_set_max(store, 100000);
	cr_expect_eq(put("debuginfo/ab", bytes, sizeof(bytes)), -ENOSPC);
	cr_expect_eq(files_in_tmp(), 0u);
}

static int append_many(struct store_incoming *incoming, size_t count)
{
	static const char bytes[1000];
	int failure = 0;

	for (; count && !failure; count--)
		failure = store_append(incoming, bytes, sizeof(bytes));
	return failure;
}

Test(store, what_has_no_room_pushes_nothing_out)
{
	struct store_incoming *incoming;

	store_set_max(store, 200000);
	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_assert_eq(store_begin(store, &incoming), 0);
	cr_expect_eq(store_reserve(incoming, 200000), -ENOSPC);
	cr_expect_eq(store_reserve(incoming, UINT64_MAX), -ENOSPC);
	cr_expect_eq(append_many(incoming, 300), -ENOSPC, "an unknown length");
	cr_expect_leq(store_incoming_bytes(incoming), 100000u);
	store_abandon(incoming);
	cr_expect(has("debuginfo/ab", "hello"));
}

Test(store, an_object_may_have_most_of_it_when_its_length_is_known)
{
	struct store_incoming *incoming;

	store_set_max(store, 200000);
	cr_assert_eq(store_begin(store, &incoming), 0);
	cr_expect_eq(store_reserve(incoming, 180000), 0);
	cr_expect_eq(append_many(incoming, 180), 0);
	cr_expect_eq(append_many(incoming, 180), -ENOSPC, "more than it said");
	cr_expect_eq(store_restart(incoming), 0);
	cr_expect_eq(append_many(incoming, 180), -ENOSPC, "another try says nothing");
	store_abandon(incoming);
}

static struct store_incoming *arrive(void)
{
	struct store_incoming *incoming;

	cr_assert_eq(store_begin(store, &incoming), 0);
	return incoming;
}

static uint64_t arriving(void)
{
	struct store_usage usage;

	store_usage(store, &usage);
	return usage.arriving_bytes;
}

Test(store, a_length_that_is_known_has_its_room_at_once)
{
	struct store_incoming *first = arrive(), *second = arrive();

	store_set_max(store, 200000);
	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_expect_eq(store_reserve(first, 120000), 0);
	cr_expect_eq(arriving(), 120000u);
	cr_expect_eq(store_reserve(first, 120000), 0, "the same again");
	cr_expect_eq(append_many(first, 120), 0);
	cr_expect_eq(arriving(), 120000u);
	cr_expect_eq(store_reserve(second, 120000), -EAGAIN, "not never");
	cr_expect(has("debuginfo/ab", "hello"), "it goes for nothing");
	cr_expect_eq(store_reserve(second, 120000), -EAGAIN);
	cr_expect_eq(store_restart(first), 0);
	cr_expect_eq(store_reserve(second, 120000), 0);
	cr_expect_eq(store_reserve(first, 120000), -EAGAIN);
	store_abandon(second);
	cr_expect_eq(store_reserve(first, 120000), 0);
	store_abandon(first);
	cr_expect_eq(arriving(), 0u);
}

Test(store, a_large_one_that_waits_is_not_overtaken)
{
	struct store_incoming *first = arrive(), *large = arrive(), *small = arrive(),
			      *last = arrive();

	store_set_max(store, 200000);
	cr_expect_eq(store_reserve(first, 100000), 0);
	cr_expect_eq(store_reserve(large, 180000), -EAGAIN);
	cr_expect_eq(store_reserve(small, 10000), -EAGAIN);
	cr_expect_eq(store_append(last, "hello", 5), -EAGAIN);
	store_abandon(first);
	cr_expect_eq(store_reserve(small, 10000), -EAGAIN, "there is room, but an earlier waiter");
	cr_expect_eq(store_reserve(large, 180000), 0);
	cr_expect_eq(store_reserve(small, 10000), 0);
	cr_expect_eq(store_append(last, "hello", 5), 0);
	store_abandon(small);
	cr_expect_eq(store_reserve(small = arrive(), 20000), -EAGAIN);
	cr_expect_eq(store_append(last, "hello", 5), 0, "who has something is not held up");
	store_abandon(small);
	store_abandon(large);
	store_abandon(last);
	cr_expect_eq(arriving(), 0u);
}

Test(store, those_that_do_not_tell_their_length_do_not_wait_for_each_other)
{
	char key[] = "debuginfo/ab";
	struct store_record record = { .key = key };
	struct store_incoming *one = arrive(), *other = arrive(), *third = arrive();

	store_set_max(store, 200000);
	cr_expect_eq(append_many(one, 70), 0);
	cr_expect_eq(append_many(other, 70), 0);
	cr_expect_eq(append_many(third, 100), -EAGAIN);
	cr_expect_eq(store_incoming_bytes(third), 60000u);
	cr_expect_eq(append_many(one, 1), -EAGAIN);
	cr_expect_eq(append_many(other, 1), -EDEADLK, "no holder would release");
	cr_expect_eq(store_restart(other), 0);
	cr_expect_eq(append_many(third, 40), 0, "what it had has become theirs");
	cr_expect_eq(append_many(one, 30), 0);
	cr_expect_eq(append_many(other, 1), -EAGAIN);
	cr_expect_eq(store_publish(one, &record), 0, "a record needs no room of its own");
	cr_expect_eq(append_many(other, 1), 0, "it went for this one");
	store_abandon(other);
	store_abandon(third);
	cr_expect_eq(arriving(), 0u);
}

Test(store, a_new_object_stays_until_who_waits_has_opened_it)
{
	char key[] = "debuginfo/ab";
	const bool stop = false;
	struct store_record record = { .key = key, .name = "name.so", .source = "here" };
	struct store_incoming *incoming = arrive();
	struct store_usage usage;

	store_scan(store, &stop);
	cr_assert_eq(store_append(incoming, "hello", 5), 0);
	cr_assert_eq(store_publish_held(incoming, &record), 0);
	store_usage(store, &usage);
	cr_expect_eq(usage.used_bytes, 0u);
	cr_expect_gt(usage.arriving_bytes, 5u);
	store_set_max(store, 1);
	cr_expect(has(key, "hello"), "found, and still held");
	store_abandon(incoming);
	store_usage(store, &usage);
	cr_expect_gt(usage.used_bytes, 5u);
	cr_expect_eq(usage.arriving_bytes, 0u);
	store_set_max(store, 1);
	cr_expect_not(has(key, ""), "one of all");
	store_usage(store, &usage);
	cr_expect_eq(usage.used_bytes, 0u);
}

/* Ends an arrival as an object of one key. */
static int publish(struct store_incoming *incoming, const char *bytes, uint32_t contents)
{
	char key[] = "debuginfo/ab";
	struct store_record record = {
		.key = key,
		.name = "name.so",
		.source = "here",
		.contents = contents,
	};

	cr_assert_eq(store_append(incoming, bytes, strlen(bytes)), 0);
	return store_publish(incoming, &record);
}

Test(store, keeps_the_better_object_whichever_is_published_last)
{
	const uint32_t worse = SYM_CONTENT_SYMBOL_TABLE, better = worse | SYM_CONTENT_DEBUG_INFO;
	struct store_incoming *first = arrive(), *second = arrive(), *third = arrive();

	/* The worse one began first and ends last. */
	cr_expect_eq(publish(second, "better", better), 0);
	cr_expect_eq(publish(first, "worse", worse), -EEXIST);
	cr_expect(has("debuginfo/ab", "better"));
	cr_expect_eq(publish(third, "as good", better), 0);
	cr_expect(has("debuginfo/ab", "as good"));
	cr_expect_eq(arriving(), 0u);
	cr_expect_eq(files_in_tmp(), 0u);
}

Test(store, replaces_the_worse_object)
{
	cr_expect_eq(publish(arrive(), "worse", SYM_CONTENT_SYMBOL_TABLE), 0);
	cr_expect_eq(publish(arrive(), "as good", SYM_CONTENT_SYMBOL_TABLE), 0);
	cr_expect(has("debuginfo/ab", "as good"));
	cr_expect_eq(publish(arrive(), "better", SYM_CONTENT_DEBUG_INFO), 0);
	cr_expect(has("debuginfo/ab", "better"));
}

Test(store, replaces_a_better_object_that_is_damaged_or_of_another_key)
{
	char path[256], other[256];
	struct store_record record;
	int fd;

	path_of("debuginfo/ab", path);
	path_of("debuginfo/ac", other);
	cr_assert_eq(publish(arrive(), "better", SYM_CONTENT_DEBUG_INFO), 0);
	store_close(store);
	open_store(1 << 20);
	fd = open(path, O_WRONLY);
	cr_assert_eq(pwrite(fd, "X", 1, 0), 1);
	close(fd);
	cr_expect_eq(store_find(store, "debuginfo/ab", &fd, &record), -ENOENT, "as each look-up");
	cr_expect_eq(publish(arrive(), "worse", SYM_CONTENT_SYMBOL_TABLE), 0);
	cr_expect(has("debuginfo/ab", "worse"));
	cr_assert_eq(publish(arrive(), "better", SYM_CONTENT_DEBUG_INFO), 0);
	cr_assert_eq(rename(path, other), 0);
	cr_expect_eq(put("debuginfo/ac", "hello", 5), 0);
	cr_expect(has("debuginfo/ac", "hello"));
}

Test(store, counts_what_was_there_before)
{
	struct store_usage before, after;
	bool stop = false;

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_assert_eq(put("debuginfo/ac", "hello", 5), 0);
	store_usage(store, &before);
	store_close(store);
	open_store(1 << 20);
	store_scan(store, &stop);
	store_usage(store, &after);
	cr_expect_eq(after.object_count, 2u);
	cr_expect_eq(after.used_bytes, before.used_bytes);
	cr_expect(after.is_scanned);
}

Test(store, shrinks_to_a_smaller_size)
{
	static char bytes[10000];
	struct store_usage usage;
	bool stop = false;
	char key[32];

	store_scan(store, &stop);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "debuginfo/%04x", i);
		cr_assert_eq(put(key, bytes, sizeof(bytes)), 0);
	}
	store_set_max(store, 100000);
	store_usage(store, &usage);
	cr_expect_leq(usage.used_bytes, 100000u, "when it is set");
	store_close(store);
	open_store(50000);
	store_scan(store, &stop);
	store_usage(store, &usage);
	cr_expect_leq(usage.used_bytes, 50000u, "after a start");
	cr_expect_gt(usage.used_bytes, 30000u);
}

Test(store, what_is_used_outlives_a_restart)
{
	const struct timespec old[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
	char bytes[400000] = "", path[256];
	const bool stop = false;
	struct stat status;

	for (int i = 0; i < 2; i++) {
		path_of(i ? "debuginfo/02" : "debuginfo/01", path);
		cr_assert_eq(put(i ? "debuginfo/02" : "debuginfo/01", bytes, sizeof(bytes)), 0);
		cr_assert_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	store_close(store);
	open_store(1 << 20);
	store_scan(store, &stop);
	store_touch(store, "debuginfo/01");
	store_touch(store, "debuginfo/nothing");
	path_of("debuginfo/01", path);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_gt(status.st_mtim.tv_sec, 1700000000);
	cr_assert_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	store_touch(store, "debuginfo/01");
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mtim.tv_sec, 1700000000, "once an hour");
}

/* -------- scrubbing -------- */

static char reported[256];

static void note(const char *name, const char *reason, int failure)
{
	cr_expect_eq(failure, 0);
	snprintf(reported, sizeof(reported), "%s: %s", name, reason);
}

Test(store, scrubbing_removes_what_is_damaged_and_nothing_else)
{
	struct store_scrub_result result;

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_assert_eq(put("debuginfo/ac", "other", 5), 0);
	damage("debuginfo/ac", 0);
	cr_assert_eq(store_scrub(directory, NULL, note, &result), 0);
	cr_expect_eq(result.good_count, 1u);
	cr_expect_eq(result.good_bytes, 5u);
	cr_expect_eq(result.removed_count, 1u);
	cr_expect_str_eq(reported, "debuginfo/ac: checksum differs");
	cr_expect(has("debuginfo/ab", "hello"));
	cr_expect_not(has("debuginfo/ac", ""));
}

static int check_without_memory(int fd, const struct store_record *record, const char **reason_ret)
{
	(void)fd;
	(void)record;
	(void)reason_ret;
	return -ENOMEM;
}

static void note_unread(const char *name, const char *reason, int failure)
{
	snprintf(reported, sizeof(reported), "%s: %s: %s", name, reason, strerrorname_np(-failure));
}

Test(store, scrubbing_removes_nothing_for_want_of_memory)
{
	struct store_scrub_result result;

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	cr_assert_eq(store_scrub(directory, check_without_memory, note_unread, &result), 0);
	cr_expect_eq(result.removed_count, 0u);
	cr_expect_eq(result.failed_count, 1u);
	cr_expect_str_eq(reported, "debuginfo/ab: cannot be read: ENOMEM");
	cr_expect(has("debuginfo/ab", "hello"));
}

Test(store, scrubbing_says_which_shelf_it_could_not_read)
{
	struct store_scrub_result result;
	char path[128];

	snprintf(path, sizeof(path), "%s/objects/b7", directory);
	cr_assert(rmdir(path) == 0 || errno == ENOENT);
	cr_assert_eq(close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)), 0);
	cr_assert_eq(store_scrub(directory, NULL, note_unread, &result), 0);
	cr_expect_eq(result.failed_count, 1u);
	cr_expect_str_eq(reported, "objects/b7: cannot be read: ENOTDIR");
}

/* Opening it waits for a writer. */
Test(store, a_fifo_in_the_place_of_an_object_holds_nobody_up)
{
	struct store_scrub_result result;
	char path[256];

	cr_assert_eq(put("debuginfo/ab", "hello", 5), 0);
	path_of("debuginfo/ab", path);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(store_scrub(directory, NULL, note, &result), 0);
	cr_expect_eq(result.removed_count, 1u);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_not(has("debuginfo/ab", ""));
}

static void note_failure(const char *name, const char *reason, int failure)
{
	(void)reason;
	cr_expect_eq(failure, -EISDIR);
	snprintf(reported, sizeof(reported), "%s", name);
}

Test(store, scrubbing_says_what_it_could_not_remove)
{
	struct store_scrub_result result;
	char path[128];

	snprintf(path, sizeof(path), "%s/objects/00/directory", directory);
	cr_assert_eq(mkdir(path, 0755), 0);
	cr_assert_eq(store_scrub(directory, NULL, note_failure, &result), 0);
	cr_expect_str_eq(reported, "objects/00/directory");
	cr_expect_eq(result.failed_count, 1u);
	cr_expect_eq(result.removed_count, 0u);
}

Test(store, scrubbing_needs_a_store)
{
	struct store_scrub_result result;

	cr_expect_eq(store_scrub("/nonexistent", NULL, note, &result), -ENOENT);
	cr_expect_eq(store_scrub("/dev", NULL, note, &result), -ENOTEMPTY);
}
