/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"

static struct sym_snapshot *snapshot;
static struct proc_tree tree;

static void start(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_NONE };

	proc_tree_create(&tree);
	cr_assert_null(sym_snapshot_open(getpid(), &opts, &snapshot));
}

static void finish(void)
{
	sym_snapshot_close(snapshot);
	proc_tree_destroy(&tree);
}

TestSuite(image_by_id, .init = start, .fini = finish);

/* The build-id in hex, as others write it. */
static void write_hex(const struct sym_identity *identity, char *room)
{
	for (uint32_t i = 0; i < identity->id_size_bytes; i++)
		snprintf(room + (size_t)2 * i, 3, "%02x", identity->id[i]);
}

static struct sym_identity own_identity(struct sym_position *position)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	uint64_t address = (uintptr_t)own_identity;

	cr_assert_null(sym_snapshot_normalize(snapshot, &address, 1, position));
	cr_assert_eq(position->status, SYM_RESOLVED);
	cr_assert_not_null(position->image);
	cr_assert_null(sym_image_identity(position->image, &identity));
	cr_assert_eq(identity.kind, SYM_IDENTITY_ELF);
	cr_assert_gt(identity.id_size_bytes, 1);
	return identity;
}

/* This program, found by its build-id in a tree with the layout of debuggers. */
static void expect_found_at(const char *form)
{
	struct sym_position position;
	struct sym_identity identity = own_identity(&position);
	struct sym_result *result;
	const struct sym_answer *answer;
	struct sym_image *image;
	char hex[130], path[512];
	const char *dirs[] = { "/nonexistent", tree.root, NULL };

	write_hex(&identity, hex);
	snprintf(path, sizeof(path), form, hex, hex + 2);
	proc_tree_link(&tree, path, sym_image_path(position.image));
	cr_assert_null(sym_image_open_by_id(&identity, NULL, dirs, &image), "%s", path);
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_OFFSET, &position.offset, 1, result));
	answer = sym_result_at(result, 0);
	cr_assert_eq(answer->status, SYM_RESOLVED);
	cr_expect_str_eq(answer->name, "own_identity");
	cr_expect_eq(answer->offset_bytes, 0);
	cr_expect_eq(answer->image_position, position.image_position);
	sym_result_destroy(result);
	sym_image_close(image);
}

Test(image_by_id, finds_a_file_in_a_tree_of_build_ids)
{
	expect_found_at("/.build-id/%.2s/%s");
}

Test(image_by_id, finds_a_debug_file_in_a_tree_of_build_ids)
{
	expect_found_at("/.build-id/%.2s/%s.debug");
}

Test(image_by_id, finds_a_file_in_a_cache_of_debuginfod)
{
	expect_found_at("/%s/executable");
}

Test(image_by_id, rejects_a_file_with_another_identity)
{
	struct sym_position position;
	struct sym_identity identity = own_identity(&position);
	const char *dirs[] = { tree.root, NULL };
	struct sym_image *image = NULL;
	struct sym_error *error;
	char hex[130], path[512];

	identity.id[3] ^= 1;
	write_hex(&identity, hex);
	snprintf(path, sizeof(path), "/.build-id/%.2s/%s", hex, hex + 2);
	proc_tree_link(&tree, path, sym_image_path(position.image));
	error = sym_image_open_by_id(&identity, NULL, dirs, &image);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NOT_FOUND);
	sym_error_destroy(error);
}

Test(image_by_id, finds_an_assembly_in_a_tree_of_a_symbol_server)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	const char *dirs[] = { tree.root, NULL };
	struct sym_image *image;
	size_t size_bytes;
	char *bytes = scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes);
	char path[256];
	int fd AUTO_CLOSE = open("fixtures/recorded/opt/sample/sample.dll", O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_null(sym_identity_read(fd, UINT64_MAX, &identity));
	snprintf(path, sizeof(path), "/sample.dll/%08X%x/sample.dll", identity.timestamp,
		 identity.image_size_bytes);
	proc_tree_write(&tree, path, bytes, size_bytes);
	identity.id_size_bytes = 4096; /* unused here, may have any value */
	cr_assert_null(sym_image_open_by_id(&identity, "sample.dll", dirs, &image));
	cr_expect_str_eq(sym_image_assembly_name(image), "sample");
	sym_image_close(image);
	free(bytes);
}

