/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsym/demangle.h"
#include "libsym/dwarf_files.h"
#include "libsym/dwarf_scopes.h"
#include "libsym/dwarf_split.h"
#include "libsym/dwarf_unpack.h"
#include "libsym/format/line_program.h"
#include "libsym/limits.h"
#include "libsym/symbols.h"

struct unit {
	Dwarf_Die die;             /* has the lines */
	bool is_skeleton;          /* the functions are in `split` */
	struct dwarf_split *split; /* NULL: there is none, or the unit was not read */
	bool is_read;
	bool says_little;            /* of where its code is: .debug_aranges has the rest */
	uint64_t own_start, own_end; /* of such a one, what it says itself */
	struct dwarf_scopes scopes;
	bool has_lines; /* read by us, since some of them are of code that was thrown away */
	bool was_lined; /* it is known whether that has to be */
	struct line_program lines;
};

/* Code of a unit. Several units may tell of one function (COMDAT): GNU ld keeps that of the first.
 */
struct unit_range {
	uint64_t start, end;
	uint32_t unit;
};

struct dwarf_info {
	const struct image *image;
	struct sparse_file part; /* all bytes of an image inside another file; else none */
	pthread_mutex_t lock;    /* of everything below, and of libdw */
	Elf *elf;
	struct dwarf_unpacked unpacked; /* of it */
	Dwarf *dwarf;
	struct dwarf_alternate alternate;
	uint64_t promised_bytes; /* by packed sections */
	struct dwarf_splits splits;
	struct unit *units;
	uint32_t unit_count, unit_capacity;
	bool says_little;          /* one of them at least */
	struct unit_range *ranges; /* by start */
	size_t range_count, range_capacity;
	struct name_pool names;
};

enum {
	MAX_UNITS = 1 << 24,
	MAX_UNIT_RANGES = 1 << 24 /* of all units; a browser has some millions */
};

void dwarf_info_close(struct dwarf_info *info)
{
	if (!info)
		return;
	for (uint32_t i = 0; i < info->unit_count; i++) {
		dwarf_scopes_deinit(&info->units[i].scopes);
		line_program_deinit(&info->units[i].lines);
		dwarf_split_close(info->units[i].split);
	}
	dwarf_splits_deinit(&info->splits);
	free(info->units);
	free(info->ranges);
	name_pool_deinit(&info->names);
	if (info->dwarf)
		dwarf_end(info->dwarf);
	dwarf_alternate_close(&info->alternate);
	if (info->elf)
		elf_end(info->elf);
	dwarf_unpacked_deinit(&info->unpacked);
	sparse_file_deinit(&info->part);
	pthread_mutex_destroy(&info->lock);
	free(info);
}

/* ---- memory ------------------------------------------------------------------ */

/* libdw ends the process where it gets no memory: by its handler, which must not return, by an
 * assertion where a table grows, by lines that it puts on the stack. So it is not asked before it
 * has been seen that there is more than it takes. Neither heap nor pages are touched for that. */
static const size_t room_for_anything = (size_t)8 << 20;

/* Of a byte of .debug_info: what libdw notes of the lines and abbreviations that go with it. */
static const size_t room_per_byte = 16;

