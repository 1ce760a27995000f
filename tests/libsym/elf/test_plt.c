/* SPDX-License-Identifier: MIT */
#include "libsym/elf/plt.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* A lower bound for the ifuncs that libc.so.6 of this processor calls. */
#ifdef __aarch64__
#define CHOSEN_FLOOR 1
#else
#define CHOSEN_FLOOR 10
#endif

struct library {
	void *handle;
	struct link_map *map;
	struct object_file *object;
};

static bool open_library(const char *name, struct library *ret)
{
	int fd;

	ret->handle = dlopen(name, RTLD_NOW);
	if (!ret->handle || dlinfo(ret->handle, RTLD_DI_LINKMAP, &ret->map))
		return false;
	fd = open(ret->map->l_name, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", ret->map->l_name);
	cr_assert_null(
		object_file_open(NULL, fd, ret->map->l_name, 0, SPARSE_FILE_TO_END, &ret->object));
	return true;
}

/* The address from which an entry loads its target; NULL if the entry has another form. */
static const void *slot_of(const uint8_t *code)
{
#ifdef __aarch64__
	/* adrp x16, PAGE; ldr x17, [x16, OFFSET] */
	int64_t pages;
	uint32_t words[2];

	memcpy(words, code, sizeof(words));
	if ((words[0] & 0x9f00001f) != 0x90000010 || (words[1] & 0xffc003ff) != 0xf9400211)
		return NULL;
	pages = (int64_t)((uint64_t)(words[0] >> 5 & 0x7ffff) << 45) >> 43;
	return (const uint8_t *)(((uintptr_t)code & ~(uintptr_t)0xfff) +
				 (uintptr_t)((pages | (words[0] >> 29 & 3)) * 4096)) +
	       (words[1] >> 10 & 0xfff) * 8;
#else
	/* jmp *DISPLACEMENT(%rip) */
	int32_t displacement;

	if (code[0] != 0xff || code[1] != 0x25)
		return NULL;
	memcpy(&displacement, code + 2, sizeof(displacement));
	return code + 6 + displacement;
#endif
}

/* The target of an entry in this process, after linking; NULL if unknown. */
static void *destination(const struct library *library, const struct plt_entry *entry)
{
	const void *slot = slot_of((const uint8_t *)library->map->l_addr + entry->vaddr);
	void *pointer = NULL;

	if (slot)
		memcpy(&pointer, slot, sizeof(pointer));
	return pointer;
}

/* Nearly all entries of libc.so.6 belong to ifuncs. The oracle is the dynamic linker, which has
 * filled the slots of this process and looks the names up again. */
Test(plt, names_ifuncs_as_the_dynamic_linker_resolves_them)
{
	struct library library;
	struct plt plt;
	size_t chosen = 0;

	if (!open_library("libc.so.6", &library))
		cr_skip_test("no libc.so.6");
	cr_assert_null(plt_read(library.object, &plt));
	for (size_t i = 0; i < plt.count; i++) {
		const struct plt_entry *entry = &plt.items[i];
		void *there = destination(&library, entry);
		char *name = strndup(entry->target, entry->target_bytes);
		void *wanted = dlsym(library.handle, name);

		/* The dynamic linker's own functions belong to other libraries. */
		if (there && wanted &&
		    entry->target >= (const char *)plt.indirect.sections.view.data &&
		    entry->target < (const char *)plt.indirect.sections.view.data +
					    plt.indirect.sections.view.size_bytes) {
			cr_expect_eq(there, wanted, "%s at 0x%lx", name, (long)entry->vaddr);
			chosen++;
		}
		free(name);
	}
	if (!plt.indirect.count)
		cr_skip_test("this C library chooses nothing");
	cr_expect_gt(chosen, CHOSEN_FLOOR);
	plt_deinit(&plt);
	object_file_close(library.object);
	dlclose(library.handle);
}
