/* SPDX-License-Identifier: MIT */
#include "libsym/address_space.h"

#include <string.h>
#include <time.h>

#include "libsym/format/maps.h"
#include "libsym/limits.h"

enum {
	SHORT_LINE_BYTES = 64 /* most have more */
};

/* A line on its way to its group; the path is still that of the text. */
struct line {
	const char *path;
	size_t path_bytes;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t index; /* of its mapping */
	uint32_t deleted;
};

/* Lines of one file side by side, as most of a file's are. */
struct run {
	const struct line *lines;
	size_t count;
};

/* What is growing while a text is parsed. */
struct parse {
	struct buf mappings; /* struct sym_mapping */
	struct buf lines;    /* struct line, only those with a path */
	struct buf runs;     /* struct run */
	struct buf files;    /* struct mapped_file */
	struct buf text;     /* paths, NUL terminated */
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* The path last: the cheap keys tell nearly all files apart. */
static int compare_groups(const struct line *a, const struct line *b)
{
	int order = compare_u64(a->inode, b->inode);

	if (!order)
		order = compare_u64(a->device_major, b->device_major);
	if (!order)
		order = compare_u64(a->device_minor, b->device_minor);
	if (!order)
		order = compare_u64(a->deleted, b->deleted);
	if (!order)
		order = compare_u64(a->path_bytes, b->path_bytes);
	if (!order)
		order = memcmp(a->path, b->path, a->path_bytes);
	return order;
}

static int compare_runs(const void *left, const void *right)
{
	const struct run *a = left, *b = right;
	int order = compare_groups(a->lines, b->lines);

	return order ? order : compare_u64(a->lines->index, b->lines->index);
}

static int compare_files(const void *left, const void *right)
{
	const struct mapped_file *a = left, *b = right;

	return compare_u64(a->mapping_indexes[0], b->mapping_indexes[0]);
}

static bool begins_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/*
 * Memory that the kernel gives the name of a file. The nameless ones always
 * read "(deleted)", a file of the same name in the root directory does not.
 * Runtimes without memfd_create() keep their code heap in /dev/shm.
 */
static bool is_memory(const char *path, bool deleted)
{
	static const char *const nameless[] = { "/memfd:", "/SYSV", "/anon_hugepage" };
	size_t i;

	/* No path of a file has two slashes side by side. */
	if (begins_with(path, "//anon"))
		return true;

	for (i = 0; deleted && i < sizeof(nameless) / sizeof(*nameless); i++)
		if (begins_with(path, nameless[i]))
			return true;
	if (begins_with(path, "/dev/shm/"))
		return begins_with(path, "/dev/shm/doublemapper_");
	return begins_with(path, "/dev/");
}

/*
 * A program or library out of a memfd, as fexecve() and dlopen() load it: privately, beginning with
 * its headers, and no page both written and executed. A runtime's code heap is shared with itself.
 */
static bool is_loaded_memfd(const char *path, const struct sym_mapping *mappings,
			    const uint32_t *indexes, size_t count)
{
	const uint32_t both = SYM_WRITE | SYM_EXECUTE;
	uint32_t any = 0;

	if (!begins_with(path, "/memfd:") || !strcmp(path, "/memfd:doublemapper") ||
	    mappings[indexes[0]].offset)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t protection = mappings[indexes[i]].protection;

		if (protection & SYM_SHARED || (protection & both) == both)
			return false;
		any |= protection;
	}
	return any & SYM_EXECUTE;
}

static void parse_lines(struct parse *parse, const char *text, size_t size_bytes,
			uint64_t *bad_lines_ret)
{
	uint64_t previous_end = 0;
	struct maps_parser parser;
	struct maps_line line;
	size_t count = 0;

	/* About as many as there are, so that nothing is moved; what is not written costs nothing.
	 */
	buf_reserve(&parse->mappings, size_bytes / SHORT_LINE_BYTES * sizeof(struct sym_mapping));
	buf_reserve(&parse->lines, size_bytes / SHORT_LINE_BYTES * sizeof(struct line));
	maps_parser_init(&parser, text, size_bytes);
	while (maps_parser_next(&parser, &line)) {
		struct sym_mapping mapping = {
			.start_address = line.start_address,
			.end_address = line.end_address,
			.offset = line.offset,
			.inode = line.inode,
			.device_major = line.device_major,
			.device_minor = line.device_minor,
			.protection = line.protection,
			.image_index = UINT32_MAX,
			.path = "",
			.deleted = line.deleted,
		};
		struct line named = {
			.path = line.path,
			.path_bytes = line.path_bytes,
			.inode = line.inode,
			.device_major = line.device_major,
			.device_minor = line.device_minor,
			.index = (uint32_t)count,
			.deleted = line.deleted,
		};

		if (line.start_address < previous_end || line.end_address <= line.start_address) {
			parser.bad_lines++;
			continue;
		}
		previous_end = line.end_address;
		count++;
		buf_append(&parse->mappings, &mapping, sizeof(mapping));
		if (line.path_bytes)
			buf_append(&parse->lines, &named, sizeof(named));
	}
	*bad_lines_ret = parser.bad_lines;
}

