/* SPDX-License-Identifier: MIT */
/*
 * Opens the split part of one unit:
 *
 *   skeleton in the file --(id)--> .dwp: index of the package -> parts of its sections
 *                        --(path)--> .dwo: whole sections
 *
 * The parts become the sections of an ELF file in memory (struct memory_file), whose only unit is
 * the one with the id. .debug_addr and .debug_ranges come from the file with the skeleton, starting
 * where the skeleton's bases are. libdw reads that file; it never opens one
 * (dwarf_split_hide_from_libdw()). Every file is checked for changes after it was read.
 */
#include "libsym/dwarf/dwarf_split.h"

#include <dwarf.h>
#include <elf.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/reader.h"
#include "libsym/dwarf/dwarf_files.h"
#include "libsym/dwarf/dwarf_unpack.h"
#include "libsym/file/sparse_file.h"
#include "libsym/format/elf/dwarf_package.h"

/* ---- a split file ------------------------------------------------------------------------- */

struct dwarf_split_file {
	int fd;                   /* -1: everything has been read */
	struct sparse_file stamp; /* detects changes of the file; nothing is read through it */
	Elf *elf;
	struct dwarf_unpacked unpacked; /* used by `elf` */
	bool has_packed;                /* had compressed sections when it was opened */
	struct dwarf_charge *charge;    /* charged for its sections */
	uint64_t declared_bytes;
};

