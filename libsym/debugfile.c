/* SPDX-License-Identifier: MIT */
#include "libsym/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/limits.h"

enum {
	SUM_STEP_BYTES = 1 << 18
};

static bool is_same_id(const struct elf_build_id *a, const struct elf_build_id *b)
{
	return a->size_bytes == b->size_bytes && !memcmp(a->bytes, b->bytes, a->size_bytes);
}

/* Takes `fd` over, with success and without. */
static struct sym_error *open_elf(int fd, const char *path, struct image **ret,
				  struct elf_sections *sections_ret)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error = image_open(fd, path, 0, SPARSE_FILE_TO_END, &image);

	if (error)
		close(fd);
	else if (image->kind == SYM_IMAGE_ELF)
		error = elf_sections_read(image, sections_ret);
	if (!error)
		*ret = STEAL(image);
	return error;
}

/*
 * A file that may be the debug file of the image of `sections`. One that cannot be used is none:
 * *ret is NULL. What could not be read is noted as trouble of the image. Errors: NO_MEMORY.
 */
static struct sym_error *open_separate(const struct elf_sections *sections, int fd,
				       const char *path, struct image **ret,
				       struct elf_sections *sections_ret)
{
	struct sym_error *error = open_elf(fd, path, ret, sections_ret);

	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	image_note_trouble(sections->image, error);
	sym_error_destroy(error);
	return NULL;
}

/* A name, padded to 4 bytes, and the CRC-32 of the file. */
bool debugfile_read_link(struct elf_sections *sections, struct debugfile_link *ret)
{
	const GElf_Shdr *section = elf_sections_find_named(sections, ".gnu_debuglink");
	struct sym_error *error;
	struct reader reader;

	if (!section)
		return false;
	error = elf_sections_bytes(sections, section, &reader);
	sym_error_destroy(error);
	if (error)
		return false;
	ret->name = reader_string(&reader);
	reader_seek(&reader, (reader.position + 3) & ~(size_t)3);
	ret->sum = reader_u32(&reader);
	return reader_ok(&reader) && *ret->name && strlen(ret->name) <= NAME_MAX &&
	       !strchr(ret->name, '/') && strcmp(ret->name, ".") != 0 &&
	       strcmp(ret->name, "..") != 0;
}

/* Nothing is read of what is no ELF file. */
static bool has_sum(int fd, uint32_t sum)
{
	uint8_t *room AUTO_FREE = malloc(SUM_STEP_BYTES);
	uLong own = crc32(0, NULL, 0);
	struct stat status;
	uint64_t size_bytes;

	if (!room || fstat(fd, &status) || status.st_size < SELFMAG ||
	    (uint64_t)status.st_size > LIMIT_SUMMED_BYTES)
		return false;
	size_bytes = (uint64_t)status.st_size;
	for (uint64_t at = 0; at < size_bytes; at += SUM_STEP_BYTES) {
		size_t step = SUM_STEP_BYTES < size_bytes - at ? SUM_STEP_BYTES
							       : (size_t)(size_bytes - at);

		if (path_read_at(fd, room, step, at) || (!at && memcmp(room, ELFMAG, SELFMAG)))
			return false;
		own = crc32(own, room, (uInt)step);
	}
	return own == sum;
}

/* ---- the places --------------------------------------------------------------- */

struct places {
	debugfile_visit_fn *visit;
	void *context;
	bool is_over;
};

/* Takes the path in `text`, which is empty afterwards. */
static struct sym_error *tell_place(struct places *places, struct buf *text, int root_fd,
				    const struct debugfile_link *link)
{
	struct debugfile_place place = { .root_fd = root_fd, .link = link };
	struct sym_error *error = NULL;

	place.path = buf_string(text);
	/* A path that is too long is that of no file. */
	if (place.path && !places->is_over)
		error = places->visit(places->context, &place, &places->is_over);
	else if (text->failure == BUF_NO_MEMORY)
		error = &sym_error_no_memory;
	buf_clear(text);
	return error;
}

