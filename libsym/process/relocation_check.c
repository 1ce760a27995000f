/* SPDX-License-Identifier: MIT */
#include "libsym/process/relocation_check.h"

#include <string.h>

#include "libsym/format/dotnet/pe_relocations.h"

enum {
	HEAD_BYTES = 4096,
	PAGE_BYTES = 4096,
	MOST_BLOCKS = 64, /* a page of pointers each; one is enough to decide */
};

/* The largest table seen has 46 KB (CoreLib of 10.0). */
static const uint32_t most_table_bytes = 4 << 20;

/* The result of comparing pointers. */
struct relocation_votes {
	uint64_t difference; /* load base minus preferred base */
	size_t relocated;    /* relocated from the file: the file is the mapped one */
	size_t raw;          /* equal to the file, not relocated: the file was replaced later */
	size_t other;        /* bound by the runtime, or of another file */
};

/*
 * Converts [rva, rva + size_bytes) to an offset in the file; false when no segment contains all of
 * it.
 */
static bool relocation_check_locate(const struct object_file *object, uint64_t rva,
				    uint64_t size_bytes, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		uint64_t inside = rva - segment->position;

		if (rva < segment->position || inside >= segment->size_bytes ||
		    size_bytes > segment->size_bytes - inside)
			continue;
		*ret = segment->offset + inside;
		return true;
	}
	return false;
}

static struct sym_error *relocation_check_stale_error(const struct object_file *object)
{
	return sym_error_create_path(SYM_ERROR_STALE, object->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after it was mapped");
}

static uint64_t read_pointer(const uint8_t *bytes)
{
	struct reader reader = reader_over(bytes, 8);

	return reader_u64(&reader);
}

static void relocation_check_count(struct relocation_votes *relocation_votes, uint64_t in_file,
				   uint64_t in_memory)
{
	if (in_memory == in_file + relocation_votes->difference)
		relocation_votes->relocated++;
	else if (in_memory == in_file)
		relocation_votes->raw++;
	else
		relocation_votes->other++;
}

/*
 * Range from the first pointer of a block to the end of its last one; false when no pointer lies
 * inside the page.
 */
static bool relocation_check_extent(struct pe_relocation_block block, uint32_t *start_ret,
				    uint32_t *end_ret)
{
	uint32_t start = PAGE_BYTES, end = 0, offset;

	while (pe_relocations_next_pointer(&block, &offset)) {
		if (offset > PAGE_BYTES - 8)
			continue;
		start = offset < start ? offset : start;
		end = offset + 8 > end ? offset + 8 : end;
	}
	*start_ret = start;
	*end_ret = end;
	return start < end;
}

static struct sym_error *ask_block(const struct process *process, const struct object_file *object,
				   struct sparse_file *view, uint64_t load_base,
				   struct pe_relocation_block block,
				   struct relocation_votes *relocation_votes)
{
	uint32_t start, end, offset;
	uint8_t memory[PAGE_BYTES];
	struct sym_error *error;
	uint64_t file_offset;

	if (!relocation_check_extent(block, &start, &end) ||
	    !relocation_check_locate(object, (uint64_t)block.page_rva + start, end - start,
				     &file_offset))
		return NULL;
	error = sparse_file_need(view, object->path, file_offset, end - start);
	if (error)
		return error;
	error = process_read_memory(process, load_base + block.page_rva + start, memory,
				    end - start);
	if (error)
		return error;
	while (pe_relocations_next_pointer(&block, &offset))
		if (offset <= PAGE_BYTES - 8)
			relocation_check_count(
				relocation_votes,
				read_pointer(view->data + file_offset + offset - start),
				read_pointer(memory + offset - start));
	return NULL;
}

static struct sym_error *ask_blocks(const struct process *process, const struct object_file *object,
				    struct sparse_file *view, uint64_t load_base,
				    struct reader table, struct relocation_votes *relocation_votes)
{
	struct pe_relocation_block block;
	struct sym_error *error = NULL;
	unsigned int i;

	for (i = 0; !error && i < MOST_BLOCKS && pe_relocations_next_block(&table, &block); i++)
		error = ask_block(process, object, view, load_base, block, relocation_votes);
	return error;
}

static struct sym_error *relocation_check_decide(const struct object_file *object,
						 const struct relocation_votes *relocation_votes)
{
	/* A single match can be chance: a bound pointer can have any value. */
	bool agrees = relocation_votes->relocated > relocation_votes->raw;

	if (agrees || !(relocation_votes->raw + relocation_votes->other))
		return NULL;
	return relocation_check_stale_error(object);
}

static struct sym_error *ask(const struct process *process, const struct object_file *object,
			     struct sparse_file *view, uint64_t load_base)
{
	struct relocation_votes relocation_votes = { 0 };
	struct pe_relocation_table where;
	struct sym_error *error;
	uint64_t table_offset;

	error = sparse_file_need(view, object->path, 0, HEAD_BYTES);
	if (error)
		return error;
	if (!pe_relocations_locate(view->data,
				   view->size_bytes < HEAD_BYTES ? view->size_bytes : HEAD_BYTES,
				   &where) ||
	    where.size_bytes > most_table_bytes ||
	    !relocation_check_locate(object, where.rva, where.size_bytes, &table_offset))
		return NULL;
	/* An image at its preferred base is not relocated. */
	relocation_votes.difference = load_base - where.preferred_base;
	if (!relocation_votes.difference)
		return NULL;
	error = sparse_file_need(view, object->path, table_offset, where.size_bytes);
	if (!error)
		error = ask_blocks(process, object, view, load_base,
				   reader_over(view->data + table_offset, where.size_bytes),
				   &relocation_votes);
	return error ? error : relocation_check_decide(object, &relocation_votes);
}

struct sym_error *relocation_check_ask(const struct process *process,
				       const struct object_file *object, uint64_t load_base)
{
	struct sparse_file view = object_file_view(object);
	struct sym_error *error = ask(process, object, &view, load_base);

	sparse_file_deinit(&view);
	/* Memory beyond the end of a truncated file is unreadable. */
	if (error && sym_error_code(error) == SYM_ERROR_IO && !sym_error_is_shortage(error)) {
		sym_error_destroy(error);
		return relocation_check_stale_error(object);
	}
	return error;
}