static void close_split_file(struct dwarf_split_file *file)
{
	if (!file)
		return;
	if (file->elf)
		elf_end(file->elf);
	dwarf_unpacked_deinit(&file->unpacked);
	dwarf_files_release(file->charge, file->declared_bytes);
	sparse_file_deinit(&file->stamp);
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

DEFINE_GUARD(split_file, struct dwarf_split_file *, close_split_file)
#define AUTO_SPLIT_FILE GUARDED(split_file)

static bool is_ok(struct sym_error *error)
{
	sym_error_destroy(error);
	return !error;
}

/* libelf reads the file (ELF_C_READ); it does not map it. */
static struct dwarf_split_file *open_split_file(const struct dwarf_splits *splits, const char *path)
{
	struct dwarf_split_file *file AUTO_SPLIT_FILE = calloc(1, sizeof(*file));
	struct dwarf_charge *charge = splits->charge;
	const uint64_t before_bytes = charge->bytes;
	bool has_debug_info;

	if (!file)
		return NULL;
	file->charge = charge;
	file->fd = path ? foreign_file_open(-1, path, 0, splits->rights, NULL) : -1;
	if (file->fd < 0 ||
	    !is_ok(sparse_file_init(&file->stamp, file->fd, path, 0, SPARSE_FILE_TO_END)))
		return NULL;
	file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
	if (!file->elf || !is_ok(dwarf_unpack(file->elf, charge, &file->unpacked)))
		return NULL;
	file->declared_bytes = charge->bytes - before_bytes;
	if (!dwarf_files_guard(file->elf, charge, &has_debug_info))
		return NULL;
	file->declared_bytes = charge->bytes - before_bytes;
	file->has_packed = file->declared_bytes != 0;
	return STEAL(file);
}

/* Call when everything needed has been read. */
static void close_descriptor(struct dwarf_split_file *file)
{
	elf_cntl(file->elf, ELF_C_FDDONE);
	close(file->fd);
	file->fd = -1;
}

/* ---- sections of one unit ----------------------------------------------------------------- */

enum part {
	PART_INFO,
	PART_ABBREV,
	PART_STR,
	PART_STR_OFFSETS,
	PART_RNGLISTS,
	SPLIT_PARTS,
	PART_ADDR = SPLIT_PARTS, /* this and the next: of the file with the skeleton */
	PART_RANGES,
	PARTS
};

/* Borrowed bytes; NULL: none. */
struct bytes {
	void *data;
	size_t size_bytes;
};

static struct bytes bytes_of(const Elf_Data *data)
{
	return data && data->d_buf ? (struct bytes){ data->d_buf, data->d_size }
				   : (struct bytes){ 0 };
}

/* The bytes from `offset` on. */
static struct bytes bytes_from(struct bytes bytes, uint64_t offset)
{
	if (offset > bytes.size_bytes || !bytes.data)
		return (struct bytes){ 0 };
	return (struct bytes){ (char *)bytes.data + offset, bytes.size_bytes - offset };
}

static const char *const split_sections[SPLIT_PARTS] = {
	[PART_INFO] = "info.dwo",         [PART_ABBREV] = "abbrev.dwo",
	[PART_STR] = "str.dwo",           [PART_STR_OFFSETS] = "str_offsets.dwo",
	[PART_RNGLISTS] = "rnglists.dwo",
};

/* Without the last NUL: libdw (0.188) accepts an index just past the end. */
static struct bytes read_names(Elf *elf)
{
	Elf_Data *data = dwarf_files_section(elf, split_sections[PART_STR]);
	struct bytes names = bytes_of(data);

	dwarf_files_end_text(data);
	names.size_bytes -= names.size_bytes > 0;
	return names;
}

static void read_all(Elf *elf, struct bytes parts[SPLIT_PARTS])
{
	for (size_t i = 0; i < SPLIT_PARTS; i++)
		parts[i] = i == PART_STR ? read_names(elf)
					 : bytes_of(dwarf_files_section(elf, split_sections[i]));
}

/* From a package: the extents of one unit, but all names. */
static bool read_extents(const struct dwarf_split_file *package, uint64_t unit_id,
			 struct bytes parts[SPLIT_PARTS])
{
	static const enum part places[DWARF_PACKAGE_PARTS] = {
		[DWARF_PACKAGE_INFO] = PART_INFO,
		[DWARF_PACKAGE_ABBREV] = PART_ABBREV,
		[DWARF_PACKAGE_STR_OFFSETS] = PART_STR_OFFSETS,
		[DWARF_PACKAGE_RNGLISTS] = PART_RNGLISTS,
	};
	struct dwarf_package_extent extents[DWARF_PACKAGE_PARTS];
	struct bytes index = bytes_of(dwarf_files_section(package->elf, "cu_index"));

	if (!dwarf_package_find(index.data, index.size_bytes, unit_id, extents))
		return false;
	for (size_t i = 0; i < DWARF_PACKAGE_PARTS; i++) {
		void *data = extents[i].size_bytes
				     ? dwarf_files_extent(package->elf, split_sections[places[i]],
							  extents[i].offset, extents[i].size_bytes,
							  package->has_packed)
				     : NULL;

		if (data)
			parts[places[i]] = (struct bytes){ data, extents[i].size_bytes };
	}
	parts[PART_STR] = read_names(package->elf);
	return true;
}

/* ---- a file in memory for libdw ------------------------------------------------------------- */

static const char section_names[] = "\0.debug_info\0.debug_abbrev\0.debug_str\0.debug_str_offsets\0"
				    ".debug_rnglists\0.debug_addr\0.debug_ranges\0.shstrtab";

/* Headers only: libelf gets the bytes of the sections from descriptors that are set below. */
struct memory_file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[1 + PARTS + 1];
	char names[sizeof(section_names)];
};

static void write_headers(struct memory_file *file)
{
	const char *name = section_names + 1;

	file->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(struct memory_file, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 1 + PARTS + 1,
		.e_shstrndx = 1 + PARTS,
	};
	memcpy(file->names, section_names, sizeof(section_names));
	for (size_t i = 1; i <= PARTS + 1; i++) {
		file->sections[i] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)(name - section_names),
			.sh_type = i <= PARTS ? SHT_PROGBITS : SHT_STRTAB,
			.sh_offset = offsetof(struct memory_file, names),
			.sh_size = i <= PARTS ? 0 : sizeof(section_names),
			.sh_addralign = 1,
		};
		name += strlen(name) + 1;
	}
}

/* libelf returns the same Elf_Data for a section each time, so it can be changed here. */
static bool set_parts(Elf *elf, const struct bytes parts[PARTS])
{
	for (size_t i = 0; i < PARTS; i++) {
		Elf_Scn *section = elf_getscn(elf, i + 1);
		Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;

		if (!data)
			return false;
		data->d_buf = parts[i].data;
		data->d_size = parts[i].size_bytes;
	}
	return true;
}

