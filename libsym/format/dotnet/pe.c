/* SPDX-License-Identifier: MIT */
/*
 * The container of managed code. pe_parse() rejects every header that contradicts itself or the
 * size of the data. After that, every access goes through pe_bytes(). Only two
 * directories are read: the two words of the CLI header that locate metadata and precompiled code,
 * and the r2rmap debug entry.
 *
 *   0x00 "MZ" ... 0x3c u32 e_lfanew -> "PE\0\0"
 *   COFF header (20 bytes): machine, sections, timestamp, optional header size
 *   optional header: 0x10b (PE32) or 0x20b (PE32+), data directories at its end
 *   section headers, 40 bytes each
 */
#include "libsym/format/dotnet/pe.h"

#include <string.h>

static const uint32_t pe_signature = 0x00004550; /* "PE\0\0" */
static const size_t section_header_bytes = 40;
static const uint32_t debug_type_r2rmap = 21;
static const uint32_t r2rmap_magic = 0x4d523252; /* "R2RM" */

enum {
	DEBUG_ENTRY_BYTES = 28,
	MOST_DEBUG_ENTRIES = 64, /* compilers write at most six */
};

static struct sym_error *pe_format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not a usable PE file: %s", what);
}

bool pe_recognise(const void *data, size_t size_bytes)
{
	struct reader reader = reader_over(data, size_bytes);

	if (reader_u16(&reader) != 0x5a4d)
		return false;
	reader_seek(&reader, 0x3c);
	reader_seek(&reader, reader_u32(&reader));
	return reader_u32(&reader) == pe_signature;
}

/* A native image has its machine XORed with a constant of its operating system. */
static void parse_machine(struct pe *pe)
{
	static const uint16_t systems[] = {
		[PE_SYSTEM_WINDOWS] = 0,     [PE_SYSTEM_LINUX] = 0x7b79,
		[PE_SYSTEM_APPLE] = 0x4644,  [PE_SYSTEM_FREEBSD] = 0xadc4,
		[PE_SYSTEM_NETBSD] = 0x1993, [PE_SYSTEM_SUNOS] = 0x1992,
	};
	static const uint16_t machines[] = {
		PE_MACHINE_AMD64, PE_MACHINE_ARM64,       PE_MACHINE_ARM,
		PE_MACHINE_I386,  PE_MACHINE_LOONGARCH64, PE_MACHINE_RISCV64,
	};

	pe->machine = pe->machine_raw;
	pe->system = PE_SYSTEM_UNKNOWN;
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		for (size_t j = 0; j < sizeof(machines) / sizeof(machines[0]); j++)
			if ((pe->machine_raw ^ systems[i]) == machines[j]) {
				pe->machine = machines[j];
				pe->system = (enum pe_system)i;
				return;
			}
}

static bool ranges_overlap(uint64_t start, uint64_t size, uint64_t other_start, uint64_t other_size)
{
	return size && other_size && start < other_start + other_size && other_start < start + size;
}

static struct sym_error *check_sections(const struct pe *pe)
{
	for (uint32_t i = 0; i < pe->section_count; i++) {
		const struct pe_section *section = &pe->sections[i];
		uint64_t virtual_end =
			(uint64_t)section->virtual_address + section->virtual_size_bytes;

		if (virtual_end > pe->size_of_image_bytes)
			return pe_format_error("a section ends beyond the image");
		if (pe->layout == PE_LAYOUT_FILE &&
		    (uint64_t)section->raw_offset + section->raw_size_bytes > pe->size_bytes)
			return pe_format_error("a section ends beyond the file");
		for (uint32_t j = 0; j < i; j++) {
			const struct pe_section *other = &pe->sections[j];

			if (ranges_overlap(section->virtual_address, section->virtual_size_bytes,
					   other->virtual_address, other->virtual_size_bytes) ||
			    ranges_overlap(section->raw_offset, section->raw_size_bytes,
					   other->raw_offset, other->raw_size_bytes))
				return pe_format_error("two sections overlap");
		}
	}
	return NULL;
}

