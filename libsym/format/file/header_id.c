/* SPDX-License-Identifier: MIT */
/*
 * One function for each kind of file. Each reads a bounded number of headers through a byte_source
 * and rejects a file that contradicts its format; none reads the whole file.
 */
#include "libsym/format/file/header_id.h"

#include "libsym/base/hex.h"
#include "libsym/base/reader.h"
#include "libsym/format/file/pdb_id.h"

static const uint32_t most_debug_entries = 64; /* compilers write at most six */
static const uint32_t longest_load_commands_bytes = 256 << 10;
static const unsigned int most_wasm_sections = 4096;

enum {
	MOST_PE_SECTIONS = 96,
	SECTION_BYTES = 40,
	PE_DEBUG_DIRECTORY = 6,
	DEBUG_ENTRY_BYTES = 28,
	DEBUG_TYPE_CODEVIEW = 2,
	DEBUG_TYPE_R2RMAP = 21,
	PORTABLE_MINOR = 0x504d, /* of an entry that names a portable PDB */
	CODEVIEW_BYTES = 24,     /* magic, GUID, age; the path follows */
	R2RMAP_ENTRY_BYTES = 24, /* magic, signature, version; the name follows */
};

static const uint32_t r2rmap_magic = 0x4d523252;   /* "R2RM" */
static const uint32_t codeview_magic = 0x53445352; /* "RSDS" */

struct pe_head {
	struct pe_header_id id;
	uint64_t debug_at; /* offset of the data directory's row; 0: none */
	uint32_t sections;
	uint8_t rows[MOST_PE_SECTIONS * SECTION_BYTES];
};

static bool read_pe_head(const struct byte_source *source, struct pe_head *ret)
{
	uint8_t bytes[24 + 60];
	struct reader reader;
	uint32_t start, optional_bytes, place;

	if (!byte_source_read(source, bytes, 64, 0) || memcmp(bytes, "MZ", 2))
		return false;
	reader = reader_over(bytes + 0x3c, 4);
	start = reader_u32(&reader);
	if (!byte_source_read(source, bytes, sizeof(bytes), start) || memcmp(bytes, "PE\0", 4))
		return false;
	reader = reader_over(bytes, sizeof(bytes));
	reader_seek(&reader, 6);
	ret->sections = reader_u16(&reader);
	ret->id = (struct pe_header_id){ .timestamp = reader_u32(&reader) };
	reader_seek(&reader, 20);
	optional_bytes = reader_u16(&reader);
	reader_seek(&reader, 24);
	place = (reader_u16(&reader) == 0x20b ? 112 : 96) + 8 * PE_DEBUG_DIRECTORY;
	reader_seek(&reader, 24 + 56);
	ret->id.image_bytes = reader_u32(&reader);
	ret->debug_at = place + 8 <= optional_bytes ? (uint64_t)start + 24 + place : 0;
	return ret->sections <= MOST_PE_SECTIONS && optional_bytes >= 60 &&
	       byte_source_read(source, ret->rows, ret->sections * SECTION_BYTES,
				(uint64_t)start + 24 + optional_bytes);
}

bool header_id_read_pe(const struct byte_source *source, struct pe_header_id *ret)
{
	struct pe_head head;

	if (!read_pe_head(source, &head))
		return false;
	for (uint32_t i = 0; i < head.sections; i++) {
		struct reader row = reader_over(head.rows + i * SECTION_BYTES + 16, 8);
		uint32_t raw_bytes = reader_u32(&row);
		uint64_t end = (uint64_t)raw_bytes + reader_u32(&row);

		if (raw_bytes && end > head.id.needed_bytes)
			head.id.needed_bytes = end;
	}
	*ret = head.id;
	return true;
}

static uint64_t offset_of_rva(const struct pe_head *head, uint32_t rva)
{
	for (uint32_t i = 0; i < head->sections; i++) {
		struct reader row = reader_over(head->rows + i * SECTION_BYTES + 12, 12);
		uint32_t address = reader_u32(&row), raw_bytes = reader_u32(&row);

		if (rva >= address && rva - address < raw_bytes)
			return (uint64_t)reader_u32(&row) + (rva - address);
	}
	return 0;
}

