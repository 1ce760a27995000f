/* SPDX-License-Identifier: MIT */
/**
 * @file
 * libsym-bcc: the symbol functions of libbcc, answered by libsym.
 *
 * A program that finds names with libbcc (its headers bcc_syms.h, bcc_perf_map.h,
 * bcc_elf.h, bcc_proc.h) links this library in place of libbcc's symbol part and
 * is compiled with this header instead of those. Names, structs, return values
 * and ownership are libbcc's, of version 0.26, whose behaviour the tests compare.
 * A program that is not to be built again, such as the tools of the package
 * bpfcc-tools, is started with `dotnet-mapgen bcc -- PROGRAM...`.
 *
 * What is answered differently, because libbcc does not answer it or answers
 * wrongly, stands in libsym-bcc(3); LIBSYM_BCC_STRICT=1 in the environment gives
 * libbcc's answers instead.
 *
 * THREADS. A cache may be used by several threads; look-ups in one cache wait for
 * each other. libbcc's caches may not.
 *
 * BAD ARGUMENTS. A NULL where something is needed, a cache that was freed, a pid
 * of the other sign: the call fails or does nothing.
 */
#ifndef LIBSYM_BCC_LIBSYM_BCC_H
#define LIBSYM_BCC_LIBSYM_BCC_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SYM_BCC_API __attribute__((visibility("default")))
#else
#define SYM_BCC_API
#endif

/* ------------------------------------------------------------------------
 * bcc_syms.h: addresses to names
 * ------------------------------------------------------------------------ */

/** An answer. */
struct bcc_symbol {
	/** Belongs to the cache; lives until the cache is refreshed or freed. NULL without a name.
	 */
	const char *name;
	/** Readable form of a C++ name, or `name`; see bcc_symbol_free_demangle_name(). */
	const char *demangle_name;
	/** Path of the file that is mapped there; lives as `name`. NULL when not known. */
	const char *module;
	/**
	 * Distance from the start of the symbol. Without a name: the position in the
	 * module (an ELF file's vaddr; the address itself for other files).
	 */
	uint64_t offset;
};

#ifndef STT_GNU_IFUNC
#define STT_GNU_IFUNC 10
#endif

/** bcc_symbol_option.use_symbol_type: every type of ELF symbol. */
static const uint32_t BCC_SYM_ALL_TYPES = 65535;

/** Which symbols of ELF files count. */
struct bcc_symbol_option {
	int use_debug_file;       /**< also read separate debug files */
	int check_debug_file_crc; /**< of those that .gnu_debuglink names */
	int lazy_symbolize;       /**< no effect here: nothing is read before it is needed */
	uint32_t use_symbol_type; /**< bit N: symbols of ELF type N */
};

/**
 * Makes a cache of the symbols of a process (pid >= 0; the id of a thread does
 * too), or of the kernel (pid < 0).
 *
 * @param option copied; NULL: debug files with checked CRC, functions only
 * @return the cache, also for a process that cannot be looked at (it has no names);
 *         NULL without memory. Ends with bcc_free_symcache().
 */
SYM_BCC_API void *bcc_symcache_new(int pid, struct bcc_symbol_option *option);

/** Ends a cache. `pid` as given to bcc_symcache_new(); NULL is accepted. */
SYM_BCC_API void bcc_free_symcache(void *symcache, int pid);

/** Frees sym->demangle_name unless it is sym->name. */
SYM_BCC_API void bcc_symbol_free_demangle_name(struct bcc_symbol *sym);

/**
 * Names an address, with the readable form of a C++ name.
 *
 * @return 0: name, demangle_name, module and offset are set. -1: no name; module
 *         and offset are set if it is known what is mapped there, else all is zero.
 */
SYM_BCC_API int bcc_symcache_resolve(void *symcache, uint64_t addr, struct bcc_symbol *sym);

/** As bcc_symcache_resolve(); demangle_name is NULL. */
SYM_BCC_API int bcc_symcache_resolve_no_demangle(void *symcache, uint64_t addr,
						 struct bcc_symbol *sym);

/**
 * Finds the address of a name.
 *
 * @param module path of a mapped file as bcc_symbol.module has it; ignored for the kernel
 * @return 0 with *addr set to the address in the process, or -1
 */
SYM_BCC_API int bcc_symcache_resolve_name(void *resolver, const char *module, const char *name,
					  uint64_t *addr);

/** Looks at the process anew. Names handed out before are no longer valid. */
SYM_BCC_API void bcc_symcache_refresh(void *resolver);

/* ------------------------------------------------------------------------
 * bcc_syms.h: names by build-id
 * ------------------------------------------------------------------------ */

