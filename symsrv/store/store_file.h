/* SPDX-License-Identifier: MIT */
/*
 * One object file of the store: its path, and how its record is written and read. Only the store
 * includes this.
 */
#ifndef SYMSRV_STORE_STORE_FILE_H
#define SYMSRV_STORE_STORE_FILE_H

#include "libsym/base/buf.h"
#include "symsrv/store/store.h"

/* Called before anything is written or removed: -ENOTEMPTY for a directory that has something and
 * is no store. */
int store_file_recognise(int directory_fd);

/* Appends the record with its footer. */
bool store_file_format(struct buf *buf, const struct store_record *record);

/* Reads the record of an open object file of `file_bytes`; -EBADMSG when the file is no object. */
int store_file_read(int fd, uint64_t file_bytes, struct store_record *record);

/* Whether the object file at `path`, if there is one, is better than one with `record`: it has
 * debug information, and the other has none. */
bool store_file_is_better(int directory_fd, const char *path, const struct store_record *record);

/* Removes the record from an object file of another store, after checking that it is the object of
 * `key` and that its checksum holds: -EBADMSG otherwise. */
int store_file_unwrap(int fd, uint64_t file_bytes, const char *key, struct store_record *record);

/*
 * Compares the content with the record's checksum. Returns 0, -EBADMSG, or another negative errno.
 */
int store_file_verify(int fd, const struct store_record *record);

#endif