Test(image_by_id, rejects_names_with_a_path)
{
	struct sym_identity identity = { .size = sizeof(identity), .kind = SYM_IDENTITY_PE };
	const char *dirs[] = { tree.root, NULL };
	static const char *const names[] = { "../x", "/etc/passwd", "..", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct sym_image *image;
		struct sym_error *error = sym_image_open_by_id(&identity, names[i], dirs, &image);

		cr_assert_not_null(error);
		cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
		sym_error_destroy(error);
	}
}

Test(image_by_id, separates_anonymous_memory_from_unmapped_addresses)
{
	int on_stack;
	uint64_t addresses[] = { 1, (uintptr_t)&on_stack };
	struct sym_position positions[2];

	cr_assert_null(sym_snapshot_normalize(snapshot, addresses, 2, positions));
	cr_expect_eq(positions[0].status, SYM_UNMAPPED);
	cr_expect_eq(positions[0].offset, UINT64_MAX);
	cr_expect_eq(positions[1].status, SYM_NO_SYMBOLS);
	cr_expect_null(positions[1].image);
	cr_expect_neq(positions[1].mapping_index, UINT32_MAX);
}

static struct sym_identity identity_of(const struct sym_position *position)
{
	struct sym_identity identity = { .size = sizeof(identity) };

	cr_assert_not_null(position->image);
	cr_assert_null(sym_image_identity(position->image, &identity));
	return identity;
}

Test(image_by_id, normalises_addresses_of_any_kind_in_any_order)
{
	const uint64_t vdso = getauxval(AT_SYSINFO_EHDR), own = (uintptr_t)identity_of;
	const uint64_t addresses[] = { vdso + 0x40, 1, own, vdso + 0x20 };
	struct sym_position positions[4];
	char magic[4];

	memcpy(magic, (const void *)(uintptr_t)vdso, sizeof(magic));
	cr_assert_eq(memcmp(magic, "\177ELF", 4), 0);
	cr_assert_null(sym_snapshot_normalize(snapshot, addresses, 4, positions));
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(positions[i].address, addresses[i]);
	cr_expect_str_eq(sym_image_path(positions[0].image), "[vdso]");
	cr_expect_eq(positions[0].offset, 0x40);
	cr_expect_eq(positions[3].image, positions[0].image);
	cr_expect_eq(positions[3].offset, 0x20);
	cr_expect_gt(identity_of(&positions[0]).id_size_bytes, 1);
	cr_expect_eq(positions[1].status, SYM_UNMAPPED);
	cr_expect_neq(positions[2].image, positions[0].image);
}

Test(image_by_id, reads_the_identity_of_a_deleted_file)
{
	struct sym_identity whole = { .size = sizeof(whole) }, mapped;
	char *copy = scratch_path(tree.root, "libcopy.so"), *bytes;
	struct sym_image *original;
	struct sym_position position;
	size_t size_bytes;
	uint64_t address;
	Dl_info where;
	void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL), *handle;

	cr_assert_not_null(library);
	cr_assert(dladdr(dlsym(library, "deflate"), &where));
	bytes = scratch_read(where.dli_fname, &size_bytes);
	scratch_write(copy, bytes, size_bytes);
	handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
	cr_assert_not_null(handle);
	address = (uintptr_t)dlsym(handle, "deflate");
	cr_assert_eq(unlink(copy), 0);
	sym_snapshot_close(snapshot);
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_snapshot_normalize(snapshot, &address, 1, &position));
	mapped = identity_of(&position);
	cr_assert_null(sym_image_open(where.dli_fname, &original));
	cr_assert_null(sym_image_identity(original, &whole));
	cr_expect_eq(mapped.id_size_bytes, whole.id_size_bytes);
	cr_expect_eq(memcmp(mapped.id, whole.id, sizeof(whole.id)), 0);
	sym_image_close(original);
	dlclose(handle);
	dlclose(library);
	free(bytes);
	free(copy);
}
