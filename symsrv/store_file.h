/* SPDX-License-Identifier: MIT */
/*
 * One object file of the store: where it lies and how its record is written and
 * read. Part of the store: nobody else includes this.
 */
#ifndef SYMSRV_STORE_FILE_H
#define SYMSRV_STORE_FILE_H

#include "libsym/base/buf.h"
#include "symsrv/store.h"

#define STORE_FILE_PATH_BYTES 96

/* Before anything is removed: -ENOTEMPTY for a directory with `objects` or `tmp` that no store
 * made. */
int store_file_recognise(int directory_fd);

/* "objects/AA/REST" for a key. */
int store_file_path(const char *key, char path[STORE_FILE_PATH_BYTES]);

/* Renders the record with its footer. */
bool store_file_format(struct buf *buf, const struct store_record *record);

/* Reads the record of an open object file of `file_bytes`; -EBADMSG when it is none. */
int store_file_read(int fd, uint64_t file_bytes, struct store_record *record);

/* Compares the content with the record's checksum: 0, -EBADMSG, or another negative errno. */
int store_file_verify(int fd, const struct store_record *record);

#endif
