/* SPDX-License-Identifier: MIT */
/*
 * Reads the program headers first: each PT_LOAD becomes a segment, cut to the bytes that the file
 * really has. PT_NOTE is read as a whole into `notes`, into which paths of mapped files point.
 * Segments and files are then sorted by address; one that overlaps the previous one is dropped, so
 * look-ups are binary searches.
 */
#include "libsym/format/elf/elf_core.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/reader.h"
#include "libsym/limits.h"

enum {
	HEADER_BYTES = 64,
	SEGMENT_BYTES = 56,
	SECTION_BYTES = 64,
	TYPE_CORE = 4,
	MACHINE_X86_64 = 62,
	SEGMENT_LOAD = 1,
	SEGMENT_NOTE = 4,
	NOTE_STATUS = 1,
	NOTE_PROCESS = 3,
	NOTE_VECTOR = 6,
	NOTE_FILES = 0x46494c45,
	THREAD_REGISTERS = 112, /* offset in NT_PRSTATUS */
	VECTOR_PROGRAM_HEADERS = 3,
	VECTOR_VDSO = 33,
	COUNT_ELSEWHERE = 0xffff,
};

/* The state of elf_core_read(), which fills `core`. */
struct core_reading {
	const struct byte_source *source;
	const char *path;
	struct elf_core *core;
	uint64_t notes_offset, notes_bytes;
	size_t thread_capacity;
};

static struct sym_error *core_error(const struct core_reading *reading, uint64_t offset,
				    const char *why)
{
	return sym_error_create_path(SYM_ERROR_FORMAT, reading->path, offset, "core file: %s", why);
}

void elf_core_deinit(struct elf_core *core)
{
	free(core->segments);
	free(core->files);
	free(core->threads);
	free(core->notes);
	*core = (struct elf_core){ 0 };
}

/* ---- headers ---------------------------------------------------------------- */

struct header {
	uint64_t segments, sections;
	uint64_t count;
};

static struct sym_error *read_header(const struct core_reading *reading, struct header *ret)
{
	static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', 2, 1 };
	uint8_t bytes[SECTION_BYTES] = { 0 };
	struct reader reader = reader_over(bytes, HEADER_BYTES);
	uint16_t type, machine;

	if (!byte_source_read(reading->source, bytes, HEADER_BYTES, 0) ||
	    memcmp(bytes, ident, 4) != 0)
		return core_error(reading, 0, "not an ELF file");
	reader_skip(&reader, 16);
	type = reader_u16(&reader);
	machine = reader_u16(&reader);
	if (type != TYPE_CORE)
		return core_error(reading, 16, "an ELF file, but not a core file");
	if (memcmp(bytes, ident, sizeof(ident)) != 0 || machine != MACHINE_X86_64)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, reading->path, 18,
					     "core file: only x86-64 is read");
	reader_skip(&reader, 12);
	ret->segments = reader_u64(&reader);
	ret->sections = reader_u64(&reader);
	reader_skip(&reader, 6);
	if (reader_u16(&reader) != SEGMENT_BYTES)
		return core_error(reading, 54, "program headers of an unknown size");
	ret->count = reader_u16(&reader);
	if (ret->count != COUNT_ELSEWHERE)
		return NULL;
	if (!byte_source_read(reading->source, bytes, SECTION_BYTES, ret->sections))
		return core_error(reading, 40, "the number of segments is beyond its end");
	reader = reader_over(bytes + 44, 4);
	ret->count = reader_u32(&reader);
	return NULL;
}

static void drop_overlapping_segments(struct elf_core *core)
{
	size_t kept = 0;

	ascending_sort_items(core->segments, core->segment_count, sizeof(*core->segments));
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct elf_core_segment *last = kept ? &core->segments[kept - 1] : NULL;

		if (!last || last->address + last->memory_bytes <= core->segments[i].address)
			core->segments[kept++] = core->segments[i];
	}
	core->segment_count = kept;
}

/* How many bytes of a segment the file really contains. */
static uint64_t present_bytes(const struct core_reading *reading, uint64_t offset,
			      uint64_t size_bytes)
{
	uint64_t end = reading->source->size_bytes;

	if (offset >= end)
		return 0;
	return size_bytes < end - offset ? size_bytes : end - offset;
}

