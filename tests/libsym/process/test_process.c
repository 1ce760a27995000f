/* SPDX-License-Identifier: MIT */
#include "libsym/process/process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "libsym/base/path.h"
#include "libsym/process/address_space.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/error_code.h"
#include "tests/support/proc_tree.h"

/* ---- recorded ---------------------------------------------------------------- */

Test(process, is_read_from_a_recorded_tree)
{
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 4321,
								  .namespace_pid = 1,
								  .uid = 1000,
								  .gid = 100,
								  .start_time_ticks = 250,
								  .comm = "my) app (x",
								  .executable = "/app/my app" });
	cr_assert_null(process_open(4321, tree.root, &process));
	cr_expect_eq(process->pid, 4321);
	cr_expect_eq(process->namespace_pid, 1);
	cr_expect(process->other_pid_namespace);
	cr_expect_eq(process->uid, 1000);
	cr_expect_eq(process->gid, 100);
	cr_expect_eq(process->start_time_ticks, 250);
	cr_expect_eq(process->start_time_ns,
		     (int64_t)PROC_TREE_BOOT_TIME * 1000000000 + 2500000000);
	cr_expect_str_eq(process->comm, "my) app (x");
	cr_expect_str_eq(process->executable, "/app/my app");
	cr_expect_str_eq(process->root_prefix, tree.root);
	cr_expect(process->recorded);
	cr_expect_null(process_check(process), "a recorded process does not end");
	proc_tree_destroy(&tree);
}

Test(process, may_lack_executable_and_clock_in_a_tree)
{
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	proc_tree_remove(&tree, "/proc/stat");
	cr_assert_null(process_open(5, tree.root, &process));
	cr_expect_str_eq(process->executable, "");
	cr_expect_eq(process->start_time_ns, PROCESS_TIME_UNKNOWN);
	cr_expect_not(process->other_pid_namespace);
	proc_tree_destroy(&tree);
}

Test(process, is_opened_by_the_id_of_a_recorded_thread)
{
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 50, .uid = 7 });
	proc_tree_write_text(&tree, "/proc/52/status",
			     "Tgid:\t50\nPid:\t52\nUid:\t8\t8\t8\t8\nGid:\t8\t8\t8\t8\n");
	cr_assert_null(process_open(52, tree.root, &process));
	cr_expect_eq(process->pid, 50);
	cr_expect_eq(process->uid, 7);
	proc_tree_destroy(&tree);
}

Test(process, opens_files_inside_its_root_only)
{
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;
	char text[8] = "";
	int fd = -1;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	proc_tree_write_text(&tree, "/etc/hostname", "inside");
	proc_tree_link(&tree, "/absolute", "/etc/hostname");
	proc_tree_link(&tree, "/climbing", "../../../../../../etc/hostname");
	proc_tree_link(&tree, "/outside", "/proc/self/status");
	cr_assert_null(process_open(5, tree.root, &process));
	cr_assert_null(process_open_path(process, "/absolute", 0, &fd));
	cr_assert_eq(path_read_at(fd, text, 6, 0), 0);
	cr_expect_str_eq(text, "inside");
	close(fd);
	cr_assert_null(process_open_path(process, "/climbing", 0, &fd));
	cr_assert_eq(path_read_at(fd, text, 6, 0), 0);
	cr_expect_str_eq(text, "inside");
	close(fd);
	cr_expect_eq(code_and_end(process_open_path(process, "/outside", 0, &fd)),
		     SYM_ERROR_NOT_FOUND);
	proc_tree_destroy(&tree);
}

