/* SPDX-License-Identifier: MIT */
/*
 * How the lines of maps become files.
 *
 *   lines  -->  groups  lines with the same device, inode, path and " (deleted)"; found by sorting
 *          -->  files   one for each group, with the indexes of its mappings, by first mapping
 *
 * The paths of all groups are copied into one block.
 */
#include "libsym/process/address_space.h"

#include <string.h>
#include <time.h>

#include "libsym/format/linux/mapping_name.h"
#include "libsym/limits.h"

/* A line with a path. */
struct named {
	const char *path; /* of the text */
	size_t path_bytes;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t deleted;
	uint32_t index; /* of its mapping */
};

/* State of parsing a text of maps. */
struct parse {
	struct buf mappings; /* struct sym_mapping; the path is NULL until its group gives one */
	struct buf named;    /* struct named */
	struct buf files;    /* struct address_space_file */
	size_t paths_bytes;  /* of the paths of all lines, with their NULs */
	uint64_t previous_end;
	uint64_t bad_lines;
	uint32_t line_count; /* well-formed lines */
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* The path last: the cheap keys already separate nearly all files. */
static int compare_groups(const struct named *a, const struct named *b)
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

static int compare_named(const void *left, const void *right)
{
	const struct named *a = left, *b = right;
	int order = compare_groups(a, b);

	return order ? order : compare_u64(a->index, b->index);
}

static int compare_files(const void *left, const void *right)
{
	const struct address_space_file *a = left, *b = right;

	return compare_u64(a->mapping_indexes[0], b->mapping_indexes[0]);
}

static bool begins_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/*
 * Kernel memory with the name of a file.
 * Nameless memory is always "(deleted)"; a file of the same name in the root directory is not.
 * Runtimes without memfd_create() keep their code heap in /dev/shm.
 */
static bool is_memory(const char *path, bool deleted)
{
	static const char *const nameless[] = { "/memfd:", "/SYSV", "/anon_hugepage" };
	size_t i;

	/* The path of a file never has two slashes in a row. */
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
 * A program or library loaded from a memfd by fexecve() or dlopen(): a private mapping that starts
 * with the headers and has no page that is both written and executed.
 * A runtime maps its code heap shared.
 * A shared read-only memfd is a file from which .NET reads the metadata of an assembly.
 */
static bool is_loaded_memfd(const char *path, const struct sym_mapping *mappings,
			    const uint32_t *indexes, size_t count)
{
	const uint32_t both = SYM_WRITE | SYM_EXECUTE;
	uint32_t any = 0;

	if (mapping_name_kind(path, strlen(path)) != MAPPING_NAME_MEMORY_FILE ||
	    mapping_name_is_doublemapper(path) || mappings[indexes[0]].offset)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t protection = mappings[indexes[i]].protection;

		if ((protection & SYM_SHARED && protection & both) || (protection & both) == both)
			return false;
		any |= protection;
	}
	return any & SYM_EXECUTE;
}

/* `index`: the mapping of the line. */
static void add_named(struct parse *parse, const struct maps_line *line, uint32_t index)
{
	const struct named named = {
		.path = line->path,
		.path_bytes = line->path_bytes,
		.inode = line->inode,
		.device_major = line->device_major,
		.device_minor = line->device_minor,
		.deleted = line->deleted,
		.index = index,
	};

	parse->paths_bytes += line->path_bytes + 1;
	buf_append(&parse->named, &named, sizeof(named));
}

static void add_line(struct parse *parse, const struct maps_line *line)
{
	struct sym_mapping mapping = {
		.start_address = line->start_address,
		.end_address = line->end_address,
		.offset = line->offset,
		.inode = line->inode,
		.device_major = line->device_major,
		.device_minor = line->device_minor,
		.protection = line->protection,
		.image_index = UINT32_MAX,
		.path = line->path_bytes ? NULL : "",
		.deleted = line->deleted,
	};

	if (line->start_address < parse->previous_end) {
		parse->bad_lines++;
		return;
	}
	parse->previous_end = line->end_address;
	buf_append(&parse->mappings, &mapping, sizeof(mapping));
	if (line->path_bytes)
		add_named(parse, line, parse->line_count);
	parse->line_count++;
}

static void parse_lines(struct parse *parse, const char *text, size_t size_bytes)
{
	struct maps_parser parser;
	struct maps_line line;

	maps_parser_init(&parser, text, size_bytes);
	while (maps_parser_next(&parser, &line))
		add_line(parse, &line);
	parse->bad_lines += parser.bad_lines;
}

/* Adds the file of one group, and sets the path of its mappings. Room in `indexes` for `count`. */
static void add_group(struct parse *parse, const struct named *named, size_t count,
		      const char *path, uint32_t *indexes)
{
	struct sym_mapping *mappings = (struct sym_mapping *)parse->mappings.data;
	struct address_space_file file = {
		.path = path,
		.inode = named->inode,
		.device_major = named->device_major,
		.device_minor = named->device_minor,
		.deleted = named->deleted,
		.mapping_indexes = indexes,
		.mapping_count = count,
	};

	for (size_t i = 0; i < count; i++) {
		indexes[i] = named[i].index;
		mappings[indexes[i]].path = path;
		file.executable |= (mappings[indexes[i]].protection & SYM_EXECUTE) != 0;
	}
	if (*path == '/') {
		file.memory = is_memory(path, file.deleted) &&
			      !is_loaded_memfd(path, mappings, indexes, count);
		buf_append(&parse->files, &file, sizeof(file));
	}
}

static struct sym_error *make_groups(struct parse *parse, struct address_space *space)
{
	struct named *named = (struct named *)parse->named.data;
	size_t count = parse->named.size_bytes / sizeof(*named), first, end;
	char *path = malloc(parse->paths_bytes + 1);
	uint32_t *indexes = malloc(count * sizeof(*indexes) + 1);

