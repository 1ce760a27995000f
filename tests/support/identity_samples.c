/* SPDX-License-Identifier: MIT */
#include "tests/support/identity_samples.h"

#include <elf.h>

#include "libsym/base/hex.h"
#include "tests/support/byte_writer.h"

enum {
	NOTE_AT = 0x100,
	TEXT_AT = 0x180,
	DEBUG_AT = 0x200,
	SYMBOLS_AT = 0x240,
	NAMES_AT = 0x280
};

static const char names[] = "\0.note.gnu.build-id\0.text\0.debug_info\0.symtab\0.shstrtab";

static void put_word(struct buf *file, const struct sample_elf *recipe, uint64_t value)
{
	if (recipe->is_32bit)
		put_u32(file, (uint32_t)value);
	else
		put_u64(file, value);
}

static void put_header(struct buf *file, const struct sample_elf *recipe, uint64_t sections_at)
{
	bool narrow = recipe->is_32bit;

	buf_append(file, ELFMAG, SELFMAG);
	put_u8(file, narrow ? ELFCLASS32 : ELFCLASS64);
	put_u8(file, ELFDATA2LSB);
	put_u8(file, EV_CURRENT);
	put_zeros(file, 9);
	put_u16(file, ET_DYN);
	put_u16(file, narrow ? EM_386 : EM_X86_64);
	put_u32(file, EV_CURRENT);
	put_word(file, recipe, 0);
	put_word(file, recipe, narrow ? 52 : 64);
	put_word(file, recipe, recipe->has_segments_only ? 0 : sections_at);
	put_u32(file, 0);
	put_u16(file, narrow ? 52 : 64);
	put_u16(file, narrow ? 32 : 56);
	put_u16(file, 2);
	put_u16(file, narrow ? 40 : 64);
	put_u16(file, recipe->has_segments_only ? 0 : 6);
	put_u16(file, recipe->has_segments_only ? 0 : 5);
}

static void put_segment(struct buf *file, const struct sample_elf *recipe, uint32_t type,
			uint32_t offset, uint32_t size_bytes)
{
	put_u32(file, type);
	if (!recipe->is_32bit)
		put_u32(file, PF_R);
	put_word(file, recipe, offset);
	put_word(file, recipe, offset);
	put_word(file, recipe, offset);
	put_word(file, recipe, size_bytes);
	put_word(file, recipe, size_bytes);
	if (recipe->is_32bit)
		put_u32(file, PF_R);
	put_word(file, recipe, 4);
}

static void put_section(struct buf *file, const struct sample_elf *recipe, const char *name,
			uint32_t type, uint64_t flags, uint32_t offset, uint32_t size_bytes)
{
	uint32_t position = 0;

	while (*name && strcmp(names + position, name) != 0)
		position += (uint32_t)strlen(names + position) + 1;
	put_u32(file, position);
	put_u32(file, type);
	put_word(file, recipe, flags);
	put_word(file, recipe, 0);
	put_word(file, recipe, offset);
	put_word(file, recipe, size_bytes);
	put_u32(file, 0);
	put_u32(file, 0);
	put_word(file, recipe, 4);
	put_word(file, recipe, 0);
}

static void pad_to(struct buf *file, size_t offset)
{
	while (file->size_bytes < offset)
		put_u8(file, 0);
}

void sample_elf(struct buf *file, const struct sample_elf *recipe)
{
	size_t id_bytes = recipe->build_id ? strlen(recipe->build_id) / 2 : 0;
	uint32_t note_bytes = id_bytes ? 16 + (uint32_t)((id_bytes + 3) & ~3u) : 0;
	uint8_t id[64] = { 0 };

	put_header(file, recipe, NAMES_AT + 0x40);
	put_segment(file, recipe, PT_LOAD, 0, recipe->has_text ? TEXT_AT + 0x40 : 0x40);
	put_segment(file, recipe, PT_NOTE, NOTE_AT, note_bytes);
	pad_to(file, NOTE_AT);
	if (id_bytes) {
		hex_read_bytes(recipe->build_id, id, id_bytes);
		put_u32(file, 4);
		put_u32(file, (uint32_t)id_bytes);
		put_u32(file, NT_GNU_BUILD_ID);
		buf_append(file, "GNU", 4);
		buf_append(file, id, note_bytes - 16);
	}
	pad_to(file, NAMES_AT);
	if (recipe->has_segments_only)
		return;
	buf_append(file, names, sizeof(names));
	pad_to(file, NAMES_AT + 0x40);
	put_section(file, recipe, "", SHT_NULL, 0, 0, 0);
	put_section(file, recipe, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, NOTE_AT, note_bytes);
	put_section(file, recipe, ".text", recipe->has_text ? SHT_PROGBITS : SHT_NOBITS,
		    SHF_ALLOC | SHF_EXECINSTR, TEXT_AT, 0x40);
	put_section(file, recipe, ".debug_info", recipe->has_debug_info ? SHT_PROGBITS : SHT_NOBITS,
		    0, DEBUG_AT, 0x40);
	put_section(file, recipe, ".symtab", recipe->has_symbol_table ? SHT_SYMTAB : SHT_NOBITS, 0,
		    SYMBOLS_AT, 0x40);
	put_section(file, recipe, ".shstrtab", SHT_STRTAB, 0, NAMES_AT, sizeof(names));
}

