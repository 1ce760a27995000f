/* SPDX-License-Identifier: MIT */
/*
 * The functions of bcc_elf.h about symbols.
 * They list the symbol tables of an ELF file and its debug file in file order, for callers that
 * build their own tables.
 * libelf reads the files, which are not trusted.
 */
#include <gelf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/bcc/elf_file.h"
#include "libsym/bcc/libsym-bcc.h"

/* ---- symbols -------------------------------------------------------------------- */

/* One of the two callbacks for symbols. */
struct receiver {
	bcc_elf_symcb call;
	bcc_elf_symcb_lazy call_lazy;
	const struct bcc_symbol_option *option;
	void *payload;
	int is_debug_file;
};

/* False when the callback stops. */
static bool hand_out(const struct receiver *receiver, const char *name, size_t strings,
		     const GElf_Sym *symbol)
{
	if (receiver->call)
		return receiver->call(name, symbol->st_value, symbol->st_size, receiver->payload) >=
		       0;
	return receiver->call_lazy(strings, symbol->st_name, strlen(name), symbol->st_value,
				   symbol->st_size, receiver->is_debug_file,
				   receiver->payload) >= 0;
}

static bool walk_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
		       const struct receiver *receiver)
{
	Elf_Data *data = NULL;

	while ((data = elf_getdata(section, data))) {
		size_t count = header->sh_entsize ? data->d_size / header->sh_entsize : 0;

		for (size_t i = 0; i < count && i < INT32_MAX; i++) {
			const char *name;
			GElf_Sym symbol;

			if (!gelf_getsym(data, (int)i, &symbol))
				break;
			if (!symbol.st_value || !(receiver->option->use_symbol_type &
						  1u << GELF_ST_TYPE(symbol.st_info)))
				continue;
			name = elf_strptr(elf, header->sh_link, symbol.st_name);
			if (name && *name && !hand_out(receiver, name, header->sh_link, &symbol))
				return false;
		}
	}
	return true;
}

static bool walk_tables(Elf *elf, const struct receiver *receiver)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		if (!walk_table(elf, section, &header, receiver))
			return false;
	}
	return true;
}

static bool may_be_read(const char *path)
{
	struct stat status;

	return path && access(path, R_OK) == 0 && stat(path, &status) == 0 &&
	       !S_ISDIR(status.st_mode);
}

static int walk_file(const char *path, struct receiver *receiver)
{
	static const struct bcc_symbol_option every_type = { 1, 1, 0, 65535 };
	struct elf_file file, debug_file;
	bool go_on = true;

	if (!receiver->option)
		receiver->option = &every_type;
	if (!elf_file_open(&file, path))
		return may_be_read(path) ? 0 : -1; /* not an ELF file: no symbols */
	if (receiver->option->use_debug_file &&
	    debug_file_open(&debug_file, &file, path, receiver->option->check_debug_file_crc)) {
		receiver->is_debug_file = 1;
		go_on = walk_tables(debug_file.elf, receiver);
		elf_file_close(&debug_file);
	}
	receiver->is_debug_file = 0;
	if (go_on)
		walk_tables(file.elf, receiver);
	elf_file_close(&file);
	return 0;
}

int bcc_elf_foreach_sym(const char *path, bcc_elf_symcb callback, void *option, void *payload)
{
	struct receiver receiver = { .call = callback, .option = option, .payload = payload };

	return callback ? walk_file(path, &receiver) : -1;
}

int bcc_elf_foreach_sym_lazy(const char *path, bcc_elf_symcb_lazy callback, void *option,
			     void *payload)
{
	struct receiver receiver = { .call_lazy = callback, .option = option, .payload = payload };

	return callback ? walk_file(path, &receiver) : -1;
}

int elf_file_match_name(const char *name, uint64_t start, uint64_t size_bytes, void *payload)
{
	struct wanted_name *wanted = payload;

	(void)size_bytes;
	if (strcmp(name, wanted->name) != 0)
		return 0;
	wanted->start = start;
	return -1;
}

