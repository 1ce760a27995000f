/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/name_form.h"

#include <string.h>

#include "libsym/libsym.h"

size_t name_form_write(int form, const char *name, char *room, size_t room_bytes)
{
	size_t length, copied;

	if (form == NAME_FORM_CSHARP)
		return sym_name_csharp(name, 0, room, room_bytes);
	if (form == NAME_FORM_SHORT)
		return sym_name_shorten(name, room, room_bytes);
	length = strlen(name);
	if (room_bytes) {
		copied = length < room_bytes ? length : room_bytes - 1;
		memcpy(room, name, copied);
		room[copied] = '\0';
	}
	return length;
}

uint32_t name_form_write_flags(const struct options *options)
{
	uint32_t flags = options->tiers == TIER_FORM_STRIP ? SYM_WRITE_NO_TIERS : 0;

	if (options->names == NAME_FORM_SHORT)
		return flags | SYM_WRITE_SHORT_NAMES;
	return options->names == NAME_FORM_CSHARP ? flags | SYM_WRITE_CSHARP_NAMES : flags;
}