Test(process, opens_a_mapped_file_of_a_tree_whatever_its_inode)
{
	struct sym_mapping mapping = { .path = "/app/x.dll", .inode = 1, .deleted = 1 };
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;
	struct stat status;
	int fd = -1;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	proc_tree_write_text(&tree, "/app/x.dll", "MZ");
	cr_assert_null(process_open(5, tree.root, &process));
	cr_assert_null(process_open_mapped(process, &mapping, &fd, &status));
	cr_expect_eq(status.st_size, 2);
	close(fd);
	mapping.path = "/app/y.dll";
	cr_expect_eq(code_and_end(process_open_mapped(process, &mapping, &fd, &status)),
		     SYM_ERROR_NOT_FOUND);
	mapping.path = "/app";
	cr_expect_eq(code_and_end(process_open_mapped(process, &mapping, &fd, &status)),
		     SYM_ERROR_UNSUPPORTED);
	proc_tree_destroy(&tree);
}

Test(process, has_no_memory_in_a_tree)
{
	struct process *process AUTO_PROCESS = NULL;
	struct proc_tree tree;
	char byte;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	cr_assert_null(process_open(5, tree.root, &process));
	cr_expect_eq(code_and_end(process_read_memory(process, 0x1000, &byte, 1)),
		     SYM_ERROR_UNSUPPORTED);
	proc_tree_destroy(&tree);
}

Test(process, ids_are_the_numbers_below_proc_in_order)
{
	struct proc_tree tree;
	int32_t *ids = NULL;
	size_t count = 0;

	proc_tree_create(&tree);
	proc_tree_make_directory(&tree, "/proc/self");
	proc_tree_make_directory(&tree, "/proc/9");
	proc_tree_make_directory(&tree, "/proc/1234567");
	proc_tree_make_directory(&tree, "/proc/10");
	proc_tree_make_directory(&tree, "/proc/07");
	cr_assert_null(sym_process_ids(tree.root, &ids, &count));
	cr_assert_eq(count, 3);
	cr_expect_eq(ids[0], 9);
	cr_expect_eq(ids[1], 10);
	cr_expect_eq(ids[2], 1234567);
	free(ids);
	proc_tree_destroy(&tree);
}

Test(process, is_rejected_when_malformed)
{
	struct process *process = NULL;
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	proc_tree_write_text(&tree, "/proc/5/stat", "5 dotnet S");
	cr_expect_eq(code_and_end(process_open(5, tree.root, &process)), SYM_ERROR_FORMAT);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5 });
	proc_tree_write_text(&tree, "/proc/5/status", "Name:\tx\n");
	cr_expect_eq(code_and_end(process_open(5, tree.root, &process)), SYM_ERROR_FORMAT);
	proc_tree_remove(&tree, "/proc/5/status");
	cr_expect_eq(code_and_end(process_open(5, tree.root, &process)), SYM_ERROR_NOT_FOUND);
	proc_tree_write_text(&tree, "/proc/6/status", "Tgid:\t7\nUid:\t0\t0\nGid:\t0\t0\n");
	cr_expect_eq(code_and_end(process_open(6, tree.root, &process)), SYM_ERROR_NOT_FOUND,
		     "a thread of a process that is not there");
	cr_expect_null(process);
	proc_tree_destroy(&tree);
}

Test(process, is_an_error_when_the_id_is_invalid_or_unused)
{
	struct process *process = NULL;
	struct proc_tree tree;

	cr_expect_eq(code_and_end(process_open(0, NULL, &process)), SYM_ERROR_ARGUMENT);
	cr_expect_eq(code_and_end(process_open(-1, NULL, &process)), SYM_ERROR_ARGUMENT);
	/* Above PID_MAX_LIMIT. */
	cr_expect_eq(code_and_end(process_open(INT32_MAX, NULL, &process)), SYM_ERROR_NOT_FOUND);
	proc_tree_create(&tree);
	cr_expect_eq(code_and_end(process_open(1, tree.root, &process)), SYM_ERROR_NOT_FOUND);
	proc_tree_destroy(&tree);
	cr_expect_null(process);
}

/* ---- live -------------------------------------------------------------------- */

/* A child that acts as soon as `go` is closed or written to. */
struct child {
	pid_t pid;
	int go;
	int done; /* ends when the child has exited or called exec() */
};

static struct child start_child(void (*run)(void))
{
	int go[2], done[2];
	struct child child;
	char byte;

