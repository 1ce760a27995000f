/* SPDX-License-Identifier: MIT */
/*
 * Answers "which function and line is at this vaddr?" from DWARF.
 *
 *   dwarf_info_open()   prepares the file for libdw (dwarf_files.h, dwarf_unpack.h), lists the
 * units and the ranges of their code (read_units()) dwarf_info_find()   finds the unit by its
 * ranges; on first use reads the unit's functions (dwarf_scopes.h) and lines; answers from both
 *
 * A unit can be split (dwarf_split.h): then its functions are in another file, its lines here.
 * Names are made when a scope is first part of an answer (dwarf_names.h).
 *
 * libdw ends the process if it runs out of memory. So it runs only if there is enough memory left
 * (has_room()), or, if the caller asked for it, in a child process (dwarf_worker.h):
 * find_in_process() and find_in_child() give the same answers. What libdw may cost is bounded by
 * dwarf_cost.h.
 */
#include "libsym/dwarf/dwarf_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/dwarf/dwarf_cost.h"
#include "libsym/dwarf/dwarf_files.h"
#include "libsym/dwarf/dwarf_names.h"
#include "libsym/dwarf/dwarf_scopes.h"
#include "libsym/dwarf/dwarf_split.h"
#include "libsym/dwarf/dwarf_unpack.h"
#include "libsym/dwarf/dwarf_worker.h"
#include "libsym/format/elf/line_program.h"
#include "libsym/limits.h"
#include "libsym/symbols/symbols.h"

struct unit {
	Dwarf_Die die;             /* has the lines */
	bool is_skeleton;          /* the functions are in `split` */
	struct dwarf_split *split; /* NULL: there is none, or the unit was not read */
	bool is_read;
	/* its own ranges are incomplete; .debug_aranges has the rest */
	bool has_partial_ranges;
	uint64_t own_start, own_end; /* for such a unit, its own range */
	struct dwarf_scopes scopes;
	bool has_lines; /* they were read */
	struct line_program lines;
};

/*
 * Code of a unit. Several units may contain one function (COMDAT); GNU ld keeps that of the first.
 */
struct unit_range {
	uint64_t start, end;
	uint32_t unit;
};

struct dwarf_info {
	const struct object_file *object;
	struct sparse_file part; /* all bytes of an object inside another file; else unused */
	pthread_mutex_t lock;    /* protects everything below, and libdw */
	Elf *elf;
	struct dwarf_unpacked unpacked; /* used by `elf` */
	Dwarf *dwarf;
	struct dwarf_alternate alternate;
	struct dwarf_cost cost;
	struct dwarf_splits splits;
	struct unit *units;
	uint32_t unit_count;
	size_t unit_capacity;
	bool has_partial_ranges;   /* at least one unit has them */
	struct unit_range *ranges; /* ascending by start */
	size_t range_count, range_capacity;
	struct name_pool names;
	bool was_short; /* memory ran out; libdw keeps partial results as if complete */
	/* libdw runs in a child; what follows is used, and of the above only what does not need
	 * libdw */
	bool forks;
	struct dwarf_worker worker;
	unsigned int failures; /* of the child */
	bool has_no_units;
	struct buf text;       /* of its last answer */
	struct text_set texts; /* strings of its answers */
};

enum {
	MAX_FAILURES = 16, /* of a child; each costs a fork() */
	MAX_UNITS = 1 << 24,
	MAX_UNIT_RANGES = 1 << 24 /* in total; a browser has some millions */
};

void dwarf_info_close(struct dwarf_info *info)
{
	if (!info)
		return;
	dwarf_cost_end_child(&info->cost, dwarf_worker_stop(&info->worker));
	text_set_deinit(&info->texts);
	buf_deinit(&info->text);
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
	dwarf_files_release(&info->cost.charge, info->cost.charge.bytes);
	pthread_mutex_destroy(&info->lock);
	free(info);
}

/* ---- memory ------------------------------------------------------------------ */

/*
 * libdw ends the process if it runs out of memory: by its handler, which must not return; by an
 * assertion where a table grows; by lines that it puts on the stack. So enough free memory is
 * verified first, without touching heap or pages.
 */
static const size_t room_for_anything = (size_t)8 << 20;

