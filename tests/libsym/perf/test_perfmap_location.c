/* SPDX-License-Identifier: MIT */
#include "libsym/perf/perfmap_location.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "libsym/base/path.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/cannot_run.h"
#include "tests/support/proc_tree.h"

/* Start of the process in all tests here. Files are made later unless a test differs. */
enum {
	START_TIME = PROC_TREE_BOOT_TIME + 100
};

struct scene {
	struct proc_tree tree;
	struct process *process;
	struct perfmap_location place;
};

static void set_up(struct scene *scene, int32_t pid, int32_t namespace_pid)
{
	*scene = (struct scene){ 0 };
	proc_tree_create(&scene->tree);
	proc_tree_add_process(&scene->tree,
			      &(struct proc_tree_process){ .pid = pid,
							   .namespace_pid = namespace_pid,
							   .uid = geteuid(),
							   .start_time_ticks = 10000 });
	proc_tree_make_directory(&scene->tree, "/tmp");
}

static void find(struct scene *scene, int32_t pid)
{
	if (!scene->process)
		cr_assert_null(process_open(pid, scene->tree.root, &scene->process));
	perfmap_location_deinit(&scene->place);
	cr_assert_null(perfmap_location_find(scene->process, &scene->place));
}

static void tear_down(struct scene *scene)
{
	perfmap_location_deinit(&scene->place);
	process_close(scene->process);
	proc_tree_destroy(&scene->tree);
}

/* `shown` is the path of the scene from the caller's root. */
static void expect_path(const struct scene *scene, const char *shown, const char *path)
{
	char *expected AUTO_FREE = proc_tree_path(&scene->tree, path);

	cr_assert_not_null(shown, "nothing, not %s", path);
	cr_expect_str_eq(shown, expected);
}

static void expect_refused(struct scene *scene, const char *path, const char *reason)
{
	find(scene, 5);
	cr_expect_eq(scene->place.file_count, 0);
	cr_expect_null(scene->place.info.path);
	expect_path(scene, scene->place.info.rejected_path, path);
	cr_expect_str_eq(scene->place.info.rejected_reason, reason);
}

Test(perfmap_location, finds_the_map_and_opens_it)
{
	struct scene scene;
	char text[9] = "";

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "1 2 three");
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 1);
	expect_path(&scene, scene.place.info.path, "/tmp/perf-5.map");
	expect_path(&scene, scene.place.info.host_path, "/tmp/perf-5.map");
	expect_path(&scene, scene.place.info.target_path, "/tmp/perf-5.map");
	cr_expect_null(scene.place.info.rejected_path);
	cr_expect_eq(scene.place.info.writer_fd, -1);
	cr_assert_eq(path_read_at(scene.place.files[0].fd, text, 8, 0), 0);
	cr_expect_str_eq(text, "1 2 thre");
	tear_down(&scene);
}

Test(perfmap_location, is_empty_without_a_map)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 0);
	cr_expect_null(scene.place.info.path);
	cr_expect_null(scene.place.info.rejected_path);
	expect_path(&scene, scene.place.info.host_path, "/tmp/perf-5.map");
	proc_tree_remove(&scene.tree, "/tmp");
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 0);
	cr_expect_null(scene.place.info.rejected_path);
	tear_down(&scene);
}

Test(perfmap_location, has_both_numbers_in_a_container)
{
	struct scene scene;

	set_up(&scene, 5, 1);
	proc_tree_write_text(&scene.tree, "/tmp/perf-1.map", "inner");
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "host");
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", START_TIME + 20);
	proc_tree_set_time(&scene.tree, "/tmp/perf-1.map", START_TIME + 30);
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 2);
	expect_path(&scene, scene.place.files[0].path, "/tmp/perf-5.map");
	expect_path(&scene, scene.place.files[1].path, "/tmp/perf-1.map");
	expect_path(&scene, scene.place.info.path, "/tmp/perf-1.map");
	expect_path(&scene, scene.place.info.target_path, "/tmp/perf-1.map");
	expect_path(&scene, scene.place.info.host_path, "/tmp/perf-5.map");
	tear_down(&scene);
}

Test(perfmap_location, looks_in_the_directory_of_the_environment)
{
	static const char environment[] = "TMPDIR=/var/my tmp//\0DOTNET_PerfMapJitDumpPath=/dumps\0"
					  "COMPlus_PerfMapJitDumpPath=relative/is/ignored";
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write(&scene.tree, "/proc/5/environ", environment, sizeof(environment));
	proc_tree_write_text(&scene.tree, "/var/my tmp/perf-5.map", "");
	proc_tree_set_time(&scene.tree, "/var/my tmp/perf-5.map", START_TIME + 5);
	proc_tree_write_text(&scene.tree, "/dumps/perf-5.map", "");
	proc_tree_set_time(&scene.tree, "/dumps/perf-5.map", START_TIME + 4);
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 2);
	expect_path(&scene, scene.place.files[0].path, "/dumps/perf-5.map");
	expect_path(&scene, scene.place.files[1].path, "/var/my tmp/perf-5.map");
	tear_down(&scene);
}