	cr_assert_eq(pipe2(go, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(done, O_CLOEXEC), 0);
	child.pid = fork();
	cr_assert_geq(child.pid, 0);
	if (child.pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) >= 0)
			run();
		_exit(0);
	}
	close(go[0]);
	close(done[1]);
	child.go = go[1];
	child.done = done[0];
	return child;
}

static void let_go(struct child *child)
{
	char byte;

	cr_assert_eq(write(child->go, "x", 1), 1);
	cr_assert_eq(read(child->done, &byte, 1), 0, "the child neither ended nor called exec()");
}

static void end_child(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->go);
	close(child->done);
}

static void run_nothing(void)
{
}

static void run_another_program(void)
{
	execlp("sleep", "sleep", "1000", (char *)NULL);
}

Test(process, describes_the_process_of_this_test)
{
	struct process *process AUTO_PROCESS = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_expect_eq(process->pid, getpid());
	cr_expect_eq(process->uid, geteuid());
	cr_expect_eq(process->gid, getegid());
	cr_expect_str_eq(process->root_prefix, "");
	cr_expect_str_eq(path_file_name(process->executable), "unit");
	cr_expect_not(process->executable_deleted);
	cr_expect_not(process->other_mount_namespace);
	cr_expect_not(process->other_pid_namespace);
	cr_expect_leq(process->start_time_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	cr_expect_neq(process->marks.stack_start, 0);
	cr_expect_null(process_check(process));
}

static void *report_thread_id(void *room)
{
	*(int32_t *)room = gettid();
	return NULL;
}

struct asking_thread {
	struct process *process;
	struct sym_error *error;
};

static void *open_by_thread_id(void *room)
{
	struct asking_thread *asking = room;

	asking->error = process_open(gettid(), NULL, &asking->process);
	return NULL;
}

Test(process, is_found_by_the_id_of_a_thread)
{
	struct asking_thread asking = { 0 };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, open_by_thread_id, &asking), 0);
	pthread_join(thread, NULL);
	cr_assert_null(asking.error);
	cr_expect_eq(asking.process->pid, getpid());
	process_close(asking.process);
}

Test(process, is_not_found_by_the_id_of_a_thread_that_has_ended)
{
	struct process *process = NULL;
	int32_t thread_id = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, report_thread_id, &thread_id), 0);
	pthread_join(thread, NULL);
	/* A joined thread may still exist for a moment. */
	while (!tgkill(getpid(), thread_id, 0))
		sched_yield();
	cr_expect_eq(code_and_end(process_open(thread_id, NULL, &process)), SYM_ERROR_NOT_FOUND);
}

