/* SPDX-License-Identifier: MIT */
/*
 * Lines are written when something is first seen, so the table is its own text; two hash tables say
 * what is in it. A symbol is known by process, start, and the bytes of its name: the same start
 * with another name is other code.
 */
#include "mapgen/record/name_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/debuginfo/source_urls.h"

enum {
	TEXT_LIMIT = 1 << 30
};

struct image_key {
	uint64_t process;
	const struct sym_image *image;
};

struct known_image {
	UT_hash_handle hh;
	struct image_key key;
	uint32_t number;
};

/* The last symbol that was seen at a start. */
struct symbol_key {
	uint64_t process;
	uint64_t start_address;
};

struct known_symbol {
	UT_hash_handle hh;
	struct symbol_key key;
	size_t name_offset, name_bytes; /* in the text */
	uint64_t size_bytes;            /* 0: it has no line yet */
};

struct known_file {
	UT_hash_handle hh;
	uint32_t number;
	char key[]; /* path, NUL, URL */
};

/* The last line that was written for an address. */
struct known_line {
	UT_hash_handle hh;
	struct symbol_key key; /* with the address itself */
	const struct known_file *file;
	uint32_t line, column, quality, il_offset, token;
	uint64_t inlined_hash;
};

struct name_table {
	struct buf text;
	uint32_t process_count, image_count, file_count;
	struct known_image *images;
	struct known_symbol *symbols;
	struct known_file *files;
	struct known_line *lines;
	struct source_urls *urls;
};

struct sym_error *name_table_create(struct name_table **ret)
{
	struct name_table *table = calloc(1, sizeof(*table));
	struct sym_error *error;

	if (!table)
		return &sym_error_no_memory;
	buf_init(&table->text, TEXT_LIMIT);
	error = source_urls_create(&table->urls);
	if (error)
		name_table_destroy(table);
	else
		*ret = table;
	return error;
}

void name_table_destroy(struct name_table *table)
{
	if (!table)
		return;
	HASH_DESTROY(table->images, free);
	HASH_DESTROY(table->symbols, free);
	HASH_DESTROY(table->files, free);
	HASH_DESTROY(table->lines, free);
	source_urls_destroy(table->urls);
	buf_deinit(&table->text);
	free(table);
}

const struct buf *name_table_text(const struct name_table *table)
{
	return &table->text;
}

static struct sym_error *text_error(const struct name_table *table)
{
	if (table->text.failure == BUF_TOO_BIG)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d bytes of names", TEXT_LIMIT);
	return table->text.failure ? &sym_error_no_memory : NULL;
}

static void put_text(struct buf *text, const char *value)
{
	for (const char *c = value; *c; c++) {
		if (*c == '\\')
			buf_append(text, "\\\\", 2);
		else if (*c == '\t')
			buf_append(text, "\\t", 2);
		else if (*c == '\n')
			buf_append(text, "\\n", 2);
		else
			buf_append(text, c, 1);
	}
}

static struct sym_error *end_line(struct name_table *table)
{
	buf_append(&table->text, "\n", 1);
	return text_error(table);
}

struct sym_error *name_table_add_process(struct name_table *table, int32_t pid,
					 int32_t container_pid, uint64_t start_ticks,
					 uint64_t from_ns, const char *comm, uint32_t *ret)
{
	*ret = table->process_count++;
	buf_printf(&table->text, "P\t%u\t%d\t%d\t%" PRIu64 "\t%" PRIu64 "\t", *ret, pid,
		   container_pid, start_ticks, from_ns);
	put_text(&table->text, comm);
	return end_line(table);
}

struct sym_error *name_table_add_thread(struct name_table *table, uint32_t process, int32_t tid,
					int32_t container_tid, const char *comm)
{
	buf_printf(&table->text, "T\t%u\t%d\t%d\t", process, tid, container_tid);
	put_text(&table->text, comm);
	return end_line(table);
}

/* In hexadecimal; nothing where there is none. */
static void put_build_id(struct buf *text, const struct sym_image *image)
{
	struct sym_identity identity = { .size = sizeof(identity) };
	/* It reads the file, and changes nothing that others see. */
	struct sym_error *error = sym_image_identity((struct sym_image *)image, &identity);

	if (error || identity.kind != SYM_IDENTITY_ELF)
		identity.id_size_bytes = 0;
	for (uint32_t i = 0; i < identity.id_size_bytes; i++)
		buf_printf(text, "%02x", identity.id[i]);
	sym_error_destroy(error);
}

static void put_identity(struct buf *text, const struct sym_image *image)
{
	const char *mvid = sym_image_mvid(image);
	size_t before = text->size_bytes;

	if (mvid)
		put_text(text, mvid);
	else
		put_build_id(text, image);
	if (text->size_bytes == before)
		put_text(text, "-");
}