Test(perfmap_location, looks_in_the_directory_of_the_older_variable)
{
	static const char environment[] = "COMPlus_PerfMapJitDumpPath=/dumps";
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write(&scene.tree, "/proc/5/environ", environment, sizeof(environment));
	proc_tree_write_text(&scene.tree, "/dumps/perf-5.map", "");
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 1);
	expect_path(&scene, scene.place.files[0].path, "/dumps/perf-5.map");
	tear_down(&scene);
}

static size_t open_descriptors(void)
{
	DIR *entries = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(entries))
		count++;
	closedir(entries);
	return count;
}

Test(perfmap_location, closes_all_descriptors)
{
	static const char environment[] = "TMPDIR=/tmp";
	struct scene scene;
	size_t before;

	set_up(&scene, 5, 0);
	proc_tree_write(&scene.tree, "/proc/5/environ", environment, sizeof(environment));
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map.runtime", "");
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 2);
	before = open_descriptors();
	perfmap_location_deinit(&scene.place);
	cr_assert_eq(open_descriptors(), before - 2);
	find(&scene, 5);
	cr_assert_eq(open_descriptors(), before);
	tear_down(&scene);
}

Test(perfmap_location, orders_a_file_put_aside_by_its_mtime)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "ours");
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map.runtime", "the runtime's");
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", START_TIME + 10);
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map.runtime", START_TIME + 20);
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 2);
	expect_path(&scene, scene.place.files[0].path, "/tmp/perf-5.map");
	expect_path(&scene, scene.place.files[1].path, "/tmp/perf-5.map.runtime");
	expect_path(&scene, scene.place.info.path, "/tmp/perf-5.map");
	/* The runtime opened a new map over ours, so the one put aside is the older one now. */
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", START_TIME + 30);
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 2);
	expect_path(&scene, scene.place.files[1].path, "/tmp/perf-5.map");
	tear_down(&scene);
}

Test(perfmap_location, uses_a_file_with_two_names_once)
{
	struct scene scene;
	char *name AUTO_FREE = NULL, *other AUTO_FREE = NULL;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	name = proc_tree_path(&scene.tree, "/tmp/perf-5.map");
	other = proc_tree_path(&scene.tree, "/tmp/perf-5.map.runtime");
	cr_assert_eq(link(name, other), 0);
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 1);
	expect_path(&scene, scene.place.info.path, "/tmp/perf-5.map");
	tear_down(&scene);
}

Test(perfmap_location, accepts_a_map_written_in_the_second_of_the_start)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", START_TIME);
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 1);
	tear_down(&scene);
}

Test(perfmap_location, rejects_a_map_older_than_the_process)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", START_TIME - 1);
	expect_refused(&scene, "/tmp/perf-5.map", "is older than the process");
	/* Before 1970. */
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", -5);
	expect_refused(&scene, "/tmp/perf-5.map", "is older than the process");
	tear_down(&scene);
}

Test(perfmap_location, ignores_the_age_in_a_tree_without_a_clock)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_remove(&scene.tree, "/proc/stat");
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	proc_tree_set_time(&scene.tree, "/tmp/perf-5.map", 1);
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 1);
	tear_down(&scene);
}

Test(perfmap_location, rejects_what_is_not_a_regular_file)
{
	char *name AUTO_FREE = NULL;
	struct scene scene;

	set_up(&scene, 5, 0);
	name = proc_tree_path(&scene.tree, "/tmp/perf-5.map");
	proc_tree_write_text(&scene.tree, "/tmp/real.map", "1 1 a\n");
	proc_tree_link(&scene.tree, "/tmp/perf-5.map", "real.map");
	expect_refused(&scene, "/tmp/perf-5.map", "is a symbolic link");
	proc_tree_remove(&scene.tree, "/tmp/perf-5.map");
	proc_tree_link(&scene.tree, "/tmp/perf-5.map", "nowhere");
	expect_refused(&scene, "/tmp/perf-5.map", "is a symbolic link");
	proc_tree_remove(&scene.tree, "/tmp/perf-5.map");
	cr_assert_eq(mkfifo(name, 0644), 0);
	expect_refused(&scene, "/tmp/perf-5.map", "is a FIFO");
	proc_tree_remove(&scene.tree, "/tmp/perf-5.map");
	proc_tree_make_directory(&scene.tree, "/tmp/perf-5.map");
	expect_refused(&scene, "/tmp/perf-5.map", "is a directory");
	tear_down(&scene);
}

