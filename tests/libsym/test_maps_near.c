/* SPDX-License-Identifier: MIT */
/*
 * What is mapped around a few addresses of this process itself, against the text of its maps, and
 * names that come of it against those of a whole snapshot.
 */
#include "libsym/maps_near.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libsym/address_space.h"
#include "libsym/base/path.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/program.h"

enum {
	PAGE_BYTES = 0x1000,
	STEPS = 16, /* questions of one mapping */
	FIRST_MAJOR = 6,
	FIRST_MINOR = 11
};

static struct process *process;
static char *directory;

/* Since when the kernel can be asked. */
static bool can_ask(void)
{
	int major = 0, minor = 0;
	struct utsname system;

	cr_assert_eq(uname(&system), 0);
	cr_assert_eq(sscanf(system.release, "%d.%d", &major, &minor), 2);
	return major > FIRST_MAJOR || (major == FIRST_MAJOR && minor >= FIRST_MINOR);
}

static void set_up(void)
{
	if (!can_ask())
		cr_skip_test("the kernel is older than Linux 6.11");
	cr_assert_null(process_open(getpid(), NULL, &process));
	directory = scratch_create();
}

static void tear_down(void)
{
	process_close(process);
	scratch_remove(directory);
}

TestSuite(maps_near, .init = set_up, .fini = tear_down);

static struct address_space *read_whole(void)
{
	struct address_space *space = NULL;

	cr_assert_null(address_space_read(process, &space));
	return space;
}

/* NULL when there is none. */
static struct address_space *read_near(uint64_t address)
{
	struct address_space *space = NULL;

	cr_assert_null(address_space_read_near(process, &address, 1, &space));
	return space;
}

static bool is_told(uint64_t address)
{
	struct address_space *space AUTO_ADDRESS_SPACE = read_near(address);

	return space;
}

static const struct sym_mapping *at(const struct address_space *space, uint64_t address)
{
	size_t found = address_space_find(space, address);

	return found == ADDRESS_SPACE_NONE ? NULL : &space->mappings[found];
}

static uint64_t own_code(void)
{
	return (uint64_t)(uintptr_t)&own_code;
}

/* A file of some pages below the scratch directory. */
static int make_file(const char *name, size_t pages)
{
	char *path AUTO_FREE = NULL;
	int fd;

	cr_assert(asprintf(&path, "%s/%s", directory, name) > 0);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && !ftruncate(fd, (off_t)(pages * PAGE_BYTES)));
	return fd;
}

