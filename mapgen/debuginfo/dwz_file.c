/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/dwz_file.h"

#include <stdio.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"

static bool has_identity(const char *path, const struct sym_identity *identity)
{
	struct sym_identity found = { .size = sizeof(found) };
	int fd AUTO_CLOSE = foreign_file_open(-1, path, 0, NULL, NULL);
	struct sym_error *error = fd < 0 ? NULL : sym_identity_read(fd, UINT64_MAX, &found);

	sym_error_destroy(error);
	return !error && fd >= 0 && found.id_size_bytes == identity->id_size_bytes &&
	       !memcmp(found.id, identity->id, identity->id_size_bytes);
}

/* The section holds the name, a zero byte, and the build-id. */
static bool read_link(int fd, struct symbols_shared *ret)
{
	uint64_t offset, size_bytes;
	struct sym_error *error =
		sym_elf_section_find(fd, UINT64_MAX, ".gnu_debugaltlink", &offset, &size_bytes);
	char room[PATH_MAX + sizeof(ret->identity.id)];
	size_t name_bytes, id_bytes;

	sym_error_destroy(error);
	if (error || size_bytes > sizeof(room) || path_read_at(fd, room, size_bytes, offset))
		return false;
	name_bytes = strnlen(room, size_bytes);
	if (!name_bytes || name_bytes == size_bytes || name_bytes >= sizeof(ret->name))
		return false;
	id_bytes = size_bytes - name_bytes - 1;
	if (id_bytes < 2 || id_bytes > sizeof(ret->identity.id))
		return false;
	memcpy(ret->name, room, name_bytes + 1);
	ret->identity = (struct sym_identity){ .size = sizeof(ret->identity),
					       .kind = SYM_IDENTITY_ELF,
					       .id_size_bytes = (uint32_t)id_bytes };
	memcpy(ret->identity.id, room + name_bytes + 1, id_bytes);
	return true;
}

bool symbols_shared_wanted(const char *debug_file, struct symbols_shared *ret)
{
	int fd AUTO_CLOSE = foreign_file_open(-1, debug_file, 0, NULL, NULL);
	char *path AUTO_FREE = NULL;

	if (fd < 0 || !read_link(fd, ret))
		return false;
	path = ret->name[0] == '/'
		       ? strdup(ret->name)
		       : message_format("%.*s%s", (int)(path_file_name(debug_file) - debug_file),
					debug_file, ret->name);
	return !path || !has_identity(path, &ret->identity);
}