Test(perfmap_location, reports_a_lack_of_descriptors)
{
	struct rlimit limit;
	struct scene scene;
	rlim_t before;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "1 1 a\n");
	find(&scene, 5);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	find(&scene, 5);
	limit.rlim_cur = before;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(scene.place.file_count, 0);
	expect_path(&scene, scene.place.info.rejected_path, "/tmp");
	cr_expect_str_eq(scene.place.info.rejected_reason, "cannot be opened: Too many open files");
	tear_down(&scene);
}

Test(perfmap_location, rejects_a_map_larger_than_the_limit)
{
	char *name AUTO_FREE = NULL;
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	name = proc_tree_path(&scene.tree, "/tmp/perf-5.map");
	/* Sparse: it takes no room. */
	cr_assert_eq(truncate(name, ((off_t)8 << 30) + 1), 0);
	expect_refused(&scene, "/tmp/perf-5.map", "has more than 8589934592 bytes");
	cr_assert_eq(truncate(name, (off_t)8 << 30), 0);
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 1);
	tear_down(&scene);
}

Test(perfmap_location, rejects_a_map_of_another_user)
{
	struct scene scene;

	/*
	 * Only root can change the owner of a file, so here the process belongs to another user and
	 * the caller changes.
	 */
	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	if (geteuid() == 0) {
		char *name AUTO_FREE = proc_tree_path(&scene.tree, "/tmp/perf-5.map");

		cr_assert_eq(chown(name, 4242, 4242), 0);
		expect_refused(&scene, "/tmp/perf-5.map", "belongs to uid 4242");
		cr_assert_eq(chown(name, 0, 0), 0);
	}
	process_close(scene.process);
	scene.process = NULL;
	proc_tree_add_process(&scene.tree,
			      &(struct proc_tree_process){ .pid = 5, .uid = geteuid() + 1 });
	find(&scene, 5);
	cr_expect_eq(scene.place.file_count, 1, "the caller's own map of another's process");
	tear_down(&scene);
}

Test(perfmap_location, continues_after_a_rejected_place)
{
	struct scene scene;

	set_up(&scene, 5, 1);
	proc_tree_link(&scene.tree, "/tmp/perf-1.map", "perf-5.map");
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	find(&scene, 5);
	cr_assert_eq(scene.place.file_count, 1);
	expect_path(&scene, scene.place.info.path, "/tmp/perf-5.map");
	expect_path(&scene, scene.place.info.rejected_path, "/tmp/perf-1.map");
	tear_down(&scene);
}

/* ---- live: the test itself writes a map, in a directory of its own --------------- */

static int open_own_map(const struct proc_tree *tree, char **path_ret)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/perf-%d.map", getpid());
	*path_ret = proc_tree_path(tree, name);
	fd = open(*path_ret, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	return fd;
}

