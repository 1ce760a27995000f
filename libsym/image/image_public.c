/* SPDX-License-Identifier: MIT */
/* Functions of sym_image.h about one image. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/elf/debugfile.h"
#include "libsym/elf/event_stubs.h"
#include "libsym/image/archive_images.h"
#include "libsym/image/embedded_image.h"
#include "libsym/image/image.h"
#include "libsym/image/image_lines.h"
#include "libsym/limits.h"
#include "libsym/symbols/result.h"

static char *directory_of(const char *path)
{
	const char *name = path_file_name(path);

	if (name == path)
		return strdup(".");
	return name == path + 1 ? strdup("/") : strndup(path, (size_t)(name - 1 - path));
}

struct sym_error *sym_image_open(const char *path, struct sym_image **ret)
{
	return sym_image_open_with(path, NULL, ret);
}

/* Opens a file, or a member of an archive when "ARCHIVE!/NAME" is not a file. */
static struct sym_error *open_file(struct budget *budget, const char *path,
				   struct object_file **ret)
{
	struct sym_error *error = NULL;
	int fd AUTO_CLOSE = -1;

	*ret = NULL;
	/*
	 * The path is not resolved first: /proc/PID/root/... differs from what its links spell out.
	 */
	fd = foreign_file_open(-1, path, 0, NULL, NULL);
	if (fd == -ENOENT || fd == -ENOTDIR)
		error = embedded_image_open_path(budget, path, ret);
	if (error || *ret)
		return error;
	if (fd == -EINVAL)
		return sym_error_create_path(SYM_ERROR_ARGUMENT, path, SYM_OFFSET_UNKNOWN,
					     "not a regular file");
	if (fd < 0)
		return sym_error_from_errno(-fd, path, "cannot open");
	error = object_file_open(budget_account_of_file(budget, fd), fd, path, 0,
				 SPARSE_FILE_TO_END, ret);
	if (!error)
		steal_fd(&fd);
	return error;
}

struct sym_error *sym_image_open_with(const char *path, const struct sym_image_opts *opts,
				      struct sym_image **ret)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_image *image AUTO_IMAGE = NULL;
	struct sym_image_opts checked;
	struct sym_error *error =
		sym_error_read_opts(opts, "sym_image_opts", &checked, sizeof(checked));

	if (!error)
		error = open_file(budget_inside(checked.budget), path, &object);
	if (!error)
		error = image_create(path, object, &image);
	if (error)
		return error;
	image->assembly_directory = directory_of(path);
	if (!image->assembly_directory ||
	    !path_list_copy(checked.assembly_dirs, &image->assembly_dirs))
		return &sym_error_no_memory;
	*ret = STEAL(image);
	return NULL;
}

void sym_image_close(struct sym_image *image)
{
	image_destroy(image);
}

const char *sym_image_path(const struct sym_image *image)
{
	return image->path;
}

const char *sym_image_kind_text(enum sym_image_kind kind)
{
	static const char *const texts[] = {
		[SYM_IMAGE_UNKNOWN] = "unknown",
		[SYM_IMAGE_ELF] = "elf",
		[SYM_IMAGE_IL] = "il",
		[SYM_IMAGE_READYTORUN] = "r2r",
		[SYM_IMAGE_COMPONENT] = "component",
		[SYM_IMAGE_COMPOSITE] = "composite",
		[SYM_IMAGE_NGEN] = "ngen",
		[SYM_IMAGE_NATIVE_PE] = "pe",
	};

	return (size_t)kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : "unknown";
}

const char *sym_image_assembly_name(const struct sym_image *image)
{
	return image->object ? object_file_assembly_name(image->object) : NULL;
}

const char *sym_image_mvid(const struct sym_image *image)
{
	return image->object ? object_file_mvid_text(image->object) : NULL;
}

const char *sym_image_composite(const struct sym_image *image)
{
	return image->object ? object_file_composite_name(image->object) : NULL;
}

const char *sym_image_content_key(const struct sym_image *image)
{
	return image->object ? object_file_content_key(image->object) : NULL;
}

const char *sym_image_problem(const struct sym_image *image)
{
	const struct image_trouble *trouble = image_trouble(image);

	return trouble ? trouble->text : NULL;
}

const char *sym_image_rejected_map(const struct sym_image *image)
{
	return image_refused_map(image);
}

/* Fails when the image was used already, or belongs to a snapshot. */
static struct sym_error *check_untouched(const struct sym_image *image)
{
	if (image->index != UINT32_MAX)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"an image of a process: that is for sym_snapshot_opts");
	if (image_was_asked(image))
		return sym_error_create(SYM_ERROR_ARGUMENT, "the image was used already");
	return NULL;
}

