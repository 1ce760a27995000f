/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"
#include "tests/support/waiting.h"

enum {
	PAGE_BYTES = 4096,
	MEMBERS = 2,
	ARCHIVE_BYTES = 16 * PAGE_BYTES
};

/* An archive with two small ELF files, each at a page of its own, in this process. */
struct archive {
	char path[64];
	uint8_t bytes[ARCHIVE_BYTES];
	size_t size_bytes;
	uint64_t offsets[MEMBERS]; /* of the bytes of the members */
	uint8_t *shown[MEMBERS];   /* one mapping for each member, of all of it */
	size_t member_bytes[MEMBERS];
};

static const char *const names[MEMBERS] = { "lib/one.so", "lib/two.so" };
static const char *const functions[MEMBERS] = { "first_function", "second_function" };

static void put(struct archive *archive, uint64_t value, size_t count)
{
	while (count--) {
		archive->bytes[archive->size_bytes++] = (uint8_t)value;
		value >>= 8;
	}
}

static void put_text(struct archive *archive, const char *text)
{
	memcpy(archive->bytes + archive->size_bytes, text, strlen(text));
	archive->size_bytes += strlen(text);
}

static void put_member(struct archive *archive, size_t number)
{
	struct elf_builder_symbol symbol = { functions[number],
					     ELF_BUILDER_TEXT_VADDR + 0x40,
					     0x20,
					     1 /* STB_GLOBAL */,
					     2 /* STT_FUNC */,
					     false,
					     false };
	struct elf_builder_options options = { .position_independent = true,
					       .build_id = (uint8_t)(0x11 + number) };
	uint8_t *elf = elf_builder_make(&symbol, 1, options, &archive->member_bytes[number]);
	size_t begin = archive->size_bytes + 30 + strlen(names[number]);
	size_t padding = -begin % PAGE_BYTES;

	put(archive, 0x04034b50, 4);
	put(archive, 0, 14);
	put(archive, archive->member_bytes[number], 4);
	put(archive, archive->member_bytes[number], 4);
	put(archive, strlen(names[number]), 2);
	put(archive, padding, 2);
	put_text(archive, names[number]);
	archive->size_bytes += padding;
	archive->offsets[number] = archive->size_bytes;
	cr_assert_lt(archive->size_bytes + archive->member_bytes[number],
		     ARCHIVE_BYTES / 2 * (number + 1));
	memcpy(archive->bytes + archive->size_bytes, elf, archive->member_bytes[number]);
	archive->size_bytes += archive->member_bytes[number];
	free(elf);
}

static void put_row(struct archive *archive, size_t number)
{
	put(archive, 0x02014b50, 4);
	put(archive, 0, 16);
	put(archive, archive->member_bytes[number], 4);
	put(archive, archive->member_bytes[number], 4);
	put(archive, strlen(names[number]), 2);
	put(archive, 0, 12);
	put(archive, number ? archive->offsets[0] + archive->member_bytes[0] : 0, 4);
	put_text(archive, names[number]);
}

static void make(struct archive *archive)
{
	size_t directory;
	int fd;

	memset(archive, 0, sizeof(*archive));
	snprintf(archive->path, sizeof(archive->path), "/tmp/libsym-archive-XXXXXX");
	fd = mkstemp(archive->path);
	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < MEMBERS; i++)
		put_member(archive, i);
	directory = archive->size_bytes;
	for (size_t i = 0; i < MEMBERS; i++)
		put_row(archive, i);
	put(archive, 0x06054b50, 4);
	put(archive, 0, 4);
	put(archive, MEMBERS | MEMBERS << 16, 4);
	put(archive, archive->size_bytes - 12 - directory, 4);
	put(archive, directory, 4);
	put(archive, 0, 2);
	cr_assert_eq(write(fd, archive->bytes, archive->size_bytes), (ssize_t)archive->size_bytes);
	close(fd);
}

static void *map(const struct archive *archive, uint64_t offset, size_t size_bytes)
{
	int fd = open(archive->path, O_RDONLY | O_CLOEXEC);
	void *shown = mmap(NULL, size_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)offset);

	close(fd);
	cr_assert_neq(shown, MAP_FAILED);
	return shown;
}

static void map_member(struct archive *archive, size_t number)
{
	archive->shown[number] =
		map(archive, archive->offsets[number], archive->member_bytes[number]);
}

/* `function` NULL: no name. */
static void expect_name(struct sym_resolver *resolver, const void *code, const char *function,
			const char *path_end)
{
	uint64_t address = (uint64_t)(uintptr_t)code;
	struct sym_result *result;
	const struct sym_answer *answer;

	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	answer = sym_result_at(result, 0);
	if (!function) {
		cr_expect_null(answer->name, "%s", answer->name);
		cr_expect(answer->reason || answer->status == SYM_UNMAPPED);
	} else {
		cr_assert_not_null(answer->name, "%s", answer->reason);
		cr_expect_str_eq(answer->name, function);
		cr_expect_eq(answer->offset_bytes, 3);
		cr_expect_str_eq(strstr(answer->image_path, "!/"), path_end);
	}
	sym_result_destroy(result);
}

static const uint8_t *function_in(const uint8_t *member)
{
	return member + ELF_BUILDER_TEXT_OFFSET + 0x40 + 3;
}