/* Offset of the debug directory into the file, and its entries; 0: there is none. */
static uint64_t find_debug_entries(const struct byte_source *source, uint32_t *count_ret)
{
	struct pe_head head;
	struct reader reader;
	uint8_t bytes[8];
	uint32_t rva;

	if (!read_pe_head(source, &head) || !head.debug_at ||
	    !byte_source_read(source, bytes, sizeof(bytes), head.debug_at))
		return 0;
	reader = reader_over(bytes, sizeof(bytes));
	rva = reader_u32(&reader);
	*count_ret = reader_u32(&reader) / DEBUG_ENTRY_BYTES;
	if (*count_ret > most_debug_entries)
		*count_ret = most_debug_entries;
	return offset_of_rva(&head, rva);
}

static bool read_r2rmap_entry(const struct byte_source *source, uint64_t offset, uint32_t count,
			      struct pe_r2rmap_id *ret)
{
	uint8_t bytes[R2RMAP_ENTRY_BYTES + sizeof(ret->name)];
	struct pe_r2rmap_id found = { 0 };
	struct reader reader;
	const char *name;

	if (count > sizeof(bytes))
		count = sizeof(bytes);
	if (count <= R2RMAP_ENTRY_BYTES || !byte_source_read(source, bytes, count, offset))
		return false;
	reader = reader_over(bytes, count);
	if (reader_u32(&reader) != r2rmap_magic)
		return false;
	memcpy(found.id.signature, reader_bytes(&reader, 16), 16);
	found.id.version = reader_u32(&reader);
	name = reader_string(&reader);
	if (!name || !*name)
		return false;
	memcpy(found.name, name, strlen(name) + 1);
	*ret = found;
	return true;
}

struct debug_entry {
	uint16_t minor;
	uint32_t type, size_bytes;
	uint64_t offset; /* of its data in the file */
};

static bool read_debug_entry(const struct byte_source *source, uint64_t directory, uint32_t index,
			     struct debug_entry *ret)
{
	uint8_t bytes[DEBUG_ENTRY_BYTES];
	struct reader reader;

	if (!byte_source_read(source, bytes, sizeof(bytes),
			      directory + (uint64_t)index * DEBUG_ENTRY_BYTES))
		return false;
	reader = reader_over(bytes, sizeof(bytes));
	reader_seek(&reader, 10);
	ret->minor = reader_u16(&reader);
	ret->type = reader_u32(&reader);
	ret->size_bytes = reader_u32(&reader);
	reader_seek(&reader, 24);
	ret->offset = reader_u32(&reader);
	return true;
}

bool header_id_read_pe_r2rmap(const struct byte_source *source, struct pe_r2rmap_id *ret)
{
	uint32_t count;
	uint64_t directory = find_debug_entries(source, &count);
	struct debug_entry entry;

	for (uint32_t i = 0; directory && i < count; i++) {
		if (!read_debug_entry(source, directory, i, &entry))
			return false;
		if (entry.type == DEBUG_TYPE_R2RMAP)
			return read_r2rmap_entry(source, entry.offset, entry.size_bytes, ret);
	}
	return false;
}

static bool read_codeview(const struct byte_source *source, const struct debug_entry *entry,
			  struct pe_pdb_id *ret)
{
	uint8_t bytes[CODEVIEW_BYTES];
	struct reader reader;

	if (entry->size_bytes < sizeof(bytes) ||
	    !byte_source_read(source, bytes, sizeof(bytes), entry->offset))
		return false;
	reader = reader_over(bytes, sizeof(bytes));
	if (reader_u32(&reader) != codeview_magic)
		return false;
	pdb_id_order_guid(ret->guid, reader_bytes(&reader, sizeof(ret->guid)));
	return true;
}

bool header_id_read_pe_pdb(const struct byte_source *source, struct pe_pdb_id *ret)
{
	uint32_t count;
	uint64_t directory = find_debug_entries(source, &count);
	struct debug_entry entry;
	bool is_found = false;

	for (uint32_t i = 0; directory && i < count; i++) {
		bool is_portable;

		if (!read_debug_entry(source, directory, i, &entry))
			break;
		is_portable = entry.minor == PORTABLE_MINOR;
		if (entry.type != DEBUG_TYPE_CODEVIEW || (is_found && !is_portable))
			continue;
		if (!read_codeview(source, &entry, ret))
			continue;
		is_found = true;
		ret->is_portable = is_portable;
		if (is_portable)
			break;
	}
	return is_found;
}

/* Parses one header row: reserved rva, a length, the value. Returns the value's length; 0 if it is
 * another row. */
