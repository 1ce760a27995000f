/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/labels.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"

struct label {
	const char *name;
	const char *tier;
	char *text; /* NULL: a free place */
};

/* By the place of the strings, not their content: names live as long as the labels. */
static size_t place_of(const struct labels *labels, const char *name, const char *tier)
{
	uint64_t mixed = ((uintptr_t)name ^ (uint64_t)(uintptr_t)tier << 32) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(mixed >> 20) & (labels->capacity - 1);

	while (labels->table[at].text &&
	       (labels->table[at].name != name || labels->table[at].tier != tier))
		at = (at + 1) & (labels->capacity - 1);
	return at;
}

static bool grow(struct labels *labels)
{
	struct labels larger = { .capacity = labels->capacity ? 2 * labels->capacity : 256 };

	larger.table = calloc(larger.capacity, sizeof(*larger.table));
	if (!larger.table)
		return false;
	for (size_t i = 0; i < labels->capacity; i++) {
		struct label *label = &labels->table[i];

		if (label->text)
			larger.table[place_of(&larger, label->name, label->tier)] = *label;
	}
	free(labels->table);
	labels->table = larger.table;
	labels->capacity = larger.capacity;
	return true;
}

static char *join(const char *name, const char *tier, bool shorten)
{
	size_t tier_bytes = tier ? strlen(tier) : 0;
	size_t name_bytes = shorten ? sym_name_shorten(name, NULL, 0) : strlen(name);
	char *text = malloc(name_bytes + tier_bytes + sizeof("[]"));
	char *end;

	if (!text)
		return NULL;
	if (shorten)
		sym_name_shorten(name, text, name_bytes + 1);
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
	return text;
}

const char *labels_get(struct labels *labels, const char *name, const char *tier, bool shorten)
{
	struct label *label;

	if (labels->count >= labels->capacity / 2 && !grow(labels))
		return name;
	label = &labels->table[place_of(labels, name, tier)];
	if (label->text)
		return label->text;
	label->text = join(name, tier, shorten);
	if (!label->text)
		return name;
	label->name = name;
	label->tier = tier;
	labels->count++;
	return label->text;
}

void labels_deinit(struct labels *labels)
{
	for (size_t i = 0; i < labels->capacity; i++)
		free(labels->table[i].text);
	free(labels->table);
	*labels = (struct labels){ 0 };
}
