/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/elf_file.h"

#include <elfutils/libdwelf.h>
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

bool elf_file_build_id(const struct elf_file *file, uint8_t *ret)
{
	const void *build_id;

	if (dwelf_elf_gnu_build_id(file->elf, &build_id) != ELF_FILE_BUILD_ID_BYTES)
		return false;
	memcpy(ret, build_id, ELF_FILE_BUILD_ID_BYTES);
	return true;
}
