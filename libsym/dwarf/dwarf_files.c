/* SPDX-License-Identifier: MIT */
/*
 * Everything that must happen to a file before libdw reads it:
 *
 *   dwarf_files_guard()      hides sections whose declared size is impossible or not affordable
 *   dwarf_files_end_texts()  terminates string sections, which libdw does not check
 *   dwarf_alternate_open()   opens the shared file of dwz, checked by build-id
 *
 * A section is hidden by making it SHT_NOBITS in libelf's memory; libdw then behaves as if the file
 * did not have it. The total size of all sections is charged (struct dwarf_charge).
 */
#include "libsym/dwarf/dwarf_files.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/hex.h"
#include "libsym/base/reader.h"
#include "libsym/elf/debugfile.h"
#include "libsym/limits.h"

enum {
	MOST_ID_BYTES = 64
};

/* Iterates over the sections that have bytes. */
struct walk {
	Elf *elf;
	size_t names;
	Elf_Scn *section;
	GElf_Shdr header;
	const char *name; /* "" if it has none */
};

/* Returns false if there are no sections. */
static bool walk_begin(struct walk *walk, Elf *elf)
{
	*walk = (struct walk){ .elf = elf };
	return elf && elf_kind(elf) == ELF_K_ELF && !elf_getshdrstrndx(elf, &walk->names);
}

static bool walk_next(struct walk *walk)
{
	while ((walk->section = elf_nextscn(walk->elf, walk->section)))
		if (gelf_getshdr(walk->section, &walk->header) &&
		    walk->header.sh_type != SHT_NOBITS) {
			walk->name = elf_strptr(walk->elf, walk->names, walk->header.sh_name) ?: "";
			return true;
		}
	return false;
}

/* ---- string sections ------------------------------------------------------- */

void dwarf_files_end_text(Elf_Data *data)
{
	char *text = data ? data->d_buf : NULL;

	for (size_t i = text ? data->d_size : 0; i && text[i - 1]; i--)
		text[i - 1] = '\0';
}

bool dwarf_files_end_texts(Elf *elf)
{
	struct walk walk;

	if (!walk_begin(&walk, elf))
		return false;
	while (walk_next(&walk)) {
		Elf_Data *data;

		if (strstr(walk.name, "offsets") ||
		    (!strstr(walk.name, "debug_str") && !strstr(walk.name, "debug_line_str")))
			continue;
		data = elf_getdata(walk.section, NULL);
		dwarf_files_end_text(data);
		dwarf_files_end_text(elf_rawdata(walk.section, NULL));
		/* libdw also accepts an index just past the end. */
		if (data && data->d_size)
			data->d_size--;
	}
	return true;
}

/* ---- charging ------------------------------------------------------------------ */

bool dwarf_files_charge(struct dwarf_charge *charge, uint64_t bytes)
{
	if (bytes > LIMIT_DEBUG_FILES_BYTES - charge->bytes ||
	    !budget_reserve(charge->account, bytes, charge->path))
		return false;
	charge->bytes += bytes;
	return true;
}

void dwarf_files_release(struct dwarf_charge *charge, uint64_t bytes)
{
	budget_release(charge->account, bytes);
	charge->bytes -= bytes;
}

/* ---- compressed sections ------------------------------------------------------ */

/* .zdebug_*, from before the gABI had compression: "ZLIB", the size in big-endian, the stream. */
static uint64_t old_packed_bytes(Elf_Scn *section)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t size_bytes = 0;

	if (!data || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return UINT64_MAX;
	for (int i = 4; i < 12; i++)
		size_bytes = size_bytes << 8 | ((const uint8_t *)data->d_buf)[i];
	return size_bytes;
}

/* zlib expands one byte to at most 1,032, so a section that declares more is rejected. This also
 * rejects a section that is mostly a hole. */
static bool is_plausible(const struct walk *walk, struct dwarf_charge *charge)
{
	const uint64_t most_per_byte = 1032;
	uint64_t declared = 0;
	GElf_Chdr packed;

	if (walk->header.sh_flags & SHF_COMPRESSED)
		declared = gelf_getchdr(walk->section, &packed) ? packed.ch_size : UINT64_MAX;
	else if (!strncmp(walk->name, ".zdebug_", 8))
		declared = old_packed_bytes(walk->section);
	else if (!strncmp(walk->name, ".debug_", 7))
		declared = walk->header.sh_size; /* libelf allocates this much before it reads */
	if (declared > LIMIT_DEBUG_SECTION_BYTES || declared / most_per_byte > walk->header.sh_size)
		return false;
	return dwarf_files_charge(charge, declared);
}

