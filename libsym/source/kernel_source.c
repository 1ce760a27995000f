/* SPDX-License-Identifier: MIT */
/*
 * How kallsyms becomes an index.
 *
 * The whole text is read, and its lines are parsed into an array that points into it.
 * They are sorted by address. If an address has several names, the best one by rank_of() stays.
 * The end of a function is the start of the next one, or the end of its page (end_of()).
 * The index has the number of the module as value.
 */
#include "libsym/source/kernel_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/path.h"
#include "libsym/format/linux/kallsyms.h"
#include "libsym/index/index.h"
#include "libsym/index/index_sort.h"
#include "libsym/limits.h"

enum {
	/* Loaded modules, "[bpf]" and the like included. Real machines have 200. */
	MAX_MODULES = 4096,
	PAGE_MASK = 4095
};

/* Real machines have 20 MB. */
static const size_t most_text_bytes = (size_t)256 << 20;

const char kernel_source_own[] = "[kernel.kallsyms]";

/* One line during sorting. */
struct kernel_line {
	uint64_t address;
	const char *name;    /* in the text */
	uint16_t name_bytes; /* below LIMIT_NAME_BYTES */
	uint16_t module;
	uint8_t rank; /* of names at one address the highest wins; 0: not a function */
};

struct kernel_source {
	struct index *index; /* value: number of the module */
	char **modules;      /* the first one is the kernel */
	size_t module_count;
	bool hidden;
};

struct kernel_reader {
	struct kernel_source *source;
	enum kernel_part part;
	struct kernel_line *lines;
	size_t count, capacity;
	uint64_t seen_lines;
	struct sym_error *failure;
};

void kernel_source_close(struct kernel_source *source)
{
	if (!source)
		return;
	index_destroy(source->index);
	for (size_t i = 0; i < source->module_count; i++)
		free(source->modules[i]);
	free(source->modules);
	free(source);
}

static bool add_module(struct kernel_source *source, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return false;
	source->modules[source->module_count++] = copy;
	return true;
}

/* Lines of one module are adjacent. */
static uint16_t number_of_module(struct kernel_reader *reader, const struct kallsyms_line *line)
{
	struct kernel_source *source = reader->source;
	const char *last = source->modules[source->module_count - 1];
	char name[80];

	if (!line->module)
		return 0;
	snprintf(name, sizeof(name), "[%.*s]", (int)line->module_bytes, line->module);
	if (strcmp(last, name) != 0) {
		if (source->module_count == MAX_MODULES)
			reader->failure = sym_error_create(SYM_ERROR_LIMIT, "more than %d modules",
							   MAX_MODULES);
		else if (!add_module(source, name))
			reader->failure = &sym_error_no_memory;
	}
	return (uint16_t)(source->module_count - 1);
}

/* Global names before weak before local ones, all before the prefixes of functions. */
static uint8_t rank_of(const struct kallsyms_line *line)
{
	if (!kallsyms_is_function(line))
		return 0;
	if (line->name_bytes > 2 && !memcmp(line->name, "__", 2))
		return line->type == 't' ? 1 : 2;
	return line->type == 'T' ? 5 : line->type == 'W' ? 4 : 3;
}

static void add_line(struct kernel_reader *reader, const struct kallsyms_line *line)
{
	uint16_t module = number_of_module(reader, line);

	reader->seen_lines++;
	/* A hidden address, or an offset into per-CPU data: not code. */
	if (reader->failure || !(line->address >> 63) || line->name_bytes > UINT16_MAX ||
	    (reader->part == KERNEL_MODULES && !line->module))
		return;
	if (reader->count == LIMIT_INDEX_SYMBOLS ||
	    !grow_items((void **)&reader->lines, &reader->capacity, reader->count,
			sizeof(*reader->lines))) {
		reader->failure = &sym_error_no_memory;
		return;
	}
	reader->lines[reader->count++] = (struct kernel_line){
		.address = line->address,
		.name = line->name,
		.name_bytes = (uint16_t)line->name_bytes,
		.module = module,
		.rank = rank_of(line),
	};
}

/* Reads the text to `ret`, and its lines, which point into it. */
static struct sym_error *read_all(struct kernel_reader *reader, int fd, const char *path,
				  struct buf *ret)
{
	struct kallsyms_parser parser = { 0 };
	struct kallsyms_line line;
	int result = path_read_all(fd, ret);

