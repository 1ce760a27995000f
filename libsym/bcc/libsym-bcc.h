/* SPDX-License-Identifier: MIT */
/**
 * @file
 * libsym-bcc: the symbol functions of libbcc, implemented with libsym.
 *
 * Link this library in place of libbcc's symbol part.
 * Compile with this header in place of bcc_syms.h, bcc_perf_map.h, bcc_elf.h and bcc_proc.h.
 * Names, structs, return values and ownership are those of libbcc 0.26; tests compare the
 * behaviour.
 * A program that cannot be rebuilt, such as a tool of the package bpfcc-tools, is started with
 * `dotnet-mapgen bcc -- PROGRAM...`.
 *
 * libsym-bcc(3) lists the answers that differ, because libbcc has none or a wrong one.
 *
 * THREADS. Several threads may use a cache; look-ups in one cache wait for each other.
 * libbcc's caches do not permit that.
 *
 * BAD ARGUMENTS. With NULL for a required argument, a freed cache, or a pid of the other sign, a
 * call fails or does nothing.
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
	/**
	 * Belongs to the cache; lives until the cache is refreshed or freed. NULL without a name.
	 */
	const char *name;
	/** Readable form of a C++ name, or `name`; see bcc_symbol_free_demangle_name(). */
	const char *demangle_name;
	/** Path of the mapped file; lives as long as `name`. NULL when unknown. */
	const char *module;
	/**
	 * Distance from the start of the symbol. Without a name: the position in the module (an ELF
	 * file's vaddr; the address itself for other files).
	 */
	uint64_t offset;
};

#ifndef STT_GNU_IFUNC
#define STT_GNU_IFUNC 10
#endif

/** bcc_symbol_option.use_symbol_type: every type of ELF symbol. */
static const uint32_t BCC_SYM_ALL_TYPES = 65535;

/** Which symbols of ELF files are used. */
struct bcc_symbol_option {
	int use_debug_file;       /**< also read separate debug files */
	int check_debug_file_crc; /**< for those that .gnu_debuglink names */
	int lazy_symbolize;       /**< no effect here: everything is read on demand */
	uint32_t use_symbol_type; /**< bit N: symbols of ELF type N */
};

/**
 * Creates a cache of the symbols of a process or of the kernel.
 *
 * @param pid  A process or one of its threads; negative: the kernel.
 * @param option  Copied. NULL: debug files with checked CRC, functions only.
 * @return The cache; free it with bcc_free_symcache(). A process that cannot be read gives a cache
 * without names. NULL when out of memory.
 */
SYM_BCC_API void *bcc_symcache_new(int pid, struct bcc_symbol_option *option);

/** Frees a cache. `pid` as for bcc_symcache_new(); NULL is accepted. */
SYM_BCC_API void bcc_free_symcache(void *symcache, int pid);

/** Frees sym->demangle_name unless it is sym->name. */
SYM_BCC_API void bcc_symbol_free_demangle_name(struct bcc_symbol *sym);

/**
 * Resolves an address, with the readable form of a C++ name.
 *
 * @return 0: name, demangle_name, module and offset are set.
 *   -1: no name. Module and offset are set if the mapping is known; otherwise everything is zero.
 */
SYM_BCC_API int bcc_symcache_resolve(void *symcache, uint64_t addr, struct bcc_symbol *sym);

/** As bcc_symcache_resolve(); demangle_name is NULL. */
SYM_BCC_API int bcc_symcache_resolve_no_demangle(void *symcache, uint64_t addr,
						 struct bcc_symbol *sym);

/**
 * Finds the address of a name.
 *
 * @param module  Path of a mapped file as in bcc_symbol.module; ignored for the kernel.
 * @return 0 with *addr set to the address in the process, or -1.
 */
SYM_BCC_API int bcc_symcache_resolve_name(void *resolver, const char *module, const char *name,
					  uint64_t *addr);

/** Refreshes the process. Names returned before become invalid. */
SYM_BCC_API void bcc_symcache_refresh(void *resolver);

/* ------------------------------------------------------------------------
 * bcc_syms.h: names by build-id
 * ------------------------------------------------------------------------ */

/**
 * Creates a cache for stacks of build-ids and file offsets; free it with bcc_free_buildsymcache().
 */
SYM_BCC_API void *bcc_buildsymcache_new(void);
SYM_BCC_API void bcc_free_buildsymcache(void *symcache);

