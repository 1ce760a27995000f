/* SPDX-License-Identifier: MIT */
/*
 * Processes that replace a library's code by a copy in anonymous memory. They are forks of this
 * process, which still has the original mapped.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/image/hugepage_text.h"
#include "libsym/libsym.h"
#include "tests/support/asked.h"

enum {
	PAGE_BYTES = 4096,
	STEP_BYTES = 64 /* between two tested addresses */
};

struct range {
	uint64_t start, end;
};

/* The executable mapping of libelf, which the children do not use, and its file offset. */
static struct range find_code_at(uint64_t *offset_ret)
{
	uint64_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "elf_version");
	FILE *maps = fopen("/proc/self/maps", "re");
	struct range code = { 0 };
	char line[4096];

	while (fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset;

		if (sscanf(line, "%llx-%llx r-xp %llx", &start, &end, &offset) == 3 &&
		    start <= address && address < end) {
			code = (struct range){ start, end };
			*offset_ret = offset;
		}
	}
	fclose(maps);
	cr_assert_gt(code.end - code.start, 8 * PAGE_BYTES);
	return code;
}

static struct range find_code(void)
{
	uint64_t offset;

	return find_code_at(&offset);
}

/* There are functions on both sides, even if the code starts with the tables of the file. */
static struct range middle_of(struct range code)
{
	uint64_t pages = (code.end - code.start) / PAGE_BYTES;

	return (struct range){ code.start + pages / 4 * PAGE_BYTES,
			       code.start + pages / 2 * PAGE_BYTES };
}

enum place {
	ANONYMOUS,
	MEMORY_FILE
};