/* Per byte of .debug_info: libdw's records of its lines and abbreviations. */
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
	if (info->range_count >= MAX_UNIT_RANGES ||
	    !grow_items((void **)&info->ranges, &info->range_capacity, info->range_count,
			sizeof(*info->ranges)))
		return false;
	info->ranges[info->range_count++] =
		(struct unit_range){ .start = start, .end = end, .unit = unit };
	return true;
}

/* DWARF 2 has no ranges: a unit with code in several sections has one of them (gcc -gstrict-dwarf,
 * with .text.unlikely) or none. */
static bool has_partial_ranges(Dwarf_Die *die, Dwarf_Half version)
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

	if (info->unit_count >= MAX_UNITS ||
	    !grow_items((void **)&info->units, &info->unit_capacity, info->unit_count,
			sizeof(*info->units)))
		return false;
	/* Code that the linker removed starts at 0. */
	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0)
		if (start && start < end && !add_range(info, info->unit_count, start, end))
			return false;
	added.has_partial_ranges = has_partial_ranges(die, version);
	if (info->range_count == first && !added.has_partial_ranges)
		return true;
	if (info->range_count > first && added.has_partial_ranges) {
		added.own_start = info->ranges[first].start;
		added.own_end = info->ranges[first].end;
	}
	info->has_partial_ranges |= added.has_partial_ranges;
	info->units[info->unit_count++] = added;
	return true;
}

/* Units are in the order of their offsets. UINT32_MAX: no unit with partial ranges is there. */
static uint32_t find_unit_at_offset(struct dwarf_info *info, Dwarf_Off offset)
{
	uint32_t low = (uint32_t)ASCENDING_COUNT(info->unit_count, i,
						 dwarf_dieoffset(&info->units[i].die) < offset);

	return low < info->unit_count && info->units[low].has_partial_ranges &&
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
		unit = find_unit_at_offset(info, offset);
		if (unit == UINT32_MAX || (start < info->units[unit].own_end &&
					   start + size_bytes > info->units[unit].own_start))
			continue;
		if (!add_range(info, unit, start, start + size_bytes))
			return false;
	}
	return true;
}

static int compare_ranges(const void *left, const void *right)
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
	if (!dwarf_cost_may_abbreviate(&info->cost, info->elf))
		return true;
	while (!dwarf_get_units(info->dwarf, unit, &unit, &version, &type, &die, NULL)) {
		/*
		 * Before DWARF 5, libdw reports a skeleton with entries of its own as a split unit.
		 */
		bool is_skeleton = (type == DW_UT_skeleton || type == DW_UT_split_compile) &&
				   dwarf_split_is_skeleton(&die);

		if (!dwarf_cost_charge_unit(&info->cost))
			break;
		if (is_skeleton && !dwarf_split_hide_from_libdw(info->elf, &die))
			continue;
		if ((type == DW_UT_compile || is_skeleton) &&
		    !add_unit(info, &die, is_skeleton, version))
			return false;
	}
	if (info->has_partial_ranges && !add_address_ranges(info))
		return false;
	if (info->range_count)
		qsort(info->ranges, info->range_count, sizeof(*info->ranges), compare_ranges);
	return true;
}

/* True for values of errno that libelf and libdw leave when memory ran out or a read failed. */
static bool is_lack(int errno_value)
{
	return errno_value == ENOMEM || errno_value == EIO;
}

/* If its split part is missing, the skeleton alone is used. */
static bool read_unit(struct dwarf_info *info, struct unit *unit)
{
	if (unit->is_skeleton && !unit->split) {
		unit->split = dwarf_split_open(&info->splits, &unit->die);
		if (!unit->split && is_lack(errno))
			return false;
	}
	return dwarf_scopes_read(unit->split ? dwarf_split_unit(unit->split) : &unit->die,
				 unit->split, &unit->scopes);
}

static struct unit *find_unit(struct dwarf_info *info, uint64_t vaddr)
{
	size_t low = ascending_items_up_to(info->ranges, info->range_count, sizeof(*info->ranges),
					   vaddr);
	struct unit *unit;

