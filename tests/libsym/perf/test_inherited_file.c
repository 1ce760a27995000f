/* SPDX-License-Identifier: MIT */
/* Memory and map that a process shares with the one it was forked from: this test. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libsym/perf/inherited_file.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/own_perf_map.h"

enum {
	PAGE_BYTES = 4096,
	REGION_BYTES = 4 * PAGE_BYTES
};

struct family {
	struct own_perf_map map;
	uint64_t shared, private;
	pid_t child;
	struct process *process;
	struct address_space *space;
	struct perfmap_location place;
};

static char *map_memory(int fd, int flags)
{
	char *memory = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	cr_assert_neq(memory, MAP_FAILED);
	return memory;
}

/* In the child's view the second page is other memory, and the last page is the first one again. */
static bool change_view(char *shared, int fd)
{
	return mmap(shared + PAGE_BYTES, PAGE_BYTES, PROT_READ,
		    MAP_ANONYMOUS | MAP_SHARED | MAP_FIXED, -1, 0) != MAP_FAILED &&
	       mmap(shared + 3 * PAGE_BYTES, PAGE_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
		    0) != MAP_FAILED &&
	       !mprotect(shared, PAGE_BYTES, PROT_READ | PROT_EXEC);
}

/* A child that has the map open. */
static void set_up(struct family *family)
{
	int fd = memfd_create("code", MFD_CLOEXEC), ready[2];
	char *shared = map_memory(fd, MAP_SHARED), *private = map_memory(fd, MAP_PRIVATE);
	char byte;

	cr_assert_eq(ftruncate(fd, REGION_BYTES), 0);
	family->map = own_perf_map_create();
	cr_assert_eq(pipe(ready), 0);
	family->child = fork();
	cr_assert_geq(family->child, 0);
	if (!family->child) {
		if (change_view(shared, fd) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(fd);
	close(ready[0]);
	close(ready[1]);
	family->shared = (uintptr_t)shared;
	family->private = (uintptr_t) private;
	cr_assert_null(process_open(family->child, NULL, &family->process));
	cr_assert_null(address_space_read(family->process, &family->space));
	cr_assert_null(perfmap_location_find(family->process, &family->place));
}

static void tear_down(struct family *family)
{
	perfmap_location_deinit(&family->place);
	address_space_destroy(family->space);
	process_close(family->process);
	kill(family->child, SIGKILL);
	waitpid(family->child, NULL, 0);
	fclose(family->map.file);
	unlink(family->map.path);
	munmap((void *)(uintptr_t)family->shared, REGION_BYTES);
	munmap((void *)(uintptr_t)family->private, REGION_BYTES);
}

Test(forked, uses_the_map_for_shared_memory)
{
	struct inherited_file_map map;
	struct stat status;
	struct family family;
	struct buf why;

	set_up(&family);
	buf_init(&why, 1000);
	cr_expect_eq(family.process->parent_pid, getpid());
	cr_expect_eq(family.place.file_count, 0);
	cr_expect_eq(family.place.others_map.namespace_pid, getpid());
	cr_assert_null(
		inherited_file_find_map(family.process, family.space, &family.place, &why, &map));
	cr_expect_eq(why.size_bytes, 0);
	cr_assert_geq(map.file.fd, 0);
	cr_assert_eq(stat(family.map.path, &status), 0);
	cr_expect_eq(map.file.status.st_ino, status.st_ino);
	cr_assert_eq(stat(map.file.path, &status), 0);
	cr_expect_eq(map.file.status.st_ino, status.st_ino);
	cr_expect(address_ranges_contain(&map.shared, family.shared, PAGE_BYTES));
	cr_expect(address_ranges_contain(&map.shared, family.shared + 2 * PAGE_BYTES, PAGE_BYTES));
	cr_expect_not(address_ranges_contain(&map.shared, family.shared + PAGE_BYTES, 1));
	cr_expect_not(address_ranges_contain(&map.shared, family.shared, PAGE_BYTES + 1));
	cr_expect_not(address_ranges_contain(&map.shared, family.shared + 3 * PAGE_BYTES, 1));
	cr_expect_not(address_ranges_contain(&map.shared, family.private, 1));
	inherited_file_map_deinit(&map);
	buf_deinit(&why);
	tear_down(&family);
}

Test(forked, does_not_use_a_map_that_its_parent_has_closed)
{
	struct inherited_file_map map;
	struct family family;
	struct buf why;

	set_up(&family);
	buf_init(&why, 1000);
	unlink(family.map.path);
	fclose(family.map.file);
	family.map = own_perf_map_create();
	cr_assert_null(
		inherited_file_find_map(family.process, family.space, &family.place, &why, &map));
	cr_expect_eq(map.file.fd, -1);
	buf_append(&why, "", 1);
	cr_expect_not_null(strstr(why.data, "no ancestor"), "%s", why.data);
	inherited_file_map_deinit(&map);
	buf_deinit(&why);
	tear_down(&family);
}

static bool find_once(void *context)
{
	struct family *family = context;
	struct inherited_file_map map;
	struct sym_error *error;
	struct buf why;
	bool found;

	buf_init(&why, 1000);
	error = inherited_file_find_map(family->process, family->space, &family->place, &why, &map);
	found = !error && map.file.fd >= 0;
	if (error)
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	inherited_file_map_deinit(&map);
	buf_deinit(&why);
	return found;
}

Test(forked, survives_every_failing_allocation)
{
	struct family family;

	set_up(&family);
	cr_expect_gt(alloc_fail_each(find_once, &family), 5);
	tear_down(&family);
}
