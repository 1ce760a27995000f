/* SPDX-License-Identifier: MIT */
/*
 * Symbols are sorted by process and start, each with the farthest end of all before it in the same
 * process. A look-up goes back from the last one that begins at or before the address, as long as
 * one before may still reach it, and takes the one with the latest time.
 */
#include "mapgen/profile/frozen_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/hex.h"
#include "libsym/error.h"
#include "mapgen/debuginfo/symbolize_client.h"

enum {
	MOST_FIELDS = 12
};

struct named_image {
	const char *kind, *identity, *path;
};

struct frozen_symbol {
	uint64_t start_address, size_bytes;
	uint64_t from_ns;
	uint64_t reach;   /* end of what is before it and of itself, the farthest */
	uint32_t process; /* number in the recording */
	uint32_t frame;   /* in the frame table, once it was asked for; else FRAME_NONE */
	enum sym_symbol_kind kind;
	enum sym_status status;
	const char *name;                /* or why there is none */
	const char *tier;                /* "" when there is none */
	const char *source;              /* sym_source_text() */
	const struct named_image *image; /* NULL: none */
	size_t image_number;
};

/* Where an address was in its source, from a time on. */
struct frozen_line {
	uint64_t address, from_ns;
	uint32_t process;
	uint32_t line, column, il_offset;
	enum sym_line_quality quality;
	uint32_t order;                     /* as read */
	const char *inlined;                /* name of an inlined function; NULL: has the code */
	const char *file, *url;             /* NULL: none */
	const struct frozen_symbol *symbol; /* `frame` is that of its name here */
	uint32_t frame;
};

struct named_file {
	const char *path;
	const char *url; /* NULL: none */
};

struct named_process {
	int32_t pid;
	uint64_t from_ns;
	size_t first, count;           /* of its symbols */
	size_t first_line, line_count; /* of its lines */
};

struct named_thread {
	int32_t pid, tid, container_tid;
};

/* When an answer for a process changes. */
struct name_change {
	int32_t pid;
	uint64_t time_ns;
};

struct frozen_names {
	char *text;
	struct named_process *processes;
	size_t process_count, process_capacity;
	struct named_image *images;
	size_t image_count, image_capacity;
	struct frozen_symbol *symbols;
	size_t symbol_count, symbol_capacity;
	struct named_file *files;
	size_t file_count, file_capacity;
	struct frozen_line *lines;
	size_t line_count, line_capacity;
	struct named_thread *threads; /* by process and id in the container, then as read */
	size_t thread_count, thread_capacity;
	struct name_change *changes; /* by process and time */
	size_t change_count, change_capacity;
	size_t bad_lines;
	bool lacks_memory;
};

void frozen_names_close(struct frozen_names *names)
{
	if (!names)
		return;
	free(names->text);
	free(names->processes);
	free(names->images);
	free(names->symbols);
	free(names->files);
	free(names->lines);
	free(names->changes);
	free(names->threads);
	free(names);
}

DEFINE_GUARD(frozen_names, struct frozen_names *, frozen_names_close)

