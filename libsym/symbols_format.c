/* SPDX-License-Identifier: MIT */
/*
 * Lists of symbols as text: which of them become lines, and under which name.
 * The lines themselves are written by the writers in format/.
 */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/method_name.h"
#include "libsym/format/perfmap.h"
#include "libsym/format/relmap.h"
#include "libsym/limits.h"
#include "libsym/symbols.h"

enum {
	ASKED_NAMES = 1024,
	LINE_BYTES = 32 /* but for the name */
};

struct rendering {
	enum sym_map_format format;
	uint32_t flags;
	struct buf text;
	struct buf short_name;
};

size_t sym_name_shorten(const char *name, char *room, size_t room_bytes)
{
	return method_name_shorten(name, strlen(name), room, room_bytes);
}

/* The short form in a buffer that is used again and again; NULL when it has failed. */
static const char *shorten(struct rendering *rendering, const char *name, size_t *name_bytes)
{
	size_t length, room_bytes = *name_bytes + 1;
	char *room;

	buf_clear(&rendering->short_name);
	room = buf_reserve(&rendering->short_name, room_bytes);
	if (!room)
		return NULL;
	length = method_name_shorten(name, *name_bytes, room, room_bytes);
	*name_bytes = length < room_bytes ? length : room_bytes - 1;
	return room;
}

static void render(struct rendering *rendering, const struct sym_symbol *symbol)
{
	size_t name_bytes = strlen(symbol->name);
	const char *name = symbol->name;

	if (rendering->flags & SYM_WRITE_SHORT_NAMES)
		name = shorten(rendering, name, &name_bytes);
	if (!name)
		return;
	if (rendering->format == SYM_MAP_RELATIVE) {
		if (symbol->kind == SYM_SYMBOL_FUNCTION && symbol->start <= UINT32_MAX &&
		    symbol->size_bytes <= UINT32_MAX)
			relmap_write_row(&rendering->text, (uint32_t)symbol->start,
					 (uint32_t)symbol->size_bytes, name, name_bytes);
		return;
	}
	/* A line of size 0 is matched by some readers and refused by others. */
	if (symbol->size_bytes)
		perfmap_write_line(&rendering->text, symbol->start, symbol->size_bytes, name,
				   name_bytes,
				   rendering->flags & SYM_WRITE_NO_TIERS ? NULL : symbol->tier);
}

/* Has room for all lines at once, by the names of some that lie evenly among them. */
static void expect_lines(struct rendering *rendering, const struct sym_symbol *symbols,
			 size_t count)
{
	size_t step = count / ASKED_NAMES + 1, bytes = 0;

	for (size_t i = 0; i < count; i += step)
		bytes += step * (strlen(symbols[i].name) + LINE_BYTES);
	buf_expect(&rendering->text, bytes + bytes / 16);
}

struct sym_error *sym_symbols_format(const struct sym_symbols *symbols, size_t first, size_t count,
				     enum sym_map_format format, uint32_t write_flags,
				     char **text_ret, size_t *size_bytes_ret)
{
	struct rendering rendering = { .format = format, .flags = write_flags };
	struct sym_error *error = NULL;
	char *text = NULL;

	if (first > symbols->count || count > symbols->count - first)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"%zu symbols from number %zu on of a list that has %zu",
					count, first, symbols->count);
	if (write_flags & ~(uint32_t)(SYM_WRITE_NO_TIERS | SYM_WRITE_SHORT_NAMES))
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", write_flags);
	if (format != SYM_MAP_PERF && format != SYM_MAP_RELATIVE)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown form of a map: %d",
					(int)format);
	buf_init(&rendering.text, LIMIT_PERF_MAP_BYTES);
	buf_init(&rendering.short_name, LIMIT_PERF_MAP_BYTES);
	expect_lines(&rendering, symbols->items + first, count);
	for (size_t i = first; i < first + count; i++)
		render(&rendering, &symbols->items[i]);
	if (rendering.short_name.failure != BUF_OK)
		error = sym_error_from_buf(&rendering.short_name, "name");
	if (!error)
		text = buf_steal(&rendering.text, size_bytes_ret);
	if (!error && !text)
		error = sym_error_from_buf(&rendering.text, "map");
	buf_deinit(&rendering.short_name);
	buf_deinit(&rendering.text);
	if (!error)
		*text_ret = text;
	return error;
}