/* The vDSO is an ELF image in this process's own memory. Its headers contain its size. */
int bcc_elf_foreach_vdso_sym(bcc_elf_symcb callback, void *payload)
{
	static const struct bcc_symbol_option every_type = { 0, 0, 0, 65535 };
	struct receiver receiver = { .call = callback, .option = &every_type, .payload = payload };
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	Elf *elf;

	if (!header || !callback || elf_version(EV_CURRENT) == EV_NONE)
		return -1;
	elf = elf_memory((char *)header,
			 header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	if (!elf)
		return -1;
	walk_tables(elf, &receiver);
	elf_end(elf);
	return 0;
}

int bcc_elf_symbol_str(const char *path, size_t section_idx, size_t str_table_idx, char *out,
		       size_t len, int debugfile)
{
	struct elf_file file, debug_file = { .fd = -1 };
	const char *name = NULL;
	size_t length;

	if (!out || !elf_file_open(&file, path))
		return -1;
	if (!debugfile)
		name = elf_strptr(file.elf, section_idx, str_table_idx);
	else if (debug_file_open(&debug_file, &file, path, 0))
		name = elf_strptr(debug_file.elf, section_idx, str_table_idx);
	if (name) {
		length = strnlen(name, len);
		memcpy(out, name, length);
		memset(out + length, 0, len - length);
	}
	elf_file_close(&debug_file);
	elf_file_close(&file);
	return name ? 0 : -1;
}

/* ---- sections, segments, kind ----------------------------------------------------- */

int bcc_elf_foreach_load_section(const char *path, bcc_elf_load_sectioncb callback, void *payload)
{
	struct elf_file file;
	size_t count = 0;
	int stopped = 0;

	if (!callback || !elf_file_open(&file, path))
		return -1;
	if (elf_getphdrnum(file.elf, &count) < 0)
		stopped = -1;
	for (size_t i = 0; i < count && i < INT32_MAX && !stopped; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(file.elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    segment.p_flags & PF_X)
			stopped = callback(segment.p_vaddr, segment.p_memsz, segment.p_offset,
					   payload) < 0;
	}
	elf_file_close(&file);
	return stopped;
}

int bcc_elf_get_text_scn_info(const char *path, uint64_t *addr, uint64_t *offset)
{
	struct elf_file file;
	GElf_Shdr header;
	bool found;

	if (!addr || !offset || !elf_file_open(&file, path))
		return -1;
	found = elf_file_section(&file, ".text", &header);
	elf_file_close(&file);
	if (!found)
		return -1;
	*addr = header.sh_addr;
	*offset = header.sh_offset;
	return 0;
}

int bcc_elf_get_type(const char *path)
{
	struct elf_file file;
	GElf_Ehdr header;
	int type;

	if (!elf_file_open(&file, path))
		return -1;
	type = gelf_getehdr(file.elf, &header) ? header.e_type : -1;
	elf_file_close(&file);
	return type;
}

int bcc_elf_is_shared_obj(const char *path)
{
	return bcc_elf_get_type(path) == ET_DYN;
}

int bcc_elf_is_exe(const char *path)
{
	return bcc_elf_get_type(path) >= 0 && access(path, X_OK) == 0;
}

int bcc_elf_is_vdso(const char *name)
{
	return name && !strcmp(name, "[vdso]");
}

int bcc_elf_get_buildid(const char *path, char *buildid)
{
	uint8_t bytes[ELF_FILE_BUILD_ID_BYTES];
	struct elf_file file;
	bool found;

	if (!buildid || !elf_file_open(&file, path))
		return -1;
	found = elf_file_build_id(&file, bytes);
	elf_file_close(&file);
	if (!found)
		return -1;
	hex_write_bytes(buildid, bytes, sizeof(bytes));
	return 0;
}
