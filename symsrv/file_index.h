/* SPDX-License-Identifier: MIT */
/*
 * Files below given directories by what they are: ELF, PE, PDB, r2rmap and
 * others are found by the identity in their bytes, whatever their name. Files
 * stay where they are; one that becomes another is not served until it is scanned again.
 */
#ifndef SYMSRV_FILE_INDEX_H
#define SYMSRV_FILE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "symsrv/settings.h"

struct file_index;

/* `is_empty`: there are no directories to wait for. */
struct file_index *file_index_create(bool is_empty);
void file_index_destroy(struct file_index *index);

/*
 * Scans afresh and then replaces what was known; may take long. `stop` ends it early, changing
 * nothing. True when there is something that was not there before. `number`: 0, or what
 * file_index_await() gave when the directories were chosen.
 */
bool file_index_scan(struct file_index *index, const struct text_list *directories,
		     unsigned int number, const bool *stop);

/* There are directories that were never scanned: nothing is known to be missing until a scan of
 * the number that is returned is through. */
unsigned int file_index_await(struct file_index *index);

struct index_file {
	int fd;
	uint64_t size_bytes;
	struct timespec modified;
	uint32_t contents;   /* enum sym_content */
	bool is_second_best; /* one that is as good or better could not be opened */
	char version[64];    /* another one when the file is another */
	char name[256];
};

/* Opens a file of a key; of one that has not changed it reads nothing, and of another its
 * identity. -ENOENT: there was none at the last scan; another failure is of the last one that there
 * was. -ESTALE: it is gone, or has another identity now; -EBUSY: it was written just now. */
int file_index_open(struct file_index *index, const char *text, struct index_file *ret);

/* Whether there was a file of a key at the last scan. */
bool file_index_has(struct file_index *index, const char *text);

/* False before the first scan of every directory is through. */
bool file_index_is_scanned(const struct file_index *index);
/* False also while a directory that was there cannot be read: what is not found may be there all
 * the same. */
bool file_index_is_whole(const struct file_index *index);

/* Whether since the last scan began a file was asked for that is not where it was, or a directory
 * could not be read; a scan may find it. */
bool file_index_was_moved(const struct file_index *index);

/* How many scans have found what was not there, or another file. Another number than before a look:
 * what was missing may be there. */
unsigned int file_index_changes(const struct file_index *index);

/* Calls `visit` for every file until it returns false. */
void file_index_each(struct file_index *index,
		     bool (*visit)(void *context, const char *text, const char *path),
		     void *context);

struct index_counts {
	size_t keys;
	uint64_t files_seen;
	bool is_scanned;
};
void file_index_counts(struct file_index *index, struct index_counts *ret);

#endif
