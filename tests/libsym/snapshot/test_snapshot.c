/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/asked.h"
#include "tests/support/own_perf_map.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

DEFINE_GUARD(open_snapshot, struct sym_snapshot *, sym_snapshot_close)
#define AUTO_SNAPSHOT GUARDED(open_snapshot)
DEFINE_GUARD(open_symbols, struct sym_symbols *, sym_symbols_destroy)
#define AUTO_SYMBOLS GUARDED(open_symbols)

static const char sample[] = "fixtures/recorded/opt/sample/sample.dll";

static struct sym_snapshot *open_pid(int32_t pid, const char *root, const char *const *dirs)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts),
					  .root = root,
					  .relative_map_dirs = dirs,
					  .jit = root ? SYM_JIT_PERF_MAP : SYM_JIT_AUTO };
	struct sym_snapshot *snapshot = NULL;
	struct sym_error *error = sym_snapshot_open(pid, &opts, &snapshot);

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	return snapshot;
}

static struct sym_image *image_with_path(struct sym_snapshot *snapshot, const char *path)
{
	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++)
		if (!strcmp(sym_image_path(sym_snapshot_image_at(snapshot, i)), path))
			return sym_snapshot_image_at(snapshot, i);
	return NULL;
}

static const struct sym_mapping *mapping_of(const struct sym_snapshot *snapshot, uint64_t address)
{
	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (address >= mapping->start_address && address < mapping->end_address)
			return mapping;
	}
	return NULL;
}

Test(snapshot, shows_this_process_as_it_is)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	const struct sym_process_info *info = sym_snapshot_process(snapshot);
	const struct sym_mapping *mapping = mapping_of(snapshot, (uint64_t)(uintptr_t)&open_pid);
	char executable[4096] = "";

	cr_assert_gt(readlink("/proc/self/exe", executable, sizeof(executable) - 1), 0);
	cr_expect_eq(info->pid, getpid());
	cr_expect_eq(info->uid, geteuid());
	cr_expect_str_eq(info->executable, executable);
	cr_expect_null(info->runtime_shape);
	cr_assert_not_null(mapping);
	cr_expect(mapping->protection & SYM_EXECUTE);
	cr_expect_str_eq(mapping->path, executable);
	cr_assert_lt(mapping->image_index, sym_snapshot_image_count(snapshot));
	cr_expect_str_eq(sym_image_path(sym_snapshot_image_at(snapshot, mapping->image_index)),
			 executable);
	cr_expect_null(sym_snapshot_check(snapshot));
}

Test(snapshot, knows_the_load_base_of_every_native_image)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	size_t compared = 0;

	for (size_t i = 0; i < sym_snapshot_image_count(snapshot); i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);
		struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
		Dl_info found;

		if (sym_image_kind(image) != SYM_IMAGE_ELF)
			continue;
		cr_assert_neq(sym_image_load_base(image), UINT64_MAX, "%s", sym_image_path(image));
		/* The oracle: the dynamic linker. */
		if (dladdr((void *)(uintptr_t)(sym_image_load_base(image) + 0x1000), &found))
			compared +=
				(uint64_t)(uintptr_t)found.dli_fbase == sym_image_load_base(image);
	}
	cr_expect_geq(compared, 2);
}

Test(snapshot, numbers_images_by_their_first_mapping)
{
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	uint32_t next = 0;

	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		uint32_t index = sym_snapshot_mapping_at(snapshot, i)->image_index;

		if (index == UINT32_MAX)
			continue;
		cr_expect_leq(index, next);
		if (index == next)
			next++;
	}
	cr_expect_eq(next, sym_snapshot_image_count(snapshot));
	cr_expect_null(sym_snapshot_image_at(snapshot, next));
	cr_expect_null(sym_snapshot_mapping_at(snapshot, SIZE_MAX));
}

/* A loaded copy of a shared library of this machine, which the test may damage. */
struct loaded_copy {
	char *scratch;
	char *path;
	void *handle;
	uint64_t address; /* of its deflate() */
};

