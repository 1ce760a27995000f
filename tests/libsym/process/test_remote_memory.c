/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/process/remote_memory.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/fake_memory.h"

static const uint64_t base = 0x7f0000100000;

static bool fetch(struct remote_memory *memory)
{
	bool again = false;

	cr_assert_null(remote_memory_fetch(memory, &again));
	return again;
}

Test(remote_memory, returns_a_value_only_after_the_fetch)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	fake_memory_add(&fake, base, 4096);
	fake_memory_put_u64(&fake, base + 16, 0x1122334455667788);
	remote_begin(memory);
	cr_assert_eq(remote_u64(memory, base + 16), 0);
	cr_assert_eq(remote_state(memory), REMOTE_PENDING);
	cr_assert(fetch(memory));
	remote_begin(memory);
	cr_assert_eq(remote_u64(memory, base + 16), 0x1122334455667788);
	cr_assert_eq(remote_u32(memory, base + 20), 0x11223344);
	cr_assert_eq(remote_u16(memory, base + 22), 0x1122);
	cr_assert_eq(remote_u8(memory, base + 23), 0x11);
	cr_assert_eq(remote_state(memory), REMOTE_OK);
	cr_assert_not(fetch(memory));
	fake_memory_deinit(&fake);
}

Test(remote_memory, reads_thousands_of_scattered_pages_in_a_few_calls)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	const uint64_t step = 2 * REMOTE_PAGE_BYTES, count = 3000;

	fake_memory_add(&fake, base, count * step);
	for (uint64_t i = 0; i < count; i++)
		fake_memory_put_u64(&fake, base + i * step, i);
	for (uint64_t i = 0; i < count; i++) {
		remote_begin(memory);
		remote_u64(memory, base + i * step);
	}
	cr_assert(fetch(memory));
	cr_assert_eq(fake.calls, 3);
	cr_assert_eq(fake.most_pieces, REMOTE_MAX_PIECES);
	remote_begin(memory);
	for (uint64_t i = 0; i < count; i++)
		cr_assert_eq(remote_u64(memory, base + i * step), i);
	cr_assert_eq(remote_memory_cost(memory)->calls, 3);
	fake_memory_deinit(&fake);
}

Test(remote_memory, merges_neighbouring_pages_into_one_piece)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	fake_memory_add(&fake, base, 64 * REMOTE_PAGE_BYTES);
	remote_want(memory, base, 64 * REMOTE_PAGE_BYTES);
	cr_assert(fetch(memory));
	cr_assert_eq(fake.most_pieces, 1);
	fake_memory_deinit(&fake);
}

Test(remote_memory, reads_across_the_border_of_two_pages)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	fake_memory_add(&fake, base, 2 * REMOTE_PAGE_BYTES);
	fake_memory_put_u64(&fake, base + REMOTE_PAGE_BYTES - 3, 0x0102030405060708);
	remote_want(memory, base, 2 * REMOTE_PAGE_BYTES);
	fetch(memory);
	remote_begin(memory);
	cr_assert_eq(remote_u64(memory, base + REMOTE_PAGE_BYTES - 3), 0x0102030405060708);
	fake_memory_deinit(&fake);
}

Test(remote_memory, finds_the_readable_pages_around_unreadable_ones)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	for (uint64_t i = 0; i < 10; i++)
		if (i != 0 && i != 4 && i != 5 && i != 9) {
			fake_memory_add(&fake, base + i * REMOTE_PAGE_BYTES, REMOTE_PAGE_BYTES);
			fake_memory_put_u64(&fake, base + i * REMOTE_PAGE_BYTES, i);
		}
	remote_want(memory, base, 10 * REMOTE_PAGE_BYTES);
	fetch(memory);
	for (uint64_t i = 0; i < 10; i++) {
		bool readable = i != 0 && i != 4 && i != 5 && i != 9;

		remote_begin(memory);
		cr_assert_eq(remote_u64(memory, base + i * REMOTE_PAGE_BYTES), readable ? i : 0);
		cr_assert_eq(remote_state(memory), readable ? REMOTE_OK : REMOTE_UNREADABLE);
	}
	cr_assert_eq(remote_memory_cost(memory)->unreadable_pages, 4);
	fake_memory_deinit(&fake);
}

