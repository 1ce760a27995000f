/* SPDX-License-Identifier: MIT */
#include "mapgen/perfmap/debug_paths.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "libsym/base/foreign_file.h"

static void append_file(int root_fd, const struct rights *rights, const char *path,
			struct buf *text)
{
	struct stat status;

	if (foreign_file_examine(root_fd, path, 0, rights, &status))
		return;
	buf_printf(text, "%s %ju:%ju %jd %jd.%09ld\n", path, (uintmax_t)status.st_dev,
		   (uintmax_t)status.st_ino, (intmax_t)status.st_size,
		   (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

struct listing {
	struct buf *text;
	int root_fd; /* of the process */
	const struct rights *rights;
};

static int append_place(void *context, const struct sym_debug_path *place)
{
	const struct listing *listing = context;
	bool in_process_root = place->flags & SYM_DEBUG_PATH_IN_PROCESS_ROOT;

	append_file(in_process_root ? listing->root_fd : -1,
		    in_process_root ? listing->rights : NULL, place->path, listing->text);
	return 0;
}

static void append_image(struct sym_image *image, struct listing *listing)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	struct sym_error *error = sym_image_identity(image, &identity);

	if (!error && !(identity.contents & SYM_CONTENT_SYMBOL_TABLE))
		error = sym_image_each_debug_path(image, append_place, listing);
	/* A file that cannot be read counts as missing, each time. */
	sym_error_destroy(error);
}

void debug_paths_append(struct sym_snapshot *snapshot, int root_fd, const struct rights *rights,
			struct buf *text)
{
	size_t count = sym_snapshot_image_count(snapshot);
	struct listing listing = { .text = text, .root_fd = root_fd, .rights = rights };

	for (size_t i = 0; i < count; i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);

		if (sym_image_kind(image) == SYM_IMAGE_ELF)
			append_image(image, &listing);
	}
}