static struct sym_error *parse_sections(struct pe *pe, struct reader *reader)
{
	if (pe->section_count > PE_MAX_SECTIONS)
		return pe_format_error("too many sections");
	for (uint32_t i = 0; i < pe->section_count; i++) {
		struct pe_section *section = &pe->sections[i];
		size_t start = reader->position;

		reader_skip(reader, 8); /* the name has no reliable meaning */
		section->virtual_size_bytes = reader_u32(reader);
		section->virtual_address = reader_u32(reader);
		section->raw_size_bytes = reader_u32(reader);
		section->raw_offset = reader_u32(reader);
		reader_seek(reader, start + 36);
		section->characteristics = reader_u32(reader);
		reader_seek(reader, start + section_header_bytes);
		/* Uninitialised data has a size but no bytes in the file. */
		if (!section->raw_offset)
			section->raw_size_bytes = 0;
		if (!section->virtual_size_bytes)
			section->virtual_size_bytes = section->raw_size_bytes;
	}
	if (!reader_ok(reader))
		return sym_error_from_reader(reader, NULL, 0, "PE section headers");
	return check_sections(pe);
}

static struct pe_directory read_directory(struct reader *reader)
{
	struct pe_directory directory;

	directory.rva = reader_u32(reader);
	directory.size_bytes = reader_u32(reader);
	return directory;
}

static struct pe_directory data_directory(struct reader *reader, size_t start, uint32_t count,
					  uint32_t number)
{
	if (number >= count)
		return (struct pe_directory){ 0 };
	reader_seek(reader, start + (size_t)number * 8);
	return read_directory(reader);
}

static struct sym_error *parse_optional_header(struct pe *pe, struct reader *reader)
{
	size_t start = reader->position;
	uint16_t magic = reader_u16(reader);
	size_t directories;
	uint32_t count;

	if (reader_ok(reader) && magic != 0x10b && magic != 0x20b)
		return pe_format_error("unknown optional header");
	pe->is_64bit = magic == 0x20b;
	reader_seek(reader, start + 56);
	pe->size_of_image_bytes = reader_u32(reader);
	pe->size_of_headers_bytes = reader_u32(reader);
	pe->checksum = reader_u32(reader);
	directories = start + (pe->is_64bit ? 112 : 96);
	reader_seek(reader, directories - 4);
	count = reader_u32(reader);
	pe->export_table = data_directory(reader, directories, count, 0);
	pe->debug = data_directory(reader, directories, count, 6);
	pe->cli = data_directory(reader, directories, count, 14);
	return NULL;
}

static struct sym_error *parse_cli_header(struct pe *pe)
{
	const uint8_t *bytes;
	struct reader reader;

	if (!pe->cli.rva)
		return NULL;
	bytes = pe_bytes(pe, pe->cli.rva, 72);
	if (!bytes)
		return pe_format_error("the CLI header lies outside the sections");
	reader = reader_over(bytes, 72);
	reader_seek(&reader, 8);
	pe->metadata = read_directory(&reader);
	pe->cli_flags = reader_u32(&reader);
	reader_seek(&reader, 64);
	pe->managed_native_header = read_directory(&reader);
	return NULL;
}

/* u32 "R2RM", signature, u32 version, file name. Returns false for any other entry. */
static bool parse_r2rmap_entry(struct pe *pe, const uint8_t *content, size_t size_bytes)
{
	struct reader reader = reader_over(content, size_bytes);
	const uint8_t *signature;
	const char *name;

	if (reader_u32(&reader) != r2rmap_magic)
		return false;
	signature = reader_bytes(&reader, sizeof(pe->r2rmap_signature));
	pe->r2rmap_version = reader_u32(&reader);
	if (!reader_ok(&reader))
		return false;
	memcpy(pe->r2rmap_signature, signature, sizeof(pe->r2rmap_signature));
	pe->has_r2rmap_entry = true;
	/* The file lies beside the image, so a path is rejected. */
	name = reader_string(&reader);
	if (name && *name && !strchr(name, '/'))
		pe->r2rmap_name = name;
	return true;
}