struct dwarf_split {
	struct dwarf_split_file *own; /* a .dwo; NULL: the unit is in the package */
	struct memory_file memory;
	Elf *elf; /* over `memory` */
	Dwarf *dwarf;
	Dwarf_Die unit;
	uint64_t base;       /* base of ranges */
	struct bytes ranges; /* before DWARF 5 */
	struct bytes lists;  /* since DWARF 5 */
	uint16_t version;
	uint8_t address_bytes, offset_bytes;
};

void dwarf_split_close(struct dwarf_split *split)
{
	if (!split)
		return;
	if (split->dwarf)
		dwarf_end(split->dwarf);
	if (split->elf)
		elf_end(split->elf);
	close_split_file(split->own);
	free(split);
}

DEFINE_GUARD(dwarf_split, struct dwarf_split *, dwarf_split_close)
#define AUTO_DWARF_SPLIT GUARDED(dwarf_split)

Dwarf_Die *dwarf_split_unit(struct dwarf_split *split)
{
	return &split->unit;
}

static bool begin_libdw(struct dwarf_split *split, const struct bytes parts[PARTS])
{
	write_headers(&split->memory);
	split->elf = elf_memory((char *)&split->memory, sizeof(split->memory));
	if (!split->elf || !set_parts(split->elf, parts))
		return false;
	split->dwarf = dwarf_begin_elf(split->elf, DWARF_C_READ, NULL);
	return split->dwarf != NULL;
}

/* Finds the unit with the id; a .dwo made with -flto can contain several. */
static bool find_unit(struct dwarf_split *split, uint64_t unit_id)
{
	Dwarf_CU *unit = NULL;
	uint8_t type;
	uint64_t id;

	while (!dwarf_get_units(split->dwarf, unit, &unit, &split->version, &type, &split->unit,
				NULL))
		if (type == DW_UT_split_compile &&
		    !dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &id, &split->address_bytes,
				   &split->offset_bytes) &&
		    id == unit_id)
			return true;
	return false;
}

/* ---- skeletons ------------------------------------------------------------------------------ */

/* Finds an attribute of DWARF 5, or its earlier form (0: none). */
static bool has_attribute(Dwarf_Die *die, unsigned int first, unsigned int second,
			  Dwarf_Attribute *ret)
{
	return dwarf_attr(die, first, ret) || (second && dwarf_attr(die, second, ret));
}

static const char *text_of(Dwarf_Die *die, unsigned int first, unsigned int second)
{
	Dwarf_Attribute found;

	return has_attribute(die, first, second, &found) ? dwarf_formstring(&found) : NULL;
}

static uint64_t number_of(Dwarf_Die *die, unsigned int first, unsigned int second)
{
	Dwarf_Attribute found;
	Dwarf_Word number;

	return has_attribute(die, first, second, &found) && !dwarf_formudata(&found, &number)
		       ? number
		       : 0;
}

bool dwarf_split_is_skeleton(Dwarf_Die *unit)
{
	return dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}

/* Does this string start inside a section of the file? libdw (0.188) does not check. */
static bool is_inside(Elf *elf, const char *text)
{
	static const char *const sections[] = { "str", "info", "line_str" };

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct bytes bytes = bytes_of(dwarf_files_section(elf, sections[i]));
		uintptr_t begin = (uintptr_t)bytes.data;

		if (bytes.data && (uintptr_t)text - begin < bytes.size_bytes)
			return true;
	}
	return false;
}

/* libdw searches once, under this name, and remembers the result. Its strings are our own copies.
 * With an empty name it opens only the directory. */
bool dwarf_split_hide_from_libdw(Elf *elf, Dwarf_Die *skeleton)
{
	char *name = (char *)text_of(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name), first;
	Dwarf_Die none;

	if (!name)
		return true;
	if (!is_inside(elf, name))
		return false;
	first = *name;
	*name = '\0';
	dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &none, NULL, NULL, NULL);
	*name = first;
	return true;
}

/* The parts of a unit that are in the file with its skeleton. */
static void read_skeleton_parts(const struct dwarf_splits *splits, Dwarf_Die *skeleton,
				struct dwarf_split *split, struct bytes parts[PARTS])
{
	Dwarf_Addr base;

