/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/map_image.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/format/file/header_id.h"

static bool read_image(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, offset);
}

bool map_image_read(int fd, uint64_t size_bytes, char name[MAP_NAME_BYTES], struct key *ret)
{
	const struct byte_source source = {
		.read = read_image,
		.fd = fd,
		.size_bytes = size_bytes,
	};
	struct pe_r2rmap_id found;
	size_t i;

	_Static_assert(sizeof(found.name) == MAP_NAME_BYTES, "room for the name");
	if (!header_id_read_pe_r2rmap(&source, &found))
		return false;
	for (i = 0; found.name[i]; i++) {
		unsigned char byte = (unsigned char)found.name[i];

		if (byte < 0x20 || byte == 0x7f || byte == '/')
			return false;
		name[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
	}
	name[i] = 0;
	*ret = (struct key){
		.kind = KEY_IMAGE_OF_MAP,
		.id_bytes = sizeof(found.id.signature),
		.number = found.id.version,
		.name = name,
		.spelling = name,
	};
	memcpy(ret->id, found.id.signature, sizeof(found.id.signature));
	return true;
}

void map_image_note(struct store *store, int fd, uint64_t size_bytes, const char *text)
{
	char key_of_map[KEY_TEXT_BYTES], known[KEY_TEXT_BYTES], name[MAP_NAME_BYTES];
	struct store_record record = { .key = key_of_map, .source = "made here" };
	struct store_incoming *incoming;
	struct key key;

	if (!map_image_read(fd, size_bytes, name, &key) || map_image_find(store, &key, known) ||
	    store_begin(store, &incoming))
		return;
	key_text(&key, key_of_map);
	if (store_append(incoming, text, strlen(text)))
		store_abandon(incoming);
	else
		/* Without it the map cannot be asked for by its signature. */
		(void)store_publish(incoming, &record);
}

bool map_image_find(struct store *store, const struct key *key, char text_ret[KEY_TEXT_BYTES])
{
	struct store_record record;
	char text[KEY_TEXT_BYTES];
	struct key image;
	bool is_read;
	int fd;

	key_text(key, text);
	if (store_find(store, text, &fd, &record))
		return false;
	is_read = record.size_bytes < KEY_TEXT_BYTES &&
		  !path_read_at(fd, text_ret, record.size_bytes, 0);
	if (is_read)
		text_ret[record.size_bytes] = 0;
	store_record_deinit(&record);
	close(fd);
	return is_read && key_from_text(&image, text_ret) && image.kind == KEY_PE;
}