static struct loaded_copy load_copy(void)
{
	struct loaded_copy copy = { .scratch = scratch_create() };
	void *original = dlopen("libz.so.1", RTLD_NOW);
	Dl_info where;
	size_t size_bytes;
	char *bytes;

	cr_assert_not_null(original, "libz.so.1 is needed");
	cr_assert(dladdr(dlsym(original, "deflate"), &where));
	bytes = scratch_read(where.dli_fname, &size_bytes);
	copy.path = scratch_path(copy.scratch, "libcopy.so");
	scratch_write(copy.path, bytes, size_bytes);
	free(bytes);
	copy.handle = dlopen(copy.path, RTLD_NOW | RTLD_LOCAL);
	cr_assert_not_null(copy.handle, "%s", dlerror());
	copy.address = (uint64_t)(uintptr_t)dlsym(copy.handle, "deflate");
	dlclose(original);
	return copy;
}

static void unload_copy(struct loaded_copy *copy)
{
	dlclose(copy->handle);
	free(copy->path);
	scratch_remove(copy->scratch);
}

static struct sym_answer resolve(struct sym_snapshot *snapshot, uint64_t address)
{
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	struct sym_answer answer;

	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_resolver_resolve(resolver, &address, 1, result));
	answer = *sym_result_at(result, 0);
	if (answer.status == SYM_RESOLVED)
		cr_expect_str_eq(answer.name, "deflate");
	answer.name = NULL; /* lives as long as the resolver only */
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	return answer;
}

Test(snapshot, names_a_file_that_is_younger_than_the_process)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);

	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_RESOLVED);
	unload_copy(&copy);
}

/* Through map_files where that is permitted, as for root; else from memory. Never another file. */
Test(snapshot, names_a_mapped_file_that_was_replaced)
{
	struct loaded_copy copy = load_copy();
	char *other = scratch_path(copy.scratch, "other");
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;

	scratch_write(other, "not a library", 13);
	cr_assert_eq(rename(other, copy.path), 0);
	snapshot = open_pid(getpid(), NULL, NULL);
	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_RESOLVED);
	free(other);
	unload_copy(&copy);
}

Test(snapshot, names_a_deleted_file)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;

	cr_assert_eq(unlink(copy.path), 0);
	snapshot = open_pid(getpid(), NULL, NULL);
	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_RESOLVED);
	unload_copy(&copy);
}

/* The process has its own copy of the old header; the file has a new one. */
Test(snapshot, does_not_use_a_file_that_was_overwritten_in_place)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct sym_answer answer;
	Dl_info where;
	char *header;
	int fd;

	cr_assert(dladdr((void *)(uintptr_t)copy.address, &where));
	header = where.dli_fbase;
	cr_assert_eq(mprotect(header, 4096, PROT_READ | PROT_WRITE), 0);
	*(volatile char *)(header + 9) =
		*(volatile char *)(header + 9); /* a page of its own from here on */
	/* A change in the first 20 ms of a process counts as earlier than the process. */
	wait_for_age(getpid(), 40);
	fd = open(copy.path, O_WRONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, "x", 1, 9), 1);
	close(fd);
	snapshot = open_pid(getpid(), NULL, NULL);
	answer = resolve(snapshot, copy.address);
	cr_expect_eq(answer.status, SYM_STALE);
	cr_expect_not_null(answer.reason);
	cr_expect_not_null(sym_image_problem(image_with_path(snapshot, copy.path)));
	unload_copy(&copy);
}

/* As node moves its built-in functions. Each new hard link changes the ctime of the file, such as a
 * link in perf's cache. */
