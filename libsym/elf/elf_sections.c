/* SPDX-License-Identifier: MIT */
/*
 * Reads section headers into memory of our own (object_file_view()) before libelf parses them
 * there, so libelf never maps the file and a truncated file is an error, not SIGBUS. Section bytes
 * are read on demand by elf_sections_bytes(). A file without section headers gets substitutes from
 * PT_DYNAMIC (elf_dynamic.h).
 */
#include "libsym/elf/elf_sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/elf/elf_dynamic.h"
#include "libsym/file/file_source.h"
#include "libsym/format/elf/elf_outline.h"
#include "libsym/limits.h"

DEFINE_GUARD(elf, Elf *, elf_end)
#define AUTO_ELF GUARDED(elf)

void elf_sections_deinit(struct elf_sections *sections)
{
	free(sections->items);
	sparse_file_deinit(&sections->view);
	sections->items = NULL;
	sections->count = 0;
}

struct sym_error *elf_sections_error(const struct elf_sections *sections, const char *what)
{
	return sym_error_create_path(SYM_ERROR_FORMAT, sections->object->path, SYM_OFFSET_UNKNOWN,
				     "%s", what);
}

/* libelf has no fixed error number for out of memory. malloc() sets errno, which the caller has
 * cleared. */
static struct sym_error *libelf_error(const struct elf_sections *sections)
{
	return errno == ENOMEM ? &sym_error_no_memory
			       : elf_sections_error(sections, elf_errmsg(-1));
}

/* libelf reads the section headers from our memory, so they must be read first. */
static struct sym_error *need_section_headers(struct elf_sections *sections, bool *any_ret)
{
	struct reader header = object_file_reader(sections->object, sections->view.data,
						  sections->view.size_bytes);
	bool wide = sections->object->is_64bit;
	uint64_t offset, entry_bytes, count;
	struct sym_error *error;

	reader_seek(&header, wide ? 40 : 32);
	offset = wide ? reader_u64(&header) : reader_u32(&header);
	reader_seek(&header, wide ? 58 : 46);
	entry_bytes = reader_u16(&header);
	count = reader_u16(&header);
	*any_ret = offset && offset < sections->view.size_bytes;
	/* The section headers need not be loaded. */
	if (sections->object->is_copy && *any_ret)
		*any_ret = entry_bytes * count <= sections->view.size_bytes - offset;
	if (!*any_ret)
		return NULL;
	error = sparse_file_need(&sections->view, sections->object->path, offset, entry_bytes);
	if (error || count)
		return error ? error
			     : sparse_file_need(&sections->view, sections->object->path, offset,
						entry_bytes * count);
	/* With more than 65,279 sections, the size of section 0 is their number. */
	header = object_file_reader(sections->object, sections->view.data,
				    sections->view.size_bytes);
	reader_seek(&header, (size_t)offset + (wide ? 32 : 20));
	count = wide ? reader_u64(&header) : reader_u32(&header);
	if (entry_bytes && count > sections->view.size_bytes / entry_bytes)
		return elf_sections_error(sections, "more section headers than the file can hold");
	return sparse_file_need(&sections->view, sections->object->path, offset,
				entry_bytes * count);
}

enum {
	MAX_SECTIONS = 1 << 20,
	MAX_NOTES = 64, /* sections that are searched for the build-id */
	MAX_NOTE_BYTES = 1 << 16
};

static struct sym_error *read_sections(struct elf_sections *sections, Elf *elf)
{
	size_t count;

	if (elf_getshdrnum(elf, &count))
		return libelf_error(sections);
	if (count > MAX_SECTIONS)
		return elf_sections_error(sections, "too many sections");
	sections->items = calloc(count + 1, sizeof(*sections->items));
	if (!sections->items)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count; i++) {
		Elf_Scn *section = elf_getscn(elf, i);

		if (!section || !gelf_getshdr(section, &sections->items[i]))
			return libelf_error(sections);
	}
	sections->count = count;
	if (elf_getshdrstrndx(elf, &sections->names_index) || sections->names_index >= count)
		sections->names_index = 0;
	return NULL;
}

/* In a process, zeros may follow the end of the file where its section headers would be. */
static bool are_zeros(const struct elf_sections *sections)
{
	for (size_t i = 0; i < sections->count; i++)
		if (sections->items[i].sh_type != SHT_NULL)
			return false;
	return true;
}

struct sym_error *elf_sections_read(const struct object_file *object, struct elf_sections *ret)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { .object = object,
							   .view = object_file_view(object) };
	struct sym_error *error;
	bool any = false;

	elf_version(EV_CURRENT);
	error = sparse_file_need(&sections.view, object->path, 0, sizeof(Elf64_Ehdr));
	if (!error)
		error = need_section_headers(&sections, &any);
	errno = 0;
	if (!error && any) {
		Elf *elf AUTO_ELF =
			elf_memory((char *)sections.view.data, sections.view.size_bytes);

		error = elf ? read_sections(&sections, elf) : libelf_error(&sections);
	}
	if (!error && any && object->is_copy && are_zeros(&sections)) {
		free(sections.items);
		sections.items = NULL;
		sections.count = sections.names_index = 0;
		any = false;
	}
	if (!error && !any)
		error = elf_dynamic_read(&sections);
	if (error)
		return error;
	*ret = sections;
	sections = (struct elf_sections){ 0 };
	return NULL;
}

const GElf_Shdr *elf_sections_find(const struct elf_sections *sections, GElf_Word type)
{
	for (size_t i = 1; i < sections->count; i++)
		if (sections->items[i].sh_type == type)
			return &sections->items[i];
	return NULL;
}

