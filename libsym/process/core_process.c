/* SPDX-License-Identifier: MIT */
/*
 * How a core file becomes a process.
 *
 * The notes have the identity, the mapped files and the auxiliary vector; the segments have the
 * memory.
 * core_address_space() cuts the address range at every border of a segment or a mapped file. It
 * writes a line of maps for each piece and parses the text, so that later code sees one form of
 * maps.
 * core_check_image() decides whether a file on disk is the mapped one. It compares times, then the
 * first page of an ELF file or the relocated pointers of a PE file.
 */
#include "libsym/process/core_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libsym/base/ascending.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/file/sparse_file.h"
#include "libsym/limits.h"
#include "libsym/process/relocation_check.h"

enum {
	FLAG_EXECUTE = 1,
	FLAG_WRITE = 2,
	FLAG_READ = 4,
	COMPARED_BYTES = 4096,
};

void core_close(struct core *core)
{
	if (!core)
		return;
	free(core->by_path);
	elf_core_deinit(&core->elf);
	if (core->fd >= 0)
		close(core->fd);
	free(core->path);
	free(core);
}

static bool read_at(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, offset);
}

static int compare_files(const void *left, const void *right)
{
	const struct elf_core_file *a = *(const struct elf_core_file *const *)left;
	const struct elf_core_file *b = *(const struct elf_core_file *const *)right;
	int order = strcmp(a->path, b->path);

	if (order)
		return order;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->start_address < b->start_address ? -1 : a->start_address > b->start_address;
}

static struct sym_error *sort_files(struct core *core)
{
	size_t count = core->elf.file_count;

	core->by_path = calloc(count + 1, sizeof(*core->by_path));
	if (!core->by_path)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count; i++)
		core->by_path[i] = &core->elf.files[i];
	qsort(core->by_path, count, sizeof(*core->by_path), compare_files);
	return NULL;
}

/* Index of the first file with the path, or where it would be inserted. */
static size_t find_path(const struct core *core, const char *path)
{
	return ASCENDING_COUNT(core->elf.file_count, i, strcmp(core->by_path[i]->path, path) < 0);
}

static struct sym_error *open_core(const char *path, struct core **ret)
{
	struct core *core AUTO_CORE = calloc(1, sizeof(*core));
	struct byte_source source = { .read = read_at };
	struct stat status;
	struct sym_error *error;

	if (!core)
		return &sym_error_no_memory;
	core->path = strdup(path);
	if (!core->path)
		return &sym_error_no_memory;
	core->fd = foreign_file_open(-1, path, 0, NULL, &status);
	if (core->fd == -EINVAL)
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, path, SYM_OFFSET_UNKNOWN, "%s",
					     foreign_file_problem(core->fd));
	if (core->fd < 0)
		return sym_error_from_errno(-core->fd, path, "cannot open");
	source.fd = core->fd;
	source.size_bytes = (uint64_t)status.st_size;
	core->time_ns = sparse_file_time_ns(&status);
	error = elf_core_read(&source, path, &core->elf);
	if (!error)
		error = sort_files(core);
	if (!error)
		*ret = STEAL(core);
	return error;
}

/* ---- who it was ------------------------------------------------------------- */

/* The program is the file that contains the program headers in the auxiliary vector. */
static const char *executable_path(const struct elf_core *core)
{
	const struct elf_core_file *file = elf_core_find_file(core, core->program_headers);

	return file ? file->path : "";
}

static const struct process_core_ops core_ops = {
	.close = core_close,
	.read = core_read,
};

struct sym_error *core_process_open(const char *path, const char *root, struct process **ret)
{
	struct process *process AUTO_PROCESS = calloc(1, sizeof(*process));
	struct sym_error *error;

	if (!process)
		return &sym_error_no_memory;
	process->core_ops = &core_ops;
	process->root_fd = process->id_fd = process->proc_fd = -1;
	process->recorded = true;
	process->mount_namespace_fd = -1;
	process->start_time_ns = PROCESS_TIME_UNKNOWN;
	error = open_core(path, &process->core);
	if (error)
		return error;
	process->pid = process->namespace_pid = process->core->elf.pid;
	process->uid = process->core->elf.uid;
	process->gid = process->core->elf.gid;
	process->comm = strdup(process->core->elf.command);
	process->executable = strdup(executable_path(&process->core->elf));
	process->root_prefix = strdup(root ? root : "");
	process->proc_path = strdup(path);
	if (!process->comm || !process->executable || !process->root_prefix || !process->proc_path)
		return &sym_error_no_memory;
	process->root_fd = open(root && *root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process->root_fd < 0)
		return sym_error_from_errno(errno, root, "cannot open");
	*ret = STEAL(process);
	return NULL;
}

/* ---- what was mapped ---------------------------------------------------------- */

static void append_path(struct buf *text, const char *path)
{
	for (; *path; path++)
		if (*path == '\n')
			buf_append_string(text, "\\012");
		else
			buf_append_char(text, *path);
}