/* Number of an image, which gets its line when it is first seen. */
static struct sym_error *find_image(struct name_table *table, uint32_t process,
				    const struct sym_image *image, uint32_t *ret)
{
	const struct image_key key = { process, image };
	bool is_new;
	struct known_image *known =
		hash_find_or_add(&table->images, &key, sizeof(key),
				 offsetof(struct known_image, key), sizeof(*known), &is_new);

	if (!known)
		return &sym_error_no_memory;
	if (is_new)
		known->number = table->image_count++;
	*ret = known->number;
	if (!is_new)
		return NULL;
	buf_printf(&table->text, "I\t%u\t%u\t%s\t", known->number, process,
		   sym_image_kind_text(sym_image_kind(image)));
	put_identity(&table->text, image);
	buf_append(&table->text, "\t", 1);
	put_text(&table->text, sym_image_path(image));
	return end_line(table);
}

/* Escaped text differs from the name only where that has control characters; then a symbol may be
 * written twice, which does no harm. */
static bool is_same(const struct name_table *table, const struct known_symbol *known,
		    const char *name, uint64_t size_bytes)
{
	return known->size_bytes == size_bytes && strlen(name) == known->name_bytes &&
	       !memcmp(table->text.data + known->name_offset, name, known->name_bytes);
}

static const char *name_of(const struct sym_answer *answer)
{
	if (answer->name)
		return answer->name;
	return answer->reason ? answer->reason : sym_status_text(answer->status);
}

static struct sym_error *put_symbol(struct name_table *table, struct known_symbol *known,
				    const struct sym_answer *answer, uint64_t from_ns)
{
	uint32_t image = UINT32_MAX;
	struct sym_error *error = NULL;

	if (answer->image)
		error = find_image(table, (uint32_t)known->key.process, answer->image, &image);
	if (error)
		return error;
	buf_printf(&table->text, "S\t%u\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\t%u\t%s\t%s\t",
		   (uint32_t)known->key.process, known->key.start_address, known->size_bytes,
		   from_ns, (unsigned int)answer->kind, sym_source_text(answer->source),
		   answer->tier ? answer->tier : "-");
	if (image == UINT32_MAX)
		buf_append(&table->text, "-", 1);
	else
		buf_printf(&table->text, "%u", image);
	buf_printf(&table->text, "\t%u\t", (unsigned int)answer->status);
	known->name_offset = table->text.size_bytes;
	put_text(&table->text, name_of(answer));
	known->name_bytes = table->text.size_bytes - known->name_offset;
	return end_line(table);
}