Test(snapshot, names_a_code_only_mapping_of_a_renamed_file)
{
	struct loaded_copy copy = load_copy();
	char *name = scratch_path(copy.scratch, "name");
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	const struct sym_mapping *code;
	size_t size_bytes;
	Dl_info where;
	char *moved;
	int fd;

	snapshot = open_pid(getpid(), NULL, NULL);
	code = mapping_of(snapshot, copy.address);
	size_bytes = (size_t)(code->end_address - code->start_address);
	cr_assert(dladdr((void *)(uintptr_t)copy.address, &where));
	/* Other memory is where the beginning of the file would be. */
	moved = mmap(NULL, code->end_address - (uintptr_t)where.dli_fbase, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(moved, MAP_FAILED);
	moved += code->start_address - (uintptr_t)where.dli_fbase;
	fd = open(copy.path, O_RDONLY);
	cr_assert_eq(mmap(moved, size_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			  (off_t)code->offset),
		     moved);
	close(fd);
	moved += copy.address - code->start_address;
	/* A change in the first 20 ms of a process counts as earlier than the process. */
	wait_for_age(getpid(), 40);
	cr_assert_eq(link(copy.path, name), 0);
	sym_snapshot_close(snapshot);
	snapshot = open_pid(getpid(), NULL, NULL);
	cr_expect_eq(resolve(snapshot, (uint64_t)(uintptr_t)moved).status, SYM_RESOLVED);
	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_RESOLVED);
	free(name);
	unload_copy(&copy);
}

/* Appends to a file until its mtime is later than now: file systems date a change by their last
 * tick. */
static void change_later(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	struct timespec now;
	struct stat status;

	cr_assert_geq(fd, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	do {
		cr_assert_eq(write(fd, "x", 1), 1);
		cr_assert_eq(fstat(fd, &status), 0);
	} while (status.st_mtim.tv_sec < now.tv_sec ||
		 (status.st_mtim.tv_sec == now.tv_sec && status.st_mtim.tv_nsec <= now.tv_nsec));
	close(fd);
}

/* The file changes between the snapshot and its first use. */
Test(snapshot, notices_a_change_after_it_was_taken)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);

	change_later(copy.path);
	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_STALE);
	unload_copy(&copy);
}

static size_t open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	cr_assert_not_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

Test(snapshot, opens_no_file_before_it_is_needed)
{
	size_t before = open_descriptors(), opened, images;
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	struct loaded_copy copy;

	/* The process's own: its root, and its directory in /proc twice. */
	cr_expect_leq(open_descriptors(), before + 3);
	opened = open_descriptors();
	resolve(snapshot, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "deflate"));
	cr_expect_leq(open_descriptors(), opened + 2);
	cr_assert_null(sym_snapshot_open_images(snapshot));
	images = sym_snapshot_image_count(snapshot);
	cr_expect_geq(images, 5);
	cr_expect_geq(open_descriptors(), before + images);
	copy = load_copy();
	cr_expect_eq(resolve(snapshot, copy.address).status, SYM_UNMAPPED);
	unload_copy(&copy);
}

/* Only the open file remains. */
Test(snapshot, still_names_files_that_were_opened_before)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	uint64_t address = copy.address;

	cr_assert_null(sym_snapshot_open_images(snapshot));
	unload_copy(&copy);
	cr_expect_eq(resolve(snapshot, address).status, SYM_RESOLVED);
}

