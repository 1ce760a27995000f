/* SPDX-License-Identifier: MIT */
/* The symbol files of a plan: each is made once, from a list of symbols. */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "mapgen/perfdata/fixup_internal.h"
#include "mapgen/symfile/buildid_cache.h"
#include "mapgen/symfile/symfile.h"
#include "mapgen/symfile/symfile_image.h"

struct planned_file {
	UT_hash_handle hh;
	uint32_t standin;
	char key[];
};

enum {
	MOST_SYMFILE_BYTES = INT32_MAX
};

void fixup_forget_files(struct fixup_plan *plan)
{
	HASH_DESTROY(plan->files, free);
}

static struct sym_error *add_symfile(struct fixup_plan *plan, const struct planned_symfile *standin,
				     uint32_t *index_ret)
{
	struct planned_symfile *items;

	for (size_t i = 0; i < plan->symfile_count; i++)
		if (!memcmp(plan->symfiles[i].id, standin->id, BUILD_ID_BYTES)) {
			*index_ret = (uint32_t)i;
			return NULL;
		}
	items = reallocarray(plan->symfiles, plan->symfile_count + 1, sizeof(*items));
	if (!items)
		return &sym_error_no_memory;
	plan->symfiles = items;
	items[plan->symfile_count] = *standin;
	items[plan->symfile_count].label = strdup(standin->label);
	*index_ret = (uint32_t)plan->symfile_count++;
	return NULL;
}

struct sym_error *fixup_keep_symfile(struct fixup_plan *plan, struct planned_symfile *standin,
				     const struct buf *file, uint32_t *index_ret)
{
	struct sym_error *failure = buildid_dir_put(plan->cache, standin->id, standin->label,
						    file->data, file->size_bytes, &standin->is_new);

	return failure ? failure : add_symfile(plan, standin, index_ret);
}

struct sym_error *fixup_make_symfile(struct fixup_plan *plan, const struct symbol_run *run,
				     uint32_t *index_ret)
{
	struct planned_symfile standin = { .label = (char *)run->label, .symbols = run->count };
	struct symfile elf;
	struct buf file;
	struct sym_error *failure = NULL;

	buf_init(&file, MOST_SYMFILE_BYTES);
	symfile_init(&elf);
	for (size_t i = 0; i < run->count; i++)
		symfile_image_add(&elf, plan->options, run->symbols[i]);
	for (size_t i = 0; run->code && i < run->code->count; i++)
		symfile_add_code(&elf, &run->code_source, run->code->items[i].start,
				 run->code->items[i].end);
	if (run->code && (run->lines_of || run->lines_of_image))
		fixup_add_lines(&elf, run);
	if (!symfile_finish(&elf, run->origin, &file, standin.id))
		failure = sym_error_create(SYM_ERROR_IO, "out of memory for its names");
	if (!failure)
		failure = fixup_keep_symfile(plan, &standin, &file, index_ret);
	symfile_deinit(&elf);
	buf_deinit(&file);
	return failure;
}

bool fixup_known_file(const struct fixup_plan *plan, const char *key, uint32_t *index_ret)
{
	struct planned_file *file;

	HASH_FIND_STR(plan->files, key, file);
	if (file)
		*index_ret = file->standin;
	return file != NULL;
}

void fixup_remember_file(struct fixup_plan *plan, const char *key, uint32_t standin)
{
	size_t bytes = strlen(key);
	struct planned_file *file =
		hash_find_or_add(&plan->files, key, bytes, offsetof(struct planned_file, key),
				 sizeof(*file) + bytes, NULL);

	/* Without memory it is made again. */
	if (file)
		file->standin = standin;
}

/* From the start of the first symbol to the end of the last. */
static struct address_range code_range(const struct sym_symbols *symbols,
				       const struct file_code *code)
{
	const struct sym_symbol *first = sym_symbols_at(symbols, 0);
	const struct sym_symbol *last = sym_symbols_at(symbols, sym_symbols_count(symbols) - 1);
	uint64_t end = last->start + last->size_bytes;

	return (struct address_range){ first->start > code->start ? first->start : code->start,
				       end < code->end ? end : code->end };
}

static struct sym_error *make_file_symfile(struct fixup_plan *plan, struct sym_image *image,
					   const struct sym_symbols *symbols,
					   const struct file_code *code, uint32_t *index_ret)
{
	struct address_range range;
	const struct address_ranges ranges = { &range, 1 };
	size_t count = sym_symbols_count(symbols);
	const struct sym_symbol **items AUTO_FREE =
		calloc(count, sizeof(const struct sym_symbol *));
	const char *mvid = sym_image_mvid(image);
	const char *label = path_file_name(sym_image_path(image));
	char *origin AUTO_FREE = NULL;
	struct symbol_run run;

	origin = message_format("%s {%s} by offset", label, mvid ? mvid : "");
	if (!items)
		return &sym_error_no_memory;
	for (size_t i = 0; i < count; i++)
		items[i] = sym_symbols_at(symbols, i);
	run = (struct symbol_run){
		.symbols = items, .count = count, .origin = origin, .label = label
	};
	if (code) {
		range = code_range(symbols, code);
		run.code = &ranges;
		run.code_source = code->source;
		run.lines_of_image = image;
	}
	return fixup_make_symfile(plan, &run, index_ret);
}

struct sym_error *fixup_file_symfile(struct fixup_plan *plan, const char *key,
				     struct sym_image *image, const struct file_code *code,
				     uint32_t *index_ret)
{
	struct sym_symbols *symbols = NULL;
	struct sym_error *error;
	uint32_t index = NO_SYMFILE;
	struct sym_error *failure = NULL;

	if (fixup_known_file(plan, key, index_ret))
		return NULL;
	error = sym_image_symbols(image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_BY_OFFSET,
				  &symbols);
	if (error) {
		failure = sym_error_create(SYM_ERROR_IO, "%s", sym_error_message(error));
		sym_error_destroy(error);
	} else if (sym_symbols_count(symbols)) {
		failure = make_file_symfile(plan, image, symbols, code, &index);
	}
	sym_symbols_destroy(symbols);
	fixup_remember_file(plan, key, index);
	*index_ret = index;
	return failure;
}
