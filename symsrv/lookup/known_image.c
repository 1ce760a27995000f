/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/known_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/upstream/image_note.h"

struct found_images {
	enum known_image count;
	struct key first; /* its name points into text */
	char *text;       /* KEY_TEXT_BYTES */
};

/* Images that differ in their name only are one. */
static void add_image(struct found_images *images, const char *text)
{
	struct key key;

	if (images->count == KNOWN_IMAGE_SEVERAL || !key_from_text(&key, text) ||
	    key.kind != KEY_PE)
		return;
	if (images->count == KNOWN_IMAGE_ONE) {
		if (key.timestamp != images->first.timestamp || key.number != images->first.number)
			images->count = KNOWN_IMAGE_SEVERAL;
		return;
	}
	snprintf(images->text, KEY_TEXT_BYTES, "%s", text);
	images->count = KNOWN_IMAGE_ONE;
	key_from_text(&images->first, images->text);
}

static bool visit_file(void *context, const struct index_file *file)
{
	char text[KEY_TEXT_BYTES];
	struct file_keys found;

	file_keys_read(file->fd, file->name, &found);
	if (found.count) {
		key_text(&found.keys[0], text);
		add_image(context, text);
	}
	return true;
}

static void add_noted(struct store *store, const struct key *key, struct found_images *images)
{
	char *lines AUTO_FREE = image_note_find(store, key);
	char *rest = lines, *line;

	while (rest && (line = strsep(&rest, "\n")))
		add_image(images, line);
}

char *known_image_of_map(const struct holdings *holdings, const struct key *map)
{
	char text[KEY_TEXT_BYTES], found[KEY_TEXT_BYTES];
	struct found_images images = { .text = found };
	struct key key = *map;

	key.kind = KEY_IMAGE_OF_MAP;
	key_text(&key, text);
	file_index_open_each(holdings->index, text, visit_file, &images);
	if (!images.count)
		add_noted(holdings->store, &key, &images);
	return images.count ? strdup(found) : NULL;
}

enum known_image known_image_of_pdb(const struct holdings *holdings, const struct key *pdb,
				    char text_ret[KEY_TEXT_BYTES])
{
	struct found_images images = { .text = text_ret };
	char text[KEY_TEXT_BYTES];

	key_text(pdb, text);
	file_index_open_each(holdings->index, text, visit_file, &images);
	add_noted(holdings->store, pdb, &images);
	return images.count;
}
