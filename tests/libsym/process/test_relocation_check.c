/* SPDX-License-Identifier: MIT */
#include "libsym/process/relocation_check.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/proc_tree.h"
#include "tests/support/relocated_pe.h"

struct scene {
	struct proc_tree tree;
	struct process *process;
	uint8_t *memory; /* the loaded file */
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

/* The result of the check for the current file: 0 when nothing contradicts it. */
static int ask(const struct scene *scene)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_error *error;
	char *path AUTO_FREE = proc_tree_path(&scene->tree, "/x.dll");
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;

	cr_assert_null(object_file_open(NULL, fd, path, 0, SPARSE_FILE_TO_END, &object));
	cr_assert_eq(object->kind, SYM_IMAGE_NATIVE_PE);
	error = relocation_check_ask(scene->process, object, (uint64_t)(uintptr_t)scene->memory);
	code = error ? (int)sym_error_code(error) : 0;
	sym_error_destroy(error);
	return code;
}

Test(relocation_check, accepts_an_unchanged_file)
{
	struct scene scene;

	set_up(&scene);
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}

Test(relocation_check, accepts_pointers_that_the_runtime_has_bound)
{
	struct scene scene;
	size_t i;

	set_up(&scene);
	for (i = 1; i < RELOCATED_PE_POINTERS; i++)
		pointers(&scene)[i] = 0x7f0000000000 + i;
	cr_expect_eq(ask(&scene), 0);
	tear_down(&scene);
}

Test(relocation_check, detects_a_truncated_and_rewritten_file)
{
	uint8_t file[RELOCATED_PE_BYTES];
	struct scene scene;

	set_up(&scene);
	relocated_pe_build(file, 0x500);
	proc_tree_write(&scene.tree, "/x.dll", file, sizeof(file));
	/* The difficulty: headers and code in memory are those of the new file too. */
	cr_assert_eq(memcmp(scene.memory, file, RELOCATED_PE_PAGE), 0);
	cr_expect_eq(ask(&scene), SYM_ERROR_STALE);
	tear_down(&scene);
}

Test(relocation_check, detects_an_overwritten_file)
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

Test(relocation_check, accepts_a_file_without_relocations)
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

Test(relocation_check, survives_a_table_of_garbage)
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