/* The mappings of some lines to `indexes`. */
static void add_lines(const struct run *run, const char *path, struct sym_mapping *mappings,
		      uint32_t *indexes, struct mapped_file *file)
{
	for (size_t i = 0; i < run->count; i++) {
		struct sym_mapping *mapping = &mappings[run->lines[i].index];

		indexes[i] = run->lines[i].index;
		mapping->path = path;
		file->executable |= (mapping->protection & SYM_EXECUTE) != 0;
	}
}

/* One group: its path to the text, its mappings to `indexes`, how many. Paths are offsets until the
 * text has stopped growing. */
static size_t add_group(struct parse *parse, const struct run *runs, size_t count,
			struct sym_mapping *mappings, uint32_t *indexes)
{
	const struct line *line = runs->lines;
	size_t path_offset = parse->text.size_bytes, i;
	struct mapped_file file = {
		.inode = line->inode,
		.device_major = line->device_major,
		.device_minor = line->device_minor,
		.deleted = line->deleted,
		.mapping_indexes = indexes,
	};
	char *path = buf_reserve(&parse->text, line->path_bytes + 1);

	if (!path)
		return 0;
	parse->text.size_bytes += maps_unescape_path(line->path, line->path_bytes, path) + 1;
	parse->text.data[parse->text.size_bytes - 1] = '\0';
	for (i = 0; i < count; i++) {
		add_lines(&runs[i], (const char *)path_offset, mappings,
			  indexes + file.mapping_count, &file);
		file.mapping_count += runs[i].count;
	}
	if (*path == '/') {
		file.memory = is_memory(path, file.deleted) &&
			      !is_loaded_memfd(path, mappings, indexes, file.mapping_count);
		buf_append(&parse->files, &file, sizeof(file));
	}
	return file.mapping_count;
}

static void find_runs(struct parse *parse)
{
	const struct line *lines = (const struct line *)parse->lines.data;
	size_t count = parse->lines.size_bytes / sizeof(*lines);
	size_t first, end;

	for (first = 0; first < count; first = end) {
		struct run run = { .lines = &lines[first] };

		for (end = first + 1; end < count; end++)
			if (compare_groups(&lines[first], &lines[end]))
				break;
		run.count = end - first;
		buf_append(&parse->runs, &run, sizeof(run));
	}
}

static void group_lines(struct parse *parse, struct address_space *space)
{
	uint32_t *indexes = space->mapping_indexes;
	size_t first, end, count;
	struct run *runs;

	find_runs(parse);
	runs = (struct run *)parse->runs.data;
	count = parse->runs.size_bytes / sizeof(*runs);
	if (!count || parse->runs.failure != BUF_OK)
		return;
	qsort(runs, count, sizeof(*runs), compare_runs);
	for (first = 0; first < count; first = end) {
		for (end = first + 1; end < count; end++)
			if (compare_groups(runs[first].lines, runs[end].lines))
				break;
		indexes += add_group(parse, &runs[first], end - first,
				     (struct sym_mapping *)parse->mappings.data, indexes);
	}
}

/* Offsets become pointers; what has grown becomes the address space's. */
static struct sym_error *take(struct parse *parse, struct address_space *space)
{
	const struct line *lines = (const struct line *)parse->lines.data;
	size_t line_count = parse->lines.size_bytes / sizeof(*lines);
	size_t i;

	space->mapping_count = parse->mappings.size_bytes / sizeof(*space->mappings);
	space->file_count = parse->files.size_bytes / sizeof(*space->files);
	space->mappings = (struct sym_mapping *)buf_steal(&parse->mappings, NULL);
	space->files = (struct mapped_file *)buf_steal(&parse->files, NULL);
	space->text = buf_steal(&parse->text, NULL);
	if (!space->mappings || !space->files || !space->text)
		return &sym_error_no_memory;
	for (i = 0; i < line_count; i++) {
		struct sym_mapping *mapping = &space->mappings[lines[i].index];

		mapping->path = space->text + (size_t)mapping->path;
	}
	for (i = 0; i < space->file_count; i++)
		space->files[i].path = space->mappings[space->files[i].mapping_indexes[0]].path;
	qsort(space->files, space->file_count, sizeof(*space->files), compare_files);
	return NULL;
}

