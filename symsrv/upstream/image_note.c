/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/image_note.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/format/file/header_id.h"

static const uint64_t most_note_bytes = (uint64_t)IMAGE_NOTE_MOST * KEY_TEXT_BYTES;

static bool read_image(const struct byte_source *source, void *room, size_t count, uint64_t offset)
{
	return !path_read_at(source->fd, room, count, offset);
}

static struct byte_source image_source(int fd, uint64_t size_bytes)
{
	return (struct byte_source){
		.read = read_image,
		.fd = fd,
		.size_bytes = size_bytes,
	};
}

bool image_note_read_map(int fd, uint64_t size_bytes, char name[IMAGE_NOTE_NAME_BYTES],
			 struct key *ret)
{
	const struct byte_source source = image_source(fd, size_bytes);
	struct pe_r2rmap_id found;

	_Static_assert(sizeof(found.name) == IMAGE_NOTE_NAME_BYTES, "room for the name");
	if (!header_id_read_pe_r2rmap(&source, &found) || !key_lower_name(found.name, name))
		return false;
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

bool image_note_read_pdb(int fd, uint64_t size_bytes, struct key *ret)
{
	const struct byte_source source = image_source(fd, size_bytes);
	struct pe_pdb_id found;

	if (!header_id_read_pe_pdb(&source, &found))
		return false;
	*ret = (struct key){ .kind = KEY_IMAGE_OF_PDB, .id_bytes = sizeof(found.guid) };
	memcpy(ret->id, found.guid, sizeof(found.guid));
	return true;
}

bool image_note_has_windows_pdb(int fd, uint64_t size_bytes)
{
	const struct byte_source source = image_source(fd, size_bytes);
	struct pe_pdb_id found;

	return header_id_read_pe_pdb(&source, &found) && !found.is_portable;
}

/* Whether one of the lines is `text`. */
static bool has_line(const char *lines, const char *text)
{
	size_t length = strlen(text);

	for (const char *line = lines; *line; line += *line == '\n') {
		size_t line_bytes = strcspn(line, "\n");

		if (line_bytes == length && !memcmp(line, text, length))
			return true;
		line += line_bytes;
	}
	return false;
}

static size_t count_lines(const char *lines)
{
	size_t count = 1;

	for (; *lines; lines++)
		count += *lines == '\n';
	return count;
}

static void add_note(struct store *store, const struct key *key, const char *text, size_t most)
{
	char *known AUTO_FREE = image_note_find(store, key);
	char *lines AUTO_FREE = NULL;
	char key_of_note[KEY_TEXT_BYTES];
	struct store_record record = { .key = key_of_note, .source = "made here" };
	struct store_incoming *incoming;

	if (known && (has_line(known, text) || count_lines(known) >= most))
		return;
	if (asprintf(&lines, "%s%s%s", known ?: "", known ? "\n" : "", text) < 0) {
		lines = NULL;
		return;
	}
	if (store_begin(store, &incoming))
		return;
	key_text(key, key_of_note);
	if (store_append(incoming, lines, strlen(lines)))
		store_abandon(incoming);
	else
		/* Without it the image is not found. */
		(void)store_publish(incoming, &record);
}

void image_note_add(struct store *store, int fd, uint64_t size_bytes, const char *text)
{
	/* Two images with one PDB may arrive at a time. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char name[IMAGE_NOTE_NAME_BYTES];
	struct key key;

	if (strchr(text, '\n'))
		return;
	pthread_mutex_lock(&lock);
	if (image_note_read_map(fd, size_bytes, name, &key))
		add_note(store, &key, text, 1);
	if (image_note_read_pdb(fd, size_bytes, &key))
		add_note(store, &key, text, IMAGE_NOTE_MOST);
	pthread_mutex_unlock(&lock);
}

char *image_note_find(struct store *store, const struct key *key)
{
	struct store_record record;
	char text[KEY_TEXT_BYTES];
	char *lines AUTO_FREE = NULL;
	bool is_read;
	int fd;

	key_text(key, text);
	if (store_find(store, text, &fd, &record))
		return NULL;
	if (record.size_bytes < most_note_bytes)
		lines = calloc(1, record.size_bytes + 1);
	is_read = lines && !path_read_at(fd, lines, record.size_bytes, 0);
	store_record_deinit(&record);
	close(fd);
	return is_read ? STEAL(lines) : NULL;
}
