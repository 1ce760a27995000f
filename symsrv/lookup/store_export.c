/* SPDX-License-Identifier: MIT */
/*
 * Each object is written once, under its first path, and has hard links for the others:
 *
 *   buildid/HEX/debuginfo ...     as debuginfod clients ask a static web server, or file://DIR
 *   .build-id/HH/REST[.debug]     as gdb, perf and libsym search below /usr/lib/debug
 *   NAME/ID/NAME                  as SSQP clients ask
 *
 * Names in keys come from clients, so a path with a part like ".." is left out. Source files have
 * such paths, and are not exported.
 */
#include "symsrv/lookup/store_export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/key/percent.h"
#include "symsrv/key/ssqp.h"
#include "symsrv/store/store.h"
#include "symsrv/upstream/verify.h"
#include "symsrv/util/log.h"

#define EXPORT_PATHS 3

/* store_scrub() has no context for its callback, and a program exports once. */
static struct {
	const char *directory;
	unsigned long long files, failed;
} export_state;

/* Whether a decoded path stays below the directory. */
static bool stays_below(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if (!length || (length == 1 && path[0] == '.') ||
		    (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += length;
		path += *path == '/';
	}
	return true;
}

static char *decoded_path(struct buf *buf, bool is_there)
{
	char *text AUTO_FREE = is_there ? buf_steal(buf, NULL) : NULL;
	size_t length;

	buf_deinit(buf);
	if (!text || !percent_decode(text, strlen(text), text, &length) || !stays_below(text))
		return NULL;
	return STEAL(text);
}

/* The paths of an object, heap; returns how many. */
static size_t export_paths(const struct key *key, char *paths[EXPORT_PATHS])
{
	char id[2 * KEY_MAX_ID + 1];
	struct buf buf;
	size_t count = 0;
	char *path;

	if (key->kind == KEY_SOURCE || key->kind >= KEY_NAMES_ZSTD)
		return 0;
	buf_init(&buf, 3 * KEY_TEXT_BYTES);
	path = decoded_path(&buf, debuginfod_format(&buf, key));
	if (path)
		paths[count++] = path;
	buf_init(&buf, 3 * KEY_TEXT_BYTES);
	path = decoded_path(&buf, ssqp_format(&buf, key, false));
	if (path)
		paths[count++] = path;
	hex_write_bytes(id, key->id, key->id_bytes);
	if ((key->kind == KEY_DEBUGINFO || key->kind == KEY_EXECUTABLE) && strlen(id) > 2 &&
	    asprintf(&path, ".build-id/%.2s/%s%s", id, id + 2,
		     key->kind == KEY_DEBUGINFO ? ".debug" : "") > 0)
		paths[count++] = path;
	return count;
}

/* The full path, heap, with its directories made; NULL with errno. */
static char *export_place(const char *path)
{
	char *full AUTO_FREE = NULL, *parent AUTO_FREE = NULL;
	int failure;

	if (asprintf(&full, "%s/%s", export_state.directory, path) < 0) {
		full = NULL;
		return NULL;
	}
	parent = strndup(full, (size_t)(strrchr(full, '/') - full));
	failure = parent ? path_make_directories(parent, 0755) : -ENOMEM;
	errno = -failure;
	return failure ? NULL : STEAL(full);
}

static int export_bytes(int fd, uint64_t size_bytes, const char *full)
{
	struct path_output output;
	static char room[1 << 16];
	int failure = path_output_open(&output, full);

	for (uint64_t at = 0; !failure && at < size_bytes;) {
		size_t count =
			size_bytes - at < sizeof(room) ? (size_t)(size_bytes - at) : sizeof(room);

		failure = path_read_at(fd, room, count, at);
		if (!failure)
			failure = path_write_all(output.fd, room, count);
		if (failure)
			path_output_abandon(&output);
		at += count;
	}
	return failure ? failure : path_output_commit(&output, 0644, false);
}

static int export_object(int fd, uint64_t size_bytes, char *const *paths, size_t count)
{
	char *first AUTO_FREE = export_place(paths[0]);
	int failure = first ? export_bytes(fd, size_bytes, first) : -errno;

	for (size_t i = 1; !failure && i < count; i++) {
		char *full AUTO_FREE = export_place(paths[i]);

		if (!full || (unlink(full) && errno != ENOENT) || link(first, full))
			failure = -errno;
	}
	return failure;
}

/* Called for each object whose checksum holds. */
static int export_check(int fd, const struct store_record *record, const char **reason_ret)
{
	static char reason[160];
	char *paths[EXPORT_PATHS];
	uint32_t contents;
	struct key key;
	size_t count;
	int failure;

	*reason_ret = reason;
	/* Not removed: --scrub is for that. */
	if (!key_from_text(&key, record->key) ||
	    verify_content(fd, record->size_bytes, &key, &contents, reason, sizeof(reason))) {
		export_state.failed++;
		return 0;
	}
	count = export_paths(&key, paths);
	failure = count ? export_object(fd, record->size_bytes, paths, count) : 0;
	if (failure)
		log_message(LOG_LEVEL_ERROR, "%s: %s", paths[0], strerror(-failure));
	export_state.failed += failure != 0;
	export_state.files += count && !failure;
	while (count)
		free(paths[--count]);
	return 0;
}

static void export_report(const char *name, const char *reason, int failure)
{
	(void)failure;
	export_state.failed++;
	printf("not exported: %s: %s\n", name, reason);
}

int store_export_run(const char *store, const char *directory)
{
	struct store_scrub_result result;
	int failure;

	export_state.directory = directory;
	failure = store_scrub(store, export_check, export_report, &result);
	if (failure) {
		log_message(LOG_LEVEL_ERROR, "%s: %s", store, store_failure_text(failure));
		return 1;
	}
	printf("%llu objects written to %s, %llu not\n", export_state.files, directory,
	       export_state.failed);
	return export_state.failed ? 3 : 0;
}