static struct sym_error *build(struct parse *parse, const char *text, size_t size_bytes,
			       struct address_space *space)
{
	const struct buf *grown[] = { &parse->mappings, &parse->lines, &parse->runs, &parse->text,
				      &parse->files };
	size_t i;

	parse_lines(parse, text, size_bytes, &space->bad_lines);
	space->mapping_indexes = malloc(parse->lines.size_bytes / sizeof(struct line) *
						sizeof(*space->mapping_indexes) +
					1);
	if (!space->mapping_indexes)
		return &sym_error_no_memory;
	if (parse->mappings.failure == BUF_OK && parse->lines.failure == BUF_OK)
		group_lines(parse, space);
	for (i = 0; i < sizeof(grown) / sizeof(*grown); i++)
		if (grown[i]->failure != BUF_OK)
			return sym_error_from_buf(grown[i], "maps");
	return take(parse, space);
}

struct sym_error *address_space_parse(const char *text, size_t size_bytes,
				      struct address_space **ret)
{
	struct address_space *space AUTO_ADDRESS_SPACE = calloc(1, sizeof(*space));
	/* The shortest line has 20 bytes; a struct is at most 8 times that. */
	size_t most_bytes = size_bytes * 8 + 64;
	struct sym_error *error;
	struct parse parse;

	if (!space)
		return &sym_error_no_memory;
	space->read_ns = INT64_MAX;
	if (size_bytes > LIMIT_MAPS_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT, "maps: more than %zu bytes",
					LIMIT_MAPS_BYTES);
	buf_init(&parse.mappings, most_bytes);
	buf_init(&parse.lines, most_bytes);
	buf_init(&parse.runs, most_bytes);
	buf_init(&parse.files, most_bytes);
	buf_init(&parse.text, most_bytes);
	error = build(&parse, text, size_bytes, space);
	buf_deinit(&parse.mappings);
	buf_deinit(&parse.lines);
	buf_deinit(&parse.runs);
	buf_deinit(&parse.files);
	buf_deinit(&parse.text);
	if (!error)
		*ret = STEAL(space);
	return error;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The text of maps, of a process that is the same after it was read: the maps of one that has ended
 * are empty, those of one in exec() are of two programs. Once more where they may be empty, or
 * could not be read, because they belong to a thread that has ended before others.
 */
static struct sym_error *read_maps(const struct process *process, struct buf *text)
{
	struct sym_error *error = process_read_file(process, "maps", text);
	struct sym_error *changed = process_check(process);

	if (!changed && (error || !text->size_bytes)) {
		sym_error_destroy(error);
		buf_clear(text);
		error = process_read_file(process, "maps", text);
		changed = process_check(process);
	}
	if (!changed)
		return error;
	sym_error_destroy(error);
	return changed;
}

struct sym_error *address_space_read_changed(const struct process *process,
					     const struct buf *before, struct buf *text,
					     struct address_space **ret)
{
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	int64_t read_ns = now_ns();
	struct sym_error *error = read_maps(process, text);

	if (!error && before && text->size_bytes && text->size_bytes == before->size_bytes &&
	    !memcmp(text->data, before->data, text->size_bytes)) {
		*ret = NULL;
		return NULL;
	}
	if (!error)
		error = address_space_parse(text->data, text->size_bytes, &space);
	if (error)
		return error;
	if (!process->recorded)
		space->read_ns = read_ns;
	*ret = STEAL(space);
	return NULL;
}

struct sym_error *address_space_read(const struct process *process, struct address_space **ret)
{
	struct sym_error *error;
	struct buf text;

	buf_init(&text, LIMIT_MAPS_BYTES);
	error = address_space_read_changed(process, NULL, &text, ret);
	buf_deinit(&text);
	return error;
}

void address_space_destroy(struct address_space *space)
{
	if (!space)
		return;
	free(space->mappings);
	free(space->files);
	free(space->mapping_indexes);
	free(space->text);
	free(space);
}

size_t address_space_find(const struct address_space *space, uint64_t address)
{
	const struct sym_mapping *mapping = space->mappings;
	size_t count = space->mapping_count;

	/* The last mapping that starts at or below the address; without a branch that would be
	 * guessed wrong every other time. */
	while (count > 1) {
		size_t half = count / 2;

		mapping = mapping[half].start_address <= address ? mapping + half : mapping;
		count -= half;
	}
	if (!count || mapping->start_address > address || mapping->end_address <= address)
		return ADDRESS_SPACE_NONE;
	return (size_t)(mapping - space->mappings);
}
