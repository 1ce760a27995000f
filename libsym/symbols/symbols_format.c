/* SPDX-License-Identifier: MIT */
/* Formats lists of symbols as text: which symbols become lines, and under which name. The writers
 * in format/ write the lines. */
#include <stdlib.h>
#include <string.h>

#include "libsym/format/csharp/csharp_name.h"
#include "libsym/format/csharp/csharp_type.h"
#include "libsym/format/dotnet/method_name.h"
#include "libsym/format/dotnet/relmap.h"
#include "libsym/format/perf/perfmap.h"
#include "libsym/limits.h"
#include "libsym/symbols/symbols.h"

enum {
	LINE_BYTES = 32 /* of a line, without its name; roughly */
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

_Static_assert((int)SYM_CSHARP_NO_NAMESPACES == CSHARP_NO_NAMESPACES &&
		       (int)SYM_CSHARP_NO_TYPE_ARGUMENTS == CSHARP_NO_TYPE_ARGUMENTS &&
		       (int)SYM_CSHARP_NO_PARAMETERS == CSHARP_NO_PARAMETERS &&
		       (int)SYM_CSHARP_IS_MANAGED == CSHARP_IS_MANAGED,
	       "flags of the header");

size_t sym_name_csharp(const char *name, uint32_t flags, char *room, size_t room_bytes)
{
	return csharp_name(name, strlen(name), flags, room, room_bytes);
}

/* Makes the wanted form in a reused buffer; NULL if that fails. */
static const char *rewrite_into_buffer(struct rendering *rendering, const char *name,
				       size_t *name_bytes)
{
	bool is_csharp = rendering->flags & SYM_WRITE_CSHARP_NAMES;
	size_t length = is_csharp ? csharp_name(name, *name_bytes, 0, NULL, 0) : *name_bytes;
	size_t room_bytes = length + 1;
	char *room;

	buf_clear(&rendering->short_name);
	room = buf_reserve(&rendering->short_name, room_bytes);
	if (!room)
		return NULL;
	length = is_csharp ? csharp_name(name, *name_bytes, 0, room, room_bytes)
			   : method_name_shorten(name, *name_bytes, room, room_bytes);
	*name_bytes = length < room_bytes ? length : room_bytes - 1;
	return room;
}

static void render_symbol(struct rendering *rendering, const struct sym_symbol *symbol)
{
	size_t name_bytes = strlen(symbol->name);
	const char *name = symbol->name;

	if (rendering->flags & (SYM_WRITE_SHORT_NAMES | SYM_WRITE_CSHARP_NAMES))
		name = rewrite_into_buffer(rendering, name, &name_bytes);
	if (!name)
		return;
	if (rendering->format == SYM_MAP_RELATIVE) {
		if (symbol->kind == SYM_SYMBOL_FUNCTION && symbol->start <= UINT32_MAX &&
		    symbol->size_bytes <= UINT32_MAX)
			relmap_write_row(&rendering->text, (uint32_t)symbol->start,
					 (uint32_t)symbol->size_bytes, name, name_bytes);
		return;
	}
	/* Some readers match a line of size 0, others reject it. */
	if (symbol->size_bytes)
		perfmap_write_line(&rendering->text, symbol->start, symbol->size_bytes, name,
				   name_bytes,
				   rendering->flags & SYM_WRITE_NO_TIERS ? NULL : symbol->tier);
}

struct sym_error *sym_symbols_format(const struct sym_symbols *symbols, size_t first, size_t count,
				     enum sym_map_format format, uint32_t write_flags,
				     char **text_ret, size_t *size_bytes_ret)
{
	struct rendering rendering = { .format = format, .flags = write_flags };
	struct sym_error *error = NULL;
	size_t bytes = 0;
	char *text = NULL;

	if (first > symbols->count || count > symbols->count - first)
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"%zu symbols from number %zu on of a list that has %zu",
					count, first, symbols->count);
	if (write_flags &
	    ~(uint32_t)(SYM_WRITE_NO_TIERS | SYM_WRITE_SHORT_NAMES | SYM_WRITE_CSHARP_NAMES))
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown flags 0x%x", write_flags);
	if (format != SYM_MAP_PERF && format != SYM_MAP_RELATIVE)
		return sym_error_create(SYM_ERROR_ARGUMENT, "unknown form of a map: %d",
					(int)format);
	buf_init(&rendering.text, LIMIT_PERF_MAP_BYTES);
	buf_init(&rendering.short_name, LIMIT_PERF_MAP_BYTES);
	/* Room for all lines at once: a text that grows is copied again and again. */
	for (size_t i = first; i < first + count; i++)
		bytes += strlen(symbols->items[i].name) + LINE_BYTES;
	if (bytes < LIMIT_PERF_MAP_BYTES)
		(void)buf_reserve(&rendering.text, bytes);
	for (size_t i = first; i < first + count; i++)
		render_symbol(&rendering, &symbols->items[i]);
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
