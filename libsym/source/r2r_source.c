/* SPDX-License-Identifier: MIT */
/*
 * Symbols from the ReadyToRun tables of an image: rvas in, names of precompiled methods out.
 * It decides which ranges are symbols, and of which kind.
 * format/dotnet/r2r.h reads the tables; precompiled.h owns them.
 */
#include "libsym/format/dotnet/r2r.h"
#include "libsym/limits.h"
#include "libsym/source/source.h"

static const char tier[] = "PreJIT";

static struct sym_error *open_tables(const struct source_input *input, struct buf *why, void **ret)
{
	(void)why;
	*ret = input->precompiled;
	return NULL;
}

static enum sym_symbol_kind kind_of(const struct r2r_range *range)
{
	switch (range->kind) {
	case R2R_COLD:
		return SYM_SYMBOL_COLD;
	case R2R_STUB:
		return SYM_SYMBOL_STUB;
	default:
		return SYM_SYMBOL_FUNCTION;
	}
}

static enum source_outcome find_range(void *source, uint64_t position, struct source_match *ret)
{
	struct precompiled *precompiled = source;
	const struct r2r *r2r = precompiled_r2r(precompiled);
	const struct r2r_range *range;
	size_t count, found;

	if (position > UINT32_MAX)
		return SOURCE_MISS;
	found = r2r_find(r2r, (uint32_t)position);
	if (found == SIZE_MAX)
		return SOURCE_MISS;
	range = &r2r_ranges(r2r, &count)[found];
	*ret = (struct source_match){
		.start = range->rva,
		.size_bytes = range->size_bytes,
		.tier = range->kind == R2R_STUB ? NULL : tier,
		.kind = kind_of(range),
	};
	ret->name = precompiled_name(precompiled, found, &ret->reason);
	if (ret->name)
		return SOURCE_HIT;
	return ret->reason ? SOURCE_NAMELESS : SOURCE_SHORT;
}

static void list_range(struct precompiled *precompiled, size_t index, const struct r2r_range *range,
		       const struct source_sink *sink, struct buf *name)
{
	struct sym_symbol symbol = {
		.start = sink->base + range->rva,
		.size_bytes = range->size_bytes,
		.tier = range->kind == R2R_STUB ? NULL : tier,
		.kind = kind_of(range),
		.source = SYM_SOURCE_READYTORUN,
		.image_index = sink->image_index,
	};
	const char *why;

	buf_clear(name);
	if (precompiled_write_name(precompiled, index, name, &why))
		symbols_builder_add(sink->builder, &symbol, name->data, name->size_bytes);
}

static struct sym_error *list_ranges(void *source, const struct source_sink *sink)
{
	struct precompiled *precompiled = source;
	const struct r2r_range *ranges;
	struct buf name;
	bool no_memory;
	size_t count;

	ranges = r2r_ranges(precompiled_r2r(precompiled), &count);
	buf_init(&name, LIMIT_NAME_BYTES);
	for (size_t i = 0; i < count && name.failure != BUF_NO_MEMORY; i++)
		if (sink->stubs || ranges[i].kind != R2R_STUB)
			list_range(precompiled, i, &ranges[i], sink, &name);
	no_memory = name.failure == BUF_NO_MEMORY;
	buf_deinit(&name);
	return no_memory ? &sym_error_no_memory : NULL;
}

const struct source_ops source_r2r = {
	.kind = SYM_SOURCE_READYTORUN,
	.open = open_tables,
	.find = find_range,
	.list = list_ranges,
};
