/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/elf_brief.h"

#include <elf.h>
#include <endian.h>
#include <string.h>

#include "libsym/base/reader.h"

static void add_segment(struct elf_brief *brief, struct reader *header)
{
	uint32_t type = reader_u32(header);
	uint32_t flags = reader_u32(header);
	struct elf_range file;
	uint64_t vaddr;

	file.offset = reader_u64(header);
	vaddr = reader_u64(header);
	reader_skip(header, 8); /* p_paddr */
	file.size_bytes = reader_u64(header);
	if (!reader_ok(header))
		return;
	if (type == PT_DYNAMIC)
		brief->dynamic = file;
	if (type == PT_LOAD && brief->load_count < ELF_BRIEF_LOADS)
		brief->loads[brief->load_count++] = (struct elf_brief_load){
			.vaddr = vaddr,
			.file = file,
			.writable = (flags & PF_W) != 0,
		};
}

bool elf_brief_parse(const void *head, size_t size_bytes, struct elf_brief *ret)
{
	static const uint8_t ident[] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB };
	struct reader reader = reader_over(head, size_bytes);
	struct elf_brief brief = { 0 };
	uint16_t entry_bytes, count, i;
	const uint8_t *start;
	uint64_t offset;

	start = reader_bytes(&reader, sizeof(ident));
	if (!start || memcmp(start, ident, sizeof(ident)))
		return false;
	reader_seek(&reader, 32);
	offset = reader_u64(&reader);
	reader_seek(&reader, 54);
	entry_bytes = reader_u16(&reader);
	count = reader_u16(&reader);
	if (!reader_ok(&reader) || entry_bytes != sizeof(Elf64_Phdr) || offset > size_bytes)
		return false;
	reader_seek(&reader, (size_t)offset);
	for (i = 0; i < count && reader_ok(&reader); i++) {
		struct reader header = reader_part(&reader, reader.position, entry_bytes);

		add_segment(&brief, &header);
		reader_skip(&reader, entry_bytes);
	}
	if (!reader_ok(&reader) || !brief.load_count)
		return false;
	*ret = brief;
	return true;
}

/* Converts a vaddr to a file offset, with the number of bytes up to the end of its segment. */
static bool locate_vaddr(const struct elf_brief *brief, uint64_t vaddr, struct elf_range *ret)
{
	size_t i;

	for (i = 0; i < brief->load_count; i++) {
		const struct elf_brief_load *load = &brief->loads[i];
		uint64_t inside = vaddr - load->vaddr;

		if (vaddr < load->vaddr || inside >= load->file.size_bytes)
			continue;
		ret->size_bytes = load->file.size_bytes - inside;
		return !__builtin_add_overflow(load->file.offset, inside, &ret->offset);
	}
	return false;
}

bool elf_brief_strings(const struct elf_brief *brief, const void *dynamic, size_t size_bytes,
		       struct elf_range *ret)
{
	struct reader reader = reader_over(dynamic, size_bytes);
	uint64_t vaddr = 0, strings_bytes = 0;
	struct elf_range range;

	while (reader_left(&reader) >= 16) {
		uint64_t tag = reader_u64(&reader), value = reader_u64(&reader);

		if (tag == DT_NULL)
			break;
		if (tag == DT_STRTAB)
			vaddr = value;
		if (tag == DT_STRSZ)
			strings_bytes = value;
	}
	if (!strings_bytes || !locate_vaddr(brief, vaddr, &range) ||
	    strings_bytes > range.size_bytes)
		return false;
	range.size_bytes = strings_bytes;
	*ret = range;
	return true;
}

bool elf_brief_vaddr(const struct elf_brief *brief, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < brief->load_count; i++) {
		const struct elf_brief_load *load = &brief->loads[i];

		if (offset < load->file.offset ||
		    offset - load->file.offset >= load->file.size_bytes)
			continue;
		*ret = load->vaddr + (offset - load->file.offset);
		return true;
	}
	return false;
}

void elf_brief_unrelocate(const struct elf_brief *brief, uint64_t bias_bytes, void *dynamic,
			  size_t size_bytes)
{
	struct elf_range range;

	for (size_t at = 8; at + 8 <= size_bytes; at += 16) {
		uint8_t *word = (uint8_t *)dynamic + at;
		struct reader reader = reader_over(word, 8);
		uint64_t value = reader_u64(&reader);

		if (locate_vaddr(brief, value, &range) ||
		    !locate_vaddr(brief, value - bias_bytes, &range))
			continue;
		value = htole64(value - bias_bytes);
		memcpy(word, &value, sizeof(value));
	}
}