static uint64_t reserve(size_t pages)
{
	void *room = mmap(NULL, pages * PAGE_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(room, MAP_FAILED);
	return (uint64_t)(uintptr_t)room;
}

static uint64_t map(uint64_t address, int protection, int fd, size_t page)
{
	void *shown = mmap((void *)(uintptr_t)address, PAGE_BYTES, protection,
			   MAP_PRIVATE | MAP_FIXED, fd, (off_t)(page * PAGE_BYTES));

	cr_assert_neq(shown, MAP_FAILED);
	return address;
}

static void expect_equal(const struct sym_mapping *a, const struct sym_mapping *b)
{
	cr_expect_eq(a->start_address, b->start_address);
	cr_expect_eq(a->end_address, b->end_address);
	cr_expect_eq(a->offset, b->offset);
	cr_expect_eq(a->inode, b->inode);
	cr_expect_eq(a->device_major, b->device_major);
	cr_expect_eq(a->device_minor, b->device_minor);
	cr_expect_eq(a->protection, b->protection);
	cr_expect_eq(a->deleted, b->deleted);
	cr_expect_str_eq(a->path, b->path);
}

/* How many lines of one file there are from its first page to where another file begins. */
static size_t lines_of_copy(const struct address_space *space, uint64_t address)
{
	const struct sym_mapping *asked = at(space, address), *line = asked;
	size_t count = 0;

	while (line > space->mappings && (strcmp(line->path, asked->path) != 0 || line->offset))
		line--;
	for (; line < space->mappings + space->mapping_count; line++)
		if (!strcmp(line->path, asked->path))
			count++;
		else if (*line->path)
			break;
	return count;
}

Test(maps_near, lines_are_those_of_the_text_and_none_of_the_file_is_missing)
{
	struct address_space *whole AUTO_ADDRESS_SPACE = read_whole();
	size_t seen = 0;

	for (size_t i = 0; i < whole->mapping_count; i++) {
		const struct sym_mapping *asked = &whole->mappings[i];
		struct address_space *near AUTO_ADDRESS_SPACE = read_near(asked->start_address);
		size_t of_file = 0;

		if (!near)
			continue;
		seen++;
		cr_expect(asked->protection & SYM_EXECUTE);
		cr_expect_eq(near->bad_lines, 0);
		cr_expect(near->read_ns > 0 && near->read_ns < INT64_MAX);
		for (size_t j = 0; j < near->mapping_count; j++) {
			const struct sym_mapping *same = at(whole, near->mappings[j].start_address);

			/* The heap may have grown. */
			cr_assert_not_null(same);
			expect_equal(&near->mappings[j], same);
			of_file += !strcmp(same->path, asked->path);
		}
		cr_expect_eq(of_file, lines_of_copy(whole, asked->start_address), "%s",
			     asked->path);
	}
	/* The program, the C library and others. */
	cr_expect_geq(seen, 5);
}

Test(maps_near, path_may_have_what_maps_would_escape)
{
	int fd AUTO_CLOSE = make_file("a b\n(deleted) \\012x", 2);
	uint64_t room = reserve(4);
	struct address_space *near AUTO_ADDRESS_SPACE = NULL;
	struct address_space *whole AUTO_ADDRESS_SPACE = NULL;

	map(room + PAGE_BYTES, PROT_READ, fd, 0);
	map(room + 2 * PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 1);
	near = read_near(room + 2 * PAGE_BYTES);
	whole = read_whole();
	cr_assert_not_null(near);
	expect_equal(at(near, room + 2 * PAGE_BYTES), at(whole, room + 2 * PAGE_BYTES));
}

Test(maps_near, copy_of_the_file_is_the_one_that_was_asked_for)
{
	int fd AUTO_CLOSE = make_file("copies", 2);
	uint64_t room = reserve(10);
	struct address_space *near AUTO_ADDRESS_SPACE = NULL;

	for (uint64_t copy = room + PAGE_BYTES; copy < room + 8 * PAGE_BYTES;
	     copy += 3 * PAGE_BYTES) {
		map(copy, PROT_READ, fd, 0);
		map(copy + PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 1);
	}
	near = read_near(room + 5 * PAGE_BYTES);
	cr_assert_not_null(near);
	cr_expect_not_null(at(near, room + 4 * PAGE_BYTES));
	cr_expect_not_null(at(near, room + 5 * PAGE_BYTES));
	cr_expect_null(at(near, room + PAGE_BYTES));
}

Test(maps_near, code_that_was_moved_into_anonymous_memory_belongs_to_its_file)
{
	int fd AUTO_CLOSE = make_file("moved", 4);
	uint64_t room = reserve(6);
	struct address_space *near AUTO_ADDRESS_SPACE = NULL;

	map(room, PROT_READ, fd, 0);
	map(room + PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 1);
	cr_assert_eq(mprotect((void *)(uintptr_t)(room + 2 * PAGE_BYTES), PAGE_BYTES,
			      PROT_READ | PROT_EXEC),
		     0);
	map(room + 3 * PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 3);
	near = read_near(room + PAGE_BYTES);
	cr_assert_not_null(near);
	cr_expect_not_null(at(near, room + 2 * PAGE_BYTES));
	cr_expect_not_null(at(near, room + 3 * PAGE_BYTES));
	/* It has no file to begin with, though. */
	cr_expect_not(is_told(room + 2 * PAGE_BYTES));
}

Test(maps_near, jitdump_of_the_process_is_seen)
{
	int fd AUTO_CLOSE = make_file("jit-1.dump", 1);
	uint64_t dump = map(reserve(1), PROT_READ | PROT_EXEC, fd, 0);
	struct address_space *near AUTO_ADDRESS_SPACE = read_near(own_code());

	cr_assert_not_null(near);
	cr_assert_not_null(at(near, dump));
	cr_expect_str_eq(path_file_name(at(near, dump)->path), "jit-1.dump");
}

/* ---- what is not to be had ---------------------------------------------------------- */

Test(maps_near, nothing_is_told_of_memory_without_a_file)
{
	int fd AUTO_CLOSE = memfd_create("doublemapper", MFD_CLOEXEC);
	uint64_t room = reserve(3);

	cr_assert_eq(ftruncate(fd, PAGE_BYTES), 0);
	map(room, PROT_READ | PROT_EXEC, fd, 0);
	cr_assert_eq(
		mprotect((void *)(uintptr_t)(room + PAGE_BYTES), PAGE_BYTES, PROT_READ | PROT_EXEC),
		0);
	cr_expect_not(is_told(room));
	cr_expect_not(is_told(room + PAGE_BYTES));
	cr_expect_not(is_told((uint64_t)(uintptr_t)&room));
	cr_expect_not(is_told(0x10));
	cr_expect_not(is_told(UINT64_MAX));
}

Test(maps_near, nothing_is_told_of_a_deleted_file)
{
	int fd AUTO_CLOSE = make_file("gone", 1);
	uint64_t code = map(reserve(1), PROT_READ | PROT_EXEC, fd, 0);
	char *path AUTO_FREE = NULL;

	cr_expect(is_told(code));
	cr_assert(asprintf(&path, "%s/gone", directory) > 0);
	cr_assert_eq(unlink(path), 0);
	cr_expect_not(is_told(code));
}

Test(maps_near, nothing_is_told_of_code_that_cannot_be_executed)
{
	int fd AUTO_CLOSE = make_file("data", 1);

	cr_expect_not(is_told(map(reserve(1), PROT_READ, fd, 0)));
}

Test(maps_near, nothing_is_told_where_the_first_byte_is_not_below)
{
	int fd AUTO_CLOSE = make_file("torn", 4), other AUTO_CLOSE = make_file("other", 1);
	uint64_t room = reserve(8);

	/* Not mapped at all. */
	cr_expect_not(is_told(map(room + PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 1)));
	/* Mapped, with something else in the middle. */
	map(room + 3 * PAGE_BYTES, PROT_READ, fd, 0);
	map(room + 4 * PAGE_BYTES, PROT_READ, other, 0);
	cr_expect_not(is_told(map(room + 6 * PAGE_BYTES, PROT_READ | PROT_EXEC, fd, 3)));
}

Test(maps_near, nothing_is_told_of_more_addresses_than_are_few)
{
	uint64_t addresses[MAPS_NEAR_ADDRESSES + 1];
	struct maps_near near;

	for (size_t i = 0; i <= MAPS_NEAR_ADDRESSES; i++)
		addresses[i] = own_code() + i;
	cr_assert(maps_near_read(process, addresses, MAPS_NEAR_ADDRESSES, &near));
	maps_near_deinit(&near);
	cr_expect_not(maps_near_read(process, addresses, MAPS_NEAR_ADDRESSES + 1, &near));
	cr_expect_not(maps_near_read(process, addresses, 0, &near));
}

Test(maps_near, nothing_is_told_when_one_address_has_nothing)
{
	uint64_t addresses[2] = { own_code(), (uint64_t)(uintptr_t)&process };
	struct maps_near near;

	cr_expect_not(maps_near_read(process, addresses, 2, &near));
}

Test(maps_near, nothing_is_told_of_a_recorded_process)
{
	uint64_t address = own_code();
	struct process *recorded = NULL;
	struct maps_near near;

	cr_assert_null(process_open(getpid(), "/", &recorded));
	cr_expect_not(maps_near_read(recorded, &address, 1, &near));
	process_close(recorded);
}

static bool read_with_little_memory(void *context)
{
	struct address_space *near AUTO_ADDRESS_SPACE = NULL;
	uint64_t address = own_code();
	struct sym_error *error = address_space_read_near(process, &address, 1, &near);

	(void)context;
	cr_expect(!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return near;
}

Test(maps_near, memory_may_be_short)
{
	cr_expect_gt(alloc_fail_each(read_with_little_memory, NULL), 4);
}

/* ---- answers ------------------------------------------------------------------------ */

struct opened {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void close_opened(struct opened *opened)
{
	sym_result_destroy(opened->result);
	sym_resolver_destroy(opened->resolver);
	sym_snapshot_close(opened->snapshot);
}

/* False when there is no such snapshot. `address` 0: a whole one. */
static bool open_snapshot(uint64_t address, struct opened *ret)
{
	*ret = (struct opened){ 0 };
	if (address)
		cr_assert_null(sym_snapshot_open_near(getpid(), NULL, &address, 1, &ret->snapshot));
	else
		cr_assert_null(sym_snapshot_open(getpid(), NULL, &ret->snapshot));
	if (!ret->snapshot)
		return false;
	cr_assert_null(sym_resolver_create(ret->snapshot, &ret->resolver));
	cr_assert_null(sym_result_create(&ret->result));
	return true;
}

static const struct sym_answer *ask(const struct opened *opened, uint64_t address)
{
	cr_assert_null(sym_resolver_resolve(opened->resolver, &address, 1, opened->result));
	return sym_result_at(opened->result, 0);
}

static bool is_in_elf_image(const struct sym_answer *answer)
{
	return answer->image && sym_image_kind(answer->image) == SYM_IMAGE_ELF;
}

static void expect_same_answer(const struct sym_answer *a, const struct sym_answer *b)
{
	cr_expect_eq(a->status, b->status);
	cr_expect_eq(a->source, b->source);
	cr_expect_eq(a->offset_bytes, b->offset_bytes);
	cr_expect_eq(a->size_bytes, b->size_bytes);
	cr_expect_eq(a->image_position, b->image_position);
	cr_expect_str_eq(a->image_path, b->image_path);
	cr_expect_str_eq(a->name ? a->name : "", b->name ? b->name : "");
	cr_expect_str_eq(a->reason ? a->reason : "", b->reason ? b->reason : "");
}

Test(maps_near, answers_are_those_of_a_whole_snapshot)
{
	struct address_space *whole_space AUTO_ADDRESS_SPACE = read_whole();
	size_t compared = 0;
	struct opened whole;

	cr_assert(open_snapshot(0, &whole));
	for (size_t i = 0; i < whole_space->mapping_count; i++) {
		const struct sym_mapping *line = &whole_space->mappings[i];
		uint64_t step = (line->end_address - line->start_address) / STEPS;

		for (uint64_t j = 0; j < STEPS && line->protection & SYM_EXECUTE; j++) {
			uint64_t address = line->start_address + j * step;
			struct opened near;

			if (!open_snapshot(address, &near))
				continue;
			if (is_in_elf_image(ask(&near, address))) {
				expect_same_answer(ask(&near, address), ask(&whole, address));
				compared++;
			}
			close_opened(&near);
		}
	}
	cr_expect_gt(compared, 5 * STEPS / 2);
	close_opened(&whole);
}

Test(maps_near, snapshot_near_no_addresses_is_a_wrong_call)
{
	struct sym_snapshot *snapshot = NULL;
	struct sym_error *error = sym_snapshot_open_near(getpid(), NULL, NULL, 0, &snapshot);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
}

Test(maps_near, writes_nothing_where_it_fails)
{
	static char nothing[1];
	struct sym_snapshot *const before = (struct sym_snapshot *)(void *)nothing;
	struct sym_snapshot *snapshot = before;
	uint64_t address = (uint64_t)(uintptr_t)&nothing;
	struct sym_error *errors[] = {
		sym_snapshot_open_near(getpid(), NULL, NULL, 0, &snapshot),
		sym_snapshot_open_near(INT32_MAX, NULL, &address, 1, &snapshot),
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		cr_expect_not_null(errors[i]);
		sym_error_destroy(errors[i]);
	}
	cr_expect_eq(snapshot, before);
}