Test(perfmap_location, finds_the_descriptor_through_which_a_process_writes)
{
	struct perfmap_location place;
	struct process *process AUTO_PROCESS = NULL;
	char *path AUTO_FREE = NULL, *aside AUTO_FREE = NULL, *ours AUTO_FREE = NULL;
	struct proc_tree tree;
	struct stat status;
	int fd;

	proc_tree_create(&tree);
	fd = open_own_map(&tree, &path);
	cr_assert_eq(fstat(fd, &status), 0);
	cr_assert_null(process_open(getpid(), NULL, &process));
	/*
	 * The descriptor leads to the directory, without an environment. Age and owner do not
	 * matter.
	 */
	cr_assert_eq(futimens(fd, (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }), 0);
	cr_assert_null(perfmap_location_find(process, &place));
	cr_expect_eq(place.info.writer_fd, fd);
	cr_expect_eq(place.info.writer_inode, status.st_ino);
	cr_expect_eq(place.info.writer_device, status.st_dev);
	cr_assert_eq(place.file_count, 1);
	cr_expect_str_eq(place.info.path, path);
	perfmap_location_deinit(&place);

	/*
	 * Ours was renamed over it and the old one is kept aside. It is read last, although it is
	 * older.
	 */
	cr_assert_geq(asprintf(&aside, "%s.runtime", path), 0);
	cr_assert_geq(asprintf(&ours, "%s.new", path), 0);
	cr_assert_eq(link(path, aside), 0);
	close(open(ours, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	cr_assert_eq(rename(ours, path), 0);
	cr_assert_null(perfmap_location_find(process, &place));
	cr_expect_eq(place.info.writer_fd, fd);
	cr_assert_eq(place.file_count, 2);
	cr_expect_str_eq(place.files[0].path, path);
	cr_expect_str_eq(place.files[1].path, aside);
	cr_expect_eq(place.files[1].status.st_ino, status.st_ino);
	cr_expect_str_eq(place.info.path, path);
	perfmap_location_deinit(&place);

	/* No name leads to it any more: found through the descriptor. */
	cr_assert_eq(unlink(aside), 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_null(perfmap_location_find(process, &place));
	cr_assert_eq(place.file_count, 1);
	cr_expect_eq(place.files[0].status.st_ino, status.st_ino);
	perfmap_location_deinit(&place);
	close(fd);
	proc_tree_destroy(&tree);
}

Test(perfmap_location, does_not_confuse_a_reader_with_the_writer)
{
	struct perfmap_location place;
	struct process *process AUTO_PROCESS = NULL;
	char *path AUTO_FREE = NULL;
	struct proc_tree tree;
	int fd;

	proc_tree_create(&tree);
	close(open_own_map(&tree, &path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(perfmap_location_find(process, &place));
	cr_expect_eq(place.info.writer_fd, -1);
	cr_expect_eq(place.file_count, 0);
	perfmap_location_deinit(&place);
	close(fd);
	proc_tree_destroy(&tree);
}

static void expect_left(const struct scene *scene, enum sym_error_code code)
{
	int fd = -1;
	struct sym_error *error = sym_perf_map_open(7, scene->tree.root, &fd);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), code);
	cr_expect_eq(fd, -1);
	sym_error_destroy(error);
}

Test(perfmap_location, opens_the_map_that_a_process_has_left)
{
	struct scene scene;
	struct sym_symbols *symbols;
	int fd;

	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-7.map", "10 20 left behind\n");
	cr_assert_null(sym_perf_map_open(7, scene.tree.root, &fd));
	cr_assert_null(sym_perf_map_read(fd, &symbols, NULL));
	cr_assert_eq(sym_symbols_count(symbols), 1);
	cr_expect_str_eq(sym_symbols_at(symbols, 0)->name, "left behind");
	sym_symbols_destroy(symbols);
	close(fd);
	tear_down(&scene);
}

/* Every user can create a map for an unused id. */
Test(perfmap_location, accepts_a_left_map_by_its_owner_only)
{
	enum {
		OWNER = 1234,
		STRANGER = 1235
	};
	char *path AUTO_FREE = NULL;
	struct scene scene;
	int fd = -1;

	need_root();
	set_up(&scene, 5, 0);
	proc_tree_write_text(&scene.tree, "/tmp/perf-7.map", "10 20 left behind\n");
	path = proc_tree_path(&scene.tree, "/tmp/perf-7.map");
	cr_assert_eq(chown(path, OWNER, OWNER), 0);
	expect_left(&scene, SYM_ERROR_PERMISSION);
	/* The caller knows the owner. */
	sym_error_destroy(sym_perf_map_open_of(7, scene.tree.root, STRANGER, &fd));
	cr_expect_eq(fd, -1);
	cr_assert_null(sym_perf_map_open_of(7, scene.tree.root, OWNER, &fd));
	close(fd);
	/* The tree knows the owner. */
	proc_tree_add_process(&scene.tree, &(struct proc_tree_process){ .pid = 7, .uid = OWNER });
	cr_assert_null(sym_perf_map_open(7, scene.tree.root, &fd));
	close(fd);
	cr_assert_eq(chown(path, STRANGER, STRANGER), 0);
	expect_left(&scene, SYM_ERROR_PERMISSION);
	tear_down(&scene);
}

Test(perfmap_location, opens_only_a_left_map)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	expect_left(&scene, SYM_ERROR_NOT_FOUND);
	proc_tree_write_text(&scene.tree, "/etc/secret", "10 20 secret\n");
	proc_tree_link(&scene.tree, "/tmp/perf-7.map", "/etc/secret");
	expect_left(&scene, SYM_ERROR_UNSUPPORTED);
	proc_tree_remove(&scene.tree, "/tmp/perf-7.map");
	proc_tree_make_directory(&scene.tree, "/tmp/perf-7.map");
	expect_left(&scene, SYM_ERROR_UNSUPPORTED);
	tear_down(&scene);
}

static bool find_once(void *context)
{
	struct scene *scene = context;
	struct perfmap_location place = { .file_count = 0 };
	struct sym_error *error = perfmap_location_find(scene->process, &place);

	if (error) {
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		sym_error_destroy(error);
		return false;
	}
	cr_expect_leq(place.file_count, 1);
	perfmap_location_deinit(&place);
	return true;
}

Test(perfmap_location, survives_every_failing_allocation)
{
	struct scene scene;

	set_up(&scene, 5, 0);
	proc_tree_write(&scene.tree, "/proc/5/environ", "TMPDIR=/tmp", 12);
	proc_tree_write_text(&scene.tree, "/tmp/perf-5.map", "");
	find(&scene, 5);
	cr_expect_gt(alloc_fail_each(find_once, &scene), 1);
	tear_down(&scene);
}