/* This process reads the later file itself, and could map it where the earlier one was. */
static void hold_page(void *page)
{
	cr_assert_eq(
		mmap(page, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		page);
}

Test(snapshot, does_not_use_a_later_file_with_the_same_path)
{
	struct loaded_copy copy = load_copy();
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = open_pid(getpid(), NULL, NULL);
	uint64_t address = copy.address;
	char *path = strdup(copy.path);
	size_t size_bytes;
	char *bytes = scratch_read(path, &size_bytes);
	Dl_info where;

	cr_assert(dladdr((void *)(uintptr_t)address, &where));
	dlclose(copy.handle);
	hold_page(where.dli_fbase);
	cr_assert_eq(unlink(path), 0);
	bytes[size_bytes - 1] ^= 1;
	scratch_write(path, bytes, size_bytes);
	change_later(path);
	cr_expect_eq(resolve(snapshot, address).status, SYM_STALE);
	free(bytes);
	free(path);
	free(copy.path);
	scratch_remove(copy.scratch);
}

/* One file, mapped twice: two images, both with names. */
Test(snapshot, keeps_two_placements_of_a_recorded_assembly_apart)
{
	static const char maps[] =
		"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f1000000000-7f1000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f1000010000-7f1000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n";
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct proc_tree tree;
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);
	size_t half;

	proc_tree_create(&tree);
	proc_tree_write(&tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	snapshot = open_pid(7, tree.root, NULL);
	cr_assert_eq(sym_snapshot_image_count(snapshot), 2);
	cr_expect_eq(sym_image_load_base(sym_snapshot_image_at(snapshot, 0)), 0x7f0000000000);
	cr_expect_eq(sym_image_load_base(sym_snapshot_image_at(snapshot, 1)), 0x7f1000000000);
	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_PRECOMPILED, &symbols));
	half = sym_symbols_count(symbols) / 2;
	cr_assert_gt(half, 50);
	for (size_t i = 0; i < half; i++) {
		const struct sym_symbol *first = sym_symbols_at(symbols, i);
		const struct sym_symbol *second = sym_symbols_at(symbols, i + half);

		cr_expect_eq(first->start + 0x1000000000, second->start);
		cr_expect_str_eq(first->name, second->name);
		cr_expect_eq(first->image_index, 0);
		cr_expect_eq(second->image_index, 1);
	}
	free(bytes);
	proc_tree_destroy(&tree);
}

/* Two lines of a map inside the image, one of them over a method; one outside. Inside its own code
 * the image wins. */