/** Makes a cache for stacks of build-ids and file offsets; ends with bcc_free_buildsymcache(). */
SYM_BCC_API void *bcc_buildsymcache_new(void);
SYM_BCC_API void bcc_free_buildsymcache(void *symcache);

/** Adds an ELF file; 0, or -1 when it has no build-id of 20 bytes. A build-id that is there already
 * keeps its first file. It is opened when a frame asks for it; one that is another file by then
 * gives no names. */
SYM_BCC_API int bcc_buildsymcache_add_module(void *resolver, const char *module_name);

/**
 * Names a frame as BPF_F_USER_BUILD_ID stacks have it.
 *
 * @return 0 with name, demangle_name (the same), module and offset set; -1: not known. A frame
 *         without a build-id (status BPF_STACK_BUILD_ID_EMPTY or _IP) gives 0, and `sym` untouched.
 */
SYM_BCC_API int bcc_buildsymcache_resolve(void *resolver, struct bpf_stack_build_id *trace,
					  struct bcc_symbol *sym);

/* ------------------------------------------------------------------------
 * bcc_syms.h: names to places in files
 * ------------------------------------------------------------------------ */

/** A name and its vaddr. */
typedef int (*SYM_CB)(const char *symname, uint64_t addr);

struct mod_info;

/** Calls `cb` for each function of an ELF file or its debug file; a negative value stops. 0, or -1.
 */
SYM_BCC_API int bcc_foreach_function_symbol(const char *module, SYM_CB cb);

/**
 * Finds where in a file a symbol is.
 *
 * @param module a path, or the name of a library without "lib" and ".so"
 * @param symname used when addr is 0
 * @param addr vaddr, when symname is not to be looked up
 * @param pid process whose file it is; 0 or -1: none
 * @param option NULL: debug files with checked CRC, symbols of every type
 * @param sym on success name is `symname`, module a heap string to be freed by the caller, offset
 *        the file offset
 * @return 0, or -1
 */
SYM_BCC_API int bcc_resolve_symname(const char *module, const char *symname, const uint64_t addr,
				    int pid, struct bcc_symbol_option *option,
				    struct bcc_symbol *sym);

/**
 * Finds where a vaddr of a mapped file is in a process.
 *
 * @param address vaddr, as the file's symbols and notes have it
 * @param inode_match_only nonzero: compare only inodes, not devices
 * @return 0 with *global set, or -1
 */
SYM_BCC_API int bcc_resolve_global_addr(int pid, const char *module, const uint64_t address,
					uint8_t inode_match_only, uint64_t *global);

/** A callback for bcc_procutils_each_module(); `p` is libbcc's struct mod_search, which no header
 * has. */
SYM_BCC_API int _bcc_syms_find_module(struct mod_info *info, int enter_ns, void *p);

/** Address of a vaddr, given a mapping (start, file offset) and a section of it (vaddr, file
 * offset). */
SYM_BCC_API uint64_t __so_calc_global_addr(uint64_t mod_start_addr, uint64_t mod_file_offset,
					   uint64_t elf_sec_start_addr,
					   uint64_t elf_sec_file_offset, uint64_t offset);
/** The reverse. */
SYM_BCC_API uint64_t __so_calc_mod_offset(uint64_t mod_start_addr, uint64_t mod_file_offset,
					  uint64_t elf_sec_start_addr, uint64_t elf_sec_file_offset,
					  uint64_t global_addr);

/* ------------------------------------------------------------------------
 * bcc_perf_map.h
 * ------------------------------------------------------------------------ */

/** Name, start, size, payload; the value is not looked at. */
typedef int (*bcc_perf_map_symcb)(const char *, uint64_t, uint64_t, void *);

/** Is it the path of a perf map? By its name only. */
SYM_BCC_API bool bcc_is_perf_map(const char *path);
/** And may it be read? */
SYM_BCC_API bool bcc_is_valid_perf_map(const char *path);
/** The id of a process in its innermost PID namespace; -1 when unknown. */
SYM_BCC_API int bcc_perf_map_nstgid(int pid);
/** Where a process writes its perf map, below the root that /proc/PID/root names. */
SYM_BCC_API bool bcc_perf_map_path(char *map_path, size_t map_len, int pid);
/** Calls `callback` for each line; 0, or -1 when the file cannot be read. */
SYM_BCC_API int bcc_perf_map_foreach_sym(const char *path, bcc_perf_map_symcb callback,
					 void *payload);

/* ------------------------------------------------------------------------
 * bcc_elf.h: symbols, sections, identity
 * ------------------------------------------------------------------------ */

