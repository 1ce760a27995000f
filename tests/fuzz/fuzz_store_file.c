/* SPDX-License-Identifier: MIT */
/* A file of the store as a crash, a disk or another program may have left it: an accepted record
 * contains the size, and is written again as it was read. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "symsrv/key/key.h"
#include "symsrv/store/store_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(int fd, size_t size, struct store_record *record)
{
	struct store_record again = { 0 };
	struct buf text;
	struct key key;

	if (record->size_bytes >= size || strlen(record->sha256) != 64)
		abort();
	store_file_verify(fd, record);
	key_from_text(&key, record->key);
	buf_init(&text, 1 << 20);
	if (!store_file_format(&text, record) || ftruncate(fd, (off_t)record->size_bytes) ||
	    lseek(fd, 0, SEEK_END) < 0 || path_write_all(fd, text.data, text.size_bytes))
		abort();
	/* A text that is too long to be read again is rejected, never read as something else. */
	if (!store_file_read(fd, record->size_bytes + text.size_bytes, &again) &&
	    (strcmp(again.key, record->key) || strcmp(again.name, record->name) ||
	     strcmp(again.source, record->source) || again.size_bytes != record->size_bytes ||
	     again.contents != record->contents))
		abort();
	store_record_deinit(&again);
	buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_record record = { 0 };
	int fd = memfd_create("store", MFD_CLOEXEC);

	if (fd >= 0 && !path_write_all(fd, data, size) && !store_file_read(fd, size, &record)) {
		check_record(fd, size, &record);
		store_record_deinit(&record);
	}
	if (fd >= 0)
		close(fd);
	return 0;
}