Test(snapshot, joins_a_perf_map_without_overlaps)
{
	static const char maps[] =
		"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f2000000000-7f2000010000 rwxp 00000000 00:00 0 \n";
	static const char perf_map[] = "7f0000010000 9000 wrong\n"
				       "7f2000000100 10 right[QuickJitted]\n"
				       "7f2000000108 10 later\n";
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct proc_tree tree;
	uint64_t end = 0;
	size_t size_bytes, count;
	char *bytes = scratch_read(sample, &size_bytes);

	proc_tree_create(&tree);
	proc_tree_write(&tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_add_process(
		&tree, &(struct proc_tree_process){ .pid = 7, .uid = geteuid(), .maps = maps });
	proc_tree_write_text(&tree, "/tmp/perf-7.map", perf_map);
	snapshot = open_pid(7, tree.root, NULL);
	cr_assert_null(sym_snapshot_symbols(snapshot, 0, &symbols));
	count = sym_symbols_count(symbols);
	for (size_t i = 0; i < count; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		cr_assert_geq(symbol->start, end);
		cr_assert_gt(symbol->size_bytes, 0);
		cr_expect_str_neq(symbol->name, "wrong");
		end = symbol->start + symbol->size_bytes;
	}
	cr_assert_gt(count, 50);
	cr_expect_str_eq(sym_symbols_at(symbols, count - 2)->name, "right");
	cr_expect_str_eq(sym_symbols_at(symbols, count - 2)->tier, "QuickJitted");
	cr_expect_eq(sym_symbols_at(symbols, count - 2)->size_bytes, 8);
	cr_expect_str_eq(sym_symbols_at(symbols, count - 1)->name, "later");
	cr_expect_eq(sym_symbols_at(symbols, count - 1)->image_index, UINT32_MAX);
	free(bytes);
	proc_tree_destroy(&tree);
}

Test(snapshot, uses_a_relative_map_only_if_all_its_rows_fit)
{
	static const char maps[] =
		"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n";
	struct sym_symbols *methods AUTO_SYMBOLS = NULL;
	struct sym_image *image = NULL;
	char *scratch = scratch_create();
	const char *const dirs[] = { scratch, NULL };
	const struct sym_symbol *first;
	struct proc_tree tree;
	char name[256], text[256];
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);

	proc_tree_create(&tree);
	proc_tree_write(&tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	cr_assert_null(sym_image_open(sample, &image));
	cr_assert_null(sym_image_symbols(image, 0, &methods));
	first = sym_symbols_at(methods, 0);
	snprintf(name, sizeof(name), "sample.ni.{%s}.map", sym_image_mvid(image));
	for (uint64_t lie = 0; lie < 2; lie++) {
		struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
		struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
		char *path = scratch_path(scratch, name);

		snprintf(text, sizeof(text), "%08" PRIx64 " %" PRIx64 " from the map\n",
			 first->start, first->size_bytes + lie);
		scratch_write(path, text, strlen(text));
		free(path);
		snapshot = open_pid(7, tree.root, dirs);
		cr_assert_null(sym_snapshot_symbols(snapshot, 0, &symbols));
		if (lie) {
			cr_expect_str_eq(sym_symbols_at(symbols, 0)->name, first->name);
			cr_expect_eq(sym_symbols_at(symbols, 0)->source, SYM_SOURCE_READYTORUN);
			cr_expect_not_null(
				sym_image_rejected_map(sym_snapshot_image_at(snapshot, 0)));
		} else {
			cr_expect_str_eq(sym_symbols_at(symbols, 0)->name, "from the map");
			cr_expect_eq(sym_symbols_at(symbols, 0)->source, SYM_SOURCE_RELATIVE_MAP);
			cr_expect_null(sym_image_rejected_map(sym_snapshot_image_at(snapshot, 0)));
		}
		/* Symbols that the map lacks still come from the image. */
		cr_expect_str_eq(sym_symbols_at(symbols, 1)->name,
				 sym_symbols_at(methods, 1)->name);
	}
	sym_image_close(image);
	free(bytes);
	proc_tree_destroy(&tree);
	scratch_remove(scratch);
}

Test(snapshot, keeps_the_other_images_when_one_is_damaged_or_missing)
{
	static const char maps[] =
		"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f1000000000-7f1000001000 r--p 00000000 00:29 5 /opt/cut.dll\n"
		"7f1000010000-7f1000019000 r-xp 00000000 00:29 5 /opt/cut.dll\n"
		"7f2000010000-7f2000019000 r-xp 00000000 00:29 6 /opt/missing.dll\n";
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	struct sym_snapshot *snapshot AUTO_SNAPSHOT = NULL;
	struct proc_tree tree;
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);

	proc_tree_create(&tree);
	proc_tree_write(&tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_write(&tree, "/opt/cut.dll", bytes, size_bytes / 2);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	snapshot = open_pid(7, tree.root, NULL);
	cr_assert_eq(sym_snapshot_image_count(snapshot), 3);
	cr_assert_null(sym_snapshot_symbols(snapshot, 0, &symbols));
	cr_expect_gt(sym_symbols_count(symbols), 50);
	cr_expect_null(sym_image_problem(sym_snapshot_image_at(snapshot, 0)), "%s",
		       sym_image_problem(sym_snapshot_image_at(snapshot, 0)));
	cr_expect_not_null(sym_image_problem(sym_snapshot_image_at(snapshot, 1)));
	cr_expect_not_null(sym_image_problem(sym_snapshot_image_at(snapshot, 2)));
	free(bytes);
	proc_tree_destroy(&tree);
}

/* ---- a resolver that is held while the process goes on ----------------------------------- */

static enum sym_status ask(struct asked *held, uint64_t address, const char *name)
{
	const struct sym_answer *answer = asked_answer(held, address);

	if (answer->status == SYM_RESOLVED)
		cr_expect_str_eq(answer->name, name);
	return answer->status;
}

static enum sym_refresh refresh(struct asked *held)
{
	enum sym_refresh found;

	cr_assert_null(sym_resolver_refresh(held->resolver, &found));
	return found;
}

Test(snapshot, finds_loaded_and_unloaded_libraries_by_a_refresh)
{
	uint64_t known = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "crc32");
	struct loaded_copy copy, again;
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	const struct sym_image *image;
	const char *name;
	size_t opened;

	cr_expect_eq(ask(&held, known, "crc32"), SYM_RESOLVED);
	image = sym_result_at(held.result, 0)->image;
	name = sym_result_at(held.result, 0)->name;
	cr_expect_neq(refresh(&held), SYM_REFRESH_REMAPPED);
	copy = load_copy();
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_UNMAPPED);
	cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
	cr_expect_str_eq(sym_result_at(held.result, 0)->image_path, copy.path);
	/* The old image stays open: the same image, the same name, no more descriptors. */
	opened = open_descriptors();
	cr_expect_eq(ask(&held, known, "crc32"), SYM_RESOLVED);
	cr_expect_eq(sym_result_at(held.result, 0)->image, image);
	cr_expect_eq(sym_result_at(held.result, 0)->name, name);
	cr_expect_eq(open_descriptors(), opened);
	cr_expect_eq(refresh(&held), SYM_REFRESH_UNCHANGED);
	unload_copy(&copy);
	cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_UNMAPPED);
	again = load_copy();
	cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_expect_eq(ask(&held, again.address, "deflate"), SYM_RESOLVED);
	unload_copy(&again);
	asked_close(&held);
}