/** Name, vaddr, size, payload; a negative value stops. */
typedef int (*bcc_elf_symcb)(const char *, uint64_t, uint64_t, void *);
/** Index of the string table, offset in it, length, vaddr, size, from a debug file?, payload. */
typedef int (*bcc_elf_symcb_lazy)(size_t, size_t, size_t, uint64_t, uint64_t, int, void *);
/** Vaddr, size in memory, file offset, payload; a negative value stops. */
typedef int (*bcc_elf_load_sectioncb)(uint64_t, uint64_t, uint64_t, void *);

/** Executable load segments; 0, 1 when stopped, -1 on failure. */
SYM_BCC_API int bcc_elf_foreach_load_section(const char *path, bcc_elf_load_sectioncb callback,
					     void *payload);
/** Symbols of a file and of its debug file. `option` is a struct bcc_symbol_option *, not NULL. */
SYM_BCC_API int bcc_elf_foreach_sym(const char *path, bcc_elf_symcb callback, void *option,
				    void *payload);
SYM_BCC_API int bcc_elf_foreach_sym_lazy(const char *path, bcc_elf_symcb_lazy callback,
					 void *option, void *payload);
/** Symbols of this machine's vDSO. */
SYM_BCC_API int bcc_elf_foreach_vdso_sym(bcc_elf_symcb callback, void *payload);
/** Vaddr and file offset of .text. */
SYM_BCC_API int bcc_elf_get_text_scn_info(const char *path, uint64_t *addr, uint64_t *offset);
/** ET_EXEC, ET_DYN, ...; -1 for what is no ELF file. */
SYM_BCC_API int bcc_elf_get_type(const char *path);
SYM_BCC_API int bcc_elf_is_shared_obj(const char *path);
SYM_BCC_API int bcc_elf_is_exe(const char *path);
SYM_BCC_API int bcc_elf_is_vdso(const char *name);
/** Gives memory that is not in use back to the system; 0. */
SYM_BCC_API int bcc_free_memory(void);
/** Writes 40 hex digits and a NUL; 0, or -1 without a build-id of 20 bytes. */
SYM_BCC_API int bcc_elf_get_buildid(const char *path, char *buildid);
/** Copies `len` bytes of a name that bcc_elf_foreach_sym_lazy() told by its place, padded with
 * NULs; no NUL behind a name of `len` bytes or more. 0, or -1. */
SYM_BCC_API int bcc_elf_symbol_str(const char *path, size_t section_idx, size_t str_table_idx,
				   char *out, size_t len, int debugfile);

/* ------------------------------------------------------------------------
 * bcc_proc.h: modules of a process, symbols of the kernel, libraries
 * ------------------------------------------------------------------------ */

typedef struct mod_info {
	char *name;
	uint64_t start_addr;
	uint64_t end_addr;
	unsigned long long file_offset;
	uint64_t dev_major;
	uint64_t dev_minor;
	uint64_t inode;
} mod_info;

/** Module (valid during the call), 1 if its name is to be seen below the process's root, payload;
 * a negative value stops. */
typedef int (*bcc_procutils_modulecb)(mod_info *, int, void *);
/** Name, module, address, payload. */
typedef void (*bcc_procutils_ksymcb)(const char *, const char *, uint64_t, void *);

/** Executable mappings of files, then the perf map if there is one; 0, or -1. */
SYM_BCC_API int bcc_procutils_each_module(int pid, bcc_procutils_modulecb callback, void *payload);
/** The same for an open maps file, without the perf map; 0 when stopped, else -1. */
SYM_BCC_API int _procfs_maps_each_module(FILE *procmaps, int pid, bcc_procutils_modulecb callback,
					 void *payload);
/** Symbols of the kernel but data; 0, or -1 (also for other users than root). */
SYM_BCC_API int bcc_procutils_each_ksym(bcc_procutils_ksymcb callback, void *payload);
/** 0 for names that stand for memory of no file ("[heap]", "//anon", ...), else 1. */
SYM_BCC_API int bcc_mapping_is_file_backed(const char *mapname);
/** Path of library "lib"NAME, as `pid` has it mapped or the machine's linker knows it; heap, or
 * NULL. */
SYM_BCC_API char *bcc_procutils_which_so(const char *libname, int pid);
/** Path of an ELF program that may be executed, by $PATH where it has no slash; heap, or NULL. */
SYM_BCC_API char *bcc_procutils_which(const char *binpath);
SYM_BCC_API void bcc_procutils_free(const char *ptr);

#ifdef __cplusplus
}
#endif

#endif