/**
 * Adds an ELF file.
 * A build-id that was added before keeps its first file.
 * The file is opened when a frame needs it. If it was replaced by then, it gives no names.
 *
 * @return 0, or -1 when it has no build-id of 20 bytes.
 */
SYM_BCC_API int bcc_buildsymcache_add_module(void *resolver, const char *module_name);

/**
 * Resolves a frame of a BPF_F_USER_BUILD_ID stack.
 *
 * @return 0 with name, demangle_name (the same), module and offset set; -1: unknown.
 *   A frame without a build-id (status BPF_STACK_BUILD_ID_EMPTY or _IP) gives 0 and leaves `sym`
 * unchanged.
 */
SYM_BCC_API int bcc_buildsymcache_resolve(void *resolver, struct bpf_stack_build_id *trace,
					  struct bcc_symbol *sym);

/* ------------------------------------------------------------------------
 * bcc_syms.h: names to places in files
 * ------------------------------------------------------------------------ */

/** A name and its vaddr. */
typedef int (*SYM_CB)(const char *symname, uint64_t addr);

struct mod_info;

/**
 * Calls `cb` for each function of an ELF file or its debug file; a negative result stops. Returns
 * 0, or -1.
 */
SYM_BCC_API int bcc_foreach_function_symbol(const char *module, SYM_CB cb);

/**
 * Finds the position of a symbol in a file.
 *
 * @param module  A path, or the name of a library without "lib" and ".so".
 * @param symname  Used when addr is 0.
 * @param addr  Vaddr to use in place of a name; 0: none.
 * @param pid  Process that uses the file; 0 or -1: none.
 * @param option  NULL: debug files with checked CRC, symbols of every type.
 * @param sym  On success name is `symname`, module a string that the caller frees, offset the file
 * offset.
 * @return 0, or -1.
 */
SYM_BCC_API int bcc_resolve_symname(const char *module, const char *symname, const uint64_t addr,
				    int pid, struct bcc_symbol_option *option,
				    struct bcc_symbol *sym);

/**
 * Finds the address of a vaddr of a mapped file in a process.
 *
 * @param address  Vaddr, as in the file's symbols and notes.
 * @param inode_match_only  Nonzero: compare only inodes, not devices.
 * @return 0 with *global set, or -1.
 */
SYM_BCC_API int bcc_resolve_global_addr(int pid, const char *module, const uint64_t address,
					uint8_t inode_match_only, uint64_t *global);

/**
 * A callback for bcc_procutils_each_module(); `p` is libbcc's struct mod_search, which is in no
 * header.
 */
SYM_BCC_API int _bcc_syms_find_module(struct mod_info *info, int enter_ns, void *p);

/** Address of a vaddr, given a mapping (start, file offset) and a section of it (vaddr, file
 * offset). */
SYM_BCC_API uint64_t __so_calc_global_addr(uint64_t mod_start_addr, uint64_t mod_file_offset,
					   uint64_t elf_sec_start_addr,
					   uint64_t elf_sec_file_offset, uint64_t offset);
/** The reverse of __so_calc_global_addr(). */
SYM_BCC_API uint64_t __so_calc_mod_offset(uint64_t mod_start_addr, uint64_t mod_file_offset,
					  uint64_t elf_sec_start_addr, uint64_t elf_sec_file_offset,
					  uint64_t global_addr);

/* ------------------------------------------------------------------------
 * bcc_perf_map.h
 * ------------------------------------------------------------------------ */

/** Name, start, size, payload. The result is ignored. */
typedef int (*bcc_perf_map_symcb)(const char *, uint64_t, uint64_t, void *);

/** Returns whether a path is that of a perf map, by its name only. */
SYM_BCC_API bool bcc_is_perf_map(const char *path);
/** Returns whether a path is that of a perf map that may be read. */
SYM_BCC_API bool bcc_is_valid_perf_map(const char *path);
/** Returns the id of a process in its innermost PID namespace; -1 when unknown. */
SYM_BCC_API int bcc_perf_map_nstgid(int pid);
/** Writes the path of a process's perf map, relative to the root in /proc/PID/root. */
SYM_BCC_API bool bcc_perf_map_path(char *map_path, size_t map_len, int pid);
/** Calls `callback` for each line; 0, or -1 when the file cannot be read. */
SYM_BCC_API int bcc_perf_map_foreach_sym(const char *path, bcc_perf_map_symcb callback,
					 void *payload);