Test(remote_memory, copies_past_the_cache_up_to_the_first_unreadable_byte)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	uint8_t room[3 * REMOTE_PAGE_BYTES], whole[100];
	size_t done = 77, whole_done = 77, nothing_done = 77;

	fake_memory_add(&fake, base, 2 * REMOTE_PAGE_BYTES);
	memset(fake_memory_at(&fake, base, 2 * REMOTE_PAGE_BYTES), 0xab, 2 * REMOTE_PAGE_BYTES);
	remote_want_copy(memory, base + 100, room, sizeof(room), &done);
	remote_want_copy(memory, base + 5, whole, sizeof(whole), &whole_done);
	remote_want_copy(memory, 0x10, whole, sizeof(whole), &nothing_done);
	cr_assert(fetch(memory));
	cr_assert_eq(done, 2 * REMOTE_PAGE_BYTES - 100);
	cr_assert_eq(room[done - 1], 0xab);
	cr_assert_eq(whole_done, sizeof(whole));
	cr_assert_eq(whole[99], 0xab);
	cr_assert_eq(nothing_done, 0);
	fake_memory_deinit(&fake);
}

Test(remote_memory, sees_changes_only_after_forget)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	uint64_t value = 0;

	fake_memory_add(&fake, base, 4096);
	fake_memory_put_u64(&fake, base, 1);
	cr_assert_null(remote_read_now(memory, base, &value, sizeof(value), "it"));
	fake_memory_put_u64(&fake, base, 2);
	cr_assert_null(remote_read_now(memory, base, &value, sizeof(value), "it"));
	cr_assert_eq(value, 1);
	remote_memory_forget(memory);
	cr_assert_null(remote_read_now(memory, base, &value, sizeof(value), "it"));
	cr_assert_eq(value, 2);
	fake_memory_deinit(&fake);
}

Test(remote_memory, requests_nothing_after_a_failure_until_the_next_item)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	fake_memory_add(&fake, base, 4096);
	remote_begin(memory);
	cr_assert_eq(remote_u64(memory, 8), 0);
	cr_assert_eq(remote_state(memory), REMOTE_UNREADABLE);
	cr_assert_eq(remote_u64(memory, base), 0);
	cr_assert_not(fetch(memory));
	fake_memory_deinit(&fake);
}

Test(remote_memory, rejects_the_first_page_and_the_upper_half_without_a_call)
{
	static const uint64_t addresses[] = {
		0, 8, 4095, UINT64_MAX, UINT64_MAX - 7, 0xffff800000000000
	};
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		remote_begin(memory);
		remote_u64(memory, addresses[i]);
		cr_assert_eq(remote_state(memory), REMOTE_UNREADABLE);
	}
	remote_want(memory, UINT64_MAX - 10, 4096);
	cr_assert_not(fetch(memory));
	cr_assert_eq(fake.calls, 0);
}

Test(remote_memory, passes_on_an_error_that_ends_all_reading)
{
	struct fake_memory fake = { .fail_with = ESRCH };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	AUTO_ERROR struct sym_error *error = NULL;
	bool again;

	remote_want(memory, base, 8);
	error = remote_memory_fetch(memory, &again);
	cr_assert_not_null(error);
	cr_assert_not_null(strstr(sym_error_message(error), "No such process"));
}

/* The requester of a copy gives up when the fetch fails. Its room may be gone at the next fetch. */
Test(remote_memory, writes_nothing_into_a_copy_after_a_fetch_that_failed)
{
	struct fake_memory fake = { .fail_with = ESRCH };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	uint64_t room = 0;
	size_t done = 77;
	bool again;

	fake_memory_add(&fake, base, REMOTE_PAGE_BYTES);
	fake_memory_put_u64(&fake, base, UINT64_MAX);
	remote_want_copy(memory, base, &room, sizeof(room), &done);
	sym_error_destroy(remote_memory_fetch(memory, &again));
	fake.fail_with = 0;
	fetch(memory);
	cr_assert_eq(room, 0);
	cr_assert_eq(done, 0);
	fake_memory_deinit(&fake);
}