static bool has_room(uint64_t size_bytes)
{
	size_t room_bytes = room_for_anything + (size_t)(size_bytes < LIMIT_DEBUG_SECTION_BYTES
								 ? size_bytes
								 : LIMIT_DEBUG_SECTION_BYTES);
	void *room =
		mmap(NULL, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return false;
	munmap(room, room_bytes);
	return true;
}

/* ---- units ------------------------------------------------------------------- */

static bool add_range(struct dwarf_info *info, uint32_t unit, uint64_t start, uint64_t end)
{
	if (info->range_count == info->range_capacity) {
		size_t capacity = info->range_capacity ? info->range_capacity * 2 : 256;
		struct unit_range *ranges = NULL;

		if (capacity <= MAX_UNIT_RANGES)
			ranges = reallocarray(info->ranges, capacity, sizeof(*ranges));
		if (!ranges)
			return false;
		info->ranges = ranges;
		info->range_capacity = capacity;
	}
	info->ranges[info->range_count++] =
		(struct unit_range){ .start = start, .end = end, .unit = unit };
	return true;
}

/*
 * DWARF 2 has no ranges: of a unit with code in several sections it tells one of them (gcc
 * -gstrict-dwarf, with .text.unlikely) or none.
 */
static bool says_little(Dwarf_Die *die, Dwarf_Half version)
{
	return !dwarf_hasattr(die, DW_AT_ranges) &&
	       (version == 2 || !dwarf_hasattr(die, DW_AT_low_pc)) &&
	       dwarf_hasattr(die, DW_AT_stmt_list);
}

static bool add_unit(struct dwarf_info *info, Dwarf_Die *die, bool is_skeleton, Dwarf_Half version)
{
	struct unit added = { .die = *die, .is_skeleton = is_skeleton };
	Dwarf_Addr base, start, end;
	size_t first = info->range_count;
	ptrdiff_t next = 0;

	if (info->unit_count == info->unit_capacity) {
		uint32_t capacity = info->unit_capacity ? info->unit_capacity * 2 : 64;
		struct unit *units = NULL;

		if (capacity <= MAX_UNITS)
			units = reallocarray(info->units, capacity, sizeof(*units));
		if (!units)
			return false;
		info->units = units;
		info->unit_capacity = capacity;
	}
	/* What the linker threw away begins at 0. */
	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0)
		if (start && start < end && !add_range(info, info->unit_count, start, end))
			return false;
	added.says_little = says_little(die, version);
	if (info->range_count == first && !added.says_little)
		return true;
	if (info->range_count > first && added.says_little) {
		added.own_start = info->ranges[first].start;
		added.own_end = info->ranges[first].end;
	}
	info->says_little |= added.says_little;
	info->units[info->unit_count++] = added;
	return true;
}

/* Units are in the order of their offsets. UINT32_MAX: it is none that says too little. */
static uint32_t unit_at(struct dwarf_info *info, Dwarf_Off offset)
{
	uint32_t low = 0, high = info->unit_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (dwarf_dieoffset(&info->units[middle].die) < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < info->unit_count && info->units[low].says_little &&
			       dwarf_dieoffset(&info->units[low].die) == offset
		       ? low
		       : UINT32_MAX;
}

static bool add_address_ranges(struct dwarf_info *info)
{
	Dwarf_Aranges *table;
	size_t count;

	if (dwarf_getaranges(info->dwarf, &table, &count))
		return true;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Addr start;
		Dwarf_Word size_bytes;
		Dwarf_Off offset;
		uint32_t unit;

		if (dwarf_getarangeinfo(dwarf_onearange(table, i), &start, &size_bytes, &offset) ||
		    !start || !size_bytes || size_bytes > UINT64_MAX - start)
			continue;
		unit = unit_at(info, offset);
		if (unit == UINT32_MAX || (start < info->units[unit].own_end &&
					   start + size_bytes > info->units[unit].own_start))
			continue;
		if (!add_range(info, unit, start, start + size_bytes))
			return false;
	}
	return true;
}

static int by_start(const void *left, const void *right)
{
	const struct unit_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->unit < b->unit ? -1 : a->unit > b->unit;
}

static bool read_units(struct dwarf_info *info)
{
	Elf_Data *entries = dwarf_files_section(info->elf, "info");
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;

	if (!has_room(entries ? entries->d_size : 0))
		return false;
	while (!dwarf_get_units(info->dwarf, unit, &unit, &version, &type, &die, NULL)) {
		/* Before DWARF 5 libdw calls a skeleton split when it has entries of its own. */
		bool is_skeleton = (type == DW_UT_skeleton || type == DW_UT_split_compile) &&
				   dwarf_split_is_skeleton(&die);

		if (is_skeleton && !dwarf_split_keep_from_libdw(info->elf, &die))
			continue;
		if ((type == DW_UT_compile || is_skeleton) &&
		    !add_unit(info, &die, is_skeleton, version))
			return false;
	}
	if (info->says_little && !add_address_ranges(info))
		return false;
	if (info->range_count)
		qsort(info->ranges, info->range_count, sizeof(*info->ranges), by_start);
	return true;
}