	space->text = path;
	space->mapping_indexes = indexes;
	if (!path || !indexes)
		return &sym_error_no_memory;
	if (count)
		qsort(named, count, sizeof(*named), compare_named);
	for (first = 0; first < count; first = end) {
		size_t path_bytes =
			maps_unescape_path(named[first].path, named[first].path_bytes, path);

		for (end = first + 1; end < count; end++)
			if (compare_groups(&named[first], &named[end]))
				break;
		add_group(parse, &named[first], end - first, path, indexes + first);
		path += path_bytes + 1;
	}
	return NULL;
}

/* Moves the parsed data into the address space. */
static struct sym_error *address_space_adopt(struct parse *parse, struct address_space *space)
{
	space->mapping_count = parse->mappings.size_bytes / sizeof(*space->mappings);
	space->file_count = parse->files.size_bytes / sizeof(*space->files);
	space->mappings = (struct sym_mapping *)buf_steal(&parse->mappings, NULL);
	space->files = (struct address_space_file *)buf_steal(&parse->files, NULL);
	if (!space->mappings || !space->files)
		return &sym_error_no_memory;
	qsort(space->files, space->file_count, sizeof(*space->files), compare_files);
	return NULL;
}

static struct sym_error *address_space_build(struct parse *parse, struct address_space *space)
{
	const struct buf *grown[] = { &parse->mappings, &parse->named, &parse->files };
	struct sym_error *error = NULL;

	space->read_ns = INT64_MAX;
	space->bad_lines = parse->bad_lines;
	if (parse->mappings.failure == BUF_OK && parse->named.failure == BUF_OK)
		error = make_groups(parse, space);
	for (size_t i = 0; !error && i < sizeof(grown) / sizeof(*grown); i++)
		if (grown[i]->failure != BUF_OK)
			error = sym_error_from_buf(grown[i], "maps");
	return error ? error : address_space_adopt(parse, space);
}

static void parse_begin(struct parse *parse, size_t most_bytes)
{
	*parse = (struct parse){ 0 };
	buf_init(&parse->mappings, most_bytes);
	buf_init(&parse->named, most_bytes);
	buf_init(&parse->files, most_bytes);
}

static struct sym_error *parse_end(struct parse *parse, struct address_space **ret)
{
	struct address_space *space AUTO_ADDRESS_SPACE = calloc(1, sizeof(*space));
	struct sym_error *error = space ? address_space_build(parse, space) : &sym_error_no_memory;

	buf_deinit(&parse->mappings);
	buf_deinit(&parse->named);
	buf_deinit(&parse->files);
	if (!error)
		*ret = STEAL(space);
	return error;
}

struct sym_error *address_space_parse(const char *text, size_t size_bytes,
				      struct address_space **ret)
{
	struct parse parse;

	if (size_bytes > LIMIT_MAPS_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT, "maps: more than %zu bytes",
					LIMIT_MAPS_BYTES);
	/* The shortest line has 20 bytes. A struct is at most 8 times that. */
	parse_begin(&parse, size_bytes * 8 + 64);
	parse_lines(&parse, text, size_bytes);
	return parse_end(&parse, ret);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * Reads the text of maps and checks the process afterwards.
 * The maps of a process that has ended are empty; those of a process in exec() are of two programs.
 * If the first thread has ended, its maps are empty or unreadable. Then they are read again through
 * another thread.
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

	/*
	 * Finds the last mapping that starts at or below the address, without a branch that would
	 * be mispredicted half of the time.
	 */
	while (count > 1) {
		size_t half = count / 2;

		mapping = mapping[half].start_address <= address ? mapping + half : mapping;
		count -= half;
	}
	if (!count || mapping->start_address > address || mapping->end_address <= address)
		return ADDRESS_SPACE_NONE;
	return (size_t)(mapping - space->mappings);
}

/*
 * Finds the next executable range from mapping *at on. Adjacent mappings are joined. False: there
 * is none.
 */
static bool next_code(const struct address_space *space, size_t *at, uint64_t *start_ret,
		      uint64_t *end_ret)
{
	const struct sym_mapping *end = space->mappings + space->mapping_count;
	const struct sym_mapping *mapping = space->mappings + *at;

	while (mapping < end && !(mapping->protection & SYM_EXECUTE))
		mapping++;
	if (mapping == end)
		return false;
	*start_ret = mapping->start_address;
	do
		*end_ret = mapping++->end_address;
	while (mapping < end && mapping->protection & SYM_EXECUTE &&
	       mapping->start_address == *end_ret);
	*at = (size_t)(mapping - space->mappings);
	return true;
}

bool address_space_has_same_code(const struct address_space *a, const struct address_space *b)
{
	uint64_t starts[2] = { 0 }, ends[2] = { 0 };
	size_t places[2] = { 0 };
	bool any, other;

	do {
		any = next_code(a, &places[0], &starts[0], &ends[0]);
		other = next_code(b, &places[1], &starts[1], &ends[1]);
	} while (any && other && starts[0] == starts[1] && ends[0] == ends[1]);
	return !any && !other;
}
