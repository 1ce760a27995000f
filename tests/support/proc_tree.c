/* SPDX-License-Identifier: MIT */
#include "tests/support/proc_tree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

char *proc_tree_path(const struct proc_tree *tree, const char *path)
{
	char *joined;

	cr_assert_geq(asprintf(&joined, "%s%s", tree->root, path), 0);
	return joined;
}

void proc_tree_create(struct proc_tree *tree)
{
	snprintf(tree->root, sizeof(tree->root), "/tmp/libsym-test-XXXXXX");
	cr_assert_not_null(mkdtemp(tree->root), "no temporary directory");
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

void proc_tree_destroy(struct proc_tree *tree)
{
	nftw(tree->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void proc_tree_make_directory(const struct proc_tree *tree, const char *path)
{
	char *whole AUTO_FREE = proc_tree_path(tree, path);

	cr_assert_eq(path_make_directories(whole, 0755), 0, "cannot make %s", whole);
}

static void make_parent(const struct proc_tree *tree, const char *path)
{
	char *parent AUTO_FREE = strdup(path);
	char *slash;

	cr_assert_not_null(parent);
	slash = strrchr(parent, '/');
	cr_assert_not_null(slash, "%s is not absolute", path);
	*slash = '\0';
	if (*parent)
		proc_tree_make_directory(tree, parent);
}

void proc_tree_write(const struct proc_tree *tree, const char *path, const void *bytes,
		     size_t size_bytes)
{
	char *whole AUTO_FREE = proc_tree_path(tree, path);
	int fd AUTO_CLOSE = -1;

	make_parent(tree, path);
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0, "cannot create %s", whole);
	cr_assert_eq(path_write_all(fd, bytes, size_bytes), 0, "cannot write %s", whole);
}

void proc_tree_write_text(const struct proc_tree *tree, const char *path, const char *text)
{
	proc_tree_write(tree, path, text, strlen(text));
}

void proc_tree_link(const struct proc_tree *tree, const char *path, const char *target)
{
	char *whole AUTO_FREE = proc_tree_path(tree, path);

	make_parent(tree, path);
	cr_assert_eq(symlink(target, whole), 0, "cannot link %s", whole);
}

void proc_tree_remove(const struct proc_tree *tree, const char *path)
{
	char *whole AUTO_FREE = proc_tree_path(tree, path);

	cr_assert_eq(remove(whole), 0, "cannot remove %s", whole);
}

void proc_tree_set_time(const struct proc_tree *tree, const char *path, int64_t seconds)
{
	struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	char *whole AUTO_FREE = proc_tree_path(tree, path);

	cr_assert_eq(utimensat(AT_FDCWD, whole, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void write_stat(const struct proc_tree *tree, const struct proc_tree_process *process)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", process->pid);
	snprintf(
		text, sizeof(text),
		"%d (%s) S 1 %d %d 0 -1 4194304 100 0 0 0 5 3 0 0 20 0 7 0 %llu 1000 200 "
		"18446744073709551615 4096 8192 140720000000000 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0\n",
		process->pid, process->comm ? process->comm : "dotnet", process->pid, process->pid,
		(unsigned long long)process->start_time_ticks);
	proc_tree_write_text(tree, path, text);
}

static void write_status(const struct proc_tree *tree, const struct proc_tree_process *process)
{
	char path[64], text[512], inner[32] = "";

	if (process->namespace_pid)
		snprintf(inner, sizeof(inner), "\t%d", process->namespace_pid);
	snprintf(path, sizeof(path), "/proc/%d/status", process->pid);
	snprintf(text, sizeof(text),
		 "Name:\t%s\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t%d\nNgid:\t0\nPid:\t%d\n"
		 "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\nNStgid:\t%d%s\nNSpid:\t%d%s\n",
		 process->comm ? process->comm : "dotnet", process->pid, process->pid, process->uid,
		 process->uid, process->uid, process->uid, process->gid, process->gid, process->gid,
		 process->gid, process->pid, inner, process->pid, inner);
	proc_tree_write_text(tree, path, text);
}

void proc_tree_add_process(const struct proc_tree *tree, const struct proc_tree_process *process)
{
	char path[64], boot[64];

	write_stat(tree, process);
	write_status(tree, process);
	snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
	proc_tree_write_text(tree, path, process->maps ? process->maps : "");
	snprintf(path, sizeof(path), "/proc/%d/exe", process->pid);
	if (process->executable)
		proc_tree_link(tree, path, process->executable);
	snprintf(boot, sizeof(boot), "cpu  1 2 3\nbtime %d\nprocesses 7\n", PROC_TREE_BOOT_TIME);
	proc_tree_write_text(tree, "/proc/stat", boot);
}
