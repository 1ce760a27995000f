/* SPDX-License-Identifier: MIT */
/*
 * Adds a file to the table reader of format/elf/gopclntab.h. The table's bytes are a sparse_file:
 * the reader requests a range (go_functions_need()), and only its pages are read. The lock protects
 * these pages. Inlining trees lie outside the table; go_image.h finds them on first use.
 */
#include "libsym/elf/go_functions.h"

#include <pthread.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/lazy.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/elf/go_image.h"
#include "libsym/libsym.h"

struct go_functions {
	const struct object_file *object;
	pthread_mutex_t lock;    /* protects what follows: pages are read on demand */
	struct sparse_file view; /* names point into it */
	struct go_table_place place;
	struct gopclntab table; /* function_count 0: no table */
	bool has_function_data;
	uint64_t function_data; /* vaddr; 0: unknown */
};

static void go_functions_destroy(struct go_functions *functions)
{
	if (!functions)
		return;
	sparse_file_deinit(&functions->view);
	pthread_mutex_destroy(&functions->lock);
	free(functions);
}

DEFINE_GUARD(go_functions, struct go_functions *, go_functions_destroy)
#define AUTO_GO_FUNCTIONS GUARDED(go_functions)

static bool go_functions_need(void *context, size_t offset, size_t size_bytes)
{
	struct go_functions *functions = context;
	struct sym_error *error = sparse_file_need(&functions->view, functions->object->path,
						   functions->place.offset + offset, size_bytes);

	sym_error_destroy(error);
	return !error;
}

/* Does all code of the table lie in one segment? */
static bool is_in_code(const struct go_functions *functions)
{
	const struct gopclntab *table = &functions->table;
	const struct object_segment *segment;
	uint64_t start, end;

	if (!gopclntab_start(table, 0, &start) ||
	    !gopclntab_start(table, table->function_count, &end))
		return false;
	segment = object_file_find_segment(functions->object, start);
	return segment && end > start && end - segment->position <= segment->position_size_bytes;
}

static struct sym_error *open_table(struct go_functions *functions, struct elf_sections *sections)
{
	struct go_table_place *place = &functions->place;
	struct gopclntab_bytes bytes = { .need = go_functions_need, .context = functions };
	struct gopclntab table;
	struct sym_error *error = go_image_find_table(sections, place);

	if (error || place->size_bytes < GOPCLNTAB_HEADER_BYTES ||
	    place->offset > functions->view.size_bytes ||
	    place->size_bytes > functions->view.size_bytes - place->offset)
		return error;
	error = sparse_file_need(&functions->view, functions->object->path, place->offset,
				 GOPCLNTAB_HEADER_BYTES);
	if (error)
		return error;
	bytes.data = functions->view.data + place->offset;
	bytes.size_bytes = (size_t)place->size_bytes;
	if (!gopclntab_open(bytes, &table) ||
	    table.pointer_bytes != (functions->object->is_64bit ? 8 : 4))
		return NULL;
	error = go_image_text_start(sections, &table, place->vaddr, &table.text_start);
	if (error)
		return error;
	functions->table = table;
	if ((table.version >= GOPCLNTAB_1_18 && !table.text_start) || !is_in_code(functions))
		functions->table.function_count = 0;
	return NULL;
}

static void *make_functions(const void *context)
{
	const struct object_file *object = context;
	struct go_functions *functions AUTO_GO_FUNCTIONS = calloc(1, sizeof(*functions));
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;
	bool again;

	if (!functions)
		return NULL;
	functions->object = object;
	functions->view = object_file_view(object);
	pthread_mutex_init(&functions->lock, NULL);
	error = elf_sections_read(object, &sections);
	if (!error && !object->is_big_endian)
		error = open_table(functions, &sections);
	again = sym_error_is_no_memory(error);
	if (error)
		functions->table.function_count = 0;
	sym_error_destroy(error);
	return again ? NULL : STEAL(functions);
}

static void destroy_functions(void *made)
{
	go_functions_destroy(made);
}

struct go_functions *go_functions_of(struct object_file *object)
{
	return lazy_get(&object->go_functions, make_functions, destroy_functions, object);
}

uint64_t go_functions_count(const struct go_functions *functions)
{
	return functions->table.function_count;
}

bool go_functions_at(struct go_functions *functions, uint64_t number, uint64_t least_vaddr,
		     struct gopclntab_function *ret)
{
	bool found;

	pthread_mutex_lock(&functions->lock);
	found = gopclntab_record(&functions->table, number, ret) && ret->vaddr >= least_vaddr;
	if (found)
		ret->size_bytes = gopclntab_measure(&functions->table, ret);
	pthread_mutex_unlock(&functions->lock);
	return found;
}