/* Hides the section from libdw; the other sections stay usable. */
static bool hide_section(struct walk *walk)
{
	walk->header.sh_type = SHT_NOBITS;
	walk->header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	return gelf_update_shdr(walk->section, &walk->header);
}

bool dwarf_files_guard(Elf *elf, struct dwarf_charge *charge, bool *has_debug_info_ret)
{
	struct walk walk;

	*has_debug_info_ret = false;
	if (!walk_begin(&walk, elf))
		return false;
	while (walk_next(&walk)) {
		if (is_plausible(&walk, charge))
			*has_debug_info_ret |= !strcmp(walk.name, ".debug_info") ||
					       !strcmp(walk.name, ".zdebug_info");
		else if (!hide_section(&walk))
			return false;
	}
	return true;
}

/* ---- one section --------------------------------------------------------------- */

/* Finds .debug_NAME or .zdebug_NAME; the result is in `walk`. */
static bool find_section(struct walk *walk, Elf *elf, const char *name)
{
	if (!walk_begin(walk, elf))
		return false;
	while (walk_next(walk)) {
		const char *own = walk->name;

		if (!strncmp(own, ".zdebug_", 8))
			own += 8;
		else if (!strncmp(own, ".debug_", 7))
			own += 7;
		else
			continue;
		if (!strcmp(own, name))
			return true;
	}
	return false;
}

/* Decompresses as libdw does for the sections that it searches for. */
static bool unpack_section(const struct walk *walk)
{
	if (walk->header.sh_flags & SHF_COMPRESSED)
		return elf_compress(walk->section, 0, 0) >= 0;
	if (!strncmp(walk->name, ".zdebug_", 8))
		elf_compress_gnu(walk->section, 0, 0); /* fails if it was done before */
	return true;
}

Elf_Data *dwarf_files_section(Elf *elf, const char *name)
{
	struct walk walk;

	return find_section(&walk, elf, name) && unpack_section(&walk)
		       ? elf_getdata(walk.section, NULL)
		       : NULL;
}

void *dwarf_files_extent(Elf *elf, const char *name, uint64_t offset, uint64_t size_bytes,
			 bool has_packed)
{
	Elf_Data *data;
	struct walk walk;

	if (!find_section(&walk, elf, name))
		return NULL;
	if (has_packed) {
		data = unpack_section(&walk) ? elf_getdata(walk.section, NULL) : NULL;
		return data && data->d_buf && offset <= data->d_size &&
				       size_bytes <= data->d_size - offset
			       ? (char *)data->d_buf + offset
			       : NULL;
	}
	if (offset > walk.header.sh_size || size_bytes > walk.header.sh_size - offset)
		return NULL;
	data = elf_getdata_rawchunk(elf, (int64_t)(walk.header.sh_offset + offset), size_bytes,
				    ELF_T_BYTE);
	return data ? data->d_buf : NULL;
}

/* ---- paths that a file contains ------------------------------------------------- */

const char *dwarf_files_own_path(int fd, struct buf *ret)
{
	char self[64], own[PATH_MAX];
	ssize_t bytes;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	bytes = readlink(self, own, sizeof(own));
	if (bytes <= 0 || (size_t)bytes == sizeof(own) || own[0] != '/')
		return NULL;
	return buf_append(ret, own, (size_t)bytes) ? buf_string(ret) : NULL;
}

const char *dwarf_files_path_beside(int fd, const char *name, struct buf *ret)
{
	const char *own;

	if (*name == '/')
		return buf_append_string(ret, name) ? buf_string(ret) : NULL;
	own = dwarf_files_own_path(fd, ret);
	if (!own)
		return NULL;
	ret->size_bytes = (size_t)(strrchr(own, '/') - own);
	return buf_printf(ret, "/%s", name) ? buf_string(ret) : NULL;
}

/* ---- the shared file (.gnu_debugaltlink) ----------------------------------------- */

/* The name and the build-id of the wanted file. */
struct wanted {
	const char *name;
	const uint8_t *id;
	size_t id_bytes;
};

static bool read_wanted(const struct walk *walk, struct wanted *ret)
{
	const Elf_Data *data =
		walk->header.sh_flags & SHF_COMPRESSED ? NULL : elf_rawdata(walk->section, NULL);
	struct reader reader =
		reader_over(data ? data->d_buf : NULL, data && data->d_buf ? data->d_size : 0);

	ret->name = reader_string(&reader);
	ret->id_bytes = reader_left(&reader);
	ret->id = ret->id_bytes ? (const uint8_t *)data->d_buf + reader.position : NULL;
	return reader_ok(&reader) && *ret->name && ret->id_bytes >= 2 &&
	       ret->id_bytes <= MOST_ID_BYTES;
}

