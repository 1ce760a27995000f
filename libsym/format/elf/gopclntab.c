/* SPDX-License-Identifier: MIT */
/*
 * Reads the table in place; gopclntab.h has the layout of its four versions. Nothing is built in
 * memory: a look-up is a binary search in the rows, and each byte range is requested with
 * require_bytes() before it is read, so only the pages of one look-up are fetched.
 *
 * Names, files and lines of a function are "tables of values": pairs of varints that are walked
 * from the start of the function (walk_begin(), walk_next()). Each value is valid up to
 * walk->vaddr.
 */
#include "libsym/format/elf/gopclntab.h"

#include "libsym/limits.h"

enum {
	STEP_BYTES = 256, /* how many bytes of unknown length are requested at a time */
	MAX_VARINT_BYTES = 5,
	FUNCDATA_INLINED = 3,
	PCDATA_INLINED = 2
};

/* Words of a function record, after its start. */
enum {
	WORD_NAME = 0,
	WORD_SP_TABLE = 3,
	WORD_FILE_TABLE = 4,
	WORD_LINE_TABLE = 5,
	WORD_PCDATA_COUNT = 6,
	WORD_UNIT = 7
};

static bool is_inside(const struct gopclntab *table, uint64_t offset, uint64_t size_bytes)
{
	size_t whole = table->bytes.size_bytes;

	return offset <= whole && size_bytes <= whole - offset;
}

static bool require_bytes(const struct gopclntab *table, uint64_t offset, uint64_t size_bytes)
{
	const struct gopclntab_bytes *bytes = &table->bytes;

	return is_inside(table, offset, size_bytes) &&
	       (!bytes->need || bytes->need(bytes->context, (size_t)offset, (size_t)size_bytes));
}

/* The reader has failed if the range is not available. */
static struct reader require_part(const struct gopclntab *table, uint64_t offset,
				  uint64_t size_bytes)
{
	struct reader whole = reader_over(table->bytes.data, table->bytes.size_bytes);
	struct reader found = reader_over(NULL, 0);

	if (!require_bytes(table, offset, size_bytes))
		reader_fail(&found, "range beyond the end of data");
	else
		found = reader_part(&whole, (size_t)offset, (size_t)size_bytes);
	return found;
}

static bool read_u32(const struct gopclntab *table, uint64_t offset, uint32_t *ret)
{
	struct reader word = require_part(table, offset, sizeof(*ret));

	*ret = reader_u32(&word);
	return reader_ok(&word);
}

static uint64_t read_pointer(const struct gopclntab *table, struct reader *reader)
{
	return table->pointer_bytes == 8 ? reader_u64(reader) : reader_u32(reader);
}

/* A text of at most LIMIT_NAME_BYTES; NULL if it is longer or has no end. */
static const char *text_at(const struct gopclntab *table, uint64_t offset)
{
	uint64_t size_bytes = 0;

	while (size_bytes <= LIMIT_NAME_BYTES && is_inside(table, offset, size_bytes + 1)) {
		uint64_t step = table->bytes.size_bytes - offset - size_bytes;
		const uint8_t *start;

		if (step > STEP_BYTES)
			step = STEP_BYTES;
		if (!require_bytes(table, offset + size_bytes, step))
			return NULL;
		start = table->bytes.data + offset;
		if (memchr(start + size_bytes, 0, (size_t)step))
			return (const char *)start;
		size_bytes += step;
	}
	return NULL;
}

/* ---- header ---------------------------------------------------------------------------- */

static bool version_of(uint32_t magic, enum gopclntab_version *ret)
{
	static const uint32_t magics[] = {
		[GOPCLNTAB_1_2] = 0xfffffffb,
		[GOPCLNTAB_1_16] = 0xfffffffa,
		[GOPCLNTAB_1_18] = 0xfffffff0,
		[GOPCLNTAB_1_20] = 0xfffffff1,
	};

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (magics[i] == magic) {
			*ret = (enum gopclntab_version)i;
			return true;
		}
	return false;
}

static bool read_head(struct reader *reader, struct gopclntab *ret)
{
	uint32_t magic = reader_u32(reader);
	uint16_t zero = reader_u16(reader);

	ret->quantum = reader_u8(reader);
	ret->pointer_bytes = reader_u8(reader);
	return reader_ok(reader) && version_of(magic, &ret->version) && !zero &&
	       (ret->quantum == 1 || ret->quantum == 2 || ret->quantum == 4) &&
	       (ret->pointer_bytes == 4 || ret->pointer_bytes == 8);
}

