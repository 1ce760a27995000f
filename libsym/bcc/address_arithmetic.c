/* SPDX-License-Identifier: MIT */
/*
 * Conversions between names and positions in files: the functions of bcc_syms.h with which tools
 * find where to put a probe.
 */
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libsym/bcc/elf_file.h"
#include "libsym/bcc/libsym-bcc.h"

static struct bcc_symbol_option every_type = { 1, 1, 0, 65535 };

uint64_t __so_calc_global_addr(uint64_t mod_start_addr, uint64_t mod_file_offset,
			       uint64_t elf_sec_start_addr, uint64_t elf_sec_file_offset,
			       uint64_t offset)
{
	return offset + (mod_start_addr - mod_file_offset) -
	       (elf_sec_start_addr - elf_sec_file_offset);
}

uint64_t __so_calc_mod_offset(uint64_t mod_start_addr, uint64_t mod_file_offset,
			      uint64_t elf_sec_start_addr, uint64_t elf_sec_file_offset,
			      uint64_t global_addr)
{
	return global_addr - (mod_start_addr - mod_file_offset) +
	       (elf_sec_start_addr - elf_sec_file_offset);
}

/* ---- a name of a file -------------------------------------------------------- */

static int take_function(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	SYM_CB callback = *(SYM_CB *)payload;

	(void)size_bytes;
	return callback(name, start);
}

int bcc_foreach_function_symbol(const char *module, SYM_CB cb)
{
	struct bcc_symbol_option functions = every_type;

	if (!module || !cb)
		return -1;
	functions.use_symbol_type = 1u << STT_FUNC | 1u << STT_GNU_IFUNC;
	return bcc_elf_foreach_sym(module, take_function, &functions, &cb);
}

struct wanted_offset {
	uint64_t vaddr;
	uint64_t offset;
	bool found;
};

static int match_segment(uint64_t vaddr, uint64_t size_bytes, uint64_t offset, void *payload)
{
	struct wanted_offset *wanted = payload;

	if (wanted->vaddr < vaddr || wanted->vaddr - vaddr >= size_bytes)
		return 0;
	wanted->offset = wanted->vaddr - vaddr + offset;
	wanted->found = true;
	return -1;
}

/* Converts the vaddr of code to a file offset; false when no executable segment contains it. */
static bool find_code(const char *path, uint64_t vaddr, uint64_t *offset_ret)
{
	struct wanted_offset place = { .vaddr = vaddr };

	if (bcc_elf_foreach_load_section(path, match_segment, &place) < 0 || !place.found)
		return false;
	*offset_ret = place.offset;
	return true;
}

static char *find_module(const char *module, int pid)
{
	char *path = strchr(module, '/') ? strdup(module)
					 : bcc_procutils_which_so(module, pid > 0 ? pid : 0);
	char below_root[PATH_MAX + 64];

	/* Makes the path as the process sees it. */
	if (!path || pid <= 0 || !strncmp(path, "/proc/", 6))
		return path;
	snprintf(below_root, sizeof(below_root), "/proc/%d/root%s", pid, path);
	free(path);
	return strdup(below_root);
}

static int fail_symname(struct bcc_symbol *sym)
{
	free((char *)sym->module);
	sym->module = NULL;
	return -1;
}

int bcc_resolve_symname(const char *module, const char *symname, const uint64_t addr, int pid,
			struct bcc_symbol_option *option, struct bcc_symbol *sym)
{
	struct wanted_name symbol = { symname, 0 };
	int type;

	if (!sym)
		return -1;
	if (!module)
		return -1;
	*sym = (struct bcc_symbol){ 0 };
	sym->module = find_module(module, pid);
	if (!sym->module)
		return -1;
	sym->name = symname;
	sym->offset = addr;
	if (symname && !addr) {
		if (bcc_elf_foreach_sym(sym->module, elf_file_match_name,
					option ? option : &every_type, &symbol) < 0)
			return fail_symname(sym);
		sym->offset = symbol.start;
	}
	if (!sym->offset)
		return fail_symname(sym);
	type = bcc_elf_get_type(sym->module);
	if (type != ET_EXEC && type != ET_DYN)
		return 0;
	return find_code(sym->module, sym->offset, &sym->offset) ? 0 : fail_symname(sym);
}

/* ---- an address of a process ---------------------------------------------------- */

/* libbcc's layout, member by member: callers of _bcc_syms_find_module() have a copy of it. */
struct mod_search {
	const char *name;
	uint64_t inode; /* 0: by name */
	uint64_t dev_major;
	uint64_t dev_minor;
	uint64_t addr; /* offset into the file; only bcc_resolve_global_addr() sets it */
	uint8_t inode_match_only;
	uint64_t start;
	uint64_t file_offset;
};

static bool is_wanted(const struct mod_search *search, const struct mod_info *info)
{
	if (!search->inode)
		return search->name && !strcmp(search->name, info->name);
	return search->inode == info->inode &&
	       (search->inode_match_only ||
		(search->dev_major == info->dev_major && search->dev_minor == info->dev_minor));
}

int _bcc_syms_find_module(struct mod_info *info, int enter_ns, void *p)
{
	struct mod_search *search = p;

	(void)enter_ns;
	if (!info || !search || !is_wanted(search, info))
		return 0;
	search->start = info->start_addr;
	search->file_offset = info->file_offset;
	return -1;
}

/* The mapping that contains the offset, else the first of the file, which libbcc always uses. */
static int find_offset(struct mod_info *info, int enter_ns, void *p)
{
	struct mod_search *search = p;
	struct mod_search here = *search;

	if (_bcc_syms_find_module(info, enter_ns, &here) == 0)
		return 0;
	if (search->addr >= info->file_offset &&
	    search->addr - info->file_offset < info->end_addr - info->start_addr) {
		*search = here;
		return -1;
	}
	if (!search->start)
		*search = here;
	return 0;
}

/* Converts any vaddr: data as if in the segment of .text, which is libbcc's rule for everything. */
static bool find_in_file(const char *path, uint64_t vaddr, uint64_t *offset_ret)
{
	uint64_t text_vaddr, text_offset;

	if (find_code(path, vaddr, offset_ret))
		return true;
	if (bcc_elf_get_text_scn_info(path, &text_vaddr, &text_offset) < 0)
		return false;
	*offset_ret = vaddr - (text_vaddr - text_offset);
	return true;
}

int bcc_resolve_global_addr(int pid, const char *module, const uint64_t address,
			    uint8_t inode_match_only, uint64_t *global)
{
	struct mod_search search = { .name = module, .inode_match_only = inode_match_only };
	char path[PATH_MAX];
	struct stat status;

	if (!module || !global)
		return -1;
	if (strncmp(module, "/proc/", 6) != 0)
		snprintf(path, sizeof(path), "/proc/%d/root%s", pid, module);
	else
		snprintf(path, sizeof(path), "%s", module);
	if (stat(path, &status) == 0) {
		search.inode = status.st_ino;
		search.dev_major = major(status.st_dev);
		search.dev_minor = minor(status.st_dev);
	}
	if (!find_in_file(path, address, &search.addr) ||
	    bcc_procutils_each_module(pid, find_offset, &search) < 0 || !search.start)
		return -1;
	*global = search.start - search.file_offset + search.addr;
	return 0;
}