/* Plug-ins that come and go must not use up the descriptors. */
Test(snapshot, closes_unmapped_files_by_a_refresh)
{
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	size_t opened = 0;

	for (int i = 0; i < 8; i++) {
		struct loaded_copy copy = load_copy();

		refresh(&held);
		cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
		unload_copy(&copy);
		refresh(&held);
		if (i == 2)
			opened = open_descriptors();
	}
	cr_expect_leq(open_descriptors(), opened + 1);
	asked_close(&held);
}

/* In memory that was not mapped. Memory that is not code changes no answer. */
Test(snapshot, finds_new_memory_by_a_refresh)
{
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	char *memory = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(memory, MAP_FAILED);
	cr_expect_eq(ask(&held, (uint64_t)(uintptr_t)memory, ""), SYM_UNMAPPED);
	cr_expect_eq(refresh(&held), SYM_REFRESH_EXTENDED);
	cr_expect_eq(ask(&held, (uint64_t)(uintptr_t)memory, ""), SYM_NO_SYMBOLS);
	cr_expect_str_eq(sym_result_at(held.result, 0)->image_path, "");
	cr_assert_eq(mprotect(memory, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	cr_expect_eq(refresh(&held), SYM_REFRESH_UNCHANGED);
	cr_assert_eq(mprotect(memory, 4096, PROT_READ), 0);
	cr_expect_eq(refresh(&held), SYM_REFRESH_EXTENDED);
	munmap(memory, 8192);
	asked_close(&held);
}

/* A JIT reports code in memory that was mapped after the last refresh. */
Test(snapshot, reports_known_code_that_can_be_resolved_after_a_refresh)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *memory = mmap(NULL, 4096, PROT_NONE, flags, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)memory;
	struct own_perf_map map = own_perf_map_create();
	struct asked held;

	cr_assert_neq(memory, MAP_FAILED);
	fprintf(map.file, "%" PRIx64 " 100 early\n", address);
	fclose(map.file);
	munmap(memory, 4096);
	held = asked_open(getpid(), SYM_JIT_AUTO);
	cr_expect_eq(ask(&held, address, "early"), SYM_UNMAPPED);
	cr_expect_eq(refresh(&held), SYM_REFRESH_UNCHANGED);
	cr_assert_eq(mmap(memory, 4096, PROT_READ | PROT_EXEC, flags | MAP_FIXED_NOREPLACE, -1, 0),
		     memory);
	cr_expect_eq(ask(&held, address, "early"), SYM_UNMAPPED);
	cr_expect_eq(refresh(&held), SYM_REFRESH_EXTENDED);
	cr_expect_eq(ask(&held, address, "early"), SYM_RESOLVED);
	cr_expect_eq(refresh(&held), SYM_REFRESH_UNCHANGED);
	unlink(map.path);
	munmap(memory, 4096);
	asked_close(&held);
}

/* mprotect() splits lines. The image is used again when it is needed, and its earlier names stay
 * before and after. */
Test(snapshot, keeps_names_of_a_file_with_changed_lines_across_a_refresh)
{
	struct loaded_copy copy;
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	const long page = sysconf(_SC_PAGESIZE);
	char *code, *name;

	refresh(&held);
	copy = load_copy();
	refresh(&held);
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
	name = (char *)sym_result_at(held.result, 0)->name;
	code = (char *)(uintptr_t)(copy.address & ~(uint64_t)(page - 1));
	for (int i = 0; i < 4; i++) {
		int writable = i % 2 ? 0 : PROT_WRITE;

		cr_assert_eq(mprotect(code, (size_t)page, PROT_READ | PROT_EXEC | writable), 0);
		cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
		cr_expect_str_eq(name, "deflate");
	}
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
	cr_expect_eq(sym_result_at(held.result, 0)->name, name, "it was not read again");
	unload_copy(&copy);
	asked_close(&held);
}

/* As cp(1) and cp -p do: inode and lines stay the same. */
Test(snapshot, detects_an_overwritten_file_by_a_refresh)
{
	static const char wanted[] = "\0deflate";
	struct loaded_copy copy = load_copy();
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	size_t size_bytes;
	char *bytes = scratch_read(copy.path, &size_bytes);
	const char *place = memmem(bytes, size_bytes, wanted, sizeof(wanted));
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000000000 } };
	int fd = open(copy.path, O_WRONLY);

	cr_assert_eq(futimens(fd, times), 0);
	cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
	cr_expect_neq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_assert(place && fd >= 0);
	wait_for_file_tick();
	cr_assert_eq(pwrite(fd, "DEFLATE", 7, place + 1 - bytes), 7);
	cr_assert_eq(futimens(fd, times), 0);
	cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_expect_eq(ask(&held, copy.address, "DEFLATE"), SYM_RESOLVED);
	cr_expect_neq(refresh(&held), SYM_REFRESH_REMAPPED);
	cr_assert_eq(pwrite(fd, "deflate", 7, place + 1 - bytes), 7);
	cr_expect_eq(refresh(&held), SYM_REFRESH_REMAPPED);
	close(fd);
	free(bytes);
	unload_copy(&copy);
	asked_close(&held);
}