static bool read_names(struct elf_sections *sections, struct reader *ret)
{
	struct sym_error *error = NULL;

	if (!sections->names_index)
		return false;
	error = elf_sections_bytes(sections, &sections->items[sections->names_index], ret);
	sym_error_destroy(error);
	return !error;
}

static const char *name_of(const struct reader *names, const GElf_Shdr *section)
{
	struct reader text = *names;

	reader_seek(&text, section->sh_name);
	return reader_string(&text);
}

const GElf_Shdr *elf_sections_find_named(struct elf_sections *sections, const char *wanted)
{
	struct reader names;

	if (!read_names(sections, &names))
		return NULL;
	for (size_t i = 1; i < sections->count; i++) {
		const GElf_Shdr *section = &sections->items[i];
		const char *name = section->sh_type != SHT_NOBITS ? name_of(&names, section) : NULL;

		if (name && !strcmp(name, wanted))
			return section;
	}
	return NULL;
}

/* NULL for a section without code. */
static const char *code_name(const struct reader *names, const GElf_Shdr *section)
{
	return section->sh_flags & SHF_EXECINSTR ? name_of(names, section) : NULL;
}

/* The section may have no bytes in the file. */
static const GElf_Shdr *find_code(const struct elf_sections *sections, const struct reader *names,
				  const char *wanted)
{
	for (size_t i = 1; i < sections->count; i++) {
		const char *name = code_name(names, &sections->items[i]);

		if (name && !strcmp(name, wanted))
			return &sections->items[i];
	}
	return NULL;
}

/* For files without section headers, or without section names. */
static bool segment_distance(const struct object_file *object, const struct object_file *separate,
			     uint64_t *ret)
{
	size_t compared = 0, other = 0;

	for (size_t i = 0; i < object->segment_count; i++) {
		if (!object->segments[i].executable)
			continue;
		while (other < separate->segment_count && !separate->segments[other].executable)
			other++;
		if (other == separate->segment_count)
			return !compared;
		if (compared++ &&
		    object->segments[i].position - separate->segments[other].position != *ret)
			return false;
		*ret = object->segments[i].position - separate->segments[other++].position;
	}
	return true;
}

bool elf_sections_distance(struct elf_sections *object, struct elf_sections *separate,
			   uint64_t *ret)
{
	const size_t most_compared = 16;
	struct reader names, separate_names;
	size_t compared = 0;

	*ret = 0;
	if (!read_names(object, &names) || !read_names(separate, &separate_names))
		return segment_distance(object->object, separate->object, ret);
	for (size_t i = 1; i < object->count && compared < most_compared; i++) {
		const char *name = code_name(&names, &object->items[i]);
		const GElf_Shdr *other = name ? find_code(separate, &separate_names, name) : NULL;

		if (!other)
			continue;
		if (compared++ && object->items[i].sh_addr - other->sh_addr != *ret)
			return false;
		*ret = object->items[i].sh_addr - other->sh_addr;
	}
	return true;
}

const char *elf_sections_string(const struct reader *strings, uint32_t offset)
{
	size_t left = offset < strings->size_bytes ? strings->size_bytes - offset : 0;
	const char *name = (const char *)strings->data + offset;

	if (left > LIMIT_NAME_BYTES + 1)
		left = LIMIT_NAME_BYTES + 1;
	return left && *name && memchr(name, 0, left) ? name : NULL;
}

struct sym_error *elf_sections_bytes(struct elf_sections *sections, const GElf_Shdr *section,
				     struct reader *ret)
{
	struct reader whole;
	struct sym_error *error;

	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED))
		return elf_sections_error(sections, "a table without bytes");
	error = sparse_file_need(&sections->view, sections->object->path, section->sh_offset,
				 section->sh_size);
	if (error)
		return error;
	whole = object_file_reader(sections->object, sections->view.data,
				   sections->view.size_bytes);
	*ret = reader_part(&whole, section->sh_offset, section->sh_size);
	return reader_ok(ret) ? NULL : elf_sections_error(sections, "a table ends beyond the file");
}

/* Uses the note segments if section headers were removed. */
static void find_in_segments(const struct object_file *object, struct elf_build_id *ret)
{
	struct elf_outline outline;
	struct byte_source source;
	const char *failure;
	struct sym_error *error =
		file_source_over(object->fd, object->file.offset, object->file.size_bytes, &source);

	if (!error && elf_outline_read(&source, &outline, &failure)) {
		ret->size_bytes = outline.build_id_bytes;
		memcpy(ret->bytes, outline.build_id, outline.build_id_bytes);
	}
	sym_error_destroy(error);
}

struct elf_build_id elf_sections_build_id(struct elf_sections *sections)
{
	struct elf_build_id id = { .size_bytes = 0 };

	if (!sections->count || sections->by_segment)
		find_in_segments(sections->object, &id);
	for (size_t i = 1, searched = 0;
	     i < sections->count && searched < MAX_NOTES && !id.size_bytes; i++) {
		struct sym_error *error;
		struct reader notes;

		if (sections->items[i].sh_type != SHT_NOTE ||
		    sections->items[i].sh_size > MAX_NOTE_BYTES)
			continue;
		searched++;
		error = elf_sections_bytes(sections, &sections->items[i], &notes);
		if (!error)
			id.size_bytes = elf_note_build_id(notes, id.bytes);
		sym_error_destroy(error);
	}
	return id;
}
