/* SPDX-License-Identifier: MIT */
#include "tests/support/bcc_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct named_function {
	const char *name;
	size_t field;
};

#define NAMED(name)                                                                                \
	{                                                                                          \
		"bcc_" #name, offsetof(struct bcc_library, name)                                   \
	}

static const struct named_function functions[] = {
	NAMED(symcache_new),
	NAMED(free_symcache),
	NAMED(symbol_free_demangle_name),
	NAMED(symcache_resolve),
	NAMED(symcache_resolve_no_demangle),
	NAMED(symcache_resolve_name),
	NAMED(symcache_refresh),
	NAMED(buildsymcache_new),
	NAMED(free_buildsymcache),
	NAMED(buildsymcache_add_module),
	NAMED(buildsymcache_resolve),
	NAMED(foreach_function_symbol),
	NAMED(resolve_symname),
	NAMED(resolve_global_addr),
	NAMED(is_perf_map),
	NAMED(is_valid_perf_map),
	NAMED(perf_map_nstgid),
	NAMED(perf_map_path),
	NAMED(perf_map_foreach_sym),
	NAMED(elf_foreach_load_section),
	NAMED(elf_foreach_sym),
	NAMED(elf_foreach_sym_lazy),
	NAMED(elf_foreach_vdso_sym),
	NAMED(elf_get_text_scn_info),
	NAMED(elf_get_type),
	NAMED(elf_is_shared_obj),
	NAMED(elf_is_exe),
	NAMED(elf_is_vdso),
	NAMED(elf_get_buildid),
	NAMED(elf_symbol_str),
	NAMED(procutils_each_module),
	NAMED(procutils_each_ksym),
	NAMED(mapping_is_file_backed),
	NAMED(procutils_which_so),
	NAMED(procutils_which),
	{ "_bcc_syms_find_module", offsetof(struct bcc_library, find_module) },
	{ "_procfs_maps_each_module", offsetof(struct bcc_library, each_module_of) },
	{ "__so_calc_global_addr", offsetof(struct bcc_library, calc_global_addr) },
	{ "__so_calc_mod_offset", offsetof(struct bcc_library, calc_mod_offset) },
};

/* Our library lies in the directory above this program's. */
static void *open_ours(void)
{
	char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);

	if (length <= 0)
		return NULL;
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	snprintf(strrchr(path, '/'), 32, "/libsym-bcc.so.0");
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bool bcc_library_open(struct bcc_library *library, enum bcc_subject subject)
{
	library->soname = subject == BCC_LIBBCC ? "bcc" : "sym-bcc";
	library->handle =
		subject == BCC_LIBBCC ? dlopen("libbcc.so.0", RTLD_NOW | RTLD_LOCAL) : open_ours();
	if (!library->handle)
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library->handle, functions[i].name);

		if (!function) {
			fprintf(stderr, "%s is missing\n", functions[i].name);
			abort();
		}
		memcpy((char *)library + functions[i].field, &function, sizeof(function));
	}
	return true;
}

/* ---- target processes ---------------------------------------------------------------- */

enum {
	STACK_BYTES = 1 << 20
};

struct child_start {
	unsigned int flags;
	int (*prepare)(void *);
	void *argument;
	int ready;
};

static int child_main(void *argument)
{
	struct child_start *start = argument;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test does not reach its end */
	if (start->flags & BCC_CHILD_MOUNT_NAMESPACE &&
	    (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	     mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0))
		_exit(1);
	if (start->prepare && start->prepare(start->argument) < 0)
		_exit(1);
	if (write(start->ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

bool bcc_child_start(struct bcc_child *child, unsigned int flags, int (*prepare)(void *),
		     void *argument)
{
	int clone_flags = SIGCHLD | (flags & BCC_CHILD_PID_NAMESPACE ? CLONE_NEWPID : 0) |
			  (flags & BCC_CHILD_MOUNT_NAMESPACE ? CLONE_NEWNS : 0);
	struct child_start start = { flags, prepare, argument, -1 };
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return false;
	start.ready = ends[1];
	child->ready = ends[0];
	child->stack = malloc(STACK_BYTES);
	child->pid = clone(child_main, child->stack + STACK_BYTES, clone_flags, &start);
	close(ends[1]);
	if (child->pid > 0 && read(child->ready, &byte, 1) == 1)
		return true;
	bcc_child_end(child);
	return false;
}

void bcc_child_end(struct bcc_child *child)
{
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	close(child->ready);
	free(child->stack);
	child->pid = -1;
}
