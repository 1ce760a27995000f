/* SPDX-License-Identifier: MIT */
#include "libsym/unwind/elf_rows.h"

#include <elf.h>
#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/elf/function_bounds.h"
#include "libsym/format/dotnet/pe_unwind.h"
#include "libsym/format/elf/call_frame.h"
#include "libsym/limits.h"

/* One FDE of a table. */
struct row_entry {
	uint64_t start_vaddr, end_vaddr;
	size_t offset; /* into the section */
};

struct row_table {
	struct call_frame_section section;
	struct row_entry *entries; /* by start */
	size_t count;
};

enum {
	EH_FRAME,
	DEBUG_FRAME,
	TABLES
};

struct elf_rows {
	struct elf_sections sections;
	enum frame_machine machine;
	struct row_table tables[TABLES];
};

static struct sym_error *read_table(struct row_table *table)
{
	const struct call_frame_section *section = &table->section;
	struct call_frame_function function;
	size_t offset = 0, capacity = 0;

	do {
		if (!call_frame_read(section, offset, &function))
			continue;
		if (!grow_items((void **)&table->entries, &capacity, table->count,
				sizeof(*table->entries)))
			return &sym_error_no_memory;
		table->entries[table->count++] =
			(struct row_entry){ function.start_vaddr, function.end_vaddr, offset };
	} while (call_frame_next(section, offset, &offset) && table->count < LIMIT_INDEX_SYMBOLS);
	ascending_sort_items(table->entries, table->count, sizeof(*table->entries));
	return NULL;
}

static struct sym_error *read_eh_frame(struct elf_rows *rows, const struct object_file *object)
{
	struct row_table *table = &rows->tables[EH_FRAME];
	struct sym_error *error = function_bounds_records(
		object, &rows->sections, &table->section.records, &table->section.vaddr);

	table->section.machine = rows->machine;
	return error ? error : read_table(table);
}

static struct sym_error *read_debug_frame(struct elf_rows *rows)
{
	struct row_table *table = &rows->tables[DEBUG_FRAME];
	const GElf_Shdr *section = elf_sections_find_named(&rows->sections, ".debug_frame");
	struct sym_error *error;

	/* A compressed section is for debuggers only. */
	if (!section || section->sh_flags & SHF_COMPRESSED)
		return NULL;
	error = elf_sections_bytes(&rows->sections, section, &table->section.records);
	table->section.machine = rows->machine;
	table->section.is_debug_frame = true;
	return error ? error : read_table(table);
}

static struct sym_error *find_machine(struct elf_rows *rows, const struct object_file *object)
{
	bool is_arm = object->machine == EM_AARCH64;

	if (!object->is_64bit || object->is_big_endian || (!is_arm && object->machine != EM_X86_64))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"%s: stacks of this machine are not unwound", object->path);
	rows->machine = is_arm ? FRAME_ARM64 : FRAME_X86_64;
	return NULL;
}

void elf_rows_close(struct elf_rows *rows)
{
	if (!rows)
		return;
	for (int i = 0; i < TABLES; i++)
		free(rows->tables[i].entries);
	elf_sections_deinit(&rows->sections);
	free(rows);
}

DEFINE_GUARD(elf_rows, struct elf_rows *, elf_rows_close)

struct sym_error *elf_rows_open(const struct object_file *object, struct elf_rows **ret)
{
	struct elf_rows *rows GUARDED(elf_rows) = calloc(1, sizeof(*rows));
	struct sym_error *error;

	if (!rows)
		return &sym_error_no_memory;
	error = elf_sections_read(object, &rows->sections);
	if (!error)
		error = find_machine(rows, object);
	if (!error)
		error = read_eh_frame(rows, object);
	if (!error)
		error = read_debug_frame(rows);
	if (!error)
		*ret = STEAL(rows);
	return error;
}

/* The last entry that starts at or before `vaddr`; NULL when there is none. */
static const struct row_entry *find_entry(const struct row_table *table, uint64_t vaddr)
{
	size_t count =
		ascending_items_up_to(table->entries, table->count, sizeof(*table->entries), vaddr);

	return count ? &table->entries[count - 1] : NULL;
}

static size_t read_code(const struct elf_rows *rows, uint64_t vaddr, uint8_t *room,
			size_t room_bytes)
{
	const struct object_file *object = rows->sections.object;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		uint64_t distance = vaddr - segment->position;
		struct sym_error *error;

		if (!segment->executable || distance >= segment->size_bytes)
			continue;
		if (room_bytes > segment->size_bytes - distance)
			room_bytes = (size_t)(segment->size_bytes - distance);
		error = sparse_file_read_at(&rows->sections.view, object->path, room, room_bytes,
					    segment->offset + distance);
		sym_error_destroy(error);
		return error ? 0 : room_bytes;
	}
	return 0;
}

/*
 * Behind the instruction that pops a register, call frame information of clang still says that it
 * lies in the stack. It lies below the stack pointer then, in memory that no copy of a stack has.
 */
static bool find_epilog(const struct elf_rows *rows, uint64_t vaddr, struct frame_row *ret)
{
	uint8_t code[PE_UNWIND_EPILOG_BYTES];
	size_t size_bytes =
		rows->machine == FRAME_X86_64 ? read_code(rows, vaddr, code, sizeof(code)) : 0;

	return size_bytes && pe_unwind_return_row(code, size_bytes, ret);
}

bool elf_rows_find(const struct elf_rows *rows, uint64_t vaddr, bool is_call, struct frame_row *ret,
		   const struct reader **expressions_ret)
{
	if (!is_call && find_epilog(rows, vaddr, ret))
		return true;
	for (int i = 0; i < TABLES; i++) {
		const struct row_table *table = &rows->tables[i];
		const struct row_entry *entry = find_entry(table, vaddr);
		struct call_frame_function function;

		if (!entry || vaddr >= entry->end_vaddr)
			continue;
		*expressions_ret = &table->section.records;
		return call_frame_read(&table->section, entry->offset, &function) &&
		       call_frame_row_at(&table->section, &function, vaddr, ret);
	}
	return false;
}
