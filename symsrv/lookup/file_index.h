/* SPDX-License-Identifier: MIT */
/*
 * Files below given directories by their identity: ELF, PE, PDB, r2rmap and others are found by the
 * identity in their bytes, whatever their names are. Files stay where they are; a file that has
 * changed is not served until the next scan.
 */
#ifndef SYMSRV_LOOKUP_FILE_INDEX_H
#define SYMSRV_LOOKUP_FILE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "symsrv/upstream/image_note.h"
#include "symsrv/util/settings.h"

struct file_index;

/* The keys by which requests ask for a file. */
struct file_keys {
	struct key keys[3];
	size_t count;
	uint32_t contents; /* enum sym_content */
	char name[256];    /* the keys point at it */
	char map_name[IMAGE_NOTE_NAME_BYTES];
};

void file_keys_read(int fd, const char *file_name, struct file_keys *ret);

/* `is_empty`: there are no directories to scan. */
struct file_index *file_index_create(bool is_empty);
void file_index_destroy(struct file_index *index);

/*
 * Scans all directories and then replaces the index; may take long. `stop` ends the scan early and
 * changes nothing. True when there is something new. `number`: 0, or the result of
 * file_index_await() when the directories were chosen.
 */
bool file_index_scan(struct file_index *index, const struct text_list *directories,
		     unsigned int number, const bool *stop);

/* There are directories that were never scanned: no miss is certain until a scan with the returned
 * number has ended. */
unsigned int file_index_await(struct file_index *index);

struct index_file {
	int fd;
	uint64_t size_bytes;
	struct timespec modified;
	uint32_t contents;   /* enum sym_content */
	bool is_second_best; /* an equally good or better file could not be opened */
	char version[64];    /* changes when the file changes */
	char name[256];
};

/* Opens a file for a key; reads the identity again only if the file has changed. -ENOENT: there was
 * none at the last scan; other errors are those of the last file. -ESTALE: it is gone, or has
 * another identity now; -EBUSY: it was written just now. */
int file_index_open(struct file_index *index, const char *text, struct index_file *ret);

/* Calls `visit` for each file for a key that can be opened, until it returns false. */
void file_index_open_each(struct file_index *index, const char *text,
			  bool (*visit)(void *context, const struct index_file *file),
			  void *context);

/* Whether there was a file for a key at the last scan. */
bool file_index_has(struct file_index *index, const char *text);

/* False until the first scan of every directory has ended. */
bool file_index_is_scanned(const struct file_index *index);
/* False also while a directory that existed cannot be read: a file that is not found may exist
 * there. */
bool file_index_is_whole(const struct file_index *index);

/* Whether since the last scan a file was missing at its place, or a directory could not be read; a
 * scan may find it. */
bool file_index_was_moved(const struct file_index *index);

/* Number of scans that found something new or changed. When it differs from the number before a
 * look-up, a missing file may exist now. */
unsigned int file_index_changes(const struct file_index *index);

/* Calls `visit` for every file until it returns false. */
void file_index_each(struct file_index *index,
		     bool (*visit)(void *context, const char *text, const char *path),
		     void *context);

struct index_counts {
	size_t keys;
	uint64_t files;      /* that have a key */
	uint64_t files_seen; /* of all kinds */
	bool is_scanned;
};
void file_index_counts(struct file_index *index, struct index_counts *ret);

#endif
