/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/display_names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"

struct display_name {
	const char *name;
	const char *tier;
	char *text; /* NULL: a free place */
};

/* Hashes the addresses of the strings, not their content: names live as long as the labels. */
static size_t place_of(const struct display_names *display_names, const char *name,
		       const char *tier)
{
	uint64_t mixed = ((uintptr_t)name ^ (uint64_t)(uintptr_t)tier << 32) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(mixed >> 20) & (display_names->capacity - 1);

	while (display_names->table[at].text &&
	       (display_names->table[at].name != name || display_names->table[at].tier != tier))
		at = (at + 1) & (display_names->capacity - 1);
	return at;
}

static bool display_names_grow(struct display_names *display_names)
{
	struct display_names larger = { .capacity = display_names->capacity
							    ? 2 * display_names->capacity
							    : 256 };

	larger.table = calloc(larger.capacity, sizeof(*larger.table));
	if (!larger.table)
		return false;
	for (size_t i = 0; i < display_names->capacity; i++) {
		struct display_name *display_name = &display_names->table[i];

		if (display_name->text)
			larger.table[place_of(&larger, display_name->name, display_name->tier)] =
				*display_name;
	}
	free(display_names->table);
	display_names->table = larger.table;
	display_names->capacity = larger.capacity;
	return true;
}

static size_t rewrite(enum bcc_names names, const char *name, char *room, size_t room_bytes)
{
	return names == BCC_NAMES_CSHARP ? sym_name_csharp(name, 0, room, room_bytes)
					 : sym_name_shorten(name, room, room_bytes);
}

static char *display_names_join(const char *name, const char *tier, enum bcc_names names,
				bool folded)
{
	size_t tier_bytes = tier ? strlen(tier) : 0;
	size_t name_bytes = names ? rewrite(names, name, NULL, 0) : strlen(name);
	char *text = malloc(name_bytes + tier_bytes + sizeof("[]"));
	char *end;

	if (!text)
		return NULL;
	if (names)
		rewrite(names, name, text, name_bytes + 1);
	else
		memcpy(text, name, name_bytes);
	end = text + name_bytes;
	if (tier) {
		*end++ = '[';
		memcpy(end, tier, tier_bytes);
		end += tier_bytes;
		*end++ = ']';
	}
	*end = '\0';
	for (char *at = text; folded && (at = strchr(at, ';'));)
		*at = ':';
	return text;
}

const char *display_names_get(struct display_names *display_names, const char *name,
			      const char *tier, enum bcc_names names, bool folded)
{
	struct display_name *display_name;

	if (display_names->count >= display_names->capacity / 2 &&
	    !display_names_grow(display_names))
		return name;
	display_name = &display_names->table[place_of(display_names, name, tier)];
	if (display_name->text)
		return display_name->text;
	display_name->text = display_names_join(name, tier, names, folded);
	if (!display_name->text)
		return name;
	display_name->name = name;
	display_name->tier = tier;
	display_names->count++;
	return display_name->text;
}

void display_names_deinit(struct display_names *display_names)
{
	for (size_t i = 0; i < display_names->capacity; i++)
		free(display_names->table[i].text);
	free(display_names->table);
	*display_names = (struct display_names){ 0 };
}