	while (low > 1 && info->ranges[low - 2].start == info->ranges[low - 1].start &&
	       vaddr < info->ranges[low - 2].end)
		low--;
	if (!low || vaddr >= info->ranges[low - 1].end)
		return NULL;
	unit = &info->units[info->ranges[low - 1].unit];
	if (!unit->is_read) {
		uint64_t unit_bytes = dwarf_scopes_unit_bytes(&unit->die);

		if (!dwarf_cost_may_read(&info->cost, unit_bytes, room_per_byte) ||
		    !has_room(unit_bytes * room_per_byte))
			return NULL;
		unit->is_read = read_unit(info, unit);
	}
	return unit;
}

/* ---- lines and scopes ---------------------------------------------------------- */

static struct dwarf_scope *named_scope(struct dwarf_info *info, struct unit *unit, uint32_t number)
{
	struct dwarf_scope *scope = &unit->scopes.items[number];

	if (!scope->is_named && has_room(0)) {
		dwarf_names_scope(&info->names, &unit->die, scope);
		scope->is_named = true;
	}
	return scope;
}

/* libdw keeps the lines of removed code, which start at 0 and would mix with those of existing
 * code. */
static void read_lines(struct dwarf_info *info, struct unit *unit)
{
	Elf_Data *section = dwarf_files_section(info->elf, "line");
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	struct reader bytes;

	unit->has_lines = true;
	if (!section || !dwarf_attr(&unit->die, DW_AT_stmt_list, &attribute) ||
	    dwarf_formudata(&attribute, &offset))
		return;
	bytes = object_file_reader(info->object, section->d_buf, section->d_size);
	if (dwarf_cost_may_line(&info->cost, offset, bytes))
		line_program_read(bytes, offset, &unit->lines);
}

static bool find_line(struct dwarf_info *info, struct unit *unit, uint64_t vaddr,
		      struct dwarf_line *ret)
{
	const struct line_row *row;
	Dwarf_Files *files;
	size_t count;

	if (!unit->has_lines)
		read_lines(info, unit);
	row = line_program_find(&unit->lines, vaddr);
	if (!row || dwarf_getsrcfiles(&unit->die, &files, &count) || row->file >= count)
		return false;
	ret->file = dwarf_names_path(&info->names, &unit->die,
				     dwarf_filesrc(files, row->file, NULL, NULL));
	ret->line = row->line;
	ret->column = row->column;
	return ret->file != NULL;
}