bool gopclntab_recognise(const uint8_t *head)
{
	struct reader reader = reader_over(head, GOPCLNTAB_HEADER_BYTES);
	struct gopclntab table;

	return read_head(&reader, &table);
}

static size_t start_bytes(const struct gopclntab *table)
{
	return table->version >= GOPCLNTAB_1_18 ? 4 : table->pointer_bytes;
}

static size_t row_bytes(const struct gopclntab *table)
{
	return 2 * start_bytes(table);
}

/* Number of functions, number of files, [text start], and the five parts. */
static size_t header_words(const struct gopclntab *table)
{
	if (table->version == GOPCLNTAB_1_2)
		return 1;
	return table->version == GOPCLNTAB_1_16 ? 7 : 8;
}

static bool read_parts(struct gopclntab *table, struct reader *reader)
{
	read_pointer(table, reader); /* number of files */
	if (table->version >= GOPCLNTAB_1_18)
		table->text_start = read_pointer(table, reader);
	table->names = read_pointer(table, reader);
	table->units = read_pointer(table, reader);
	table->files = read_pointer(table, reader);
	table->tables = read_pointer(table, reader);
	table->rows = read_pointer(table, reader);
	return reader_ok(reader) && is_inside(table, table->names, 1) &&
	       is_inside(table, table->units, 0) && is_inside(table, table->files, 0) &&
	       is_inside(table, table->tables, 1);
}

/* The last row is a start without a function: the end of all functions. */
static bool read_end(struct gopclntab *table)
{
	uint64_t room;
	uint32_t files;

	if (!is_inside(table, table->rows, start_bytes(table)))
		return false;
	room = table->bytes.size_bytes - table->rows - start_bytes(table);
	if (!table->function_count || table->function_count > room / row_bytes(table))
		return false;
	if (table->version != GOPCLNTAB_1_2)
		return true;
	if (!read_u32(table,
		      table->rows + table->function_count * row_bytes(table) + start_bytes(table),
		      &files))
		return false;
	table->files = files;
	return is_inside(table, files, sizeof(files));
}

bool gopclntab_open(struct gopclntab_bytes bytes, struct gopclntab *ret)
{
	struct gopclntab table = { .bytes = bytes };
	struct reader reader = require_part(&table, 0, GOPCLNTAB_HEADER_BYTES);

	if (!read_head(&reader, &table))
		return false;
	reader = require_part(&table, GOPCLNTAB_HEADER_BYTES,
			      header_words(&table) * table.pointer_bytes);
	table.function_count = read_pointer(&table, &reader);
	table.rows = GOPCLNTAB_HEADER_BYTES + table.pointer_bytes;
	if (!reader_ok(&reader) ||
	    (table.version != GOPCLNTAB_1_2 && !read_parts(&table, &reader)) || !read_end(&table))
		return false;
	*ret = table;
	return true;
}

size_t gopclntab_text_start_offset(const struct gopclntab *table)
{
	return table->version >= GOPCLNTAB_1_18 ? GOPCLNTAB_HEADER_BYTES + 2 * table->pointer_bytes
						: 0;
}

void gopclntab_parts(const struct gopclntab *table, uint64_t ret[GOPCLNTAB_PARTS])
{
	const uint64_t parts[GOPCLNTAB_PARTS] = { table->names, table->units, table->files,
						  table->tables, table->rows };

	memcpy(ret, parts, sizeof(parts));
}

/* ---- rows and functions ----------------------------------------------------------------- */

static uint64_t read_start(const struct gopclntab *table, struct reader *reader)
{
	return table->version >= GOPCLNTAB_1_18 ? table->text_start + reader_u32(reader)
						: read_pointer(table, reader);
}

bool gopclntab_start(const struct gopclntab *table, uint64_t number, uint64_t *ret)
{
	struct reader row;

	if (number > table->function_count)
		return false;
	row = require_part(table, table->rows + number * row_bytes(table), start_bytes(table));
	*ret = read_start(table, &row);
	return reader_ok(&row);
}

uint64_t gopclntab_find(const struct gopclntab *table, uint64_t vaddr)
{
	uint64_t low = 0, high = table->function_count, start;

	if (!gopclntab_start(table, high, &start) || vaddr >= start)
		return GOPCLNTAB_NONE;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!gopclntab_start(table, middle, &start))
			return GOPCLNTAB_NONE;
		if (start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : GOPCLNTAB_NONE;
}

static bool read_word(const struct gopclntab *table, const struct gopclntab_function *function,
		      unsigned int number, uint32_t *ret)
{
	return read_u32(table, function->record + (uint64_t)number * sizeof(*ret), ret);
}

