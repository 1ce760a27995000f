/* SPDX-License-Identifier: MIT */
/*
 * debugfile_each_place() produces candidate paths in a fixed order and calls a visitor for each.
 * debugfile_find() uses it with try_place(), which opens a candidate and checks it: the sum of the
 * link (has_sum()) or the build-id (is_accepted()), then the position of its code
 * (elf_sections_distance()). The first candidate that passes is used. The first existing file by
 * build-id that fails is remembered, so that the user learns why it was not used.
 */
#include "libsym/elf/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/base/foreign_file.h"
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

/* Closes `fd` or hands it to the object, on success and failure. */
static struct sym_error *open_elf(const struct object_file *of, int fd, const char *path,
				  struct object_file **ret, struct elf_sections *sections_ret)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct budget_account *account = budget_account_beside(object_file_account(of), fd);
	struct sym_error *error =
		object_file_open(account, fd, path, 0, SPARSE_FILE_TO_END, &object);

	if (error)
		close(fd);
	else if (object->kind == SYM_IMAGE_ELF)
		error = elf_sections_read(object, sections_ret);
	if (!error)
		*ret = STEAL(object);
	return error;
}

/* Opens a file that may be the debug file of the object of `sections`. *ret is NULL if it cannot be
 * used. A read failure is recorded as a problem of the object. Errors: NO_MEMORY. */
static struct sym_error *open_separate(const struct elf_sections *sections, int fd,
				       const char *path, struct object_file **ret,
				       struct elf_sections *sections_ret, struct buf *why)
{
	struct sym_error *error = open_elf(sections->object, fd, path, ret, sections_ret);

	if (sym_error_is_no_memory(error))
		return error;
	object_file_record_problem(sections->object, error);
	if (error)
		buf_append_string(why, sym_error_message(error));
	sym_error_destroy(error);
	return NULL;
}

/* .gnu_debuglink: a name, padded to 4 bytes, and the CRC-32 of the file. */
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

/* Reads only the first bytes of a file that is not an ELF file. */
static bool has_sum(const struct object_file *of, int fd, uint32_t sum)
{
	struct budget_account *account = budget_account_beside(object_file_account(of), fd);
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(account);
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

		if (!budget_has_time(account, BUDGET_CPU, of->path) ||
		    path_read_at(fd, room, step, at) || (!at && memcmp(room, ELFMAG, SELFMAG)))
			return false;
		own = crc32(own, room, (uInt)step);
	}
	return own == sum;
}

/* ---- candidate paths ---------------------------------------------------------- */

struct places {
	const struct debugfile_roots *roots;
	debugfile_visit_fn *visit;
	void *context;
	bool is_over;
};

/* Visits the path in `text`, and clears it. `rights`: of the process that chose the path. */
static struct sym_error *visit_place(struct places *places, struct buf *text, int root_fd,
				     const struct rights *rights, const struct debugfile_link *link)
{
	struct debugfile_place place = { .root_fd = root_fd, .rights = rights, .link = link };
	struct sym_error *error = NULL;

	place.path = buf_string(text);
	/* A path that is too long cannot exist. */
	if (place.path && !places->is_over)
		error = places->visit(places->context, &place, &places->is_over);
	else if (text->failure == BUF_NO_MEMORY)
		error = &sym_error_no_memory;
	buf_clear(text);
	return error;
}

static struct sym_error *visit_by_id(struct places *places, const struct elf_build_id *id,
				     const char *directory, int root_fd)
{
	char digits[2 * sizeof(id->bytes) + 1];
	struct sym_error *error;
	struct buf path;

	buf_init(&path, PATH_MAX);
	hex_write_bytes(digits, id->bytes, id->size_bytes);
	buf_printf(&path, "%s/.build-id/%.2s/%s.debug", directory, digits, digits + 2);
	error = visit_place(places, &path, root_fd, root_fd >= 0 ? places->roots->rights : NULL,
			    NULL);
	buf_deinit(&path);
	return error;
}

static struct sym_error *visit_all_by_id(struct places *places, const struct elf_build_id *id,
					 const struct debugfile_roots *roots)
{
	struct sym_error *error = NULL;

	for (const char *const *dir = roots->dirs; !error && dir && *dir; dir++)
		error = visit_by_id(places, id, *dir, -1);
	if (!error)
		error = visit_by_id(places, id, DEBUGFILE_DIRECTORY, -1);
	if (!error && roots->fd >= 0)
		error = visit_by_id(places, id, DEBUGFILE_DIRECTORY, roots->fd);
	return error;
}