/* Sets the range to the part that contains the vaddr, for a function that the compiler split. */
static void narrow_to_part(const struct dwarf_scopes *scopes, uint32_t number, uint64_t vaddr,
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
			narrow_to_part(&unit->scopes, number, vaddr, ret);
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

/* libelf and libdw do not report every failed allocation, but errno is set. */
static bool find_in_process(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
			    struct sym_inlined *inlined, size_t inlined_max,
			    size_t *inlined_count_ret)
{
	struct unit *unit;
	bool found = false, is_short;

	errno = 0;
	unit = find_unit(info, vaddr);
	if (unit) {
		found = find_line(info, unit, vaddr, &ret->line);
		found |= find_scopes(info, unit, vaddr, ret, inlined, inlined_max,
				     inlined_count_ret);
	}
	is_short = is_lack(errno);
	info->was_short |= is_short;
	ret->is_short = is_short || (!found && info->was_short);
	return found;
}

/* ---- opening ----------------------------------------------------------------- */

/* libelf can read only whole files by descriptor. An object inside another file is read here and
 * passed as memory. */
static struct sym_error *open_elf(struct dwarf_info *info)
{
	const struct object_file *object = info->object;
	struct sym_error *error;

	elf_version(EV_CURRENT);
	if (!object->file.offset && object->file.size_bytes == object->file.file_size_bytes) {
		info->elf = elf_begin(object->fd, ELF_C_READ, NULL);
		return NULL;
	}
	info->part = object_file_view(object);
	error = sparse_file_need(&info->part, object->path, 0, info->part.size_bytes);
	if (!error)
		info->elf = elf_memory((char *)info->part.data, info->part.size_bytes);
	return error;
}

static struct sym_error *begin_libdw(struct dwarf_info *info)
{
	if (!has_room(info->cost.charge.bytes))
		return &sym_error_no_memory;
	info->dwarf = dwarf_begin_elf(info->elf, DWARF_C_READ, NULL);
	if (!info->dwarf)
		return NULL;
	if (info->alternate.dwarf)
		dwarf_setalt(info->dwarf, info->alternate.dwarf);
	info->splits = (struct dwarf_splits){ .elf = info->elf,
					      .fd = info->object->fd,
					      .rights = info->splits.rights,
					      .charge = &info->cost.charge };
	return dwarf_files_end_texts(info->elf) && !read_units(info) ? &sym_error_no_memory : NULL;
}

/* ---- in a child -------------------------------------------------------------- */

/* The first message of the child. */
enum beginning {
	BEGINNING_SHORT,   /* out of memory */
	BEGINNING_NONE,    /* the file has no units */
	BEGINNING_REFUSED, /* the budget does not cover any unit */
	BEGINNING_READY
};

/* Limit of the inlined functions and strings in one answer. */
static const size_t max_text_bytes = (size_t)16 << 20;

static bool answer_one(struct dwarf_info *info, const struct dwarf_question *question, int fd)
{
	struct sym_inlined inlined[DWARF_INFO_INLINED];
	struct dwarf_reply reply = { .text_bytes = 0 };
	size_t count = 0;

	buf_clear(&info->text);
	dwarf_cost_limit_child(&info->cost, question->room);
	reply.is_found =
		find_in_process(info, question->vaddr, &reply.place, inlined,
				question->inlined_max < DWARF_INFO_INLINED ? question->inlined_max
									   : DWARF_INFO_INLINED,
				&count);
	reply.bill = dwarf_cost_bill(&info->cost);
	reply.place.is_short |= !dwarf_reply_write(&reply.place, inlined, count, &info->text);
	if (!reply.place.is_short) {
		reply.inlined_count = (uint32_t)count;
		reply.text_bytes = info->text.size_bytes;
	}
	return dwarf_worker_send(fd, &reply, sizeof(reply)) &&
	       dwarf_worker_send(fd, info->text.data, reply.text_bytes) && !reply.place.is_short;
}

static void serve_questions(void *context, int fd)
{
	struct dwarf_info *info = context;
	enum beginning beginning = BEGINNING_READY;
	struct dwarf_question question;
	struct sym_error *error;

	dwarf_cost_enter_child(&info->cost);
	errno = 0;
	error = begin_libdw(info);
	if (error || (!info->unit_count && is_lack(errno)))
		beginning = BEGINNING_SHORT;
	else if (!info->unit_count)
		beginning = dwarf_cost_excess(&info->cost) ? BEGINNING_REFUSED : BEGINNING_NONE;
	if (!dwarf_worker_send(fd, &beginning, sizeof(beginning)) || beginning != BEGINNING_READY)
		return;
	while (dwarf_worker_receive(fd, &question, sizeof(question)) &&
	       answer_one(info, &question, fd))
		continue;
}

/* Ends the child and charges its CPU time to the account. */
static void stop_worker(struct dwarf_info *info)
{
	dwarf_cost_end_child(&info->cost, dwarf_worker_stop(&info->worker));
}

/* Also returns false if the file has no units. */
static bool start_worker(struct dwarf_info *info)
{
	const int kept[] = { info->object->fd, info->alternate.elf ? info->alternate.fd : -1 };
	enum beginning beginning = BEGINNING_SHORT;

	if (info->failures >= MAX_FAILURES ||
	    !budget_has_time(info->cost.charge.account, BUDGET_CPU, info->object->path))
		return false;
	if (dwarf_worker_start(&info->worker, serve_questions, info, kept, 2) &&
	    dwarf_worker_receive(info->worker.fd, &beginning, sizeof(beginning)) &&
	    beginning == BEGINNING_READY)
		return true;
	stop_worker(info);
	if (beginning == BEGINNING_REFUSED)
		budget_record_excess(info->cost.charge.account, BUDGET_EXCESS_MEMORY,
				     info->object->path);
	info->has_no_units = beginning == BEGINNING_NONE || beginning == BEGINNING_REFUSED;
	info->failures += !info->has_no_units;
	return false;
}

static bool receive_reply(struct dwarf_info *info, struct dwarf_reply *reply, size_t inlined_max)
{
	int fd = info->worker.fd;

	buf_clear(&info->text);
	if (!dwarf_worker_receive(fd, reply, sizeof(*reply)) || reply->place.is_short ||
	    reply->inlined_count > inlined_max || reply->text_bytes > max_text_bytes ||
	    !buf_reserve(&info->text, reply->text_bytes) ||
	    !dwarf_worker_receive(fd, info->text.data, reply->text_bytes))
		return false;
	info->text.size_bytes = reply->text_bytes;
	return true;
}

/* A child that runs out of memory is ended: libdw would not read again what it failed to read. */
static bool find_in_child(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
			  struct sym_inlined *inlined, size_t inlined_max,
			  size_t *inlined_count_ret)
{
	struct dwarf_question question = { dwarf_cost_room(&info->cost), vaddr, inlined_max };
	struct dwarf_reply reply;

	if (!info->worker.pid && (info->has_no_units || !start_worker(info))) {
		ret->is_short = !info->has_no_units;
		return false;
	}
	if (dwarf_worker_send(info->worker.fd, &question, sizeof(question)) &&
	    receive_reply(info, &reply, inlined_max) &&
	    dwarf_reply_read(&info->text, &info->texts, &reply.place, inlined,
			     reply.inlined_count)) {
		*ret = reply.place;
		*inlined_count_ret = reply.inlined_count;
		if (!dwarf_cost_charge_child(&info->cost, info->worker.pid, &reply.bill))
			stop_worker(info);
		return reply.is_found;
	}
	stop_worker(info);
	info->failures++;
	ret->is_short = true;
	return false;
}

/* Opens the file with libelf only. *has_any_ret is false if there is no DWARF that can be read. */
static struct sym_error *begin_libelf(struct dwarf_info *info, const struct dwarf_fetch *fetch,
				      bool *has_any_ret)
{
	struct sym_error *error;
	bool has_debug_info;

	*has_any_ret = false;
	error = open_elf(info);
	if (!error && !info->elf && is_lack(errno))
		error = &sym_error_no_memory;
	if (!error && info->elf)
		error = dwarf_unpack(info->elf, &info->cost.charge, &info->unpacked);
	if (error || !info->elf)
		return error;
	*has_any_ret = dwarf_files_guard(info->elf, &info->cost.charge, &has_debug_info) &&
		       has_debug_info &&
		       dwarf_alternate_open(info->elf, info->object->fd, fetch, &info->cost.charge,
					    &info->alternate);
	return NULL;
}

/* Leaves no units if there is no DWARF that can be read. libelf and libdw do not report every
 * failed allocation, but errno is set. */
static struct sym_error *dwarf_info_begin(struct dwarf_info *info, const struct dwarf_fetch *fetch)
{
	struct sym_error *error;
	bool has_any;

	errno = 0;
	error = begin_libelf(info, fetch, &has_any);
	if (!error && has_any && info->forks) {
		start_worker(info);
		return NULL;
	}
	if (!error && has_any)
		error = begin_libdw(info);
	info->has_no_units = !info->unit_count;
	return !error && info->has_no_units && is_lack(errno) ? &sym_error_no_memory : error;
}

struct sym_error *dwarf_info_open(const struct object_file *object, const struct dwarf_fetch *fetch,
				  bool forks, struct dwarf_info **ret)
{
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct sym_error *error;

	*ret = NULL;
	if (object->kind != SYM_IMAGE_ELF)
		return NULL;
	info = calloc(1, sizeof(*info));
	if (!info)
		return &sym_error_no_memory;
	pthread_mutex_init(&info->lock, NULL);
	buf_init(&info->text, max_text_bytes);
	info->object = object;
	info->cost = dwarf_cost_of(object_file_account(object), object->path);
	info->forks = forks;
	info->splits.rights = fetch->rights;
	error = dwarf_info_begin(info, fetch);
	if (error || info->has_no_units)
		return error;
	error = sparse_file_check(&object->file, object->path);
	if (!error)
		*ret = STEAL(info);
	return error;
}

/* ---- look-up ------------------------------------------------------------------- */

bool dwarf_info_find(struct dwarf_info *info, uint64_t vaddr, struct dwarf_place *ret,
		     struct sym_inlined *inlined, size_t inlined_max, size_t *inlined_count_ret)
{
	bool found;

	*ret = (struct dwarf_place){ 0 };
	*inlined_count_ret = 0;
	pthread_mutex_lock(&info->lock);
	found = (info->forks ? find_in_child : find_in_process)(info, vaddr, ret, inlined,
								inlined_max, inlined_count_ret);
	pthread_mutex_unlock(&info->lock);
	return found;
}