static bool put_back(uint8_t *place, const uint8_t *copy, size_t size_bytes, enum place where)
{
	int fd = where == MEMORY_FILE ? memfd_create("text", MFD_CLOEXEC) : -1;

	if (where == MEMORY_FILE)
		return write(fd, copy, size_bytes) == (ssize_t)size_bytes &&
		       mmap(place, size_bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
			    0) != MAP_FAILED;
	if (mmap(place, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		return false;
	memcpy(place, copy, size_bytes);
	return !mprotect(place, size_bytes, PROT_READ | PROT_EXEC);
}

static void remap(struct range code, uint8_t flip, enum place where)
{
	size_t size_bytes = code.end - code.start;
	uint8_t *place = (uint8_t *)(uintptr_t)code.start;
	uint8_t *copy =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		_exit(1);
	memcpy(copy, place, size_bytes);
	for (size_t i = 100; i < size_bytes; i += PAGE_BYTES)
		copy[i] ^= flip;
	if (!put_back(place, copy, size_bytes, where))
		_exit(1);
}

struct child {
	pid_t id;
	int orders, answers;
};

/* A child that moves the code on command. */
static struct child start_child(struct range code, uint8_t flip, enum place where)
{
	int orders[2], answers[2];
	struct child child;
	char byte;

	cr_assert_eq(pipe(orders) + pipe(answers), 0);
	child = (struct child){ fork(), orders[1], answers[0] };
	if (child.id)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(orders[0], &byte, 1) != 1)
		_exit(1);
	remap(code, flip, where);
	if (write(answers[1], &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void tell(const struct child *child)
{
	char byte = 0;

	cr_assert_eq(write(child->orders, &byte, 1), 1);
	cr_assert_eq(read(child->answers, &byte, 1), 1);
}

static void end_child(const struct child *child)
{
	kill(child->id, SIGKILL);
	waitpid(child->id, NULL, 0);
	close(child->orders);
	close(child->answers);
}

/* As in positions that are sent elsewhere. */
static void expect_same_offset(const struct asked *one, const struct asked *other, uint64_t address)
{
	struct sym_position expected, found;

	cr_assert_null(sym_snapshot_normalize(one->snapshot, &address, 1, &expected));
	cr_assert_null(sym_snapshot_normalize(other->snapshot, &address, 1, &found));
	cr_assert_eq(found.status, expected.status);
	cr_assert_eq(found.offset, expected.offset);
	cr_assert_eq(found.image_position, expected.image_position);
}

/* Number of addresses in the range with a name, which must be the same in both. */
static size_t count_same_names(const struct asked *one, const struct asked *other,
			       struct range range)
{
	size_t named = 0;

	for (uint64_t address = range.start; address < range.end; address += STEP_BYTES) {
		const struct sym_answer *expected = asked_answer(one, address);
		const struct sym_answer *found = asked_answer(other, address);

		cr_assert_eq(found->status, expected->status, "%s at %#llx instead of %s",
			     sym_status_text(found->status), (unsigned long long)address,
			     sym_status_text(expected->status));
		cr_assert_str_eq(found->image_path, expected->image_path);
		cr_assert_eq(found->image_position, expected->image_position);
		if (!expected->name)
			continue;
		expect_same_offset(one, other, address);
		cr_assert_str_eq(found->name, expected->name);
		cr_assert_eq(found->offset_bytes, expected->offset_bytes);
		named++;
	}
	return named;
}

static void expect_names_of_file(struct range remapped, struct range code, enum place where)
{
	struct child child = start_child(remapped, 0, where);
	struct asked own = asked_open(getpid(), SYM_JIT_AUTO), other;

	tell(&child);
	other = asked_open(child.id, SYM_JIT_AUTO);
	cr_assert_gt(count_same_names(&own, &other, code), 200);
	asked_close(&other);
	asked_close(&own);
	end_child(&child);
}

Test(hugepage_text, has_the_names_of_the_surrounding_file)
{
	struct range code = find_code();

	expect_names_of_file(middle_of(code), code, ANONYMOUS);
}

Test(hugepage_text, has_the_names_of_the_file_in_a_memory_file)
{
	struct range code = find_code();

	expect_names_of_file(middle_of(code), code, MEMORY_FILE);
}

Test(hugepage_text, has_the_names_of_the_file_when_all_code_was_moved)
{
	uint64_t offset = 0;
	struct range code = find_code_at(&offset);

	if (!offset)
		cr_skip_test("this linker puts nothing in front of the code");
	expect_names_of_file(code, code, ANONYMOUS);
}

Test(hugepage_text, is_found_by_a_refresh)
{
	struct range code = find_code();
	struct child child = start_child(middle_of(code), 0, ANONYMOUS);
	struct asked own = asked_open(getpid(), SYM_JIT_AUTO),
		     other = asked_open(child.id, SYM_JIT_AUTO);
	enum sym_refresh found;

	cr_assert_gt(count_same_names(&own, &other, code), 200);
	tell(&child);
	cr_assert_null(sym_resolver_refresh(other.resolver, &found));
	cr_assert_eq(found, SYM_REFRESH_REMAPPED);
	cr_assert_gt(count_same_names(&own, &other, code), 200);
	cr_assert_null(sym_resolver_refresh(other.resolver, &found));
	cr_assert_eq(found, SYM_REFRESH_UNCHANGED);
	asked_close(&other);
	asked_close(&own);
	end_child(&child);
}

static void expect_no_names(enum place where)
{
	struct range code = find_code(), middle = middle_of(code);
	struct child child = start_child(middle, 0xff, where);
	struct asked own = asked_open(getpid(), SYM_JIT_AUTO), other;

	tell(&child);
	other = asked_open(child.id, SYM_JIT_AUTO);
	for (uint64_t address = middle.start; address < middle.end; address += STEP_BYTES) {
		const struct sym_answer *answer = asked_answer(&other, address);

		cr_assert_eq(answer->status, SYM_NO_SYMBOLS);
		cr_assert_null(answer->image);
	}
	cr_assert_geq(count_same_names(&own, &other, (struct range){ code.start, middle.start }),
		      1);
	asked_close(&other);
	asked_close(&own);
	end_child(&child);
}

Test(hugepage_text, has_no_name_when_its_bytes_differ_from_the_file)
{
	expect_no_names(ANONYMOUS);
	expect_no_names(MEMORY_FILE);
}

/* The kernel shows a name and an inode for it. */
Test(hugepage_text, is_found_in_huge_pages)
{
	const uint32_t code = SYM_READ | SYM_EXECUTE;
	struct sym_mapping lines[] = {
		{ 0x1000, 0x200000, 0x0, 7, 8, 1, code, UINT32_MAX, "/bin/it", 0, 0 },
		{ 0x200000, 0x400000, 0, 9, 0, 1, code, UINT32_MAX, "/anon_hugepage", 1, 0 },
		{ 0x400000, 0x401000, 0x3ff000, 7, 8, 1, code, UINT32_MAX, "/bin/it", 0, 0 },
	};
	const struct address_space space = { .mappings = lines, .mapping_count = 3 };
	struct hugepage_run run = { 0 };

	cr_assert(hugepage_run_next(&space, &run));
	cr_expect_eq(run.first, 1);
	cr_expect_eq(run.end, 2);
	cr_expect(!hugepage_run_next(&space, &run));
	lines[1].deleted = 0;
	run = (struct hugepage_run){ 0 };
	cr_expect(!hugepage_run_next(&space, &run), "a file in the root directory");
}