/* The directory of the object, absolute if possible. */
static char *directory_of(const struct object_file *object, int root_fd)
{
	char *path = root_fd < 0 ? realpath(object->path, NULL) : NULL;
	char *slash;

	if (!path)
		path = strdup(object->path);
	slash = path ? strrchr(path, '/') : NULL;
	if (!slash) {
		free(path);
		return path ? strdup(".") : NULL;
	}
	*slash = '\0';
	return path;
}

/* Builds a path from the directory of the object: around[0], `own`, around[1], name of the link. */
static struct sym_error *visit_by_link(struct places *places, const char *const around[2],
				       const char *own, const struct debugfile_link *link,
				       int root_fd, const struct rights *rights)
{
	struct sym_error *error;
	struct buf path;

	buf_init(&path, PATH_MAX);
	buf_printf(&path, "%s%s%s%s", around[0], own, around[1], link->name);
	error = visit_place(places, &path, root_fd, rights, link);
	buf_deinit(&path);
	return error;
}

static struct sym_error *visit_standard_by_link(struct places *places, const char *own,
						const struct debugfile_link *link, int root_fd)
{
	static const char *const around[][2] = { { "", "/" },
						 { "", "/.debug/" },
						 { DEBUGFILE_DIRECTORY, "/" } };
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < sizeof(around) / sizeof(around[0]); i++)
		error = visit_by_link(places, around[i], own, link, root_fd, places->roots->rights);
	return error;
}

static struct sym_error *visit_all_by_link(struct places *places, const char *own,
					   const struct debugfile_link *link,
					   const struct debugfile_roots *roots)
{
	struct sym_error *error = NULL;

	for (const char *const *dir = roots->dirs; !error && dir && *dir; dir++) {
		const char *const around[2] = { *dir, "/" };

		error = visit_by_link(places, around, own, link, -1, NULL);
	}
	if (!error)
		error = visit_standard_by_link(places, own, link, roots->fd);
	/* A process that only changed its root is displayed with paths of this machine. */
	if (!error && roots->fd >= 0)
		error = visit_standard_by_link(places, own, link, -1);
	return error;
}

struct sym_error *debugfile_each_place(struct elf_sections *sections,
				       const struct debugfile_roots *roots,
				       debugfile_visit_fn *visit, void *context)
{
	struct places places = { .roots = roots, .visit = visit, .context = context };
	struct elf_build_id id = elf_sections_build_id(sections);
	struct sym_error *error = NULL;
	struct debugfile_link link;
	char *own AUTO_FREE = NULL;

	if (id.size_bytes >= 2)
		error = visit_all_by_id(&places, &id, roots);
	if (error || places.is_over || !debugfile_read_link(sections, &link))
		return error;
	own = directory_of(sections->object, roots->fd);
	if (!own)
		return &sym_error_no_memory;
	return visit_all_by_link(&places, own, &link, roots);
}

/* ---- checking candidates --------------------------------------------------------- */

struct search {
	struct elf_sections *sections;
	struct elf_build_id id;
	struct object_file *found;
	uint64_t distance;
	struct buf why; /* why the first existing file by build-id is not used */
};

static bool is_accepted(const struct search *search, const struct debugfile_place *place,
			struct elf_sections *separate)
{
	struct elf_build_id id = elf_sections_build_id(separate);

	if (id.size_bytes && search->id.size_bytes)
		return is_same_id(&id, &search->id);
	return place->link;
}

/* A file by link with another sum is not recorded: it belongs to another version of the program. */
static void record_unused(struct search *search, const struct debugfile_place *place, int fd,
			  const char *why)
{
	bool is_none = fd == -ENOENT || fd == -ENOTDIR;

	if (place->link || is_none || search->why.size_bytes)
		return;
	if (fd < 0)
		why = foreign_file_problem(fd);
	buf_printf(&search->why, "%s: %s", place->path, why);
}