/* Requires the lock. */
static bool find_locked(struct go_functions *functions, uint64_t vaddr,
			struct gopclntab_function *ret)
{
	uint64_t number = functions->table.function_count ? gopclntab_find(&functions->table, vaddr)
							  : GOPCLNTAB_NONE;

	if (number == GOPCLNTAB_NONE || !gopclntab_record(&functions->table, number, ret))
		return false;
	ret->size_bytes = gopclntab_measure(&functions->table, ret);
	return vaddr >= ret->vaddr && vaddr - ret->vaddr < ret->size_bytes;
}

bool go_functions_find(struct go_functions *functions, uint64_t vaddr,
		       struct gopclntab_function *ret)
{
	bool found;

	pthread_mutex_lock(&functions->lock);
	found = find_locked(functions, vaddr, ret);
	pthread_mutex_unlock(&functions->lock);
	return found;
}

uint64_t go_functions_bound(struct go_functions *functions, uint64_t vaddr)
{
	const struct gopclntab *table = &functions->table;
	uint64_t first, end;

	if (!table->function_count)
		return UINT64_MAX;
	pthread_mutex_lock(&functions->lock);
	if (!gopclntab_start(table, 0, &first) ||
	    !gopclntab_start(table, table->function_count, &end))
		end = 0;
	pthread_mutex_unlock(&functions->lock);
	if (vaddr >= end)
		return UINT64_MAX;
	/* From the first function to the end of the last one, all code is Go's. */
	return vaddr < first ? first : vaddr;
}

/* ---- lines and inlined functions --------------------------------------------------------- */

/* Requires the lock. If memory ran out, the next call tries again. */
static uint64_t function_data_of(struct go_functions *functions)
{
	struct elf_sections sections AUTO_ELF_SECTIONS = { 0 };
	struct sym_error *error;

	if (functions->has_function_data)
		return functions->function_data;
	error = elf_sections_read(functions->object, &sections);
	if (!error)
		error = go_image_function_data(&sections, &functions->table, functions->place.vaddr,
					       &functions->function_data);
	functions->has_function_data = !error || sym_error_code(error) != SYM_ERROR_NO_MEMORY;
	sym_error_destroy(error);
	return functions->function_data;
}

static struct reader read_bytes_at(struct go_functions *functions, uint64_t vaddr,
				   size_t size_bytes)
{
	struct reader whole = reader_over(functions->view.data, functions->view.size_bytes);
	uint64_t offset, left;
	struct sym_error *error;

	if (object_file_position_in_view(functions->object, vaddr, &offset, &left) &&
	    size_bytes <= left) {
		error = sparse_file_need(&functions->view, functions->object->path, offset,
					 size_bytes);
		sym_error_destroy(error);
		if (!error)
			return reader_part(&whole, (size_t)offset, size_bytes);
	}
	reader_fail(&whole, "not in the file");
	return whole;
}

static size_t chain_at(struct go_functions *functions, const struct gopclntab_function *function,
		       uint64_t vaddr, struct sym_inlined *inlined, size_t inlined_max)
{
	const struct gopclntab *table = &functions->table;
	size_t count = 0, row_bytes = gopclntab_inline_row_bytes(table);
	uint64_t data;
	uint32_t rows;
	int32_t row;

	if (!inlined_max || !gopclntab_inline_rows(table, function, &rows))
		return 0;
	row = gopclntab_inline_row(table, function, vaddr);
	data = row < 0 ? 0 : function_data_of(functions);
	while (data && row >= 0 && count < inlined_max) {
		struct reader bytes = read_bytes_at(
			functions, data + rows + (uint64_t)(uint32_t)row * row_bytes, row_bytes);
		struct gopclntab_inlined call;

		/* A partial chain would show the innermost function as called by the outermost. */
		if (!gopclntab_inlined(table, function, bytes, &call))
			return 0;
		inlined[count++] = (struct sym_inlined){
			.name = call.name,
			.call_file = call.call.file,
			.call_line = call.call.line,
		};
		row = call.parent;
	}
	return count;
}

bool go_functions_describe(struct go_functions *functions, uint64_t vaddr,
			   struct gopclntab_line *ret, struct sym_inlined *inlined,
			   size_t inlined_max, size_t *inlined_count_ret)
{
	struct gopclntab_function function;
	bool found;

	pthread_mutex_lock(&functions->lock);
	found = find_locked(functions, vaddr, &function);
	if (found) {
		*ret = gopclntab_line(&functions->table, &function, vaddr);
		*inlined_count_ret = chain_at(functions, &function, vaddr, inlined, inlined_max);
	}
	pthread_mutex_unlock(&functions->lock);
	return found;
}