static size_t parse_header_line(struct reader *reader, const char *rva, const char **value_ret)
{
	const char *text = (const char *)reader->data + reader->position;
	size_t left = reader_left(reader);
	size_t position = strlen(rva);
	size_t start;

	if (left <= position || memcmp(text, rva, position) || text[position] != ' ')
		return 0;
	for (position++; position < left && hex_values[(uint8_t)text[position]] >= 0;)
		position++;
	if (position == left || text[position] != ' ')
		return 0;
	start = ++position;
	while (position < left && hex_values[(uint8_t)text[position]] >= 0)
		position++;
	*value_ret = text + start;
	left = position - start;
	if (position < reader_left(reader) && text[position] == '\r')
		position++;
	if (position == reader_left(reader) || text[position] != '\n')
		return 0;
	reader_skip(reader, position + 1);
	return left;
}

bool header_id_read_r2rmap(const struct byte_source *source, struct r2rmap_header_id *ret)
{
	char text[256];
	size_t count = source->size_bytes < sizeof(text) ? source->size_bytes : sizeof(text);
	struct r2rmap_header_id id;
	struct reader reader;
	const char *value;
	uint64_t version;
	size_t length;

	if (!byte_source_read(source, text, count, 0))
		return false;
	reader = reader_over(text, count);
	if (count >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		reader_skip(&reader, 3);
	if (parse_header_line(&reader, "FFFFFFFF", &value) != 32 ||
	    !hex_read_bytes(value, id.signature, 16))
		return false;
	length = parse_header_line(&reader, "FFFFFFFE", &value);
	if (!length || hex_read_u64(value, length, &version) != length || version > UINT32_MAX)
		return false;
	id.version = (uint32_t)version;
	*ret = id;
	return true;
}

bool header_id_read_macho(const struct byte_source *source, uint8_t uuid[16])
{
	uint8_t bytes[32], command[24];
	struct reader reader;
	uint32_t magic, count, commands_bytes, i;
	uint64_t position, end;
	bool swap;

	if (!byte_source_read(source, bytes, 28, 0))
		return false;
	reader = reader_over(bytes, 28);
	magic = reader_u32(&reader);
	swap = magic == 0xcefaedfe || magic == 0xcffaedfe;
	if (!swap && magic != 0xfeedface && magic != 0xfeedfacf)
		return false;
	reader.is_big_endian = swap;
	reader_seek(&reader, 16);
	count = reader_u32(&reader);
	commands_bytes = reader_u32(&reader);
	position = magic == 0xfeedfacf || magic == 0xcffaedfe ? 32 : 28;
	end = position + commands_bytes;
	if (commands_bytes > longest_load_commands_bytes)
		return false;
	for (i = 0; i < count && position + 8 <= end; i++) {
		uint32_t type, size_bytes;

		if (!byte_source_read(source, command, 8, position))
			return false;
		reader = reader_over(command, 8);
		reader.is_big_endian = swap;
		type = reader_u32(&reader);
		size_bytes = reader_u32(&reader);
		if (size_bytes < 8 || size_bytes > end - position)
			return false;
		if (type == 0x1b)
			return size_bytes >= 24 && byte_source_read(source, uuid, 16, position + 8);
		position += size_bytes;
	}
	return false;
}

/* An unsigned LEB128 number of at most 32 bits. */
static bool read_number(const struct byte_source *source, uint64_t *position, uint32_t *ret)
{
	uint64_t value = 0;
	unsigned int shift;
	uint8_t byte;

	for (shift = 0; shift < 35; shift += 7) {
		if (!byte_source_read(source, &byte, 1, (*position)++))
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

bool header_id_read_wasm(const struct byte_source *source, uint8_t *id, size_t *id_bytes_ret)
{
	uint64_t position = 8;
	uint8_t bytes[8];
	unsigned int i;

	if (!byte_source_read(source, bytes, 8, 0) || memcmp(bytes, "\0asm", 4))
		return false;
	for (i = 0; i < most_wasm_sections; i++) {
		uint32_t size_bytes, name_bytes, id_bytes;
		uint64_t content;

		if (!byte_source_read(source, bytes, 1, position++) ||
		    !read_number(source, &position, &size_bytes) ||
		    !byte_source_covers(source, position, size_bytes))
			return false;
		content = position;
		position += size_bytes;
		if (bytes[0] != 0 || !read_number(source, &content, &name_bytes) ||
		    name_bytes != 8 || !byte_source_read(source, bytes, 8, content) ||
		    memcmp(bytes, "build_id", 8))
			continue;
		content += 8;
		if (!read_number(source, &content, &id_bytes) || !id_bytes || id_bytes > 64 ||
		    content + id_bytes > position ||
		    !byte_source_read(source, id, id_bytes, content))
			return false;
		*id_bytes_ret = id_bytes;
		return true;
	}
	return false;
}