	if (result)
		return sym_error_from_errno(-result, path, "cannot read");
	parser.next = ret->data;
	parser.end = ret->data + ret->size_bytes;
	while (!reader->failure && kallsyms_parser_next(&parser, &line))
		add_line(reader, &line);
	return reader->failure;
}

/*
 * End of the function at `from`; `to` is the line with the next address.
 * If both are of one module it ends there, else at the end of its page at the latest.
 */
static uint64_t end_of(const struct kernel_line *from, const struct kernel_line *to)
{
	uint64_t page_end = (from->address | PAGE_MASK) + 1;

	if (to && (to->module == from->module || to->address < page_end || !page_end))
		return to->address;
	return page_end ? page_end : UINT64_MAX;
}

static struct sym_error *make_index(struct kernel_reader *reader)
{
	struct index_builder *builder AUTO_INDEX_BUILDER = NULL;
	struct sym_error *error = index_builder_create(&builder);
	size_t next;

	if (error)
		return error;
	if (!reader->count)
		return index_freeze(builder, &reader->source->index);
	if (!index_sort_items(reader->lines, sizeof(*reader->lines), reader->count))
		return &sym_error_no_memory;
	for (size_t i = 0; i < reader->count; i = next) {
		const struct kernel_line *best = &reader->lines[i];

		for (next = i + 1; next < reader->count; next++) {
			const struct kernel_line *line = &reader->lines[next];

			if (line->address != best->address)
				break;
			if (line->rank > best->rank)
				best = line;
		}
		if (best->rank)
			index_builder_add(
				builder, best->address,
				end_of(best, next < reader->count ? &reader->lines[next] : NULL) -
					best->address,
				best->name, best->name_bytes, best->module);
	}
	return index_freeze(builder, &reader->source->index);
}

struct sym_error *kernel_source_open(int fd, const char *path, enum kernel_part part,
				     struct kernel_source **ret)
{
	struct kernel_source *source AUTO_KERNEL_SOURCE = calloc(1, sizeof(*source));
	struct kernel_reader reader = { .source = source, .part = part };
	struct sym_error *error = &sym_error_no_memory;
	struct buf text;

	if (!source)
		return error;
	buf_init(&text, most_text_bytes);
	source->modules = calloc(MAX_MODULES, sizeof(*source->modules));
	if (source->modules && add_module(source, kernel_source_own))
		error = read_all(&reader, fd, path, &text);
	if (!error)
		error = make_index(&reader);
	source->hidden = reader.seen_lines && !reader.count;
	buf_deinit(&text);
	free(reader.lines);
	if (error)
		return error;
	*ret = STEAL(source);
	return NULL;
}

const char *kernel_source_trouble(const struct kernel_source *source)
{
	if (source->hidden)
		return "the kernel hides its addresses: kernel.kptr_restrict, or CAP_SYSLOG is "
		       "missing";
	return index_count(source->index) ? NULL : "kallsyms is empty";
}

size_t kernel_source_count(const struct kernel_source *source)
{
	return index_count(source->index);
}

bool kernel_source_at(const struct kernel_source *source, size_t i, struct sym_symbol *ret)
{
	struct index_entry entry;

	index_at(source->index, i, &entry);
	*ret = (struct sym_symbol){
		.start = entry.start,
		.size_bytes = entry.size_bytes,
		.name = entry.name,
		.kind = SYM_SYMBOL_FUNCTION,
		.source = SYM_SOURCE_KERNEL,
		.image_index = UINT32_MAX,
	};
	return entry.value == 0;
}

bool kernel_source_find(const struct kernel_source *source, uint64_t address,
			struct source_match *ret, const char **module_ret)
{
	struct index_entry entry;

	if (index_look_up(source->index, address, &entry) == INDEX_NONE)
		return false;
	*ret = (struct source_match){
		.start = entry.symbol_start,
		.size_bytes = entry.symbol_size_bytes,
		.name = entry.name,
		.kind = SYM_SYMBOL_FUNCTION,
	};
	*module_ret = entry.value ? source->modules[entry.value] : kernel_source_own;
	return true;
}
