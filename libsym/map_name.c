/* SPDX-License-Identifier: MIT */
#include "libsym/map_name.h"

#include <string.h>

#include "libsym/base/path.h"

/* What a file says of itself shall not lead anywhere else. */
static void make_plain(struct buf *name)
{
	for (size_t i = 0; i < name->size_bytes; i++) {
		unsigned char byte = (unsigned char)name->data[i];

		if (byte == '/' || byte < 0x20 || byte == 0x7f)
			name->data[i] = '_';
	}
}

/* Simple name of the assembly, else the name of the file without ".dll". */
static void append_stem(struct image *image, const char *path, struct buf *name)
{
	/* That of a composite's own metadata is the same for all. */
	const char *assembly =
		image->kind == SYM_IMAGE_COMPOSITE ? NULL : image_assembly_name(image);
	const char *file = path_file_name(path);
	size_t length = strlen(file);

	if (assembly)
		buf_append_string(name, assembly);
	else if (length > 4 && !strcmp(file + length - 4, ".dll"))
		buf_append(name, file, length - 4);
	else
		buf_append(name, file, length);
}

void map_name_relative(struct image *image, const char *path, struct buf *ret)
{
	const char *mvid = image_mvid_text(image);

	append_stem(image, path, ret);
	buf_printf(ret, ".ni.{%s}.map", mvid ? mvid : "composite");
	make_plain(ret);
}

void map_name_r2rmap(struct image *image, const char *path, struct buf *ret)
{
	const char *own = image_r2rmap_name(image);

	if (own) {
		buf_append_string(ret, own);
	} else {
		append_stem(image, path, ret);
		buf_append_string(ret, ".ni.r2rmap");
	}
	make_plain(ret);
}
