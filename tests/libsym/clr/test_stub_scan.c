/* SPDX-License-Identifier: MIT */
/* Code of this process that looks like stubs of a runtime. */
#include "libsym/clr/stub_scan.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/clr/runtime_stub.h"

enum {
	SIZE_BYTES = 3 << 16 /* more than one step */
};

static const uint8_t precode[24] = { 0xff, 0x25, 0xfa, 0x3f, 0,    0,    0x4c, 0x8b, 0x15, 0xfb,
				     0x3f, 0,    0,    0xff, 0x25, 0xfd, 0x3f, 0,    0,    0x90 };
/* The first bytes of a stub of 112 bytes. */
static const uint8_t resolve[26] = { 0x48, 0x8b, 0x07, 0x52, 0x49, 0xba, 1,    2,    3,
				     4,    5,    6,    7,    8,    0x48, 0x8b, 0xd0, 0x48,
				     0xc1, 0xe8, 0x0c, 0x48, 0x03, 0xc2, 0x48, 0x35 };

struct scene {
	struct process *process;
	struct address_space *space;
	uint8_t *code;
};

static void set_up(struct scene *scene)
{
	scene->code = mmap(NULL, SIZE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(scene->code, MAP_FAILED);
	memcpy(scene->code + 8, precode, sizeof(precode));
	memcpy(scene->code + 8 + sizeof(precode), precode, sizeof(precode));
	memcpy(scene->code + 4 + 0x100, precode, sizeof(precode)); /* where no stub can be */
	memcpy(scene->code + (1 << 16) - 16, precode, sizeof(precode));
	memcpy(scene->code + SIZE_BYTES - RUNTIME_STUB_BYTES, resolve, sizeof(resolve));
	cr_assert_null(process_open(getpid(), NULL, &scene->process));
	cr_assert_null(address_space_read(scene->process, &scene->space));
}

static void tear_down(struct scene *scene)
{
	address_space_destroy(scene->space);
	process_close(scene->process);
	munmap(scene->code, SIZE_BYTES);
}

Test(stub_scan, finds_stubs_anywhere_up_to_the_end_of_a_mapping)
{
	struct address_ranges found = { 0 };
	struct scene scene;
	uint64_t code;
	size_t first = 0;

	set_up(&scene);
	code = (uintptr_t)scene.code;
	cr_assert_null(stub_scan_find(scene.process, scene.space, &found));
	while (first < found.count && found.items[first].start < code)
		first++;
	cr_assert_geq(found.count, first + 3);
	cr_expect_eq(found.items[first].start, code + 8);
	cr_expect_eq(found.items[first].end, code + 8 + 2 * sizeof(precode), "side by side");
	cr_expect_eq(found.items[first + 1].start, code + (1 << 16) - 16);
	cr_expect_eq(found.items[first + 1].end, code + (1 << 16) - 16 + sizeof(precode));
	cr_expect_eq(found.items[first + 2].start, code + SIZE_BYTES - RUNTIME_STUB_BYTES);
	cr_expect_eq(found.items[first + 2].end, code + SIZE_BYTES);
	address_ranges_deinit(&found);
	tear_down(&scene);
}

Test(stub_scan, finds_no_stubs_in_unmapped_memory)
{
	struct address_ranges found = { 0 };
	struct write_barrier barrier = { 0 };
	struct scene scene;

	set_up(&scene);
	munmap(scene.code, SIZE_BYTES);
	cr_assert_null(stub_scan_find(scene.process, scene.space, &found));
	for (size_t i = 0; i < found.count; i++)
		cr_expect(found.items[i].start < (uintptr_t)scene.code ||
			  found.items[i].start >= (uintptr_t)scene.code + SIZE_BYTES);
	stub_scan_find_barrier(scene.process, scene.space, &barrier);
	cr_expect_eq(barrier.count, 0);
	address_ranges_deinit(&found);
	tear_down(&scene);
}