size_t frozen_names_bad_lines(const struct frozen_names *names)
{
	return names->bad_lines;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static size_t split(char *line, char *fields[MOST_FIELDS])
{
	size_t count = 0;

	while (count < MOST_FIELDS && (fields[count] = strsep(&line, "\t")))
		count++;
	return count;
}

/* In place: \\, \t and \n to what they stand for. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from != '\\' || !from[1]) {
			*to++ = *from;
			continue;
		}
		from++;
		*to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from;
	}
	*to = '\0';
}

static bool read_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	if (*text == '-' || *text == '+' || *text == ' ' || !*text)
		return false;
	*ret = strtoull(text, &end, base);
	return !*end;
}

/* -1 is the kernel. */
static bool read_pid(const char *text, int32_t *ret)
{
	uint64_t number;

	*ret = -1;
	if (!strcmp(text, "-1"))
		return true;
	if (!read_number(text, 10, &number) || number > INT32_MAX)
		return false;
	*ret = (int32_t)number;
	return true;
}

/* Appends a copy of an item to one of the arrays. */
static void append(struct frozen_names *names, void **items, size_t *capacity, size_t *count,
		   const void *item, size_t item_bytes)
{
	if (grow_items(items, capacity, *count, item_bytes))
		memcpy((char *)*items + item_bytes * (*count)++, item, item_bytes);
	else
		names->lacks_memory = true;
}

static bool add_process(struct frozen_names *names, char **fields, size_t count)
{
	struct named_process process = { 0 };
	uint64_t number;

	if (count != 7 || !read_number(fields[1], 10, &number) ||
	    !read_pid(fields[2], &process.pid) || !read_number(fields[5], 10, &process.from_ns) ||
	    number != names->process_count)
		return false;
	append(names, (void **)&names->processes, &names->process_capacity, &names->process_count,
	       &process, sizeof(process));
	return true;
}

static bool add_thread(struct frozen_names *names, char **fields, size_t count)
{
	uint64_t process, tid, container_tid;
	struct named_thread thread;

	if (count != 5 || !read_number(fields[1], 10, &process) ||
	    !read_number(fields[2], 10, &tid) || !read_number(fields[3], 10, &container_tid) ||
	    process >= names->process_count || tid > INT32_MAX || container_tid > INT32_MAX)
		return false;
	thread = (struct named_thread){ names->processes[process].pid, (int32_t)tid,
					(int32_t)container_tid };
	append(names, (void **)&names->threads, &names->thread_capacity, &names->thread_count,
	       &thread, sizeof(thread));
	return true;
}

static bool add_image(struct frozen_names *names, char **fields, size_t count)
{
	const struct named_image image = { fields[3], fields[4], fields[5] };
	uint64_t number;

	if (count != 6 || !read_number(fields[1], 10, &number) || number != names->image_count)
		return false;
	unescape(fields[5]);
	append(names, (void **)&names->images, &names->image_capacity, &names->image_count, &image,
	       sizeof(image));
	return true;
}

static bool read_image(const struct frozen_names *names, const char *field, size_t *ret)
{
	uint64_t number;

	*ret = SIZE_MAX;
	if (!strcmp(field, "-"))
		return true;
	if (!read_number(field, 10, &number) || number >= names->image_count)
		return false;
	*ret = (size_t)number;
	return true;
}

static bool read_symbol(const struct frozen_names *names, char **fields, size_t count,
			struct frozen_symbol *ret)
{
	uint64_t process, kind, status;

	*ret = (struct frozen_symbol){ .frame = FRAME_NONE };
	if (count != 11 || !read_number(fields[1], 10, &process) ||
	    !read_number(fields[2], 16, &ret->start_address) ||
	    !read_number(fields[3], 16, &ret->size_bytes) ||
	    !read_number(fields[4], 10, &ret->from_ns) || !read_number(fields[5], 10, &kind) ||
	    !read_image(names, fields[8], &ret->image_number) ||
	    !read_number(fields[9], 10, &status) || process >= names->process_count ||
	    !ret->size_bytes || ret->size_bytes > UINT64_MAX - ret->start_address)
		return false;
	unescape(fields[10]);
	ret->process = (uint32_t)process;
	ret->kind = (enum sym_symbol_kind)kind;
	ret->status = (enum sym_status)status;
	ret->source = fields[6];
	ret->tier = strcmp(fields[7], "-") ? fields[7] : "";
	ret->name = fields[10];
	return true;
}

static void add_change(struct frozen_names *names, uint32_t process, uint64_t time_ns)
{
	const struct name_change change = { names->processes[process].pid, time_ns };

	if (time_ns)
		append(names, (void **)&names->changes, &names->change_capacity,
		       &names->change_count, &change, sizeof(change));
}

static bool add_symbol(struct frozen_names *names, char **fields, size_t count)
{
	struct frozen_symbol symbol;

	if (!read_symbol(names, fields, count, &symbol))
		return false;
	append(names, (void **)&names->symbols, &names->symbol_capacity, &names->symbol_count,
	       &symbol, sizeof(symbol));
	add_change(names, symbol.process, symbol.from_ns);
	return true;
}

static bool add_file(struct frozen_names *names, char **fields, size_t count)
{
	const struct named_file file = { fields[2], count == 4 ? fields[3] : NULL };
	uint64_t number;

	if ((count != 3 && count != 4) || !read_number(fields[1], 10, &number) ||
	    number != names->file_count)
		return false;
	unescape(fields[2]);
	if (count == 4)
		unescape(fields[3]);
	append(names, (void **)&names->files, &names->file_capacity, &names->file_count, &file,
	       sizeof(file));
	return true;
}

static bool read_small(const char *text, int base, uint32_t *ret)
{
	uint64_t number;
	bool is_good = read_number(text, base, &number) && number <= UINT32_MAX;

	*ret = is_good ? (uint32_t)number : 0;
	return is_good;
}

static bool read_source_line(const struct frozen_names *names, char **fields, size_t count,
			     struct frozen_line *ret)
{
	uint32_t quality, token;
	uint64_t file = 0;
	bool is_inlined = fields[0][0] == 'M';
	bool is_whole = count == (is_inlined ? 12 : 11);
	bool has_file = is_whole && strcmp(fields[10], "-") != 0;

	*ret = (struct frozen_line){ .frame = FRAME_NONE };
	if (!is_whole || !read_small(fields[1], 10, &ret->process) ||
	    !read_number(fields[2], 16, &ret->address) ||
	    !read_number(fields[3], 10, &ret->from_ns) || !read_small(fields[4], 10, &quality) ||
	    !read_small(fields[5], 10, &ret->line) || !read_small(fields[6], 10, &ret->column) ||
	    !read_small(fields[7], 10, &ret->il_offset) || !read_small(fields[8], 16, &token) ||
	    (has_file && !read_number(fields[10], 10, &file)) ||
	    (has_file && file >= names->file_count) || quality > SYM_LINE_PROLOG ||
	    ret->process >= names->process_count)
		return false;
	ret->quality = (enum sym_line_quality)quality;
	if (is_inlined) {
		unescape(fields[11]);
		ret->inlined = fields[11];
	}
	if (has_file && ret->line) {
		ret->file = names->files[file].path;
		ret->url = names->files[file].url;
	}
	return true;
}

static bool add_source_line(struct frozen_names *names, char **fields, size_t count)
{
	struct frozen_line line;

	if (!read_source_line(names, fields, count, &line))
		return false;
	line.order = (uint32_t)names->line_count;
	append(names, (void **)&names->lines, &names->line_capacity, &names->line_count, &line,
	       sizeof(line));
	add_change(names, line.process, line.from_ns);
	return true;
}

static void add_line(struct frozen_names *names, char *line)
{
	static const struct {
		char letter;
		bool (*add)(struct frozen_names *names, char **fields, size_t count);
	} kinds[] = { { 'P', add_process }, { 'I', add_image },       { 'S', add_symbol },
		      { 'F', add_file },    { 'L', add_source_line }, { 'M', add_source_line },
		      { 'T', add_thread } };
	char *fields[MOST_FIELDS] = { 0 };
	const char letter = *line;
	size_t count = split(line, fields);
	bool is_good = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].letter == letter)
			is_good = kinds[i].add(names, fields, count);
	names->bad_lines += !is_good;
}