Test(snapshot_archive, keeps_its_names_across_refreshes)
{
	static struct archive archive;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;

	make(&archive);
	map_member(&archive, 0);
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	expect_name(resolver, function_in(archive.shown[0]), functions[0], "!/lib/one.so");
	map_member(&archive, 1);
	expect_name(resolver, function_in(archive.shown[1]), NULL, NULL);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	expect_name(resolver, function_in(archive.shown[1]), functions[1], "!/lib/two.so");
	expect_name(resolver, function_in(archive.shown[0]), functions[0], "!/lib/one.so");
	cr_assert_eq(munmap(archive.shown[0], archive.member_bytes[0]), 0);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	expect_name(resolver, function_in(archive.shown[0]), NULL, NULL);
	expect_name(resolver, function_in(archive.shown[1]), functions[1], "!/lib/two.so");
	/* One more mapping of the whole archive. */
	archive.shown[0] = map(&archive, 0, archive.size_bytes);
	cr_assert_null(sym_resolver_refresh(resolver, NULL));
	for (size_t i = 0; i < MEMBERS; i++)
		expect_name(resolver, function_in(archive.shown[0] + archive.offsets[i]),
			    functions[i], i ? "!/lib/two.so" : "!/lib/one.so");
	expect_name(resolver, archive.shown[0] + 10, NULL, NULL);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	unlink(archive.path);
}

Test(snapshot_archive, is_rejected_after_it_was_written_to)
{
	static struct archive archive;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	uint8_t *copy;
	int fd;

	make(&archive);
	copy = map(&archive, 0, archive.size_bytes);
	/* Private pages stay unchanged; those of the file get another header. */
	cr_assert_eq(mprotect(copy, archive.size_bytes, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	for (size_t i = 0; i < archive.size_bytes; i += PAGE_BYTES)
		((volatile uint8_t *)copy)[i] = copy[i];
	/* After the first moments of this process, in which nothing could be mapped. */
	wait_for_age(getpid(), 40);
	fd = open(archive.path, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\1", 1, (off_t)archive.offsets[0] + 9), 1);
	close(fd);
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	expect_name(resolver, function_in(copy + archive.offsets[0]), NULL, NULL);
	expect_name(resolver, function_in(copy + archive.offsets[1]), functions[1], "!/lib/two.so");
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	unlink(archive.path);
}

/* The build-id and the position for an address. */
Test(snapshot_archive, normalises_addresses_to_positions_in_members)
{
	static struct archive archive;
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_snapshot *snapshot;
	struct sym_position position;
	uint64_t address;

	make(&archive);
	map_member(&archive, 1);
	address = (uint64_t)(uintptr_t)function_in(archive.shown[1]);
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	cr_assert_null(sym_snapshot_normalize(snapshot, &address, 1, &position));
	cr_expect_eq(position.status, SYM_RESOLVED);
	cr_expect_eq(position.offset, ELF_BUILDER_TEXT_OFFSET + 0x43);
	cr_expect_eq(position.image_position, ELF_BUILDER_TEXT_VADDR + 0x43);
	cr_assert_null(sym_image_identity(position.image, &identity));
	cr_expect_eq(identity.id_size_bytes, 20);
	cr_expect_eq(identity.id[0], 0x12);
	cr_expect_eq(identity.file_size_bytes, archive.member_bytes[1]);
	sym_snapshot_close(snapshot);
	unlink(archive.path);
}

/* By an offset into the archive, and by the path of the member. */
static bool resolve_offset(void *context)
{
	const struct archive *archive = context;
	uint64_t offset = archive->offsets[1] + ELF_BUILDER_TEXT_OFFSET + 0x43;
	struct sym_image *image = NULL;
	struct sym_result *result = NULL;
	struct sym_error *error = sym_result_create(&result);
	bool named = false;

	if (!error)
		error = sym_image_open(archive->path, &image);
	if (!error)
		error = sym_image_resolve(image, SYM_POSITION_OFFSET, &offset, 1, result);
	if (!error) {
		const struct sym_answer *answer = sym_result_at(result, 0);

		named = answer->name && !strcmp(answer->name, functions[1]);
		cr_expect(named || !answer->name);
	}
	cr_expect(!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	sym_result_destroy(result);
	sym_image_close(image);
	return named;
}

Test(snapshot_archive, resolves_offsets_despite_failing_allocations)
{
	static struct archive archive;

	make(&archive);
	cr_assert(resolve_offset(&archive));
	cr_expect_gt(alloc_fail_each(resolve_offset, &archive), 5);
	unlink(archive.path);
}

static bool resolve_mapped(void *context)
{
	const struct archive *archive = context;
	uint64_t address = (uint64_t)(uintptr_t)function_in(archive->shown[0]);
	struct sym_snapshot *snapshot = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	struct sym_error *error = sym_result_create(&result);
	bool named = false;

	if (!error)
		error = sym_snapshot_open(getpid(), NULL, &snapshot);
	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	if (!error)
		error = sym_resolver_resolve(resolver, &address, 1, result);
	if (!error) {
		const struct sym_answer *answer = sym_result_at(result, 0);

		named = answer->name && !strcmp(answer->name, functions[0]);
		cr_expect(named || !answer->name);
	}
	cr_expect(!error || sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	sym_snapshot_close(snapshot);
	return named;
}

Test(snapshot_archive, is_opened_despite_failing_allocations)
{
	static struct archive archive;

	make(&archive);
	map_member(&archive, 0);
	cr_assert(resolve_mapped(&archive));
	cr_expect_gt(alloc_fail_each(resolve_mapped, &archive), 10);
	unlink(archive.path);
}