static void add_segment(struct core_reading *reading, const uint8_t *bytes)
{
	struct reader reader = reader_over(bytes, SEGMENT_BYTES);
	struct elf_core_segment segment;
	uint64_t file_bytes;
	uint32_t type = reader_u32(&reader);

	segment.flags = reader_u32(&reader);
	segment.offset = reader_u64(&reader);
	segment.address = reader_u64(&reader);
	reader_skip(&reader, 8);
	file_bytes = reader_u64(&reader);
	segment.memory_bytes = reader_u64(&reader);
	if (type == SEGMENT_NOTE && !reading->notes_bytes) {
		reading->notes_offset = segment.offset;
		reading->notes_bytes = file_bytes;
	}
	if (type != SEGMENT_LOAD || !segment.memory_bytes ||
	    segment.memory_bytes > UINT64_MAX - segment.address)
		return;
	if (file_bytes > segment.memory_bytes)
		file_bytes = segment.memory_bytes;
	segment.file_bytes = present_bytes(reading, segment.offset, file_bytes);
	reading->core->missing_bytes += file_bytes - segment.file_bytes;
	reading->core->segments[reading->core->segment_count++] = segment;
}

static struct sym_error *read_segments(struct core_reading *reading, const struct header *header)
{
	uint8_t *bytes AUTO_FREE = NULL;

	if (header->count > LIMIT_CORE_SEGMENTS)
		return sym_error_create_path(SYM_ERROR_LIMIT, reading->path, 56,
					     "core file: more than %zu segments",
					     LIMIT_CORE_SEGMENTS);
	bytes = malloc((size_t)header->count * SEGMENT_BYTES + 1);
	reading->core->segments =
		calloc((size_t)header->count + 1, sizeof(*reading->core->segments));
	if (!bytes || !reading->core->segments)
		return &sym_error_no_memory;
	if (!byte_source_read(reading->source, bytes, (size_t)header->count * SEGMENT_BYTES,
			      header->segments))
		return core_error(reading, 32, "the program headers are beyond its end");
	for (size_t i = 0; i < header->count; i++)
		add_segment(reading, bytes + i * SEGMENT_BYTES);
	drop_overlapping_segments(reading->core);
	return NULL;
}

/* ---- notes -------------------------------------------------------------------- */

static void drop_overlapping_files(struct elf_core *core)
{
	size_t kept = 0;

	ascending_sort_items(core->files, core->file_count, sizeof(*core->files));
	for (size_t i = 0; i < core->file_count; i++) {
		const struct elf_core_file *file = &core->files[i];

		if (file->start_address < file->end_address &&
		    (!kept || core->files[kept - 1].end_address <= file->start_address))
			core->files[kept++] = *file;
	}
	core->file_count = kept;
}

static struct sym_error *read_file_note(struct core_reading *reading, struct reader note)
{
	struct elf_core *core = reading->core;
	uint64_t count = reader_u64(&note), page_bytes = reader_u64(&note);
	struct reader paths = note;

	if (!reader_ok(&note) || core->files)
		return NULL; /* the first list counts */
	if (count > reader_left(&note) / 25)
		return core_error(reading, reading->notes_offset,
				  "its list of files is longer than itself");
	core->files = calloc((size_t)count + 1, sizeof(*core->files));
	if (!core->files)
		return &sym_error_no_memory;
	reader_skip(&paths, (size_t)count * 24);
	for (uint64_t i = 0; i < count; i++) {
		struct elf_core_file file;
		uint64_t page;

		file.start_address = reader_u64(&note);
		file.end_address = reader_u64(&note);
		page = reader_u64(&note);
		file.path = reader_string(&paths);
		if (!file.path || __builtin_mul_overflow(page, page_bytes, &file.offset))
			break;
		core->files[core->file_count++] = file;
	}
	drop_overlapping_files(core);
	return NULL;
}

static void read_process_note(struct elf_core *core, struct reader note)
{
	const uint8_t *command;

	reader_skip(&note, 16);
	core->uid = reader_u32(&note);
	core->gid = reader_u32(&note);
	core->pid = (int32_t)reader_u32(&note);
	reader_skip(&note, 12);
	command = reader_bytes(&note, 16);
	if (command)
		memcpy(core->command, command, 16);
}

static void read_auxv_note(struct elf_core *core, struct reader note)
{
	while (reader_left(&note) >= 16) {
		uint64_t tag = reader_u64(&note), value = reader_u64(&note);

		if (tag == VECTOR_PROGRAM_HEADERS)
			core->program_headers = value;
		else if (tag == VECTOR_VDSO)
			core->vdso = value;
	}
}