static struct sym_error *tell_by_id(struct places *places, const struct elf_build_id *id,
				    const char *directory, int root_fd)
{
	char digits[2 * sizeof(id->bytes) + 1];
	struct sym_error *error;
	struct buf path;

	buf_init(&path, PATH_MAX);
	hex_write_bytes(digits, id->bytes, id->size_bytes);
	buf_printf(&path, "%s/.build-id/%.2s/%s.debug", directory, digits, digits + 2);
	error = tell_place(places, &path, root_fd, NULL);
	buf_deinit(&path);
	return error;
}

static struct sym_error *tell_all_by_id(struct places *places, const struct elf_build_id *id,
					const struct debugfile_roots *roots)
{
	struct sym_error *error = NULL;

	for (const char *const *dir = roots->dirs; !error && dir && *dir; dir++)
		error = tell_by_id(places, id, *dir, -1);
	if (!error)
		error = tell_by_id(places, id, DEBUGFILE_DIRECTORY, -1);
	if (!error && roots->fd >= 0)
		error = tell_by_id(places, id, DEBUGFILE_DIRECTORY, roots->fd);
	return error;
}

/* Of the image, absolute where that can be had. */
static char *directory_of(const struct image *image, int root_fd)
{
	char *path = root_fd < 0 ? realpath(image->path, NULL) : NULL;
	char *slash;

	if (!path)
		path = strdup(image->path);
	slash = path ? strrchr(path, '/') : NULL;
	if (!slash) {
		free(path);
		return path ? strdup(".") : NULL;
	}
	*slash = '\0';
	return path;
}

/* Where the image itself is, `own`, in one of these: before it, and behind it. */
static struct sym_error *tell_by_link(struct places *places, const char *const around[2],
				      const char *own, const struct debugfile_link *link,
				      int root_fd)
{
	struct sym_error *error;
	struct buf path;

	buf_init(&path, PATH_MAX);
	buf_printf(&path, "%s%s%s%s", around[0], own, around[1], link->name);
	error = tell_place(places, &path, root_fd, link);
	buf_deinit(&path);
	return error;
}

static struct sym_error *tell_usual_by_link(struct places *places, const char *own,
					    const struct debugfile_link *link, int root_fd)
{
	static const char *const around[][2] = { { "", "/" },
						 { "", "/.debug/" },
						 { DEBUGFILE_DIRECTORY, "/" } };
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < sizeof(around) / sizeof(around[0]); i++)
		error = tell_by_link(places, around[i], own, link, root_fd);
	return error;
}

static struct sym_error *tell_all_by_link(struct places *places, const char *own,
					  const struct debugfile_link *link,
					  const struct debugfile_roots *roots)
{
	struct sym_error *error = NULL;

	for (const char *const *dir = roots->dirs; !error && dir && *dir; dir++) {
		const char *const around[2] = { *dir, "/" };

		error = tell_by_link(places, around, own, link, -1);
	}
	if (!error)
		error = tell_usual_by_link(places, own, link, roots->fd);
	/* A process that has only changed its root is shown with the paths of this machine. */
	if (!error && roots->fd >= 0)
		error = tell_usual_by_link(places, own, link, -1);
	return error;
}

struct sym_error *debugfile_each_place(struct elf_sections *sections,
				       const struct debugfile_roots *roots,
				       debugfile_visit_fn *visit, void *context)
{
	struct places places = { .visit = visit, .context = context };
	struct elf_build_id id = elf_sections_build_id(sections);
	struct sym_error *error = NULL;
	struct debugfile_link link;
	char *own AUTO_FREE = NULL;

	if (id.size_bytes >= 2)
		error = tell_all_by_id(&places, &id, roots);
	if (error || places.is_over || !debugfile_read_link(sections, &link))
		return error;
	own = directory_of(sections->image, roots->fd);
	if (!own)
		return &sym_error_no_memory;
	return tell_all_by_link(&places, own, &link, roots);
}

/* ---- what is there --------------------------------------------------------------- */

