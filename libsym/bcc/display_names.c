/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/display_names.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"
#include "libsym/libsym.h"

/* Addresses of the strings, not their content: names live as long as the labels. */
struct display_key {
	const char *name;
	const char *tier;
};

struct display_name {
	struct display_key key;
	char *text;
	UT_hash_handle hh;
};

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

static void display_name_destroy(struct display_name *display_name)
{
	free(display_name->text);
	free(display_name);
}

const char *display_names_get(struct display_names *display_names, const char *name,
			      const char *tier, enum bcc_names names, bool folded)
{
	const struct display_key key = { name, tier };
	struct display_name *display_name;

	HASH_FIND(hh, display_names->table, &key, sizeof(key), display_name);
	if (display_name)
		return display_name->text;
	display_name = calloc(1, sizeof(*display_name));
	if (!display_name)
		return name;
	display_name->key = key;
	display_name->text = display_names_join(name, tier, names, folded);
	if (display_name->text)
		HASH_ADD(hh, display_names->table, key, sizeof(key), display_name);
	if (display_name->text && hash_added(display_name))
		return display_name->text;
	display_name_destroy(display_name);
	return name;
}

void display_names_deinit(struct display_names *display_names)
{
	HASH_DESTROY(display_names->table, display_name_destroy);
}
