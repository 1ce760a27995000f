/* SPDX-License-Identifier: MIT */
/*
 * A recorded process tree in a temporary directory: ROOT/proc/PID/{stat,status,maps,...} and the
 * mapped files. A test writes its own tree, so input and expectation stand side by side. A write
 * failure fails the test.
 */
#ifndef TESTS_SUPPORT_PROC_TREE_H
#define TESTS_SUPPORT_PROC_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_tree {
	char root[256];
};

/* A process of the tree; 0 and NULL select a default. */
struct proc_tree_process {
	int32_t pid;
	int32_t namespace_pid; /* 0: pid */
	uint32_t uid;          /* effective */
	uint32_t gid;
	uint64_t start_time_ticks;
	const char *comm;       /* NULL: "dotnet" */
	const char *executable; /* NULL: there is no exe link */
	const char *maps;       /* NULL: an empty file */
};

/* Boot time of every tree: far in the past, so that every file is newer. */
enum {
	PROC_TREE_BOOT_TIME = 1600000000
};

void proc_tree_create(struct proc_tree *tree);
void proc_tree_destroy(struct proc_tree *tree);

/* Writes stat, status, maps and exe of a process, and ROOT/proc/stat. */
void proc_tree_add_process(const struct proc_tree *tree, const struct proc_tree_process *process);

/* Writes ROOT/PATH and the directories above it. */
void proc_tree_write(const struct proc_tree *tree, const char *path, const void *bytes,
		     size_t size_bytes);
void proc_tree_write_text(const struct proc_tree *tree, const char *path, const char *text);
void proc_tree_make_directory(const struct proc_tree *tree, const char *path);
void proc_tree_link(const struct proc_tree *tree, const char *path, const char *target);
void proc_tree_remove(const struct proc_tree *tree, const char *path);

/* Sets the time of the last change, in whole seconds since 1970. */
void proc_tree_set_time(const struct proc_tree *tree, const char *path, int64_t seconds);

/* ROOT/PATH; heap, for free(). */
char *proc_tree_path(const struct proc_tree *tree, const char *path);

#endif