void dwarf_alternate_close(struct dwarf_alternate *alternate)
{
	if (!alternate->elf)
		return;
	if (alternate->dwarf)
		dwarf_end(alternate->dwarf);
	elf_end(alternate->elf);
	close(alternate->fd);
	*alternate = (struct dwarf_alternate){ 0 };
}

static bool hide_links(Elf *elf)
{
	struct walk walk;

	if (!walk_begin(&walk, elf))
		return false;
	while (walk_next(&walk))
		if (!strcmp(walk.name, ".gnu_debugaltlink") && !hide_section(&walk))
			return false;
	return true;
}

/* A file with another build-id would give wrong names. A file that refers to a third file is not
 * followed. */
static bool try_alternate(const char *path, const struct rights *rights,
			  const struct wanted *wanted, struct dwarf_charge *charge,
			  struct dwarf_alternate *ret)
{
	struct dwarf_alternate tried = { .fd = foreign_file_open(-1, path, 0, rights, NULL) };
	bool has_debug_info;
	const void *id;

	if (tried.fd < 0)
		return false;
	tried.elf = elf_begin(tried.fd, ELF_C_READ, NULL);
	if (!tried.elf) {
		close(tried.fd);
		return false;
	}
	if (elf_kind(tried.elf) == ELF_K_ELF &&
	    dwelf_elf_gnu_build_id(tried.elf, &id) == (ssize_t)wanted->id_bytes &&
	    !memcmp(id, wanted->id, wanted->id_bytes) && hide_links(tried.elf) &&
	    dwarf_files_guard(tried.elf, charge, &has_debug_info))
		tried.dwarf = dwarf_begin_elf(tried.elf, DWARF_C_READ, NULL);
	if (!tried.dwarf) {
		dwarf_alternate_close(&tried);
		return false;
	}
	dwarf_files_end_texts(tried.elf);
	*ret = tried;
	return true;
}

static bool fetch_alternate(const struct wanted *wanted, const struct dwarf_fetch *fetch,
			    struct dwarf_charge *charge, struct dwarf_alternate *ret)
{
	const struct sym_fetch_request request = {
		.kind = SYM_FETCH_SHARED_FILE,
		.image_path = fetch->image_path,
		.build_id = wanted->id,
		.build_id_size_bytes = (uint32_t)wanted->id_bytes,
		.debug_link = wanted->name,
	};
	char *path AUTO_FREE = NULL;

	return fetch->fetch && !fetch->fetch(fetch->context, &request, &path) && path &&
	       try_alternate(path, NULL, wanted, charge, ret);
}

/* Searches the path in the file, the trees of build-ids, then the caller. */
static bool find_alternate(const struct wanted *wanted, int fd, const struct dwarf_fetch *fetch,
			   struct dwarf_charge *charge, struct dwarf_alternate *ret)
{
	char digits[2 * MOST_ID_BYTES + 1];
	struct buf text, near;
	const char *path;
	bool found;

	hex_write_bytes(digits, wanted->id, wanted->id_bytes);
	buf_init(&text, PATH_MAX);
	buf_init(&near, PATH_MAX);
	buf_printf(&near, "../%.2s/%s.debug", digits, digits + 2);
	buf_printf(&text, DEBUGFILE_DIRECTORY "/.build-id/%.2s/%s.debug", digits, digits + 2);
	path = buf_string(&text);
	found = path && try_alternate(path, NULL, wanted, charge, ret);
	for (size_t i = 0; !found && i < 2; i++) {
		buf_clear(&text);
		/* The path in the file, or the build-id tree that contains the file itself. */
		path = dwarf_files_path_beside(fd, i ? buf_string(&near) : wanted->name, &text);
		found = path && try_alternate(path, fetch->rights, wanted, charge, ret);
	}
	buf_deinit(&near);
	buf_deinit(&text);
	return found || fetch_alternate(wanted, fetch, charge, ret);
}

bool dwarf_alternate_open(Elf *elf, int fd, const struct dwarf_fetch *fetch,
			  struct dwarf_charge *charge, struct dwarf_alternate *ret)
{
	struct wanted wanted;
	struct walk walk;

	*ret = (struct dwarf_alternate){ 0 };
	if (!walk_begin(&walk, elf))
		return false;
	while (walk_next(&walk)) {
		if (strcmp(walk.name, ".gnu_debugaltlink") != 0)
			continue;
		return (read_wanted(&walk, &wanted) &&
			find_alternate(&wanted, fd, fetch, charge, ret)) ||
		       hide_links(elf);
	}
	return true;
}