struct sym_error *sym_image_set_fetch(struct sym_image *image, sym_fetch_fn *fetch, void *context)
{
	struct sym_error *error = check_untouched(image);

	if (error)
		return error;
	image->debug_fetch.fetch = fetch;
	image->debug_fetch.context = context;
	return NULL;
}

struct sym_error *sym_image_set_debug_dirs(struct sym_image *image, const char *const *dirs)
{
	struct sym_error *error = check_untouched(image);
	char **copy = NULL;

	if (!error && !path_list_copy(dirs, &copy))
		error = &sym_error_no_memory;
	if (error)
		return error;
	path_list_free(image->own_debug_dirs);
	image->own_debug_dirs = copy;
	image->roots.dirs = (const char *const *)copy;
	return NULL;
}

struct sym_error *sym_image_fork_for_dwarf(struct sym_image *image)
{
	struct sym_error *error = check_untouched(image);

	if (!error)
		image->forks_for_dwarf = true;
	return error;
}

const char *sym_image_rejected_debug_file(const struct sym_image *image)
{
	return debug_fetch_problem(&image->debug_fetch);
}

const char *sym_image_symbol_file(const struct sym_image *image)
{
	/* Only what is read once and kept. */
	return image_symbol_file((struct sym_image *)image);
}

/* The callback of sym_image_each_debug_path(). */
struct listener {
	sym_debug_path_fn *tell;
	void *context;
};

static struct sym_error *pass_on(void *context, const struct debugfile_place *place, bool *is_over)
{
	const struct listener *listener = context;
	const struct sym_debug_path told = {
		.path = place->path,
		.flags = (place->root_fd >= 0 ? SYM_DEBUG_PATH_IN_PROCESS_ROOT : 0) |
			 (place->link ? SYM_DEBUG_PATH_BY_LINK : 0),
	};

	*is_over = listener->tell(listener->context, &told) != 0;
	return NULL;
}

struct sym_error *sym_image_each_debug_path(struct sym_image *image, sym_debug_path_fn *tell,
					    void *context)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct listener listener = { .tell = tell, .context = context };
	struct sym_error *error;

	if (!image->object)
		return sym_error_create_path(SYM_ERROR_NOT_FOUND, image->path, SYM_OFFSET_UNKNOWN,
					     "the file is not open");
	if (image->object->kind != SYM_IMAGE_ELF)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, image->path, SYM_OFFSET_UNKNOWN,
					     "no ELF file: it has no separate debug file");
	error = elf_sections_read(image->object, &sections);
	return error ? error : debugfile_each_place(&sections, &image->roots, pass_on, &listener);
}

uint64_t sym_image_load_base(const struct sym_image *image)
{
	return image->load_base;
}

/* Replaces positions by offsets. It keeps the first alias, which is the preferred one. */
static void place_in_file(const struct object_file *object, struct sym_symbols *list)
{
	uint64_t last_position = UINT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct sym_symbol symbol = list->items[i];
		uint64_t left_bytes;

		if (symbol.start == last_position)
			continue;
		last_position = symbol.start;
		if (!object_file_position_to_offset(object, symbol.start, &symbol.start,
						    &left_bytes))
			continue;
		if (symbol.size_bytes > left_bytes)
			symbol.size_bytes = left_bytes;
		list->items[kept++] = symbol;
	}
	list->count = kept;
}

struct sym_error *sym_image_symbols(struct sym_image *image, uint32_t flags,
				    struct sym_symbols **ret)
{
	struct symbols_builder builder AUTO_SYMBOLS_BUILDER = { 0 };
	struct source_sink sink = {
		.builder = &builder,
		.image_index = image_index(image),
		.stubs = flags & SYM_IMAGE_SYMBOLS_STUBS,
		.unnamed = flags & SYM_IMAGE_SYMBOLS_UNNAMED,
		.linkage_names = flags & SYM_IMAGE_SYMBOLS_LINKAGE_NAMES,
	};
	static const uint32_t known = SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_UNNAMED |
				      SYM_IMAGE_SYMBOLS_LINKAGE_NAMES | SYM_IMAGE_SYMBOLS_BY_OFFSET;
	struct sym_error *error;