/* ------------------------------------------------------------------------
 * bcc_elf.h: symbols, sections, identity
 * ------------------------------------------------------------------------ */

/** Name, vaddr, size, payload; a negative result stops. */
typedef int (*bcc_elf_symcb)(const char *, uint64_t, uint64_t, void *);
/** Index of the string table, offset in it, length, vaddr, size, from a debug file?, payload. */
typedef int (*bcc_elf_symcb_lazy)(size_t, size_t, size_t, uint64_t, uint64_t, int, void *);
/** Vaddr, size in memory, file offset, payload; a negative result stops. */
typedef int (*bcc_elf_load_sectioncb)(uint64_t, uint64_t, uint64_t, void *);

/** Lists the executable segments; 0, 1 when stopped, -1 on failure. */
SYM_BCC_API int bcc_elf_foreach_load_section(const char *path, bcc_elf_load_sectioncb callback,
					     void *payload);
/**
 * Lists symbols of a file and of its debug file. `option` is a struct bcc_symbol_option *, not
 * NULL.
 */
SYM_BCC_API int bcc_elf_foreach_sym(const char *path, bcc_elf_symcb callback, void *option,
				    void *payload);
SYM_BCC_API int bcc_elf_foreach_sym_lazy(const char *path, bcc_elf_symcb_lazy callback,
					 void *option, void *payload);
/** Lists symbols of this machine's vDSO. */
SYM_BCC_API int bcc_elf_foreach_vdso_sym(bcc_elf_symcb callback, void *payload);
/** Finds the vaddr and the file offset of .text. */
SYM_BCC_API int bcc_elf_get_text_scn_info(const char *path, uint64_t *addr, uint64_t *offset);
/** ET_EXEC, ET_DYN, ...; -1 when it is not an ELF file. */
SYM_BCC_API int bcc_elf_get_type(const char *path);
SYM_BCC_API int bcc_elf_is_shared_obj(const char *path);
SYM_BCC_API int bcc_elf_is_exe(const char *path);
SYM_BCC_API int bcc_elf_is_vdso(const char *name);
/** Returns unused memory to the system; 0. */
SYM_BCC_API int bcc_free_memory(void);
/** Writes 40 hex digits and a NUL; 0, or -1 without a build-id of 20 bytes. */
SYM_BCC_API int bcc_elf_get_buildid(const char *path, char *buildid);
/**
 * Copies `len` bytes of a name that bcc_elf_foreach_sym_lazy() listed, padded with NULs. A name of
 * `len` bytes or more has no NUL. 0, or -1.
 */
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

/**
 * Module (valid during the call), 1 if its path is below the process's root, payload; a negative
 * result stops.
 */
typedef int (*bcc_procutils_modulecb)(mod_info *, int, void *);
/** Name, module, address, payload. */
typedef void (*bcc_procutils_ksymcb)(const char *, const char *, uint64_t, void *);

/** Lists executable mappings of files, then the perf map if there is one; 0, or -1. */
SYM_BCC_API int bcc_procutils_each_module(int pid, bcc_procutils_modulecb callback, void *payload);
/** Lists the modules in an open maps file, without the perf map; 0 when stopped, else -1. */
SYM_BCC_API int _procfs_maps_each_module(FILE *procmaps, int pid, bcc_procutils_modulecb callback,
					 void *payload);
/** Lists symbols of the kernel, except data; 0, or -1 (also for other users than root). */
SYM_BCC_API int bcc_procutils_each_ksym(bcc_procutils_ksymcb callback, void *payload);
/** Returns 0 for names of memory without a file ("[heap]", "//anon", ...), else 1. */
SYM_BCC_API int bcc_mapping_is_file_backed(const char *mapname);
/**
 * Returns the path of library "lib"NAME, as `pid` has it mapped or as the machine's linker finds
 * it; from malloc(), or NULL.
 */
SYM_BCC_API char *bcc_procutils_which_so(const char *libname, int pid);
/**
 * Returns the path of an executable ELF program, by $PATH if the name has no slash; from malloc(),
 * or NULL.
 */
SYM_BCC_API char *bcc_procutils_which(const char *binpath);
SYM_BCC_API void bcc_procutils_free(const char *ptr);

#ifdef __cplusplus
}
#endif

#endif
