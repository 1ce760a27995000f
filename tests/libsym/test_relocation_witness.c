/* SPDX-License-Identifier: MIT */
#include "libsym/relocation_witness.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/proc_tree.h"
#include "tests/support/relocated_pe.h"

struct scene {
	struct proc_tree tree;
	struct process *process;
	uint8_t *memory; /* the file as it is loaded */
};

static uint64_t *pointers(const struct scene *scene)
{
	return (uint64_t *)(scene->memory + RELOCATED_PE_PAGE + RELOCATED_PE_FIRST);
}

static void set_up(struct scene *scene)
{
	uint8_t file[RELOCATED_PE_BYTES];
	char *path AUTO_FREE = NULL;
	int fd AUTO_CLOSE = -1;
	size_t i;

	*scene = (struct scene){ 0 };
	proc_tree_create(&scene->tree);
	relocated_pe_build(file, 0x100);
	proc_tree_write(&scene->tree, "/x.dll", file, sizeof(file));
	path = proc_tree_path(&scene->tree, "/x.dll");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	scene->memory = mmap(NULL, RELOCATED_PE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	cr_assert_neq(scene->memory, MAP_FAILED);
	for (i = 0; i < RELOCATED_PE_POINTERS; i++)
		pointers(scene)[i] += (uint64_t)(uintptr_t)scene->memory - relocated_pe_base;
	cr_assert_null(process_open(getpid(), NULL, &scene->process));
}

static void tear_down(struct scene *scene)
{
	munmap(scene->memory, RELOCATED_PE_BYTES);
	process_close(scene->process);
	proc_tree_destroy(&scene->tree);
}

/* What the witness says of the file as it is now: 0 for nothing against it. */
static int ask(const struct scene *scene)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error;
	char *path AUTO_FREE = proc_tree_path(&scene->tree, "/x.dll");
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;

	cr_assert_null(image_open(fd, path, 0, SPARSE_FILE_TO_END, &image));
	cr_assert_eq(image->kind, SYM_IMAGE_NATIVE_PE);
	error = relocation_witness_ask(scene->process, image, (uint64_t)(uintptr_t)scene->memory);
	code = error ? (int)sym_error_code(error) : 0;
	sym_error_destroy(error);
	return code;
}

Test(relocation_witness, has_nothing_against_an_unchanged_file)
{
	struct scene scene;

	set_up(&scene);
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}

Test(relocation_witness, does_not_mind_pointers_that_the_runtime_has_bound)
{
	struct scene scene;
	size_t i;

	set_up(&scene);
	for (i = 1; i < RELOCATED_PE_POINTERS; i++)
		pointers(&scene)[i] = 0x7f0000000000 + i;
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}

Test(relocation_witness, sees_a_file_that_was_truncated_and_written_again)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct scene scene;

	set_up(&scene);
	relocated_pe_build(file, 0x500);
	proc_tree_write(&scene.tree, "/x.dll", file, sizeof(file));
	/* What makes it hard: headers and code are the new file's in memory too. */
	cr_assert_eq(memcmp(scene.memory, file, RELOCATED_PE_PAGE), 0);
	cr_expect_eq(ask(&scene), SYM_ERROR_STALE);
	tear_down(&scene);
}

Test(relocation_witness, sees_a_file_that_was_written_over_without_being_truncated)
{
	uint8_t file[RELOCATED_PE_BYTES];
	char *path AUTO_FREE = NULL;
	struct scene scene;
	int fd;

	set_up(&scene);
	relocated_pe_build(file, 0x500);
	path = proc_tree_path(&scene.tree, "/x.dll");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(write(fd, file, sizeof(file)), (ssize_t)sizeof(file));
	close(fd);
	cr_expect_eq(ask(&scene), SYM_ERROR_STALE);
	tear_down(&scene);
}

Test(relocation_witness, has_nothing_to_say_about_a_file_without_relocations)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct scene scene;

	set_up(&scene);
	relocated_pe_build(file, 0x500);
	relocated_pe_put(file, RELOCATED_PE_DIRECTORY, 0, 8);
	proc_tree_write(&scene.tree, "/x.dll", file, sizeof(file));
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}

Test(relocation_witness, survives_a_table_of_garbage)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct scene scene;

	set_up(&scene);
	relocated_pe_build(file, 0x100);
	memset(file + 2 * RELOCATED_PE_PAGE, 0xff, 8 + 2 * RELOCATED_PE_POINTERS);
	proc_tree_write(&scene.tree, "/x.dll", file, sizeof(file));
	cr_expect_eq(ask(&scene), 0);
	relocated_pe_put(file, RELOCATED_PE_DIRECTORY, UINT64_MAX, 8);
	proc_tree_write(&scene.tree, "/x.dll", file, sizeof(file));
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}
