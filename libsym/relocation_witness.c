/* SPDX-License-Identifier: MIT */
#include "libsym/relocation_witness.h"

#include <string.h>

#include "libsym/format/pe_relocations.h"

enum {
	HEAD_BYTES = 4096,
	PAGE_BYTES = 4096,
	MOST_BLOCKS = 64, /* a page of pointers each; one is telling enough */
};

/* The largest table seen has 46 KB (CoreLib of 10.0). */
static const uint32_t most_table_bytes = 4 << 20;

/* What the pointers that were looked at say. */
struct testimony {
	uint64_t difference; /* load base minus preferred base */
	size_t relocated;    /* as in the file, relocated: the file is the mapped one */
	size_t raw;          /* as in the file, not relocated: it was put there later */
	size_t other;        /* bound by the runtime, or of another file */
};

/* Offset in the file of [rva, rva + size_bytes); false when no segment has all of it. */
static bool locate(const struct image *image, uint64_t rva, uint64_t size_bytes, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];
		uint64_t inside = rva - segment->position;

		if (rva < segment->position || inside >= segment->size_bytes ||
		    size_bytes > segment->size_bytes - inside)
			continue;
		*ret = segment->offset + inside;
		return true;
	}
	return false;
}

static struct sym_error *stale(const struct image *image)
{
	return sym_error_create_path(SYM_ERROR_STALE, image->path, SYM_OFFSET_UNKNOWN,
				     "the file was changed after it was mapped");
}

static uint64_t read_pointer(const uint8_t *bytes)
{
	struct reader reader = reader_over(bytes, 8);

	return reader_u64(&reader);
}

static void compare(struct testimony *testimony, uint64_t in_file, uint64_t in_memory)
{
	if (in_memory == in_file + testimony->difference)
		testimony->relocated++;
	else if (in_memory == in_file)
		testimony->raw++;
	else
		testimony->other++;
}

/* From the first pointer of a block to the end of its last one; false when it has none inside one
 * page. */
static bool extent(struct pe_relocation_block block, uint32_t *start_ret, uint32_t *end_ret)
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

static struct sym_error *ask_block(const struct process *process, const struct image *image,
				   struct sparse_file *view, uint64_t load_base,
				   struct pe_relocation_block block, struct testimony *testimony)
{
	uint32_t start, end, offset;
	uint8_t memory[PAGE_BYTES];
	struct sym_error *error;
	uint64_t file_offset;

	if (!extent(block, &start, &end) ||
	    !locate(image, (uint64_t)block.page_rva + start, end - start, &file_offset))
		return NULL;
	error = sparse_file_need(view, image->path, file_offset, end - start);
	if (error)
		return error;
	error = process_read_memory(process, load_base + block.page_rva + start, memory,
				    end - start);
	if (error)
		return error;
	while (pe_relocations_next_pointer(&block, &offset))
		if (offset <= PAGE_BYTES - 8)
			compare(testimony, read_pointer(view->data + file_offset + offset - start),
				read_pointer(memory + offset - start));
	return NULL;
}

static struct sym_error *ask_blocks(const struct process *process, const struct image *image,
				    struct sparse_file *view, uint64_t load_base,
				    struct reader table, struct testimony *testimony)
{
	struct pe_relocation_block block;
	struct sym_error *error = NULL;
	unsigned int i;

	for (i = 0; !error && i < MOST_BLOCKS && pe_relocations_next_block(&table, &block); i++)
		error = ask_block(process, image, view, load_base, block, testimony);
	return error;
}

static struct sym_error *judge(const struct image *image, const struct testimony *testimony)
{
	/* One may be chance: a bound pointer can have any value. */
	bool agrees = testimony->relocated > testimony->raw;

	if (agrees || !(testimony->raw + testimony->other))
		return NULL;
	return stale(image);
}

static struct sym_error *ask(const struct process *process, const struct image *image,
			     struct sparse_file *view, uint64_t load_base)
{
	struct testimony testimony = { 0 };
	struct pe_relocation_table where;
	struct sym_error *error;
	uint64_t table_offset;

	error = sparse_file_need(view, image->path, 0, HEAD_BYTES);
	if (error)
		return error;
	if (!pe_relocations_locate(view->data,
				   view->size_bytes < HEAD_BYTES ? view->size_bytes : HEAD_BYTES,
				   &where) ||
	    where.size_bytes > most_table_bytes ||
	    !locate(image, where.rva, where.size_bytes, &table_offset))
		return NULL;
	/* Where it lies as it was linked, relocated or not is the same. */
	testimony.difference = load_base - where.preferred_base;
	if (!testimony.difference)
		return NULL;
	error = sparse_file_need(view, image->path, table_offset, where.size_bytes);
	if (!error)
		error = ask_blocks(process, image, view, load_base,
				   reader_over(view->data + table_offset, where.size_bytes),
				   &testimony);
	return error ? error : judge(image, &testimony);
}

struct sym_error *relocation_witness_ask(const struct process *process, const struct image *image,
					 uint64_t load_base)
{
	struct sparse_file view = image_view(image);
	struct sym_error *error = ask(process, image, &view, load_base);

	sparse_file_deinit(&view);
	/* Memory ends where a file does that was made shorter. */
	if (error && sym_error_code(error) == SYM_ERROR_IO && !sym_error_is_shortage(error)) {
		sym_error_destroy(error);
		return stale(image);
	}
	return error;
}