/* What a skeleton has itself serves where the rest of it is not there. */
static bool read_unit(struct dwarf_info *info, struct unit *unit)
{
	if (unit->is_skeleton && !unit->split)
		unit->split = dwarf_split_open(&info->splits, &unit->die);
	return dwarf_scopes_read(unit->split ? dwarf_split_unit(unit->split) : &unit->die,
				 unit->split, &unit->scopes);
}

static struct unit *find_unit(struct dwarf_info *info, uint64_t vaddr)
{
	size_t low = 0, high = info->range_count;
	struct unit *unit;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (info->ranges[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low > 1 && info->ranges[low - 2].start == info->ranges[low - 1].start &&
	       vaddr < info->ranges[low - 2].end)
		low--;
	if (!low || vaddr >= info->ranges[low - 1].end)
		return NULL;
	unit = &info->units[info->ranges[low - 1].unit];
	if (!unit->is_read) {
		if (!has_room(dwarf_scopes_unit_bytes(&unit->die) * room_per_byte))
			return NULL;
		unit->is_read = read_unit(info, unit);
	}
	return unit;
}

/* ---- opening ----------------------------------------------------------------- */

/*
 * libelf reads a file itself, as a part is needed, but only from its first byte on and to its end:
 * of an image inside another file it gets the bytes.
 */
static struct sym_error *open_elf(struct dwarf_info *info)
{
	const struct image *image = info->image;
	struct sym_error *error;

	elf_version(EV_CURRENT);
	if (!image->file.offset && image->file.size_bytes == image->file.file_size_bytes) {
		info->elf = elf_begin(image->fd, ELF_C_READ, NULL);
		return NULL;
	}
	info->part = image_view(image);
	error = sparse_file_need(&info->part, image->path, 0, info->part.size_bytes);
	if (!error)
		info->elf = elf_memory((char *)info->part.data, info->part.size_bytes);
	return error;
}

static struct sym_error *begin_libdw(struct dwarf_info *info)
{
	if (!has_room(info->promised_bytes))
		return &sym_error_no_memory;
	info->dwarf = dwarf_begin_elf(info->elf, DWARF_C_READ, NULL);
	if (!info->dwarf)
		return NULL;
	if (info->alternate.dwarf)
		dwarf_setalt(info->dwarf, info->alternate.dwarf);
	info->splits = (struct dwarf_splits){ .elf = info->elf,
					      .fd = info->image->fd,
					      .promised_bytes = &info->promised_bytes };
	return dwarf_files_end_texts(info->elf) && !read_units(info) ? &sym_error_no_memory : NULL;
}

/* Of no unit, where there is no DWARF that can be read. */
static struct sym_error *begin(struct dwarf_info *info, const struct dwarf_fetch *fetch)
{
	struct sym_error *error;
	bool has_debug_info;

	errno = 0;
	error = open_elf(info);
	if (!error && !info->elf && errno == ENOMEM)
		error = &sym_error_no_memory;
	if (!error && info->elf)
		error = dwarf_unpack(info->elf, &info->unpacked);
	if (error || !info->elf)
		return error;
	info->promised_bytes = info->unpacked.size_bytes;
	if (!dwarf_files_guard(info->elf, &info->promised_bytes, &has_debug_info) ||
	    !has_debug_info ||
	    !dwarf_alternate_open(info->elf, info->image->fd, fetch, &info->promised_bytes,
				  &info->alternate))
		return NULL;
	return begin_libdw(info);
}

struct sym_error *dwarf_info_open(const struct image *image, const struct dwarf_fetch *fetch,
				  struct dwarf_info **ret)
{
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct sym_error *error;