/* The number of words that every function of this version has. */
static unsigned int fixed_words(const struct gopclntab *table)
{
	if (table->version == GOPCLNTAB_1_2)
		return 8;
	return table->version == GOPCLNTAB_1_20 ? 10 : 9;
}

/* ---- tables of values ------------------------------------------------------------------- */

struct walk {
	const struct gopclntab *table;
	uint64_t position, there; /* bytes before `there` are available */
	uint64_t steps_left;      /* bounded by the number of instructions */
	uint64_t vaddr;           /* where the value stops being valid */
	uint32_t value;
	bool begun;
};

/* Returns false if there is no table. */
static bool walk_begin(struct walk *walk, const struct gopclntab *table,
		       const struct gopclntab_function *function, uint32_t offset)
{
	*walk = (struct walk){
		.table = table,
		.position = table->tables + offset,
		.there = table->tables + offset,
		.steps_left = (function->end - function->vaddr) / table->quantum + 1,
		.vaddr = function->vaddr,
		.value = UINT32_MAX,
	};
	return offset;
}

static bool walk_byte(struct walk *walk, uint8_t *ret)
{
	if (walk->position == walk->there) {
		size_t whole = walk->table->bytes.size_bytes;
		uint64_t step = walk->position < whole ? whole - walk->position : 0;

		if (step > STEP_BYTES)
			step = STEP_BYTES;
		if (!step || !require_bytes(walk->table, walk->position, step))
			return false;
		walk->there += step;
	}
	*ret = walk->table->bytes.data[walk->position++];
	return true;
}