/* ---- order -------------------------------------------------------------------------------------
 */

static int compare(const void *left, const void *right)
{
	const struct frozen_symbol *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->start_address != b->start_address)
		return a->start_address < b->start_address ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return 0;
}

static int compare_lines(const void *left, const void *right)
{
	const struct frozen_line *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static int compare_changes(const void *left, const void *right)
{
	const struct name_change *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void put_lines_in_order(struct frozen_names *names)
{
	if (names->line_count)
		qsort(names->lines, names->line_count, sizeof(*names->lines), compare_lines);
	for (size_t i = 0; i < names->line_count; i++) {
		struct named_process *process = &names->processes[names->lines[i].process];

		if (!process->line_count++)
			process->first_line = i;
	}
}

static int compare_threads(const void *left, const void *right)
{
	const struct named_thread *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->container_tid > b->container_tid) - (a->container_tid < b->container_tid);
}

static void put_in_order(struct frozen_names *names)
{
	uint64_t reach = 0;

	put_lines_in_order(names);
	if (names->symbol_count)
		qsort(names->symbols, names->symbol_count, sizeof(*names->symbols), compare);
	if (names->change_count)
		qsort(names->changes, names->change_count, sizeof(*names->changes),
		      compare_changes);
	if (names->thread_count)
		qsort(names->threads, names->thread_count, sizeof(*names->threads),
		      compare_threads);
	for (size_t i = 0; i < names->symbol_count; i++) {
		struct frozen_symbol *symbol = &names->symbols[i];
		struct named_process *process = &names->processes[symbol->process];
		uint64_t end = symbol->start_address + symbol->size_bytes;

		if (symbol->image_number != SIZE_MAX)
			symbol->image = &names->images[symbol->image_number];
		if (!process->count++) {
			process->first = i;
			reach = 0;
		}
		if (end > reach)
			reach = end;
		symbol->reach = reach;
	}
}

static struct sym_error *read_lines(struct frozen_names *names, char *text, size_t size_bytes)
{
	char *line = text, *end = text + size_bytes;

	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline) {
			names->bad_lines++;
			break;
		}
		*newline = '\0';
		add_line(names, line);
		if (names->lacks_memory)
			return &sym_error_no_memory;
		line = newline + 1;
	}
	return NULL;
}

