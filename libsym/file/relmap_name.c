/* SPDX-License-Identifier: MIT */
#include "libsym/file/relmap_name.h"

#include <string.h>

#include "libsym/base/path.h"

/* Keeps a name from the file from leading to another directory. */
static void replace_unsafe_bytes(struct buf *name)
{
	for (size_t i = 0; i < name->size_bytes; i++) {
		unsigned char byte = (unsigned char)name->data[i];

		if (byte == '/' || byte < 0x20 || byte == 0x7f)
			name->data[i] = '_';
	}
}

/* Simple name of the assembly, else the file name without ".dll". */
static void append_stem(struct object_file *object, const char *path, struct buf *name)
{
	/* All composites have the same name in their own metadata. */
	const char *assembly =
		object->kind == SYM_IMAGE_COMPOSITE ? NULL : object_file_assembly_name(object);
	const char *file = path_file_name(path);
	size_t length = strlen(file);

	if (assembly)
		buf_append_string(name, assembly);
	else if (length > 4 && !strcmp(file + length - 4, ".dll"))
		buf_append(name, file, length - 4);
	else
		buf_append(name, file, length);
}

void relmap_name_relative(struct object_file *object, const char *path, struct buf *ret)
{
	const char *mvid = object_file_mvid_text(object);

	append_stem(object, path, ret);
	buf_printf(ret, ".ni.{%s}.map", mvid ? mvid : "composite");
	replace_unsafe_bytes(ret);
}

void relmap_name_r2rmap(struct object_file *object, const char *path, struct buf *ret)
{
	const char *own = object_file_r2rmap_name(object);

	if (own) {
		buf_append_string(ret, own);
	} else {
		append_stem(object, path, ret);
		buf_append_string(ret, ".ni.r2rmap");
	}
	replace_unsafe_bytes(ret);
}
