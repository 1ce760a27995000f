/* SPDX-License-Identifier: MIT */
#include "mapgen/symfile/buildid_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/foreign_file.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "mapgen/cli/message.h"

enum {
	LONGEST_CONFIG_BYTES = 1 << 20,
	LONGEST_NAME_BYTES = 200
};

/* ---- where -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t\r");
}

/* `dir = VALUE` of the section [buildid]; heap, NULL: none. (perf-config(1)) */
static char *dir_of_config(const char *text)
{
	bool inside = false;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *at = skip_blanks(*line == '\n' ? line + 1 : line);
		size_t length = strcspn(at, "\n");

		if (*line == '\n')
			line++;
		if (*at == '[') {
			inside = !strncmp(at, "[buildid]", 9);
		} else if (inside && !strncmp(at, "dir", 3) && skip_blanks(at + 3)[0] == '=') {
			const char *value = skip_blanks(skip_blanks(at + 3) + 1);

			length -= (size_t)(value - at);
			while (length && strchr(" \t\r\"", value[length - 1]))
				length--;
			if (length && *value == '"') {
				value++;
				length--;
			}
			return strndup(value, length);
		}
	}
	return NULL;
}

static char *configured_dir(const char *config_path, const char *home)
{
	int fd AUTO_CLOSE = foreign_file_open(-1, config_path, 0, NULL, NULL);
	char *value AUTO_FREE = NULL;
	struct buf text;
	const char *string;

	if (fd < 0)
		return NULL;
	buf_init(&text, LONGEST_CONFIG_BYTES);
	path_read_all(fd, &text);
	string = buf_string(&text);
	value = string ? dir_of_config(string) : NULL;
	buf_deinit(&text);
	if (!value || !*value)
		return NULL;
	return *value == '~' ? message_format("%s%s", home, value + 1) : STEAL(value);
}

char *buildid_dir_path(const char *chosen)
{
	const char *home = getenv("HOME");
	char *config_path AUTO_FREE = NULL;
	char *found;

	if (chosen)
		return strdup(chosen);
	/* Without HOME perf reads no ~/.perfconfig, and uses ./.debug. */
	if (!home) {
		found = configured_dir("/etc/perfconfig", "");
		return found ? found : strdup(".debug");
	}
	config_path = message_format("%s/.perfconfig", home);
	found = configured_dir(config_path, home);
	if (!found)
		found = configured_dir("/etc/perfconfig", home);
	return found ? found : message_format("%s/.debug", home);
}

/* ---- putting ------------------------------------------------------------------------ */

/* A name becomes part of a path, so special characters become '_'. */
static void plain_name(char *room, const char *name)
{
	size_t length = 0;

	for (; *name && length < LONGEST_NAME_BYTES; name++) {
		unsigned char byte = (unsigned char)*name;
		bool plain = byte > 0x20 && byte != '/' && byte != 0x7f;

		room[length++] = plain ? *name : '_';
	}
	room[length] = '\0';
	if (!length || room[0] == '.')
		room[0] = '_';
	if (!length)
		room[1] = '\0';
}

static struct sym_error *write_file(const char *path, const void *bytes, size_t size_bytes)
{
	struct path_output output;
	int failure = path_output_open(&output, path);

	if (!failure)
		failure = path_output_finish(&output, bytes, size_bytes, 0644);
	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot write: %s", path,
					  strerror(-failure))
		       : NULL;
}

static struct sym_error *make_link(const char *path, const char *target)
{
	char there[4096];
	ssize_t length = readlink(path, there, sizeof(there) - 1);

	if (length >= 0) {
		there[length] = '\0';
		if (!strcmp(there, target))
			return NULL;
		return sym_error_create(SYM_ERROR_IO, "%s: leads to %s", path, there);
	}
	if (symlink(target, path) && errno != EEXIST)
		return sym_error_create(SYM_ERROR_IO, "%s: cannot create the link: %s", path,
					strerror(errno));
	return NULL;
}

static struct sym_error *make_directory(const char *path)
{
	int failure = path_make_directories(path, 0755);

	return failure ? sym_error_create(SYM_ERROR_IO, "%s: cannot create the directory: %s", path,
					  strerror(-failure))
		       : NULL;
}

static struct sym_error *buildid_cache_write(const char *directory, const char *link_directory,
					     const char *link_name, const char *target,
					     const void *bytes, size_t size_bytes, bool *new_ret)
{
	char *path AUTO_FREE = message_format("%s/elf", directory);
	char *link AUTO_FREE = message_format("%s/%s", link_directory, link_name);
	char *found AUTO_FREE = message_format("%s/elf", link);
	struct sym_error *failure;

	/* perf looks up by id only: a file that is there under another name is good too. */
	*new_ret = !path_has_content(AT_FDCWD, found, bytes, size_bytes);
	if (!*new_ret)
		return NULL;
	failure = make_directory(directory);
	if (!failure)
		failure = make_directory(link_directory);
	if (!failure)
		failure = write_file(path, bytes, size_bytes);
	return failure ? failure : make_link(link, target);
}

struct sym_error *buildid_dir_put(const char *cache, const uint8_t id[SYMFILE_ID_BYTES],
				  const char *name, const void *bytes, size_t size_bytes,
				  bool *new_ret)
{
	char digits[2 * SYMFILE_ID_BYTES + 1], plain[LONGEST_NAME_BYTES + 2];
	char *directory AUTO_FREE = NULL;
	char *link_directory AUTO_FREE = NULL;
	char *target AUTO_FREE = NULL;

	hex_write_bytes(digits, id, SYMFILE_ID_BYTES);
	plain_name(plain, name);
	directory = message_format("%s/dotnet-mapgen/%s/%s", cache, plain, digits);
	link_directory = message_format("%s/.build-id/%.2s", cache, digits);
	target = message_format("../../dotnet-mapgen/%s/%s", plain, digits);
	return buildid_cache_write(directory, link_directory, digits + 2, target, bytes, size_bytes,
				   new_ret);
}