struct sym_error *name_table_add_answer(struct name_table *table, uint32_t process,
					const struct sym_answer *answer, uint64_t time_ns)
{
	bool is_named = answer->status == SYM_RESOLVED || answer->status == SYM_BOUNDS_ONLY;
	const struct symbol_key key = { process, is_named ? answer->address - answer->offset_bytes
							  : answer->address };
	uint64_t size_bytes = is_named && answer->size_bytes ? answer->size_bytes : 1;
	bool is_first;
	struct known_symbol *known =
		hash_find_or_add(&table->symbols, &key, sizeof(key),
				 offsetof(struct known_symbol, key), sizeof(*known), &is_first);

	if (!known)
		return &sym_error_no_memory;
	/* Without a size it covers what was asked for. */
	if (is_named && !answer->size_bytes)
		size_bytes = answer->offset_bytes + 1;
	if (is_same(table, known, name_of(answer), size_bytes))
		return NULL;
	known->size_bytes = size_bytes;
	return put_symbol(table, known, answer, is_first ? 0 : time_ns);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* NULL without memory, or when the table is too long. */
static const struct known_file *find_file(struct name_table *table, const char *path,
					  const char *url)
{
	size_t path_bytes = strlen(path) + 1, key_bytes = path_bytes + strlen(url);
	char *key AUTO_FREE = malloc(key_bytes + 1);
	struct known_file *known;
	bool is_new;

	if (!key)
		return NULL;
	memcpy(key, path, path_bytes);
	memcpy(key + path_bytes, url, key_bytes - path_bytes + 1);
	known = hash_find_or_add(&table->files, key, key_bytes, offsetof(struct known_file, key),
				 sizeof(*known) + key_bytes + 1, &is_new);
	if (!known || !is_new)
		return known;
	known->number = table->file_count++;
	buf_printf(&table->text, "F\t%u\t", known->number);
	put_text(&table->text, path);
	if (*url) {
		buf_append(&table->text, "\t", 1);
		put_text(&table->text, url);
	}
	buf_append(&table->text, "\n", 1);
	return known;
}

/* Where an address is in the method that has the code, or in one that is inlined there. */
struct place {
	const char *inlined; /* name; NULL: it has the code */
	const struct known_file *file;
	uint32_t line, column, quality, il_offset, token;
	const char *mvid;
};

static struct sym_error *no_file(const struct name_table *table)
{
	return text_error(table) ?: &sym_error_no_memory;
}

/* The place of the address, which is in the innermost method. */
static struct sym_error *place_of_answer(struct name_table *table, const struct sym_answer *answer,
					 struct place *ret)
{
	const char *reason, *url;

	*ret = (struct place){ .line = answer->line,
			       .column = answer->column,
			       .quality = answer->il_quality,
			       .il_offset = answer->il_offset,
			       .token = answer->method_token,
			       .mvid = answer->module_mvid };
	if (!answer->file)
		return NULL;
	ret->quality = answer->line_quality;
	url = source_urls_find(table->urls, answer->pdb, answer->file, &reason);
	ret->file = find_file(table, answer->file, url ? url : "");
	return ret->file ? NULL : no_file(table);
}

/* The place of a call. It may be in another module than the answer's PDB, so it has no URL. */
static struct sym_error *place_of_call(struct name_table *table, const struct sym_inlined *called,
				       struct place *ret)
{
	*ret = (struct place){ .il_offset = UINT32_MAX };
	if (!called->call_file || !called->call_line)
		return NULL;
	ret->line = called->call_line;
	ret->column = called->call_column;
	ret->quality = SYM_LINE_EXACT;
	ret->file = find_file(table, called->call_file, "");
	return ret->file ? NULL : no_file(table);
}

static struct sym_error *put_place(struct name_table *table, const struct symbol_key *key,
				   uint64_t from_ns, const struct place *place)
{
	struct buf *text = &table->text;

	buf_printf(text, "%s\t%u\t%" PRIx64 "\t%" PRIu64 "\t%u\t%u\t%u\t%u\t%x\t%s\t",
		   place->inlined ? "M" : "L", (uint32_t)key->process, key->start_address, from_ns,
		   place->quality, place->line, place->column, place->il_offset, place->token,
		   place->mvid ? place->mvid : "-");
	if (place->file)
		buf_printf(text, "%u", place->file->number);
	else
		buf_append(text, "-", 1);
	if (place->inlined) {
		buf_append(text, "\t", 1);
		put_text(text, place->inlined);
	}
	return end_line(table);
}

static size_t count_inlined(const struct sym_answer *answer)
{
	return answer->inlined_count <= NAME_TABLE_MOST_INLINED ? answer->inlined_count : 0;
}

/* 0: none. */
static uint64_t hash_inlined(const struct sym_answer *answer)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count_inlined(answer); i++) {
		const struct sym_inlined *inlined = &answer->inlined[i];
		const char *file = inlined->call_file ?: "";
		const uint32_t numbers[] = { inlined->call_line, inlined->call_column };

		hash = XXH3_64bits_withSeed(inlined->name, strlen(inlined->name) + 1, hash);
		hash = XXH3_64bits_withSeed(file, strlen(file) + 1, hash);
		hash = XXH3_64bits_withSeed(numbers, sizeof(numbers), hash);
	}
	return hash;
}

/* The innermost place is the answer's; each next one is the call of the one before. */
static struct sym_error *put_places(struct name_table *table, const struct known_line *known,
				    const struct sym_answer *answer, const struct place *innermost,
				    uint64_t from_ns)
{
	struct place place = *innermost;
	bool has_room = count_inlined(answer) > 0;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < answer->inlined_count; i++) {
		place.inlined = answer->inlined[i].name;
		if (has_room)
			error = put_place(table, &known->key, from_ns, &place);
		if (!error)
			error = place_of_call(table, &answer->inlined[i], &place);
	}
	return error ? error : put_place(table, &known->key, from_ns, &place);
}

struct sym_error *name_table_add_line(struct name_table *table, uint32_t process,
				      const struct sym_answer *answer, uint64_t time_ns)
{
	const struct symbol_key key = { process, answer->address };
	const uint64_t inlined_hash = hash_inlined(answer);
	struct place place;
	struct sym_error *error = place_of_answer(table, answer, &place);
	struct known_line *known;
	bool is_first;

	if (error)
		return error;
	known = hash_find_or_add(&table->lines, &key, sizeof(key), offsetof(struct known_line, key),
				 sizeof(*known), &is_first);
	if (!known)
		return &sym_error_no_memory;
	if (!is_first && known->file == place.file && known->line == place.line &&
	    known->column == place.column && known->quality == place.quality &&
	    known->il_offset == place.il_offset && known->token == place.token &&
	    known->inlined_hash == inlined_hash)
		return NULL;
	known->file = place.file;
	known->line = place.line;
	known->column = place.column;
	known->quality = place.quality;
	known->il_offset = place.il_offset;
	known->token = place.token;
	known->inlined_hash = inlined_hash;
	return put_places(table, known, answer, &place, is_first ? 0 : time_ns);
}