static bool walk_varint(struct walk *walk, uint32_t *ret)
{
	uint32_t value = 0;
	uint8_t byte;

	for (unsigned int i = 0; i < MAX_VARINT_BYTES; i++) {
		if (!walk_byte(walk, &byte))
			return false;
		value |= (uint32_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* The next value, which is valid up to walk->vaddr. Returns false at the end, or if the table is
 * malformed. */
static bool walk_next(struct walk *walk)
{
	uint32_t difference, quanta;

	if (!walk->steps_left-- || !walk_varint(walk, &difference) ||
	    (!difference && walk->begun) || !walk_varint(walk, &quanta))
		return false;
	walk->begun = true;
	walk->value += difference & 1 ? ~(difference >> 1) : difference >> 1;
	walk->vaddr += (uint64_t)quanta * walk->table->quantum;
	return true;
}

/* -1 if the table has no value there. */
static int32_t value_at(const struct gopclntab *table, const struct gopclntab_function *function,
			uint32_t offset, uint64_t vaddr)
{
	struct walk walk;

	if (walk_begin(&walk, table, function, offset))
		while (walk_next(&walk))
			if (vaddr < walk.vaddr)
				return (int32_t)walk.value;
	return -1;
}

/* A table of values ends where the function does. */
static uint64_t end_by(const struct gopclntab *table, const struct gopclntab_function *function,
		       unsigned int word)
{
	struct walk walk;
	uint32_t offset;

	if (!read_word(table, function, word, &offset) ||
	    !walk_begin(&walk, table, function, offset))
		return function->vaddr;
	while (walk.vaddr < function->end && walk_next(&walk))
		;
	return walk.vaddr < function->end ? walk.vaddr : function->end;
}

bool gopclntab_record(const struct gopclntab *table, uint64_t number,
		      struct gopclntab_function *ret)
{
	struct gopclntab_function function = { 0 };
	struct reader row;
	uint64_t offset, last_end;
	uint32_t name;

	if (number >= table->function_count)
		return false;
	row = require_part(table, table->rows + number * row_bytes(table), row_bytes(table));
	function.vaddr = read_start(table, &row);
	offset = start_bytes(table) == 8 ? reader_u64(&row) : reader_u32(&row);
	if (!reader_ok(&row) || !gopclntab_start(table, number + 1, &function.end) ||
	    function.end <= function.vaddr ||
	    !gopclntab_start(table, table->function_count, &last_end) || function.end > last_end)
		return false;
	if (table->version != GOPCLNTAB_1_2 && __builtin_add_overflow(offset, table->rows, &offset))
		return false;
	row = require_part(table, offset,
			   start_bytes(table) + fixed_words(table) * sizeof(uint32_t));
	if (read_start(table, &row) != function.vaddr || !reader_ok(&row))
		return false;
	function.record = offset + start_bytes(table);
	read_word(table, &function, WORD_NAME, &name);
	function.name = text_at(table, table->names + name);
	*ret = function;
	return function.name && *function.name;
}

uint64_t gopclntab_measure(const struct gopclntab *table, const struct gopclntab_function *function)
{
	uint64_t end = end_by(table, function, WORD_LINE_TABLE);

	if (end == function->vaddr)
		end = end_by(table, function, WORD_SP_TABLE);
	return end - function->vaddr;
}

/* ---- lines ------------------------------------------------------------------------------ */

static const char *file_of(const struct gopclntab *table, const struct gopclntab_function *function,
			   int32_t number)
{
	uint32_t unit = 0, offset, count;

	if (number < 0)
		return NULL;
	if (table->version == GOPCLNTAB_1_2) {
		if (!number || !read_u32(table, table->files, &count) || (uint32_t)number >= count)
			return NULL;
		return read_u32(table, table->files + (uint64_t)number * 4, &offset)
			       ? text_at(table, offset)
			       : NULL;
	}
	if (!read_word(table, function, WORD_UNIT, &unit) ||
	    !read_u32(table, table->units + 4 * ((uint64_t)unit + (uint32_t)number), &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	return text_at(table, table->files + offset);
}

struct gopclntab_line gopclntab_line(const struct gopclntab *table,
				     const struct gopclntab_function *function, uint64_t vaddr)
{
	struct gopclntab_line found = { 0 };
	uint32_t files, lines;
	int32_t line;

	if (!read_word(table, function, WORD_FILE_TABLE, &files) ||
	    !read_word(table, function, WORD_LINE_TABLE, &lines))
		return found;
	found.file = file_of(table, function, value_at(table, function, files, vaddr));
	line = value_at(table, function, lines, vaddr);
	if (found.file && line > 0)
		found.line = (uint32_t)line;
	return found;
}

/* ---- inlined functions ------------------------------------------------------------------ */

static bool read_counts(const struct gopclntab *table, const struct gopclntab_function *function,
			uint32_t *pcdata_ret, uint32_t *funcdata_ret)
{
	if (!read_word(table, function, WORD_PCDATA_COUNT, pcdata_ret) ||
	    !read_word(table, function, fixed_words(table) - 1, funcdata_ret))
		return false;
	*funcdata_ret >>= 24;
	return *pcdata_ret <= UINT16_MAX;
}

bool gopclntab_inline_rows(const struct gopclntab *table, const struct gopclntab_function *function,
			   uint32_t *ret)
{
	uint32_t pcdata, funcdata;

	return table->version >= GOPCLNTAB_1_18 &&
	       read_counts(table, function, &pcdata, &funcdata) && pcdata > PCDATA_INLINED &&
	       funcdata > FUNCDATA_INLINED &&
	       read_word(table, function, fixed_words(table) + pcdata + FUNCDATA_INLINED, ret) &&
	       *ret != UINT32_MAX;
}

size_t gopclntab_inline_row_bytes(const struct gopclntab *table)
{
	return table->version == GOPCLNTAB_1_20 ? 16 : 20;
}

int32_t gopclntab_inline_row(const struct gopclntab *table,
			     const struct gopclntab_function *function, uint64_t vaddr)
{
	uint32_t pcdata, funcdata, offset;

	if (!read_counts(table, function, &pcdata, &funcdata) || pcdata <= PCDATA_INLINED ||
	    !read_word(table, function, fixed_words(table) + PCDATA_INLINED, &offset))
		return -1;
	return value_at(table, function, offset, vaddr);
}

bool gopclntab_inlined(const struct gopclntab *table, const struct gopclntab_function *function,
		       struct reader row, struct gopclntab_inlined *ret)
{
	struct gopclntab_inlined found = { .parent = -1 };
	bool names_parent = table->version < GOPCLNTAB_1_20;
	int32_t file = -1, line = 0;
	uint32_t name, pc;

	if (names_parent) {
		found.parent = (int16_t)reader_u16(&row);
		reader_skip(&row, 2);
		file = (int32_t)reader_u32(&row);
		line = (int32_t)reader_u32(&row);
	} else {
		reader_skip(&row, 4);
	}
	name = reader_u32(&row);
	pc = reader_u32(&row);
	if (!reader_ok(&row) || pc >= function->end - function->vaddr)
		return false;
	found.name = text_at(table, table->names + name);
	if (names_parent) {
		found.call.file = file_of(table, function, file);
		found.call.line = found.call.file && line > 0 ? (uint32_t)line : 0;
	} else {
		found.call = gopclntab_line(table, function, function->vaddr + pc);
		found.parent = gopclntab_inline_row(table, function, function->vaddr + pc);
	}
	*ret = found;
	return found.name && *found.name;
}
