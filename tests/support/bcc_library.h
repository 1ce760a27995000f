/* SPDX-License-Identifier: MIT */
/*
 * The functions of a library with libbcc's interface: ours, and libbcc itself if it is installed.
 * So a test can query both alike. Also starts target processes.
 */
#ifndef TESTS_SUPPORT_BCC_LIBRARY_H
#define TESTS_SUPPORT_BCC_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libsym/bcc/libsym-bcc.h"

enum bcc_subject {
	BCC_OURS,
	BCC_LIBBCC,
	BCC_SUBJECTS,
};

#define BCC_FUNCTION(name) __typeof__(bcc_##name) *name

struct bcc_library {
	void *handle;
	const char *soname; /* "sym-bcc" or "bcc" */
	BCC_FUNCTION(symcache_new);
	BCC_FUNCTION(free_symcache);
	BCC_FUNCTION(symbol_free_demangle_name);
	BCC_FUNCTION(symcache_resolve);
	BCC_FUNCTION(symcache_resolve_no_demangle);
	BCC_FUNCTION(symcache_resolve_name);
	BCC_FUNCTION(symcache_refresh);
	BCC_FUNCTION(buildsymcache_new);
	BCC_FUNCTION(free_buildsymcache);
	BCC_FUNCTION(buildsymcache_add_module);
	BCC_FUNCTION(buildsymcache_resolve);
	BCC_FUNCTION(foreach_function_symbol);
	BCC_FUNCTION(resolve_symname);
	BCC_FUNCTION(resolve_global_addr);
	BCC_FUNCTION(is_perf_map);
	BCC_FUNCTION(is_valid_perf_map);
	BCC_FUNCTION(perf_map_nstgid);
	BCC_FUNCTION(perf_map_path);
	BCC_FUNCTION(perf_map_foreach_sym);
	BCC_FUNCTION(elf_foreach_load_section);
	BCC_FUNCTION(elf_foreach_sym);
	BCC_FUNCTION(elf_foreach_sym_lazy);
	BCC_FUNCTION(elf_foreach_vdso_sym);
	BCC_FUNCTION(elf_get_text_scn_info);
	BCC_FUNCTION(elf_get_type);
	BCC_FUNCTION(elf_is_shared_obj);
	BCC_FUNCTION(elf_is_exe);
	BCC_FUNCTION(elf_is_vdso);
	BCC_FUNCTION(elf_get_buildid);
	BCC_FUNCTION(elf_symbol_str);
	BCC_FUNCTION(procutils_each_module);
	BCC_FUNCTION(procutils_each_ksym);
	BCC_FUNCTION(mapping_is_file_backed);
	BCC_FUNCTION(procutils_which_so);
	BCC_FUNCTION(procutils_which);
	__typeof__(_bcc_syms_find_module) *find_module;
	__typeof__(_procfs_maps_each_module) *each_module_of;
	__typeof__(__so_calc_global_addr) *calc_global_addr;
	__typeof__(__so_calc_mod_offset) *calc_mod_offset;
};

/* Opens a library and sets its environment. Returns false if it is not installed. */
bool bcc_library_open(struct bcc_library *library, enum bcc_subject subject);

/* A child in namespaces of its own that calls `prepare` and then waits to be killed. */
struct bcc_child {
	pid_t pid;
	int ready; /* descriptor */
	char *stack;
};

enum bcc_child_flags {
	BCC_CHILD_PID_NAMESPACE = 1 << 0,
	BCC_CHILD_MOUNT_NAMESPACE = 1 << 1, /* with an empty /tmp of its own */
};

/* Returns after `prepare` is done; false if the child could not be started. */
bool bcc_child_start(struct bcc_child *child, unsigned int flags, int (*prepare)(void *),
		     void *argument);
void bcc_child_end(struct bcc_child *child);

#endif
