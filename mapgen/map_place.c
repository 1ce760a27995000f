/* SPDX-License-Identifier: MIT */
#include "mapgen/map_place.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/message.h"

static const char program_directory[] = "dotnet-mapgen";

/* What libsym would read of one. */
static const size_t max_map_bytes = (size_t)256 << 20;

/* A name that two images of one run want: they may share it only if they are the same bytes. */
struct taken_name {
	char *name;
	char *content_key;
	UT_hash_handle hh;
};

static char *cache_path(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const struct passwd *user;
	const char *home;

	/* The base directory specification: a relative path is to be ignored. */
	if (base && *base == '/')
		return message_format("%s/%s", base, program_directory);
	if (geteuid() == 0)
		return message_format("/var/cache/%s", program_directory);
	home = getenv("HOME");
	if (!home || *home != '/') {
		user = getpwuid(geteuid());
		home = user ? user->pw_dir : "/nonexistent";
	}
	return message_format("%s/.cache/%s", home, program_directory);
}

/* What others can write into is no cache: a map in it would be believed. */
static char *refusal(int fd, const char *path)
{
	struct stat status;

	if (fstat(fd, &status))
		return message_format("%s: %s", path, strerror(errno));
	if (status.st_uid != geteuid())
		return message_format("%s belongs to user %u, not to the caller: not used as cache",
				      path, (unsigned int)status.st_uid);
	if (status.st_mode & 077)
		return message_format("%s has mode %04o, not 0700: not used as cache", path,
				      (unsigned int)(status.st_mode & 07777));
	return NULL;
}

static char *open_place(struct map_place *place, mode_t mode)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (place->is_cache ? O_NOFOLLOW : 0);
	int result = path_make_directories(place->path, mode);

	if (result < 0)
		return message_format("cannot create %s: %s", place->path, strerror(-result));
	place->directory_fd = open(place->path, flags);
	if (place->directory_fd < 0)
		return message_format("cannot open %s: %s", place->path, strerror(errno));
	return place->is_cache ? refusal(place->directory_fd, place->path) : NULL;
}

static char *close_when(char *failure, struct map_place *place)
{
	if (failure)
		map_place_close(place);
	return failure;
}

char *map_place_open_cache(struct map_place *place)
{
	*place = (struct map_place){ .path = cache_path(), .directory_fd = -1, .is_cache = true };
	if (!place->path)
		return message_format("out of memory");
	return close_when(open_place(place, 0700), place);
}

char *map_place_open_directory(struct map_place *place, const char *path)
{
	*place = (struct map_place){ .path = strdup(path), .directory_fd = -1 };
	if (!place->path)
		return message_format("out of memory");
	return close_when(open_place(place, 0777), place);
}

void map_place_close(struct map_place *place)
{
	struct taken_name *taken, *next;

	HASH_ITER(hh, place->taken, taken, next)
	{
		HASH_DEL(place->taken, taken);
		free(taken->name);
		free(taken->content_key);
		free(taken);
	}
	if (place->directory_fd >= 0)
		close(place->directory_fd);
	free(place->path);
	*place = (struct map_place){ .directory_fd = -1 };
}

/* True: the name is this image's. False: another content has it (or memory is short: aside is
 * safe). */
static bool take_name(struct map_place *place, const char *name, const char *content_key)
{
	struct taken_name *taken;

	HASH_FIND_STR(place->taken, name, taken);
	if (taken)
		return !strcmp(taken->content_key, content_key);
	taken = calloc(1, sizeof(*taken));
	if (!taken)
		return false;
	taken->name = strdup(name);
	taken->content_key = strdup(content_key);
	if (taken->name && taken->content_key) {
		HASH_ADD_KEYPTR(hh, place->taken, taken->name, strlen(taken->name), taken);
		if (hash_added(taken))
			return true;
	}
	free(taken->name);
	free(taken->content_key);
	free(taken);
	return false;
}