struct sym_error *frozen_names_open(char *text, size_t size_bytes, struct frozen_names **ret)
{
	struct frozen_names *names GUARDED(frozen_names) = calloc(1, sizeof(*names));
	struct sym_error *error;

	if (!names)
		return &sym_error_no_memory;
	error = read_lines(names, text, size_bytes);
	if (error)
		return error;
	put_in_order(names);
	names->text = text;
	*ret = STEAL(names);
	return NULL;
}

/* ---- names from a server -----------------------------------------------------------------------
 */

/* Parses IMAGE!0xVADDR, the recorded name of a native function without a symbol. A server finds the
 * function by the build-id of the image and the vaddr. False for other names. */
static bool read_stripped(const struct frozen_symbol *symbol, struct sym_identity *identity_ret,
			  uint64_t *vaddr_ret)
{
	const char *place = strrchr(symbol->name, '!');
	size_t digits = symbol->image ? strlen(symbol->image->identity) : 0;

	*identity_ret = (struct sym_identity){ .size = sizeof(*identity_ret) };
	if (symbol->status != SYM_BOUNDS_ONLY || !place || strncmp(place, "!0x", 3) != 0 ||
	    !read_number(place + 3, 16, vaddr_ret) || !digits || digits % 2 ||
	    digits > 2 * sizeof(identity_ret->id) ||
	    !hex_read_bytes(symbol->image->identity, identity_ret->id, digits / 2))
		return false;
	identity_ret->kind = SYM_IDENTITY_ELF;
	identity_ret->id_size_bytes = (uint32_t)(digits / 2);
	return true;
}

void frozen_names_symbolize(struct frozen_names *names, struct symbolize_client *client)
{
	struct sym_identity identity;
	uint64_t vaddr;

	for (size_t i = 0; i < names->symbol_count; i++)
		if (read_stripped(&names->symbols[i], &identity, &vaddr))
			symbolize_client_add_code(client, &identity, vaddr,
						  names->symbols[i].size_bytes);
	symbolize_client_ask(client);
	for (size_t i = 0; i < names->symbol_count; i++) {
		struct frozen_symbol *symbol = &names->symbols[i];
		const char *name = read_stripped(symbol, &identity, &vaddr)
					   ? symbolize_client_name_of_code(client, &identity, vaddr,
									   symbol->size_bytes)
					   : NULL;

		if (!name)
			continue;
		symbol->name = name;
		symbol->status = SYM_RESOLVED;
		symbol->source = sym_source_text(SYM_SOURCE_ELF);
	}
}

/* ---- look-up --------------------------------------------------------------------------------- */

/* How many symbols of a process begin at or before an address. */
static size_t count_up_to(const struct frozen_names *names, const struct named_process *process,
			  uint64_t address)
{
	return ascending_items_up_to(names->symbols + process->first, process->count,
				     sizeof(*names->symbols), address);
}

static struct frozen_symbol *find_in(const struct frozen_names *names,
				     const struct named_process *process, uint64_t time_ns,
				     uint64_t address)
{
	struct frozen_symbol *found = NULL;

	for (size_t i = count_up_to(names, process, address); i > 0; i--) {
		struct frozen_symbol *symbol = &names->symbols[process->first + i - 1];

		if (symbol->reach <= address)
			break;
		if (address - symbol->start_address >= symbol->size_bytes ||
		    symbol->from_ns > time_ns)
			continue;
		if (!found || symbol->from_ns > found->from_ns)
			found = symbol;
	}
	return found;
}

/* A process that called exec() has several numbers: the last one before the time holds. */
static const struct named_process *find_process(const struct frozen_names *names, int32_t pid,
						uint64_t time_ns)
{
	for (size_t i = names->process_count; i > 0; i--) {
		const struct named_process *process = &names->processes[i - 1];

		if (process->pid == pid && process->from_ns <= time_ns)
			return process;
	}
	return NULL;
}

/* The last one of the address at or before the time. */
static struct frozen_line *find_line(const struct frozen_names *names,
				     const struct named_process *process, uint64_t time_ns,
				     uint64_t address)
{
	struct frozen_line *lines = names->lines + process->first_line;
	size_t count = ASCENDING_COUNT(process->line_count, i,
				       lines[i].address < address || (lines[i].address == address &&
								      lines[i].from_ns <= time_ns));

	return count && lines[count - 1].address == address && !lines[count - 1].inlined
		       ? &lines[count - 1]
		       : NULL;
}