static struct sym_error *try_place(void *context, const struct debugfile_place *place,
				   bool *is_over)
{
	struct search *search = context;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct elf_sections separate AUTO_ELF_SECTIONS = { 0 };
	int fd = foreign_file_open(place->root_fd, place->path, 0, place->rights, NULL);
	struct buf *why = &search->why;
	struct sym_error *error;

	/* The file may exist. */
	if (fd == -EMFILE || fd == -ENFILE)
		return sym_error_from_errno(-fd, place->path, "cannot open");
	if (fd >= 0 && place->link && !has_sum(search->sections->object, fd, place->link->sum)) {
		close(fd);
		fd = -1;
	}
	if (fd < 0) {
		record_unused(search, place, fd, NULL);
		return NULL;
	}
	error = open_separate(search->sections, fd, place->path, &object, &separate, why);
	if (error || !object)
		return error;
	if (object->kind != SYM_IMAGE_ELF) {
		record_unused(search, place, 0, "not an ELF file");
		return NULL;
	}
	if (!is_accepted(search, place, &separate)) {
		record_unused(search, place, 0, "its build-id does not match its path");
		return NULL;
	}
	if (!elf_sections_distance(search->sections, &separate, &search->distance)) {
		record_unused(search, place, 0,
			      "its code lies at other addresses than that of the image");
		return NULL;
	}
	search->found = STEAL(object);
	*is_over = true;
	return NULL;
}

void debugfile_record_unused(const struct object_file *object, const char *why)
{
	struct buf text;

	buf_init(&text, 2 * LIMIT_NAME_BYTES);
	buf_printf(&text, "its debug file exists but is not used: %s", why);
	object_file_record_debug_problem(
		object, buf_string(&text) ?: "its debug file exists but is not used");
	buf_deinit(&text);
}

struct sym_error *debugfile_find(struct elf_sections *sections, const struct debugfile_roots *roots,
				 struct object_file **ret, uint64_t *distance_ret)
{
	struct search search = { .sections = sections, .id = elf_sections_build_id(sections) };
	struct sym_error *error;

	buf_init(&search.why, LIMIT_NAME_BYTES);
	error = debugfile_each_place(sections, roots, try_place, &search);
	if (!search.found && search.why.size_bytes)
		debugfile_record_unused(sections->object,
					buf_string(&search.why) ?: "out of memory");
	buf_deinit(&search.why);
	*ret = search.found;
	*distance_ret = search.distance;
	return error;
}

/* ---- files that the caller provides ----------------------------------------------- */

static void append_id(struct buf *text, const struct elf_build_id *id)
{
	char digits[2 * sizeof(id->bytes) + 1];

	hex_write_bytes(digits, id->bytes, id->size_bytes);
	buf_append_string(text, id->size_bytes ? digits : "none");
}

/* Returns false if it is another file; `why` then describes it. */
static bool is_debug_file_of(struct elf_sections *sections, const struct object_file *object,
			     struct elf_sections *separate, struct buf *why)
{
	struct elf_build_id wanted = elf_sections_build_id(sections), found;
	struct debugfile_link link;
	uint64_t distance;

	if (object->kind != SYM_IMAGE_ELF) {
		buf_printf(why, "%s was provided as its debug file, but is not an ELF file",
			   object->path);
		return false;
	}
	found = elf_sections_build_id(separate);
	if ((wanted.size_bytes && is_same_id(&found, &wanted)) ||
	    (!(wanted.size_bytes && found.size_bytes) && debugfile_read_link(sections, &link) &&
	     has_sum(sections->object, object->fd, link.sum))) {
		if (elf_sections_distance(sections, separate, &distance) && !distance)
			return true;
		buf_printf(why, "%s was provided as its debug file, but the image's code was moved",
			   object->path);
		return false;
	}
	buf_printf(why, "%s was provided as its debug file, but has build-id ", object->path);
	append_id(why, &found);
	buf_append_string(why, ", the image has ");
	append_id(why, &wanted);
	return false;
}

struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct object_file **ret)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct elf_sections separate AUTO_ELF_SECTIONS = { 0 };
	struct buf unused;
	struct sym_error *error;
	int fd = foreign_file_open(-1, path, 0, NULL, NULL);

	buf_init(&unused, LIMIT_NAME_BYTES);
	*ret = NULL;
	if (fd < 0) {
		buf_printf(why, "%s was provided as its debug file and cannot be opened: %s", path,
			   foreign_file_problem(fd));
		return NULL;
	}
	error = open_separate(sections, fd, path, &object, &separate, &unused);
	buf_deinit(&unused);
	if (error)
		return error;
	if (!object)
		buf_printf(why, "%s was provided as its debug file and cannot be read", path);
	else if (is_debug_file_of(sections, object, &separate, why))
		*ret = STEAL(object);
	return NULL;
}