static char *enter_key(struct map_place *place, const char *key, struct map_slot *slot)
{
	mode_t mode = place->is_cache ? 0700 : 0777;
	char *path AUTO_FREE = message_format("%s/%s", place->path, key);

	if (mkdirat(place->directory_fd, key, mode) && errno != EEXIST)
		return message_format("cannot create %s: %s", path, strerror(errno));
	slot->directory_fd =
		openat(place->directory_fd, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (slot->directory_fd < 0)
		return message_format("cannot open %s: %s", path, strerror(errno));
	slot->path = message_format("%s/%s", path, slot->name);
	return place->is_cache ? refusal(slot->directory_fd, path) : NULL;
}

static char *open_slot(struct map_place *place, const char *key, struct map_slot *slot)
{
	if (strlen(slot->name) > NAME_MAX)
		return message_format("its assembly name is too long for a file name");
	if (place->is_cache)
		return enter_key(place, key, slot);
	if (!take_name(place, slot->name, key)) {
		if (strchr(key, '/'))
			return message_format("another image has its place");
		slot->aside = true;
		return enter_key(place, key, slot);
	}
	slot->directory_fd = fcntl(place->directory_fd, F_DUPFD_CLOEXEC, 0);
	if (slot->directory_fd < 0)
		return message_format("%s: %s", place->path, strerror(errno));
	slot->path = message_format("%s/%s", place->path, slot->name);
	return NULL;
}

char *map_slot_open(struct map_place *place, struct sym_image *image, enum sym_map_format format,
		    struct map_slot *ret)
{
	struct map_slot slot = { .directory_fd = -1 };
	struct sym_error *error = sym_image_map_name(image, format, &slot.name);
	const char *key = sym_image_content_key(image);
	char *failure;

	if (error) {
		failure = message_format("%s", sym_error_message(error));
		sym_error_destroy(error);
		return failure;
	}
	/* Without a content to know it by, an image has its path as what tells it from others. */
	if (!key && !place->is_cache)
		key = sym_image_path(image);
	failure =
		key ? open_slot(place, key, &slot)
		    : message_format("it has no file whose content could be its key; use --output");
	if (failure)
		map_slot_close(&slot);
	else
		*ret = slot;
	return failure;
}

void map_slot_close(struct map_slot *slot)
{
	if (slot->directory_fd >= 0)
		close(slot->directory_fd);
	free(slot->name);
	free(slot->path);
	*slot = (struct map_slot){ .directory_fd = -1 };
}

uint64_t map_rows(const char *text, size_t size_bytes)
{
	/* From FFFFFFFB on; no image is that large. */
	static const char header_rva[] = { 'F', 'F', 'F', 'F', 'F', 'F', 'F' };
	uint64_t count = 0;

	for (const char *end = text + size_bytes, *newline; text < end; text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			break; /* half a row */
		count += (size_t)(newline - text) < sizeof(header_rva) ||
			 memcmp(text, header_rva, sizeof(header_rva)) != 0;
	}
	return count;
}

bool map_slot_rows(const struct map_slot *slot, uint64_t *ret)
{
	int fd AUTO_CLOSE = openat(slot->directory_fd, slot->name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	struct buf text;
	bool good;

	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		return false;
	buf_init(&text, max_map_bytes);
	good = !path_read_all(fd, &text);
	if (good)
		*ret = map_rows(text.data, text.size_bytes);
	buf_deinit(&text);
	return good;
}

/* Bytes of the regular file in the slot; -1 when there is none. */
static off_t file_bytes(const struct map_slot *slot)
{
	struct stat status;

	if (fstatat(slot->directory_fd, slot->name, &status, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(status.st_mode))
		return -1;
	return status.st_size;
}

enum slot_write map_slot_write(const struct map_slot *slot, const struct map_place *place,
			       const char *text, size_t size_bytes)
{
	off_t there_bytes = file_bytes(slot);
	struct path_output output;
	int result;

	if (path_holds(slot->directory_fd, slot->name, text, size_bytes))
		return SLOT_UNCHANGED;
	result = path_output_open_at(&output, slot->directory_fd, slot->name);
	if (!result)
		result = path_output_finish(&output, text, size_bytes,
					    place->is_cache ? 0600 : 0644);
	errno = -result;
	if (result)
		return SLOT_FAILED;
	return there_bytes >= 0 ? SLOT_REPLACED : SLOT_WRITTEN;
}