static struct sym_error *read_thread_note(struct core_reading *reading, struct reader note)
{
	struct elf_core *core = reading->core;
	struct elf_core_thread thread;

	reader_skip(&note, 32);
	thread.tid = (int32_t)reader_u32(&note);
	/* The first thread is the main thread in files that Linux and gcore write. */
	if (!core->thread_count && !core->pid)
		core->pid = thread.tid;
	reader_skip(&note, THREAD_REGISTERS - 36);
	thread.registers_bytes = reader_left(&note);
	thread.registers = reader_bytes(&note, thread.registers_bytes);
	if (!thread.registers)
		thread.registers_bytes = 0;
	if (!grow_items((void **)&core->threads, &reading->thread_capacity, core->thread_count,
			sizeof(thread)))
		return &sym_error_no_memory;
	core->threads[core->thread_count++] = thread;
	return NULL;
}

static struct sym_error *read_note(struct core_reading *reading, uint32_t type, struct reader note)
{
	struct elf_core *core = reading->core;

	switch (type) {
	case NOTE_STATUS:
		return read_thread_note(reading, note);
	case NOTE_PROCESS:
		read_process_note(core, note);
		return NULL;
	case NOTE_VECTOR:
		read_auxv_note(core, note);
		return NULL;
	case NOTE_FILES:
		return read_file_note(reading, note);
	default:
		return NULL;
	}
}

static struct sym_error *read_notes(struct core_reading *reading)
{
	struct sym_error *error = NULL;
	struct reader notes;

	if (!reading->notes_bytes)
		return core_error(reading, 0, "it has no notes, so the mapped files are unknown");
	if (reading->notes_bytes > LIMIT_CORE_NOTES_BYTES)
		return sym_error_create_path(SYM_ERROR_LIMIT, reading->path, reading->notes_offset,
					     "core file: more than %zu bytes of notes",
					     LIMIT_CORE_NOTES_BYTES);
	reading->core->notes = malloc((size_t)reading->notes_bytes);
	if (!reading->core->notes)
		return &sym_error_no_memory;
	if (!byte_source_read(reading->source, reading->core->notes, (size_t)reading->notes_bytes,
			      reading->notes_offset))
		return core_error(reading, reading->notes_offset,
				  "it is truncated: the notes with the mapped files are missing");
	notes = reader_over(reading->core->notes, (size_t)reading->notes_bytes);
	while (!error && reader_left(&notes) >= 12) {
		uint32_t name_bytes = reader_u32(&notes), size_bytes = reader_u32(&notes);
		uint32_t type = reader_u32(&notes);
		const uint8_t *bytes;

		reader_skip(&notes, ((size_t)name_bytes + 3) & ~(size_t)3);
		bytes = reader_bytes(&notes, size_bytes);
		if (size_bytes % 4 && reader_left(&notes))
			reader_skip(&notes, 4 - size_bytes % 4);
		if (bytes)
			error = read_note(reading, type, reader_over(bytes, size_bytes));
	}
	return error;
}

struct sym_error *elf_core_read(const struct byte_source *source, const char *path,
				struct elf_core *ret)
{
	struct elf_core core = { 0 };
	struct core_reading reading = { .source = source, .path = path, .core = &core };
	struct header header = { 0 };
	struct sym_error *error = read_header(&reading, &header);

	if (!error)
		error = read_segments(&reading, &header);
	if (!error)
		error = read_notes(&reading);
	if (error)
		elf_core_deinit(&core);
	else
		*ret = core;
	return error;
}

const struct elf_core_segment *elf_core_find(const struct elf_core *core, uint64_t address)
{
	size_t count = ascending_items_up_to(core->segments, core->segment_count,
					     sizeof(*core->segments), address);
	const struct elf_core_segment *last = count ? &core->segments[count - 1] : NULL;

	return last && address - last->address < last->memory_bytes ? last : NULL;
}

const struct elf_core_file *elf_core_find_file(const struct elf_core *core, uint64_t address)
{
	size_t count =
		ascending_items_up_to(core->files, core->file_count, sizeof(*core->files), address);
	const struct elf_core_file *last = count ? &core->files[count - 1] : NULL;

	return last && address < last->end_address ? last : NULL;
}
