/* SPDX-License-Identifier: MIT */
/*
 * Four threads look up functions that only a debug file names, which the caller fetches. It must be
 * fetched once per image, and all threads must get the names. The image is this program without its
 * symbol table; the debug file is this program. A plain program, so that ThreadSanitizer can watch
 * it.
 */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "tests/races/race.h"

enum {
	THREADS = 4,
	ROUNDS = 20,
	QUESTIONS = 64
};

static const char own_path[] = "/proc/self/exe";

static struct {
	struct sym_image *image;
	uint64_t vaddr;
	atomic_uint calls, named;
} world;

/* The function to find. It is not exported, so no other table contains it. */
__attribute__((noinline, used)) static int only_the_debug_file_names_me(volatile unsigned int *x)
{
	for (unsigned int i = 0; i < 100; i++)
		*x += *x * i;
	return (int)*x;
}

static int bring(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	(void)context;
	(void)request;
	usleep(20000); /* gives the other threads time to arrive */
	atomic_fetch_add(&world.calls, 1);
	*path_ret = strdup(own_path);
	return 0;
}

static void *ask(void *context)
{
	struct sym_result *result;
	uint64_t vaddrs[QUESTIONS];

	must(sym_result_create(&result));
	must(sym_result_set_fields(result, context ? SYM_FIELD_LINES : 0));
	for (size_t i = 0; i < QUESTIONS; i++)
		vaddrs[i] = world.vaddr + i % 8;
	must(sym_image_resolve(world.image, SYM_POSITION_VADDR, vaddrs, QUESTIONS, result));
	for (size_t i = 0; i < QUESTIONS; i++) {
		const struct sym_answer *answer = sym_result_at(result, i);

		if (answer->name && !strcmp(answer->name, "only_the_debug_file_names_me"))
			atomic_fetch_add(&world.named, 1);
	}
	sym_result_destroy(result);
	return NULL;
}

static int take_base(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1; /* the program comes first */
}

/* Writes this program without the sections outside segments: symbols and DWARF. */
static void write_stripped(const char *path)
{
	int fd = path_open_in_root(-1, own_path, PATH_REGULAR);
	struct path_output output;
	struct buf file;
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;

	buf_init(&file, (size_t)1 << 30);
	if (fd < 0 || path_read_all(fd, &file) || path_output_open(&output, path))
		abort();
	header = (Elf64_Ehdr *)file.data;
	sections = (Elf64_Shdr *)(file.data + header->e_shoff);
	for (size_t i = 1; i < header->e_shnum; i++)
		if (!(sections[i].sh_flags & SHF_ALLOC) && i != header->e_shstrndx)
			sections[i] = (Elf64_Shdr){ .sh_type = SHT_NULL };
	if (path_write_all(output.fd, file.data, file.size_bytes) ||
	    path_output_commit(&output, 0600, false))
		abort();
	buf_deinit(&file);
	close(fd);
}

int main(void)
{
	volatile unsigned int value = 1;
	char path[64];
	uint64_t base = 0;
	bool good;

	only_the_debug_file_names_me(&value);
	snprintf(path, sizeof(path), "/tmp/race-debug-fetch-%d", (int)getpid());
	write_stripped(path);
	dl_iterate_phdr(take_base, &base);
	world.vaddr = (uint64_t)(uintptr_t)only_the_debug_file_names_me - base;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t threads[THREADS];

		must(sym_image_open(path, &world.image));
		must(sym_image_set_fetch(world.image, bring, NULL));
		for (uintptr_t i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, ask, (void *)(i & 1));
		for (size_t i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		sym_image_close(world.image);
	}
	unlink(path);
	good = world.calls == ROUNDS && world.named == ROUNDS * THREADS * QUESTIONS;
	printf("%s race_debug_fetch: %d images, asked %u times, %u names\n", good ? "ok" : "FAILED",
	       ROUNDS, world.calls, world.named);
	return !good;
}
