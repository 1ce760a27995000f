/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/symbols/symbols.h"

/* `room` has `name_bytes` for a short name; NULL: only the full name is compared. */
static bool has_name(const char *full, const char *name, size_t name_bytes, char *room)
{
	return !strcmp(full, name) ||
	       (room && sym_name_shorten(full, room, name_bytes) == name_bytes - 1 &&
		!memcmp(room, name, name_bytes));
}

size_t sym_symbols_find(const struct sym_symbols *symbols, const char *name, size_t previous)
{
	size_t name_bytes = strlen(name) + 1;
	char *room AUTO_FREE = malloc(name_bytes);

	/* For SYM_NONE this begins at 0. */
	for (size_t i = previous + 1; i < symbols->count; i++)
		if (has_name(symbols->items[i].name, name, name_bytes, room))
			return i;
	return SYM_NONE;
}