Test(remote_memory, reads_again_after_forgetting_a_lack_of_memory)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	bool again;

	fake_memory_add(&fake, base, REMOTE_PAGE_BYTES);
	fake_memory_put_u64(&fake, base, 5);
	alloc_fail_after(0);
	remote_begin(memory);
	remote_u64(memory, base);
	cr_assert(alloc_fail_stop());
	cr_assert_eq(remote_memory_fetch(memory, &again), &sym_error_no_memory);
	remote_memory_forget(memory);
	remote_begin(memory);
	remote_u64(memory, base);
	cr_assert(fetch(memory));
	remote_begin(memory);
	cr_assert_eq(remote_u64(memory, base), 5);
	fake_memory_deinit(&fake);
}

Test(remote_memory, reads_another_process_and_detects_its_end)
{
	volatile uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	AUTO_REMOTE_MEMORY struct remote_memory *memory = NULL;
	AUTO_ERROR struct sym_error *error = NULL;
	uint64_t value = 0;
	pid_t child;

	*shared = 4711;
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	cr_assert_null(remote_memory_open_process(child, &memory));
	cr_assert_null(remote_read_now(memory, (uint64_t)(uintptr_t)shared, &value, 8, "it"));
	cr_assert_eq(value, 4711);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	remote_memory_forget(memory);
	error = remote_read_now(memory, (uint64_t)(uintptr_t)shared, &value, 8, "it");
	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	munmap((void *)shared, 4096);
}

Test(remote_memory, returns_a_structure_that_crosses_pages_whole)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes;

	fake_memory_add(&fake, base, 2 * 4096);
	for (uint64_t at = base + 4096 - 24; at < base + 4096 + 24; at += 8)
		fake_memory_put_u64(&fake, at, at);
	remote_begin(memory);
	remote_want(memory, base + 4096 - 12, 24);
	cr_assert(fetch(memory));
	bytes = remote_structure(memory, base + 4096 - 16, room, 32);
	cr_assert_eq(remote_state(memory), REMOTE_OK);
	cr_assert_eq(structure_u64(bytes, 0), base + 4096 - 16);
	cr_assert_eq(structure_u64(bytes, 24), base + 4096 + 8);
	cr_assert_eq(structure_u32(bytes, 16), (uint32_t)(base + 4096));
	cr_assert_eq(structure_u16(bytes, 16), (uint16_t)(base + 4096));
	cr_assert_eq(bytes, room);
	bytes = remote_structure(memory, base + 4096, room, 24);
	cr_assert_neq(bytes, room, "it lies in the cache in one piece");
	cr_assert_eq(structure_u64(bytes, 16), base + 4096 + 16);
	fake_memory_deinit(&fake);
}

Test(remote_memory, returns_no_part_of_a_structure_that_ends_in_unmapped_memory)
{
	struct fake_memory fake = { 0 };
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&fake);
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes;

	fake_memory_add(&fake, base, 4096);
	fake_memory_put_u64(&fake, base + 4096 - 8, UINT64_MAX);
	remote_begin(memory);
	remote_structure(memory, base + 4096 - 8, room, 16);
	cr_assert_eq(remote_state(memory), REMOTE_PENDING);
	cr_assert(fetch(memory));
	remote_begin(memory);
	bytes = remote_structure(memory, base + 4096 - 8, room, 16);
	cr_assert_eq(remote_state(memory), REMOTE_UNREADABLE);
	cr_assert_eq(structure_u64(bytes, 0), 0);
	cr_assert_eq(structure_u64(bytes, 8), 0);
	fake_memory_deinit(&fake);
}
