/* SPDX-License-Identifier: MIT */
#include "mapgen/relative_map.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/crossgen.h"
#include "mapgen/target.h"

const char *map_outcome_text(enum map_outcome outcome)
{
	switch (outcome) {
	case MAP_MADE:
		return "made";
	case MAP_PARTLY:
		return "incomplete";
	case MAP_KEPT:
		return "kept";
	case MAP_NO_CODE:
		return "no precompiled code";
	default:
		return "failed";
	}
}

static char *reason_of(struct sym_error *error)
{
	char *reason = message_format("%s", sym_error_message(error));

	sym_error_destroy(error);
	return reason;
}

/* True: the image is one whose methods can be listed. False: *outcome_ret and *reason_ret say what
 * it is. */
static bool has_code(const struct sym_image *image, enum map_outcome *outcome_ret,
		     char **reason_ret)
{
	const char *trouble = sym_image_trouble(image);

	*outcome_ret = MAP_FAILED;
	if (trouble) {
		*reason_ret = message_format("%s", trouble);
		return false;
	}
	switch (sym_image_kind(image)) {
	case SYM_IMAGE_READYTORUN:
	case SYM_IMAGE_COMPOSITE:
		return true;
	case SYM_IMAGE_IL:
	case SYM_IMAGE_COMPONENT:
	case SYM_IMAGE_NATIVE_PE:
		*outcome_ret = MAP_NO_CODE;
		return false;
	case SYM_IMAGE_NGEN:
		*reason_ret = message_format(
			"a fragile native image (.NET Core 2.x): its methods cannot be listed");
		return false;
	default:
		*reason_ret = message_format("not a .NET assembly");
		return false;
	}
}

/* A map in the cache is believed to be whole where it has a row for each method: a crash may have
 * cut it, and what told names to one run may have been absent from another. */
static bool is_complete(uint64_t rows, struct sym_image *image)
{
	struct sym_error *error;
	uint64_t methods;

	error = sym_image_method_count(image, &methods);
	if (!error)
		return rows >= methods;
	sym_error_destroy(error);
	return false;
}

static char *own_text(const struct map_maker *maker, struct sym_image *image, char **text_ret,
		      size_t *size_bytes_ret)
{
	struct sym_error *error = sym_image_map(image, maker->format, text_ret, size_bytes_ret);

	return error ? reason_of(error) : NULL;
}

/* How many methods have no row in a map of `rows` rows, where `made_rows` could be made now, and
 * why; heap, NULL: none. */
static char *missing_rows(const struct map_maker *maker, struct sym_image *image,
			  uint64_t made_rows, uint64_t rows)
{
	struct sym_error *error;
	const char *why = NULL;
	uint64_t missing = 0;

	if (is_complete(rows, image))
		return NULL;
	error = sym_image_unnamed_methods(image, maker->format, &missing, &why);
	if (error)
		return reason_of(error);
	if (missing <= rows - made_rows)
		return NULL;
	return message_format("%" PRIu64 " of %" PRIu64 " methods have no name: %s",
			      missing - (rows - made_rows), missing + made_rows,
			      why ?: "out of memory");
}

static enum map_outcome write_map(struct map_maker *maker, const struct map_slot *slot,
				  const char *text, size_t size_bytes, char **reason_ret)
{
	switch (map_slot_write(slot, &maker->place, text, size_bytes)) {
	case SLOT_FAILED:
		*reason_ret = message_format("cannot write %s: %s", slot->path, strerror(errno));
		return MAP_UNSAVED;
	case SLOT_REPLACED:
		if (!maker->place.is_cache)
			message("%s: had other content, replaced", slot->path);
		return MAP_MADE;
	default:
		return MAP_MADE;
	}
}

/* `kept_rows`: of a map in the cache, which has to make room for a fuller one only. */
static enum map_outcome make(struct map_maker *maker, const struct map_slot *slot,
			     struct sym_image *image, uint64_t kept_rows, char **reason_ret)
{
	enum map_outcome outcome = MAP_KEPT;
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	uint64_t rows;

	*reason_ret = maker->crossgen ? crossgen_make(maker, slot, image, &text, &size_bytes)
				      : own_text(maker, image, &text, &size_bytes);
	if (*reason_ret)
		return MAP_FAILED;
	rows = map_rows(text, size_bytes);
	if (maker->crossgen || rows >= kept_rows)
		outcome = write_map(maker, slot, text, size_bytes, reason_ret);
	if (maker->crossgen || outcome == MAP_UNSAVED)
		return outcome;
	*reason_ret = missing_rows(maker, image, rows, rows > kept_rows ? rows : kept_rows);
	return *reason_ret ? MAP_PARTLY : outcome;
}

enum map_outcome relative_map_make(struct map_maker *maker, struct sym_image *image,
				   char **path_ret, char **reason_ret)
{
	struct map_slot slot = { .directory_fd = -1 };
	enum map_outcome outcome;
	uint64_t kept_rows = 0;
	bool is_kept;

	*path_ret = NULL;
	*reason_ret = NULL;
	if (!has_code(image, &outcome, reason_ret))
		return outcome;
	/* Unpacked into memory, with this process's addresses in it: no other process could use it.
	 */
	if (maker->place.is_cache && !sym_image_content_key(image))
		return MAP_KEPT;
	*reason_ret = map_slot_open(&maker->place, image, maker->format, &slot);
	if (*reason_ret)
		return MAP_UNSAVED;
	is_kept = maker->place.is_cache && !maker->crossgen && map_slot_rows(&slot, &kept_rows);
	if (is_kept && is_complete(kept_rows, image))
		outcome = MAP_KEPT;
	else
		outcome = make(maker, &slot, image, kept_rows, reason_ret);
	if (slot.aside && (outcome == MAP_MADE || outcome == MAP_PARTLY))
		message("%s: another image with a map of this name has other content; its map is "
			"%s",
			sym_image_path(image), slot.path);
	if (outcome == MAP_MADE || outcome == MAP_PARTLY || outcome == MAP_KEPT)
		*path_ret = STEAL(slot.path);
	map_slot_close(&slot);
	return outcome;
}