void sample_pe(struct buf *file, uint32_t timestamp, uint32_t image_bytes)
{
	buf_append(file, "MZ", 2);
	pad_to(file, 0x3c);
	put_u32(file, 0x40);
	buf_append(file, "PE\0", 4);
	put_u16(file, 0x8664);
	put_u16(file, 1);
	put_u32(file, timestamp);
	put_zeros(file, 8);
	put_u16(file, 240);
	put_u16(file, 0x2022);
	put_u16(file, 0x20b);
	pad_to(file, 0x40 + 24 + 56);
	put_u32(file, image_bytes);
	pad_to(file, 0x40 + 24 + 240);
	buf_append(file, ".text\0\0", 8);
	put_u32(file, 0x10);
	put_u32(file, 0x1000);
	put_u32(file, 0x200);
	put_u32(file, 0x200);
	pad_to(file, 0x400);
}

/* GUID bytes in the order of the file: SAMPLE_GUID with its first three fields little-endian. */
static void put_guid(struct buf *file)
{
	buf_append(file, "\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);
}

static void put_info(struct buf *file, uint32_t age)
{
	put_u32(file, 20000404);
	put_u32(file, 0);
	put_u32(file, age);
	put_guid(file);
}

static void put_dbi(struct buf *file, uint32_t age)
{
	put_u32(file, UINT32_MAX);
	put_u32(file, 19990903);
	put_u32(file, age);
}

/* Pages of 512 bytes: 0 header, 1 free map, 2 list of the directory's pages, 3 directory, 4 stream
 * 1, 5 stream 3. */
void sample_pdb(struct buf *file, uint32_t age, uint32_t dbi_age)
{
	buf_append(file,
		   "Microsoft C/C++ MSF 7.00\r\n\x1a"
		   "DS\0\0",
		   32);
	put_u32(file, 512);
	put_u32(file, 1);
	put_u32(file, 6);
	put_u32(file, 4 * (1 + 4 + 2));
	put_u32(file, 0);
	put_u32(file, 2);
	pad_to(file, 1024);
	put_u32(file, 3);
	pad_to(file, 1536);
	put_u32(file, 4);
	put_u32(file, 0);
	put_u32(file, 28);
	put_u32(file, UINT32_MAX);
	put_u32(file, dbi_age ? 12 : 0);
	put_u32(file, 4);
	put_u32(file, 5);
	pad_to(file, 2048);
	put_info(file, age);
	pad_to(file, 2560);
	if (dbi_age)
		put_dbi(file, dbi_age);
	pad_to(file, 3072);
}

void sample_compressed_pdb(struct buf *file, uint32_t age)
{
	buf_append(file,
		   "Microsoft MSFZ Container\r\n\x1a"
		   "ALD\0",
		   32);
	put_u64(file, 0);
	put_u64(file, 80 + 28);
	put_u64(file, 80 + 28 + 20);
	put_u32(file, 2);
	put_u32(file, 0);
	put_u32(file, 20);
	put_u32(file, 20);
	put_u32(file, 0);
	put_u32(file, 0);
	put_info(file, age);
	put_u32(file, 0); /* stream 0 is empty */
	put_u32(file, 28);
	put_u64(file, 80);
	put_u32(file, 0);
}

void sample_portable_pdb(struct buf *file)
{
	buf_append(file, "BSJB", 4);
	put_u32(file, 0x10001);
	put_u32(file, 0);
	put_u32(file, 12);
	buf_append(file, "PDB v1.0\0\0\0", 12);
	put_u16(file, 0);
	put_u16(file, 1);
	put_u32(file, 48);
	put_u32(file, 32);
	buf_append(file, "#Pdb\0\0\0", 8);
	put_guid(file);
	put_u32(file, 0x5cb7ac29);
	put_zeros(file, 12);
}

void sample_macho(struct buf *file)
{
	uint8_t uuid[16];

	hex_read_bytes(SAMPLE_GUID, uuid, 16);
	put_u32(file, 0xfeedfacf);
	put_zeros(file, 12);
	put_u32(file, 2);
	put_u32(file, 8 + 24);
	put_zeros(file, 8);
	put_u32(file, 2);
	put_u32(file, 8);
	put_u32(file, 0x1b);
	put_u32(file, 24);
	buf_append(file, uuid, 16);
}

void sample_wasm(struct buf *file)
{
	buf_append(file, "\0asm\1\0\0", 8);
	buf_append(file, "\x01\x02\x60\x00", 4);
	buf_append(file,
		   "\x00\x0e\x08"
		   "build_id\x04\xde\xad\xbe\xef",
		   16);
}
