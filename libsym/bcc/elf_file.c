/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/elf_file.h"

#include <string.h>
#include <unistd.h>

#include "libsym/base/foreign_file.h"

bool elf_file_open(struct elf_file *file, const char *path)
{
	*file = (struct elf_file){ .fd = -1 };
	if (!path || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	file->fd = foreign_file_open(-1, path, 0, NULL, NULL);
	if (file->fd < 0)
		return false;
	file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
		return true;
	elf_file_close(file);
	return false;
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct elf_file){ .fd = -1 };
}

Elf_Scn *elf_file_section(const struct elf_file *file, const char *name, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, ret))
			continue;
		found = elf_strptr(file->elf, names, ret->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

static bool find_build_id(Elf_Data *data, uint8_t *ret)
{
	size_t at = 0, name_at, content_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(data, at, &note, &name_at, &content_at)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp(bytes + name_at, "GNU", 4) != 0)
			continue;
		if (note.n_descsz != ELF_FILE_BUILD_ID_BYTES)
			return false;
		memcpy(ret, bytes + content_at, ELF_FILE_BUILD_ID_BYTES);
		return true;
	}
	return false;
}

bool elf_file_build_id(const struct elf_file *file, uint8_t *ret)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(file->elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(section, NULL);
		if (data && find_build_id(data, ret))
			return true;
	}
	return false;
}