	parts[PART_ADDR] = bytes_from(bytes_of(dwarf_files_section(splits->elf, "addr")),
				      number_of(skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base));
	parts[PART_RANGES] = bytes_from(bytes_of(dwarf_files_section(splits->elf, "ranges")),
					number_of(skeleton, DW_AT_GNU_ranges_base, 0));
	split->ranges = parts[PART_RANGES];
	if (!dwarf_lowpc(skeleton, &base))
		split->base = base;
}

/*
 * ---- finding the split file -------------------------------------------------------------------
 */

void dwarf_splits_deinit(struct dwarf_splits *splits)
{
	close_split_file(splits->package);
	*splits = (struct dwarf_splits){ 0 };
}

/* FILE.dwp, or the same for FILE without ".debug". */
static void find_package(struct dwarf_splits *splits)
{
	static const char debug[] = ".debug";
	struct buf path;
	size_t bytes;

	buf_init(&path, PATH_MAX);
	if (dwarf_files_own_path(splits->fd, &path)) {
		bytes = path.size_bytes;
		buf_append_string(&path, ".dwp");
		splits->package = open_split_file(splits, buf_string(&path));
		if (!splits->package && bytes >= sizeof(debug) &&
		    !strncmp(path.data + bytes - strlen(debug), debug, strlen(debug))) {
			path.size_bytes = bytes - strlen(debug);
			buf_append_string(&path, ".dwp");
			splits->package = open_split_file(splits, buf_string(&path));
		}
	}
	buf_deinit(&path);
	splits->has_looked = true;
}

/* Tries the sections of a file. Leaves `split` unchanged if they do not contain the unit. */
static bool try_parts(struct dwarf_split *split, struct bytes parts[PARTS], uint64_t unit_id,
		      const struct dwarf_split_file *file)
{
	split->lists = parts[PART_RNGLISTS];
	if (parts[PART_INFO].data && begin_libdw(split, parts) && find_unit(split, unit_id) &&
	    is_ok(sparse_file_check(&file->stamp, "dwo")))
		return true;
	if (split->dwarf)
		dwarf_end(split->dwarf);
	if (split->elf)
		elf_end(split->elf);
	split->dwarf = NULL;
	split->elf = NULL;
	return false;
}

static bool try_package(struct dwarf_splits *splits, struct dwarf_split *split,
			struct bytes parts[PARTS], uint64_t unit_id)
{
	if (!splits->has_looked)
		find_package(splits);
	return splits->package && read_extents(splits->package, unit_id, parts) &&
	       try_parts(split, parts, unit_id, splits->package);
}

static bool try_file(struct dwarf_splits *splits, struct dwarf_split *split,
		     struct bytes parts[PARTS], uint64_t unit_id, const char *path)
{
	struct dwarf_split_file *file AUTO_SPLIT_FILE = open_split_file(splits, path);

	if (!file)
		return false;
	read_all(file->elf, parts);
	if (!try_parts(split, parts, unit_id, file))
		return false;
	close_descriptor(file);
	split->own = STEAL(file);
	return true;
}

/* Beside the file with the skeleton, or in the compilation directory. */
static bool try_files(struct dwarf_splits *splits, struct dwarf_split *split,
		      struct bytes parts[PARTS], uint64_t unit_id, Dwarf_Die *skeleton)
{
	const char *name = text_of(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	const char *directory = text_of(skeleton, DW_AT_comp_dir, 0);
	struct buf text, beside;
	bool found;

	if (!name || !*name)
		return false;
	buf_init(&text, PATH_MAX);
	buf_init(&beside, PATH_MAX);
	found = try_file(splits, split, parts, unit_id,
			 dwarf_files_path_beside(splits->fd, name, &text));
	buf_clear(&text);
	if (!found && directory && *name != '/' && buf_printf(&text, "%s/%s", directory, name))
		found = try_file(splits, split, parts, unit_id,
				 dwarf_files_path_beside(splits->fd, buf_string(&text), &beside));
	buf_deinit(&text);
	buf_deinit(&beside);
	return found;
}

/* All code here assumes this; other files are not searched for split units. */
static bool is_little_endian(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL);

	return ident && ident[EI_DATA] == ELFDATA2LSB;
}