	*ret = NULL;
	if (image->kind != SYM_IMAGE_ELF)
		return NULL;
	info = calloc(1, sizeof(*info));
	if (!info)
		return &sym_error_no_memory;
	pthread_mutex_init(&info->lock, NULL);
	info->image = image;
	error = begin(info, fetch);
	if (error || !info->unit_count)
		return error;
	error = sparse_file_check(&image->file, image->path);
	if (!error)
		*ret = STEAL(info);
	return error;
}

/* ---- names and places -------------------------------------------------------- */

static const char *keep(struct dwarf_info *info, const char *text)
{
	return strlen(text) <= LIMIT_NAME_BYTES ? name_pool_add(&info->names, text, strlen(text))
						: NULL;
}

static const char *text_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute found;
	const char *text =
		dwarf_attr_integrate(die, attribute, &found) ? dwarf_formstring(&found) : NULL;

	return text && *text ? text : NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute found;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &found) || dwarf_formudata(&found, &value) ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static void name_scope(struct dwarf_info *info, struct dwarf_scope *scope)
{
	const char *linkage = text_of(&scope->die, DW_AT_linkage_name);
	const char *plain = text_of(&scope->die, DW_AT_name);
	const char *shown = NULL;
	struct buf text;

	if (!linkage)
		linkage = text_of(&scope->die, DW_AT_MIPS_linkage_name);
	buf_init(&text, LIMIT_NAME_BYTES + 1);
	if (linkage && demangle(linkage, &text))
		shown = buf_string(&text);
	/* One that is not mangled is an alias for the assembler; in the source it has the other. */
	if (!shown)
		shown = plain ? plain : linkage;
	scope->name = shown ? keep(info, shown) : NULL;
	if (linkage && shown != linkage)
		scope->linkage = keep(info, linkage);
	buf_deinit(&text);
}

/* Of a file in the directory of compilation itself libdw has put that directory in front. */
static bool is_below(const char *path, const char *directory)
{
	size_t bytes = strlen(directory);

	return !strncmp(path, directory, bytes) && path[bytes] == '/';
}

/* A file name as the line table has it: relative to the directory of compilation, where it does not
 * begin with '/'; that may be relative itself ("./iconvdata", built with -ffile-prefix-map). What
 * stands for no file ("<built-in>") stays as it is. */
static const char *keep_path(struct dwarf_info *info, struct unit *unit, const char *path)
{
	const char *directory, *between, *kept;
	struct buf text;

	if (!path || *path == '/' || *path == '<')
		return path ? keep(info, path) : NULL;
	directory = text_of(&unit->die, DW_AT_comp_dir);
	if (!directory || !*directory || is_below(path, directory))
		return keep(info, path);
	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	between = directory[strlen(directory) - 1] == '/' ? "" : "/";
	kept = keep(info, buf_printf(&text, "%s%s%s", directory, between, path) ? buf_string(&text)
										: path);
	buf_deinit(&text);
	return kept;
}

static void place_call(struct dwarf_info *info, struct unit *unit, struct dwarf_scope *scope)
{
	uint32_t number = number_of(&scope->die, DW_AT_call_file);
	const char *path = NULL;
	Dwarf_Files *files;
	size_t count;

	/* DWARF 5 counts from 0; before, 0 is none. libdw has an entry 0 for both. */
	if (!dwarf_getsrcfiles(&unit->die, &files, &count) && number < count)
		path = dwarf_filesrc(files, number, NULL, NULL);
	scope->call_file = keep_path(info, unit, path);
	scope->call_line = number_of(&scope->die, DW_AT_call_line);
	scope->call_column = number_of(&scope->die, DW_AT_call_column);
}

static struct dwarf_scope *named_scope(struct dwarf_info *info, struct unit *unit, uint32_t number)
{
	struct dwarf_scope *scope = &unit->scopes.items[number];

	if (!scope->is_named && has_room(0)) {
		name_scope(info, scope);
		if (scope->is_inlined)
			place_call(info, unit, scope);
		scope->is_named = true;
	}
	return scope;
}

/* libdw has all lines of a unit in one table: those of code that the linker threw away, which begin
 * at 0, would stand among those of the code that is there. */