struct asking {
	struct asked *held;
	uint64_t address;
	_Atomic(bool) stop;
};

static void *ask_on(void *context)
{
	struct asking *asking = context;
	struct sym_result *result = NULL;

	cr_assert_null(sym_result_create(&result));
	while (!atomic_load(&asking->stop)) {
		const struct sym_answer *answer;

		cr_assert_null(
			sym_resolver_resolve(asking->held->resolver, &asking->address, 1, result));
		answer = sym_result_at(result, 0);
		cr_assert_eq(answer->status, SYM_RESOLVED);
		cr_assert_str_eq(answer->name, "crc32");
	}
	sym_result_destroy(result);
	return NULL;
}

Test(snapshot, may_be_refreshed_while_other_threads_resolve)
{
	struct asked held = asked_open(getpid(), SYM_JIT_AUTO);
	struct asking asking = {
		.held = &held,
		.address = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "crc32"),
	};
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, ask_on, &asking), 0);
	for (int i = 0; i < 10; i++) {
		struct loaded_copy copy = load_copy();

		refresh(&held);
		cr_expect_eq(ask(&held, copy.address, "deflate"), SYM_RESOLVED);
		unload_copy(&copy);
		refresh(&held);
	}
	atomic_store(&asking.stop, true);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	asked_close(&held);
}