uint32_t frozen_names_epoch(void *context, int32_t pid, uint64_t time_ns)
{
	const struct frozen_names *names = context;
	const struct name_change wanted = { pid, time_ns };
	return (uint32_t)ASCENDING_COUNT(names->change_count, i,
					 compare_changes(&names->changes[i], &wanted) <= 0);
}

int32_t frozen_names_host_tid(void *context, int32_t pid, int32_t tid)
{
	const struct frozen_names *names = context;
	const struct named_thread wanted = { pid, tid, tid };
	size_t before = ASCENDING_COUNT(names->thread_count, i,
					compare_threads(&names->threads[i], &wanted) <= 0);

	return before && !compare_threads(&names->threads[before - 1], &wanted)
		       ? names->threads[before - 1].tid
		       : tid;
}

static struct profile_frame describe(const struct frozen_symbol *symbol)
{
	struct profile_frame frame = {
		.name = symbol->name,
		.image = symbol->image ? symbol->image->path : "",
		.tier = symbol->tier,
		.reason = "",
		.is_named = symbol->status == SYM_RESOLVED,
	};

	frame.kind = frame_kind_of(symbol->source, frame.tier, frame.image, symbol->kind);
	if (frame.is_named)
		return frame;
	if (symbol->status == SYM_BOUNDS_ONLY) {
		frame.reason = "only the bounds of its function are known";
		return frame;
	}
	frame.name = FRAME_NAME_UNKNOWN;
	frame.reason = symbol->name;
	return frame;
}

static struct sym_error *add_frame_of_line(struct frame_table *frames,
					   const struct frozen_symbol *symbol,
					   const struct frozen_line *line, uint32_t *ret)
{
	struct profile_frame frame = describe(symbol);

	if (line->inlined) {
		frame.name = *line->inlined ? line->inlined : FRAME_NAME_UNKNOWN;
		frame.is_inlined = true;
	}
	frame.file = line->file;
	frame.url = line->url;
	frame.line = line->file ? line->line : 0;
	frame.column = line->file ? line->column : 0;
	frame.quality = line->quality;
	frame.has_il_offset = line->il_offset != UINT32_MAX;
	frame.il_offset = frame.has_il_offset ? line->il_offset : 0;
	return frame_table_add(frames, &frame, ret);
}

/* How many of the lines before one of a process are of functions inlined there. */
static size_t count_inlined(const struct frozen_names *names, const struct frozen_line *line)
{
	size_t most = (size_t)(line - names->lines) - names->processes[line->process].first_line;
	size_t count = 0;

	while (count < most && line[-1 - (ptrdiff_t)count].inlined &&
	       line[-1 - (ptrdiff_t)count].address == line->address &&
	       line[-1 - (ptrdiff_t)count].from_ns == line->from_ns)
		count++;
	return count <= FRAME_MOST_INLINED ? count : 0;
}

static struct sym_error *frame_with_line(const struct frozen_names *names,
					 struct frame_table *frames,
					 const struct frozen_symbol *symbol,
					 struct frozen_line *line, uint32_t *ret)
{
	uint32_t numbers[FRAME_MOST_INLINED + 1];
	size_t count;
	struct sym_error *error = NULL;

	*ret = line->frame;
	if (line->symbol == symbol)
		return NULL;
	count = count_inlined(names, line);
	for (size_t i = 0; !error && i <= count; i++)
		error = add_frame_of_line(frames, symbol, line - i, &numbers[i]);
	*ret = numbers[0];
	if (!error && count)
		error = frame_table_add_inlined(frames, numbers, count + 1, ret);
	if (error)
		return error;
	line->frame = *ret;
	line->symbol = symbol;
	return NULL;
}

struct sym_error *frozen_names_frame(void *context, struct frame_table *frames, int32_t pid,
				     uint64_t time_ns, uint64_t address, uint32_t *ret)
{
	struct frozen_names *names = context;
	const struct named_process *process = find_process(names, pid, time_ns);
	struct frozen_symbol *symbol = process ? find_in(names, process, time_ns, address) : NULL;
	struct frozen_line *line =
		symbol && names->line_count ? find_line(names, process, time_ns, address) : NULL;
	struct profile_frame frame;
	struct sym_error *error;

	*ret = FRAME_NONE;
	if (!symbol)
		return NULL;
	if (line)
		return frame_with_line(names, frames, symbol, line, ret);
	*ret = symbol->frame;
	if (*ret != FRAME_NONE)
		return NULL;
	frame = describe(symbol);
	error = frame_table_add(frames, &frame, ret);
	if (!error)
		symbol->frame = *ret;
	return error;
}