struct dwarf_split *dwarf_split_open(struct dwarf_splits *splits, Dwarf_Die *skeleton)
{
	struct dwarf_split *split AUTO_DWARF_SPLIT = calloc(1, sizeof(*split));
	struct bytes parts[PARTS] = { 0 };
	uint64_t unit_id;

	if (!split || !is_little_endian(splits->elf) ||
	    dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &unit_id, NULL, NULL))
		return NULL;
	read_skeleton_parts(splits, skeleton, split, parts);
	return try_package(splits, split, parts, unit_id) ||
			       try_files(splits, split, parts, unit_id, skeleton)
		       ? STEAL(split)
		       : NULL;
}

/*
 * ---- ranges -----------------------------------------------------------------------------------
 */

struct dwarf_range_walk dwarf_range_walk_over(const struct dwarf_split *split, Dwarf_Die *die)
{
	return (struct dwarf_range_walk){ .split = split, .die = die };
}

/* The start of the list with an index; 0 if it cannot be read. The table of lists follows the
 * header; its offsets count from the table. */
static uint64_t find_list(const struct dwarf_split *split, uint64_t index)
{
	uint64_t table = split->offset_bytes == 8 ? 20 : 12, offset;
	struct reader reader = reader_over(split->lists.data, split->lists.size_bytes);

	if (index > split->lists.size_bytes)
		return 0;
	reader_seek(&reader, table + index * split->offset_bytes);
	offset = split->offset_bytes == 8 ? reader_u64(&reader) : reader_u32(&reader);
	return reader_ok(&reader) && offset <= split->lists.size_bytes ? table + offset : 0;
}

/*
 * Before DWARF 5: pairs of addresses. A pair that starts with the highest address sets a new base.
 */
static bool next_pair(struct dwarf_range_walk *walk, uint64_t *start_ret, uint64_t *end_ret)
{
	const struct dwarf_split *split = walk->split;
	struct reader reader = reader_over(split->ranges.data, split->ranges.size_bytes);
	bool is_wide = split->address_bytes == 8;
	uint64_t highest = is_wide ? UINT64_MAX : UINT32_MAX, start, end;

	reader_seek(&reader, (size_t)walk->next);
	for (;;) {
		start = is_wide ? reader_u64(&reader) : reader_u32(&reader);
		end = is_wide ? reader_u64(&reader) : reader_u32(&reader);
		if (!reader_ok(&reader) || (!start && !end))
			return false;
		if (start != highest)
			break;
		walk->base = end;
	}
	walk->next = (ptrdiff_t)reader.position;
	*start_ret = walk->base + start;
	*end_ret = walk->base + end;
	return true;
}

/* Starts at a list of a split unit. Returns false if there is none that can be read. */
static bool begin_list(struct dwarf_range_walk *walk, Dwarf_Attribute *ranges)
{
	Dwarf_Word number;
	uint64_t offset;

	if (dwarf_formudata(ranges, &number))
		return false;
	offset = ranges->form == DW_FORM_rnglistx ? find_list(walk->split, number) : number;
	if (offset > PTRDIFF_MAX)
		return false;
	walk->base = walk->split->base;
	walk->next = (ptrdiff_t)offset;
	/* libdw uses 0 for the start of a walk, and 1 for its end. */
	return walk->split->version < 5 || offset > 1;
}

/* The next range of such a list, or of what libdw reads. */
static bool next_range(struct dwarf_range_walk *walk, uint64_t *start_ret, uint64_t *end_ret)
{
	Dwarf_Addr start, end;

	if (walk->is_list && walk->split->version < 5)
		return next_pair(walk, start_ret, end_ret);
	walk->next = dwarf_ranges(walk->die, walk->next, &walk->base, &start, &end);
	if (walk->next <= 0)
		return false;
	*start_ret = start;
	*end_ret = end;
	return true;
}

bool dwarf_range_walk_next(struct dwarf_range_walk *walk, uint64_t *start_ret, uint64_t *end_ret)
{
	Dwarf_Attribute ranges;

	if (!walk->has_begun) {
		walk->has_begun = true;
		walk->is_list = walk->split && dwarf_attr(walk->die, DW_AT_ranges, &ranges);
		if (walk->is_list && !begin_list(walk, &ranges))
			return false;
	}
	return next_range(walk, start_ret, end_ret);
}