struct search {
	struct elf_sections *sections;
	struct elf_build_id id;
	struct image *found;
	uint64_t distance;
};

static bool is_believed(const struct search *search, const struct debugfile_place *place,
			struct elf_sections *separate)
{
	struct elf_build_id id = elf_sections_build_id(separate);

	if (id.size_bytes && search->id.size_bytes)
		return is_same_id(&id, &search->id);
	return place->link;
}

static struct sym_error *try_place(void *context, const struct debugfile_place *place,
				   bool *is_over)
{
	struct search *search = context;
	struct image *image AUTO_IMAGE = NULL;
	struct elf_sections separate AUTO_ELF_SECTIONS = { 0 };
	int fd = path_open_in_root(place->root_fd, place->path, PATH_REGULAR);
	struct sym_error *error;

	/* It may be there. */
	if (fd == -EMFILE || fd == -ENFILE)
		return sym_error_from_errno(-fd, place->path, "cannot open");
	if (fd >= 0 && place->link && !has_sum(fd, place->link->sum)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return NULL;
	error = open_separate(search->sections, fd, place->path, &image, &separate);
	if (error || !image || image->kind != SYM_IMAGE_ELF ||
	    !is_believed(search, place, &separate) ||
	    !elf_sections_distance(search->sections, &separate, &search->distance))
		return error;
	search->found = STEAL(image);
	*is_over = true;
	return NULL;
}

struct sym_error *debugfile_find(struct elf_sections *sections, const struct debugfile_roots *roots,
				 struct image **ret, uint64_t *distance_ret)
{
	struct search search = { .sections = sections, .id = elf_sections_build_id(sections) };
	struct sym_error *error = debugfile_each_place(sections, roots, try_place, &search);

	*ret = search.found;
	*distance_ret = search.distance;
	return error;
}

/* ---- what somebody brings ------------------------------------------------------- */

static void append_id(struct buf *text, const struct elf_build_id *id)
{
	char digits[2 * sizeof(id->bytes) + 1];

	hex_write_bytes(digits, id->bytes, id->size_bytes);
	buf_append_string(text, id->size_bytes ? digits : "none");
}

/* False: it is another file, and `why` says which. */
static bool is_debug_file_of(struct elf_sections *sections, const struct image *image,
			     struct elf_sections *separate, struct buf *why)
{
	struct elf_build_id wanted = elf_sections_build_id(sections), found;
	struct debugfile_link link;
	uint64_t distance;

	if (image->kind != SYM_IMAGE_ELF) {
		buf_printf(why, "%s was brought as its debug file and is no ELF file", image->path);
		return false;
	}
	found = elf_sections_build_id(separate);
	if ((wanted.size_bytes && is_same_id(&found, &wanted)) ||
	    (!(wanted.size_bytes && found.size_bytes) && debugfile_read_link(sections, &link) &&
	     has_sum(image->fd, link.sum))) {
		if (elf_sections_distance(sections, separate, &distance) && !distance)
			return true;
		buf_printf(why, "%s was brought as its debug file, and the image's code was moved",
			   image->path);
		return false;
	}
	buf_printf(why, "%s was brought as its debug file and has build-id ", image->path);
	append_id(why, &found);
	buf_append_string(why, ", the image has ");
	append_id(why, &wanted);
	return false;
}

struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct image **ret)
{
	struct image *image AUTO_IMAGE = NULL;
	struct elf_sections separate AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;
	int fd = path_open_in_root(-1, path, PATH_REGULAR);

	*ret = NULL;
	if (fd < 0) {
		buf_printf(why, "%s was brought as its debug file and cannot be opened: %s", path,
			   fd == -EINVAL ? "no regular file" : strerror(-fd));
		return NULL;
	}
	error = open_separate(sections, fd, path, &image, &separate);
	if (error)
		return error;
	if (!image)
		buf_printf(why, "%s was brought as its debug file and cannot be read", path);
	else if (is_debug_file_of(sections, image, &separate, why))
		*ret = STEAL(image);
	return NULL;
}