bool pe_debug_entry(const struct pe *pe, unsigned int index, struct pe_debug_entry *ret)
{
	const uint8_t *bytes = pe_bytes(pe, pe->debug.rva, pe->debug.size_bytes);
	struct reader reader;

	if (!pe->debug.rva || !bytes || index >= MOST_DEBUG_ENTRIES)
		return false;
	reader = reader_over(bytes, pe->debug.size_bytes);
	reader_skip(&reader, (size_t)index * DEBUG_ENTRY_BYTES + 4);
	ret->stamp = reader_u32(&reader);
	reader_skip(&reader, 2);
	ret->minor = reader_u16(&reader);
	ret->type = reader_u32(&reader);
	ret->content.size_bytes = reader_u32(&reader);
	ret->content.rva = reader_u32(&reader);
	reader_skip(&reader, 4);
	return reader_ok(&reader);
}

/* Only relative maps need the entry, so a malformed debug directory is ignored. */
static void parse_debug_directory(struct pe *pe)
{
	struct pe_debug_entry entry;

	for (unsigned int i = 0; pe_debug_entry(pe, i, &entry); i++) {
		size_t available_bytes;
		const uint8_t *content;

		if (entry.type != debug_type_r2rmap)
			continue;
		content = pe_bytes_to_end(pe, entry.content.rva, &available_bytes);
		if (content && available_bytes > entry.content.size_bytes)
			available_bytes = entry.content.size_bytes;
		if (content && parse_r2rmap_entry(pe, content, available_bytes))
			return;
	}
}

struct sym_error *pe_parse(struct pe *pe, const void *data, size_t size_bytes,
			   enum pe_layout layout)
{
	struct reader reader = reader_over(data, size_bytes);
	uint16_t optional_header_bytes;
	struct sym_error *error;
	size_t optional_header;

	*pe = (struct pe){ .data = data, .size_bytes = size_bytes, .layout = layout };
	if (!pe_recognise(data, size_bytes))
		return pe_format_error("no PE signature");
	reader_seek(&reader, 0x3c);
	reader_seek(&reader, reader_u32(&reader));
	reader_skip(&reader, 4);
	pe->machine_raw = reader_u16(&reader);
	parse_machine(pe);
	pe->section_count = reader_u16(&reader);
	pe->timestamp = reader_u32(&reader);
	reader_skip(&reader, 8);
	optional_header_bytes = reader_u16(&reader);
	reader_skip(&reader, 2);
	optional_header = reader.position;
	error = parse_optional_header(pe, &reader);
	if (error)
		return error;
	reader_seek(&reader, optional_header + optional_header_bytes);
	error = parse_sections(pe, &reader);
	if (!error)
		error = parse_cli_header(pe);
	if (error)
		return error;
	parse_debug_directory(pe);
	return NULL;
}

static const uint8_t *file_bytes_to_end(const struct pe *pe, uint32_t rva, size_t *available_ret)
{
	for (uint32_t i = 0; i < pe->section_count; i++) {
		const struct pe_section *section = &pe->sections[i];
		uint32_t distance = rva - section->virtual_address;

		if (rva < section->virtual_address || distance >= section->raw_size_bytes)
			continue;
		/* Raw sizes are padded to the file alignment and may reach into the next section's
		 * rvas. */
		if (distance >= section->virtual_size_bytes)
			continue;
		*available_ret = section->raw_size_bytes - distance;
		return pe->data + section->raw_offset + distance;
	}
	if (rva < pe->size_of_headers_bytes && rva < pe->size_bytes) {
		size_t end = pe->size_of_headers_bytes < pe->size_bytes ? pe->size_of_headers_bytes
									: pe->size_bytes;

		*available_ret = end - rva;
		return pe->data + rva;
	}
	return NULL;
}

const uint8_t *pe_bytes_to_end(const struct pe *pe, uint32_t rva, size_t *available_bytes_ret)
{
	if (pe->layout == PE_LAYOUT_FILE)
		return file_bytes_to_end(pe, rva, available_bytes_ret);
	if (rva >= pe->size_bytes)
		return NULL;
	*available_bytes_ret = pe->size_bytes - rva;
	return pe->data + rva;
}

const uint8_t *pe_bytes(const struct pe *pe, uint32_t rva, size_t size_bytes)
{
	size_t available_bytes;
	const uint8_t *bytes = pe_bytes_to_end(pe, rva, &available_bytes);

	return bytes && size_bytes <= available_bytes ? bytes : NULL;
}