	if (flags & ~known)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", flags);
	error = image_list_symbols(image, &sink);
	if (error)
		return error;
	if (!(flags & SYM_IMAGE_SYMBOLS_BY_OFFSET))
		return symbols_freeze(&builder, ret);
	place_in_file(image->object, &builder.list);
	return symbols_freeze_disjoint(&builder, ret);
}

/* True for the result of objcopy --only-keep-debug, which has no code and no offsets. */
static bool has_no_code(const struct object_file *object)
{
	for (size_t i = 0; object && i < object->segment_count; i++)
		if (object->segments[i].executable && !object->segments[i].size_bytes)
			return true;
	return false;
}

static void resolve_one(struct sym_image *image, enum sym_position_kind kind,
			struct sym_answer *answer)
{
	uint64_t position = answer->address;
	struct sym_image *member =
		kind == SYM_POSITION_OFFSET ? archive_image_at(image, position, &position) : NULL;

	image = member ? member : image;
	answer->image = image;
	answer->image_path = image->path;
	answer->image_position = UINT64_MAX;
	/* In a relocatable file, functions of different sections have the same vaddr. */
	if (kind == SYM_POSITION_VADDR && image->object && image->object->is_relocatable) {
		answer->status = SYM_UNSUPPORTED;
		answer->reason = "an object file, whose code has no vaddr before it is linked";
		return;
	}
	if (kind == SYM_POSITION_OFFSET && !image_trouble(image) &&
	    sym_image_kind(image) != SYM_IMAGE_UNKNOWN &&
	    !(image->object &&
	      object_file_offset_to_position(image->object, position, &position))) {
		answer->status = SYM_NO_MATCH;
		answer->reason = has_no_code(image->object)
					 ? "a debug file, which knows vaddrs and no offsets"
					 : "this part of the file is loaded nowhere";
		return;
	}
	answer->image_position = position;
	image_find_symbol(image, position, answer);
}

struct sym_error *sym_image_resolve(struct sym_image *image, enum sym_position_kind kind,
				    const uint64_t *positions, size_t count,
				    struct sym_result *result)
{
	bool is_elf = sym_image_kind(image) == SYM_IMAGE_ELF;
	uint64_t *room AUTO_FREE = NULL;
	struct sym_error *error;

	if ((unsigned int)kind > SYM_POSITION_VADDR)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown kind of position");
	if (image->object && image->object->kind != SYM_IMAGE_UNKNOWN &&
	    kind == (is_elf ? SYM_POSITION_RVA : SYM_POSITION_VADDR))
		return sym_error_create_path(SYM_ERROR_ARGUMENT, image->path, SYM_OFFSET_UNKNOWN,
					     is_elf ? "an ELF file has vaddrs, no rvas"
						    : "a PE file has rvas, no vaddrs");
	positions = result_looked_up(result, positions, count, &room);
	if (!positions && count)
		return &sym_error_no_memory;
	error = result_prepare(result, positions, count);
	for (size_t i = 0; !error && i < count; i++) {
		struct sym_answer *answer = &result->slots[i];

		resolve_one(image, kind, answer);
		if (result->fields && answer->image_position != UINT64_MAX)
			error = image_describe_whole((struct sym_image *)answer->image,
						     answer->image_position, result, i);
	}
	result_finish(result);
	result_return(result);
	return error;
}

struct sym_error *sym_image_resolve_rows(struct sym_image *image, enum sym_position_kind kind,
					 const uint64_t *positions, size_t count,
					 struct sym_result *result)
{
	const uint32_t fields = result->fields;
	struct sym_error *error;
	size_t row_count = 0;
	struct buf rows;

	buf_init(&rows, LIMIT_LINE_ROWS_BYTES);
	/* Names suffice to find the methods. */
	result->fields = 0;
	error = sym_image_resolve(image, kind, positions, count, result);
	result->fields = fields & ~(uint32_t)SYM_FIELD_RETURN_ADDRESSES;
	for (size_t i = 0; !error && i < result->count; i++)
		image_append_rows(&result->slots[i], &rows);
	if (!error)
		error = il_rows_settle(&rows, &row_count);
	if (!error)
		error = sym_image_resolve(image, kind, (const uint64_t *)rows.data, row_count,
					  result);
	result->fields = fields;
	buf_deinit(&rows);
	return error;
}

struct sym_error *sym_image_find_event_stubs(struct sym_image *image, const char *const *names,
					     size_t count, uint64_t *offsets_ret)
{
	if (image->object)
		return event_stubs_find(image->object, names, count, offsets_ret);
	for (size_t i = 0; i < count; i++)
		offsets_ret[i] = UINT64_MAX;
	return NULL;
}
