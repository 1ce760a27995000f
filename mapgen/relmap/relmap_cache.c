/* SPDX-License-Identifier: MIT */
#include "mapgen/relmap/relmap_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "mapgen/cli/message.h"
#include "mapgen/relmap/cache_limit.h"

static const char program_directory[] = "dotnet-mapgen";

/* The size limit of libsym for a map. */
static const size_t max_map_bytes = (size_t)256 << 20;

static char *cache_path(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const struct passwd *user;
	const char *home;

	/* The XDG base directory specification ignores relative paths. */
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

/* A cache that others can write to is refused, because its maps are trusted. */
static struct sym_error *relmap_cache_refusal(int fd, const char *path)
{
	struct stat status;

	if (fstat(fd, &status))
		return sym_error_create(SYM_ERROR_IO, "%s: %s", path, strerror(errno));
	if (status.st_uid != geteuid())
		return sym_error_create(
			SYM_ERROR_IO, "%s belongs to user %u, not to the caller: not used as cache",
			path, (unsigned int)status.st_uid);
	if (status.st_mode & 077)
		return sym_error_create(SYM_ERROR_IO,
					"%s has mode %04o, not 0700: not used as cache", path,
					(unsigned int)(status.st_mode & 07777));
	return NULL;
}

/* The mode of new directories. */
static mode_t directory_mode(const struct relmap_cache *place)
{
	return place->is_cache ? 0700 : 0777;
}

static struct sym_error *open_place(struct relmap_cache *place)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (place->is_cache ? O_NOFOLLOW : 0);
	int result = path_make_directories(place->path, directory_mode(place));

	if (result < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot create %s: %s", place->path,
					strerror(-result));
	place->directory_fd = open(place->path, flags);
	if (place->directory_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot open %s: %s", place->path,
					strerror(errno));
	return place->is_cache ? relmap_cache_refusal(place->directory_fd, place->path) : NULL;
}

struct sym_error *relmap_cache_open(struct relmap_cache *place, const char *output)
{
	struct sym_error *failure;

	*place = (struct relmap_cache){ .path = output ? strdup(output) : cache_path(),
					.directory_fd = -1,
					.is_cache = !output };
	failure = place->path ? open_place(place) : &sym_error_no_memory;
	if (failure)
		relmap_cache_close(place);
	return failure;
}

void relmap_cache_close(struct relmap_cache *place)
{
	text_set_deinit(&place->taken);
	if (place->is_cache && place->was_used)
		cache_limit_hold(place->directory_fd, CACHE_LIMIT_BYTES);
	if (place->directory_fd >= 0)
		close(place->directory_fd);
	free(place->path);
	*place = (struct relmap_cache){ .directory_fd = -1 };
}

static struct sym_error *enter_key(struct relmap_cache *place, const char *key,
				   struct relmap_cache_entry *slot)
{
	char *path AUTO_FREE = message_format("%s/%s", place->path, key);

	if (mkdirat(place->directory_fd, key, directory_mode(place)) && errno != EEXIST)
		return sym_error_create(SYM_ERROR_IO, "cannot create %s: %s", path,
					strerror(errno));
	slot->directory_fd =
		openat(place->directory_fd, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (slot->directory_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
	slot->path = message_format("%s/%s", path, slot->name);
	if (!place->is_cache)
		return NULL;
	cache_limit_touch(slot->directory_fd);
	place->was_used = true;
	return relmap_cache_refusal(slot->directory_fd, path);
}

static struct sym_error *open_slot(struct relmap_cache *place, struct sym_image *image,
				   struct relmap_cache_entry *slot)
{
	const char *key;

	if (strlen(slot->name) > NAME_MAX)
		return sym_error_create(SYM_ERROR_IO,
					"its assembly name is too long for a file name");
	if (place->is_cache) {
		key = sym_image_content_key(image);
		return key ? enter_key(place, key, slot)
			   : sym_error_create(SYM_ERROR_IO, "it has no file for a key in the "
							    "cache; use --output");
	}
	slot->directory_fd = fcntl(place->directory_fd, F_DUPFD_CLOEXEC, 0);
	if (slot->directory_fd < 0)
		return sym_error_create(SYM_ERROR_IO, "%s: %s", place->path, strerror(errno));
	slot->path = message_format("%s/%s", place->path, slot->name);
	return NULL;
}

struct sym_error *relmap_cache_entry_open(struct relmap_cache *place, struct sym_image *image,
					  enum sym_map_format format,
					  struct relmap_cache_entry *ret)
{
	struct relmap_cache_entry slot = { .directory_fd = -1 };
	struct sym_error *error = sym_image_map_name(image, format, &slot.name);

	if (error)
		return error;
	error = open_slot(place, image, &slot);
	if (error)
		relmap_cache_entry_close(&slot);
	else
		*ret = slot;
	return error;
}

void relmap_cache_entry_close(struct relmap_cache_entry *slot)
{
	if (slot->directory_fd >= 0)
		close(slot->directory_fd);
	free(slot->name);
	free(slot->path);
	*slot = (struct relmap_cache_entry){ .directory_fd = -1 };
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

bool relmap_cache_entry_rows(const struct relmap_cache_entry *slot, uint64_t *ret)
{
	int fd AUTO_CLOSE =
		foreign_file_open(slot->directory_fd, slot->name, FOREIGN_NO_LINKS, NULL, NULL);
	struct buf text;
	bool good;

	if (fd < 0)
		return false;
	buf_init(&text, max_map_bytes);
	good = !path_read_all(fd, &text);
	if (good)
		*ret = map_rows(text.data, text.size_bytes);
	buf_deinit(&text);
	return good;
}

/* An earlier image of this run has the place, with another map. */
static struct sym_error *put_aside(struct relmap_cache *place, struct sym_image *image,
				   struct relmap_cache_entry *slot)
{
	const char *key = sym_image_content_key(image);

	if (!key)
		return sym_error_create(SYM_ERROR_IO,
					"another image has this name in the output directory");
	close(steal_fd(&slot->directory_fd));
	free(STEAL(slot->path));
	slot->aside = true;
	return enter_key(place, key, slot);
}

struct sym_error *relmap_cache_entry_write(struct relmap_cache *place, struct sym_image *image,
					   struct relmap_cache_entry *slot, const char *text,
					   size_t size_bytes)
{
	bool is_taken = !place->is_cache && text_set_has(&place->taken, slot->name);
	struct sym_error *error = NULL;
	struct path_output output;
	struct stat status;
	bool was_there;
	int result;

	if (!place->is_cache && !text_set_add(&place->taken, slot->name, strlen(slot->name)))
		return &sym_error_no_memory;
	if (is_taken && !path_has_content(slot->directory_fd, slot->name, text, size_bytes))
		error = put_aside(place, image, slot);
	if (error || path_has_content(slot->directory_fd, slot->name, text, size_bytes))
		return error;
	was_there = !fstatat(slot->directory_fd, slot->name, &status, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(status.st_mode);
	result = path_output_open_at(&output, slot->directory_fd, slot->name);
	if (!result)
		result = path_output_finish(&output, text, size_bytes,
					    place->is_cache ? 0600 : 0644);
	if (result)
		return sym_error_create(SYM_ERROR_IO, "cannot write %s: %s", slot->path,
					strerror(-result));
	if (was_there && !place->is_cache)
		message("%s: had other content; replaced", slot->path);
	return NULL;
}