static void read_lines(struct dwarf_info *info, struct unit *unit)
{
	Elf_Data *section = dwarf_files_section(info->elf, "line");
	Dwarf_Attribute attribute;
	Dwarf_Lines *lines;
	Dwarf_Word offset;
	Dwarf_Addr first;
	size_t count;

	unit->was_lined = true;
	if (!section || dwarf_getsrclines(&unit->die, &lines, &count) || !count ||
	    dwarf_lineaddr(dwarf_onesrcline(lines, 0), &first) || first ||
	    !dwarf_attr(&unit->die, DW_AT_stmt_list, &attribute) ||
	    dwarf_formudata(&attribute, &offset))
		return;
	/* Rather no line than another's. */
	unit->has_lines = true;
	line_program_read(image_reader(info->image, section->d_buf, section->d_size), offset,
			  &unit->lines);
}

static bool find_own_line(struct dwarf_info *info, struct unit *unit, uint64_t vaddr,
			  struct dwarf_line *ret)
{
	const struct line_row *row = line_program_find(&unit->lines, vaddr);
	Dwarf_Files *files;
	size_t count;

	if (!row || dwarf_getsrcfiles(&unit->die, &files, &count) || row->file >= count)
		return false;
	ret->file = keep_path(info, unit, dwarf_filesrc(files, row->file, NULL, NULL));
	ret->line = row->line;
	ret->column = row->column;
	return ret->file != NULL;
}

static bool find_line(struct dwarf_info *info, struct unit *unit, uint64_t vaddr,
		      struct dwarf_line *ret)
{
	int number = 0, column = 0;
	Dwarf_Line *line;

	if (!unit->was_lined)
		read_lines(info, unit);
	if (unit->has_lines)
		return find_own_line(info, unit, vaddr, ret);
	line = dwarf_getsrc_die(&unit->die, vaddr);
	if (!line)
		return false;
	ret->file = keep_path(info, unit, dwarf_linesrc(line, NULL, NULL));
	if (!dwarf_lineno(line, &number) && number > 0)
		ret->line = (uint32_t)number;
	if (!dwarf_linecol(line, &column) && column > 0)
		ret->column = (uint32_t)column;
	return ret->file != NULL;
}

/* Of a function that the compiler split: the part that the code is in. */
static void take_part(const struct dwarf_scopes *scopes, uint32_t number, uint64_t vaddr,
		      struct dwarf_place *ret)
{
	for (uint32_t i = 0; i < scopes->range_count && scopes->ranges[i].start <= vaddr; i++)
		if (scopes->ranges[i].scope == number && vaddr < scopes->ranges[i].end) {
			ret->start = scopes->ranges[i].start;
			ret->size_bytes = scopes->ranges[i].end - scopes->ranges[i].start;
		}
}

static bool find_scopes(struct dwarf_info *info, struct unit *unit, uint64_t vaddr,
			struct dwarf_place *ret, struct sym_inlined *inlined, size_t inlined_max,
			size_t *inlined_count_ret)
{
	uint32_t number = dwarf_scopes_find(&unit->scopes, vaddr);

	while (number != DWARF_SCOPE_NONE) {
		const struct dwarf_scope *scope = named_scope(info, unit, number);

		if (!scope->is_inlined) {
			take_part(&unit->scopes, number, vaddr, ret);
			ret->name = scope->name;
			ret->linkage_name = scope->linkage;
			return true;
		}
		if (*inlined_count_ret < inlined_max)
			inlined[(*inlined_count_ret)++] = (struct sym_inlined){
				.name = scope->name ? scope->name : "",
				.linkage_name = scope->linkage,
				.call_file = scope->call_file,
				.call_line = scope->call_line,
				.call_column = scope->call_column,
			};
		number = scope->parent;
	}
	return false;
}

bool dwarf_info_find(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
		     struct sym_inlined *inlined, size_t inlined_max, size_t *inlined_count_ret)
{
	struct unit *unit;
	bool found = false;

	*ret = (struct dwarf_place){ 0 };
	*inlined_count_ret = 0;
	pthread_mutex_lock(&info->lock);
	unit = find_unit(info, vaddr);
	if (unit) {
		found = find_line(info, unit, vaddr, &ret->line);
		found |= find_scopes(info, unit, vaddr, ret, inlined, inlined_max,
				     inlined_count_ret);
	}
	pthread_mutex_unlock(&info->lock);
	return found;
}