Test(process, is_stale_after_its_end_and_cannot_be_opened_again)
{
	struct child child = start_child(run_nothing);
	struct process *process AUTO_PROCESS = NULL, *again = NULL;
	struct address_space *space = NULL;

	cr_assert_null(process_open(child.pid, NULL, &process));
	cr_assert_null(process_check(process));
	let_go(&child);
	/* Its descriptors are closed before it is a zombie. Waits for that without reaping it. */
	cr_assert_eq(waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	cr_expect_eq(code_and_end(process_check(process)), SYM_ERROR_STALE, "a zombie");
	cr_expect_eq(code_and_end(address_space_read(process, &space)), SYM_ERROR_STALE);
	cr_expect_eq(code_and_end(process_open(child.pid, NULL, &again)), SYM_ERROR_NOT_FOUND);
	end_child(&child);
	cr_expect_eq(code_and_end(process_check(process)), SYM_ERROR_STALE, "nothing is left");
	cr_expect_eq(code_and_end(address_space_read(process, &space)), SYM_ERROR_STALE);
}

Test(process, is_stale_after_exec)
{
	struct child child = start_child(run_another_program);
	struct process *process AUTO_PROCESS = NULL;
	struct address_space *space = NULL;

	cr_assert_null(process_open(child.pid, NULL, &process));
	let_go(&child);
	cr_expect_eq(code_and_end(process_check(process)), SYM_ERROR_STALE);
	cr_expect_eq(code_and_end(address_space_read(process, &space)), SYM_ERROR_STALE);
	end_child(&child);
}

/* A shell that reports when it waits. On command it becomes another shell that waits. */
static pid_t start_shell(int *to_ret, int *from_ret)
{
	int to[2], from[2];
	pid_t pid;

	cr_assert_eq(pipe2(to, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(from, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", "echo; read x; exec sh -c 'echo; read x'",
		      (char *)NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	*to_ret = to[1];
	*from_ret = from[0];
	return pid;
}

Test(process, is_stale_after_exec_of_the_same_program)
{
	struct process *process AUTO_PROCESS = NULL;
	int to = -1, from = -1;
	pid_t pid = start_shell(&to, &from);
	char byte;

	cr_assert_eq(read(from, &byte, 1), 1);
	cr_assert_null(process_open(pid, NULL, &process));
	cr_assert_null(process_check(process));
	cr_assert_eq(write(to, "\n", 1), 1);
	cr_assert_eq(read(from, &byte, 1), 1);
	cr_expect_eq(code_and_end(process_check(process)), SYM_ERROR_STALE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(to);
	close(from);
}

/* Becomes user 65534 if the test runs as root. */
static int look_at_maps_unprivileged(pid_t pid)
{
	struct address_space *space = NULL;
	struct process *process = NULL;
	struct sym_error *error;

	if (geteuid() == 0 && setresuid(65534, 65534, 65534))
		return 1;
	error = process_open(pid, NULL, &process);
	if (error)
		return 2;
	if (process->root_fd >= 0 || *process->executable)
		return 3;
	error = address_space_read(process, &space);
	if (!error || sym_error_code(error) != SYM_ERROR_PERMISSION ||
	    !strstr(sym_error_message(error), "CAP_SYS_PTRACE"))
		return 4;
	sym_error_destroy(error);
	process_close(process);
	return 0;
}

Test(process, names_the_missing_right)
{
	pid_t watched, watcher;
	int ready[2], result;
	char byte;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	watched = fork();
	cr_assert_geq(watched, 0);
	if (watched == 0) {
		/* Not even for its own user. */
		prctl(PR_SET_DUMPABLE, 0);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 0);
	watcher = fork();
	cr_assert_geq(watcher, 0);
	if (watcher == 0)
		_exit(look_at_maps_unprivileged(watched));
	cr_assert_eq(waitpid(watcher, &result, 0), watcher);
	kill(watched, SIGKILL);
	waitpid(watched, NULL, 0);
	close(ready[0]);
	cr_assert(WIFEXITED(result));
	cr_expect_eq(WEXITSTATUS(result), 0, "step %d failed", WEXITSTATUS(result));
}

/* A file of one page that this process has mapped, and its line of maps. */
struct mapped {
	struct process *process;
	struct address_space *space;
	const struct sym_mapping *mapping;
	void *page;
};

static void write_page(const struct proc_tree *tree, const char *path, char fill)
{
	char page[4096];

	memset(page, fill, sizeof(page));
	proc_tree_write(tree, path, page, sizeof(page));
}

static void map_file(struct mapped *mapped, const struct proc_tree *tree, const char *path)
{
	char *whole AUTO_FREE = proc_tree_path(tree, path);
	int fd AUTO_CLOSE = open(whole, O_RDONLY | O_CLOEXEC);
	size_t index;

	mapped->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(mapped->page, MAP_FAILED);
	cr_assert_null(process_open(getpid(), NULL, &mapped->process));
	cr_assert_null(address_space_read(mapped->process, &mapped->space));
	index = address_space_find(mapped->space, (uint64_t)(uintptr_t)mapped->page);
	cr_assert_neq(index, ADDRESS_SPACE_NONE);
	mapped->mapping = &mapped->space->mappings[index];
	cr_assert_str_eq(mapped->mapping->path, whole);
}

static void unmap(struct mapped *mapped)
{
	munmap(mapped->page, 4096);
	address_space_destroy(mapped->space);
	process_close(mapped->process);
}

/* The old file through map_files if that is permitted, else STALE; never the new one. */
static void expect_old_or_stale(const struct mapped *mapped, char old)
{
	struct sym_error *error;
	struct stat status;
	int fd = -1;
	char byte;

	error = process_open_mapped(mapped->process, mapped->mapping, &fd, &status);
	if (error) {
		cr_expect_eq(code_and_end(error), SYM_ERROR_STALE);
		return;
	}
	cr_expect_eq(path_read_at(fd, &byte, 1, 0), 0);
	cr_expect_eq(byte, old);
	cr_expect_eq(status.st_ino, mapped->mapping->inode);
	close(fd);
}

Test(process, opens_a_mapped_file_that_is_still_in_its_place)
{
	struct proc_tree tree;
	struct mapped mapped;
	struct stat status;
	int fd = -1;
	char byte;

	proc_tree_create(&tree);
	write_page(&tree, "/x.dll", 'a');
	map_file(&mapped, &tree, "/x.dll");
	cr_assert_null(process_open_mapped(mapped.process, mapped.mapping, &fd, &status));
	cr_expect_eq(path_read_at(fd, &byte, 1, 0), 0);
	cr_expect_eq(byte, 'a');
	cr_expect_eq(status.st_size, 4096);
	close(fd);
	unmap(&mapped);
	proc_tree_destroy(&tree);
}

Test(process, does_not_open_the_replacement_of_a_mapped_file)
{
	struct proc_tree tree;
	struct mapped mapped;

	proc_tree_create(&tree);
	write_page(&tree, "/x.dll", 'a');
	write_page(&tree, "/y.dll", 'b');
	map_file(&mapped, &tree, "/x.dll");
	/* The line of maps was read before: it has x.dll without a mark. */
	proc_tree_remove(&tree, "/x.dll");
	proc_tree_link(&tree, "/x.dll", "y.dll");
	expect_old_or_stale(&mapped, 'a');
	proc_tree_remove(&tree, "/x.dll");
	expect_old_or_stale(&mapped, 'a');
	unmap(&mapped);
	proc_tree_destroy(&tree);
}

Test(process, reads_its_memory)
{
	static const char secret[] = "what lies here";
	struct process *process AUTO_PROCESS = NULL;
	char room[sizeof(secret)];

	cr_assert_null(process_open(getpid(), NULL, &process));
	cr_assert_null(
		process_read_memory(process, (uint64_t)(uintptr_t)secret, room, sizeof(room)));
	cr_expect_str_eq(room, secret);
	cr_expect_eq(code_and_end(process_read_memory(process, 8, room, 1)), SYM_ERROR_IO);
	cr_expect_eq(code_and_end(process_read_memory(process, UINT64_MAX - 4095, room, 1)),
		     SYM_ERROR_IO);
}

Test(process, ids_of_this_machine_have_this_process)
{
	int32_t *ids = NULL;
	size_t count = 0, i, found = 0;

	cr_assert_null(sym_process_ids(NULL, &ids, &count));
	for (i = 0; i < count; i++)
		found += ids[i] == getpid();
	cr_expect_eq(found, 1);
	free(ids);
}

static bool open_recorded(void *context)
{
	const struct proc_tree *tree = context;
	struct process *process AUTO_PROCESS = NULL;
	struct sym_error *error = process_open(5, tree->root, &process);
	bool succeeded = !error;

	if (error)
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY, "%s",
			     sym_error_message(error));
	cr_expect_eq(process != NULL, succeeded);
	sym_error_destroy(error);
	return succeeded;
}

Test(process, survives_every_failing_allocation)
{
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 5, .executable = "/x" });
	cr_expect_gt(alloc_fail_each(open_recorded, &tree), 5);
	proc_tree_destroy(&tree);
}