/* Lines with the same path get the same inode: the index of the path. */
static void append_line(const struct core *core, uint64_t start, uint64_t end, struct buf *text)
{
	const struct elf_core_segment *segment = elf_core_find(&core->elf, start);
	const struct elf_core_file *file = elf_core_find_file(&core->elf, start);
	uint32_t flags = segment ? segment->flags : FLAG_READ | FLAG_EXECUTE;

	if (!segment && !file)
		return;
	buf_printf(text, "%" PRIx64 "-%" PRIx64 " %c%c%cp %" PRIx64 " 00:00 %zu ", start, end,
		   flags & FLAG_READ ? 'r' : '-', flags & FLAG_WRITE ? 'w' : '-',
		   flags & FLAG_EXECUTE ? 'x' : '-',
		   file ? file->offset + (start - file->start_address) : 0,
		   file ? find_path(core, file->path) + 1 : 0);
	if (file)
		append_path(text, file->path);
	else if (core->elf.vdso && start == core->elf.vdso)
		buf_append_string(text, "[vdso]");
	buf_append_char(text, '\n');
}

struct sym_error *core_address_space(const struct core *core, struct address_space **ret)
{
	const struct elf_core *elf = &core->elf;
	size_t count = 0, total = 2 * (elf->segment_count + elf->file_count);
	uint64_t *borders AUTO_FREE = calloc(total + 1, sizeof(*borders));
	struct sym_error *error;
	struct buf text;

	if (!borders)
		return &sym_error_no_memory;
	for (size_t i = 0; i < elf->segment_count; i++) {
		borders[count++] = elf->segments[i].address;
		borders[count++] = elf->segments[i].address + elf->segments[i].memory_bytes;
	}
	for (size_t i = 0; i < elf->file_count; i++) {
		borders[count++] = elf->files[i].start_address;
		borders[count++] = elf->files[i].end_address;
	}
	if (count)
		ascending_sort(borders, count);
	buf_init(&text, LIMIT_MAPS_BYTES);
	for (size_t i = 0; i + 1 < count; i++)
		if (borders[i] < borders[i + 1])
			append_line(core, borders[i], borders[i + 1], &text);
	error = text.failure == BUF_OK ? address_space_parse(text.data, text.size_bytes, ret)
				       : sym_error_from_buf(&text, "mappings of the core file");
	buf_deinit(&text);
	return error;
}

/* ---- memory ---------------------------------------------------------------------- */

size_t core_read(const struct core *core, uint64_t address, void *room, size_t size_bytes)
{
	size_t done = 0;

	while (done < size_bytes) {
		uint64_t at = address + done;
		const struct elf_core_segment *segment = elf_core_find(&core->elf, at);
		uint64_t inside = segment ? at - segment->address : 0, left;

		if (!segment || inside >= segment->file_bytes)
			break;
		left = segment->file_bytes - inside;
		if (left > size_bytes - done)
			left = size_bytes - done;
		if (path_read_at(core->fd, (uint8_t *)room + done, (size_t)left,
				 segment->offset + inside))
			break;
		done += (size_t)left;
	}
	return done;
}

static struct sym_error *core_stale_error(const struct object_file *object, const char *why)
{
	return sym_error_create_path(SYM_ERROR_STALE, object->path, SYM_OFFSET_UNKNOWN, "%s", why);
}

/*
 * Address of the first page of the file.
 * A part of the file can be mapped once more, far away (V8 does so with its builtins). Then other
 * memory precedes that part.
 */
static uint64_t first_page(const struct core *core, const struct object_file *object,
			   uint64_t load_base)
{
	uint64_t expected = load_base + object->segments[0].position;
	const struct elf_core_file *file = elf_core_find_file(&core->elf, expected);
	size_t place;

	if (file && !strcmp(file->path, object->path))
		return expected;
	place = find_path(core, object->path);
	if (place < core->elf.file_count && !core->by_path[place]->offset &&
	    !strcmp(core->by_path[place]->path, object->path))
		return core->by_path[place]->start_address;
	return expected;
}

/* The first page contains the build-id in all current linkers' output. */
static struct sym_error *check_elf(const struct core *core, const struct object_file *object,
				   uint64_t load_base)
{
	struct sparse_file view = object_file_view(object);
	size_t size_bytes = view.size_bytes < COMPARED_BYTES ? view.size_bytes : COMPARED_BYTES;
	uint8_t bytes[COMPARED_BYTES];
	struct sym_error *error = NULL;

	if (core_read(core, first_page(core, object, load_base), bytes, size_bytes) < size_bytes)
		error = core_stale_error(
			object,
			core->elf.missing_bytes
				? "the core file was cut off before its first page: the mapped "
				  "file cannot be identified"
				: "the core file does not have its first page: the mapped "
				  "file cannot be identified");
	if (!error)
		error = sparse_file_need(&view, object->path, 0, size_bytes);
	if (!error && memcmp(view.data, bytes, size_bytes) != 0)
		error = core_stale_error(object, "the file is not the one that was mapped");
	sparse_file_deinit(&view);
	return error;
}

struct sym_error *core_check_image(const struct process *process, const struct object_file *object,
				   uint64_t load_base)
{
	struct sym_error *error;

	if (object->path[0] == '[' || load_base == UINT64_MAX)
		return NULL; /* the kernel's vDSO, from the core itself */
	if (object->file.changed_ns > process->core->time_ns)
		return core_stale_error(object,
					"the file was changed after the core file was written");
	if (object->kind == SYM_IMAGE_ELF)
		return object->segment_count ? check_elf(process->core, object, load_base) : NULL;
	error = relocation_check_ask(process, object, load_base);
	if (error && sym_error_code(error) == SYM_ERROR_PERMISSION) {
		sym_error_destroy(error); /* no relocated page to compare */
		error = NULL;
	}
	return error;
}
