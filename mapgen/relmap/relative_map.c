/* SPDX-License-Identifier: MIT */
#include "mapgen/relmap/relative_map.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/relmap/crossgen.h"

const char *map_outcome_text(enum map_outcome outcome)
{
	static const char *const texts[MAP_OUTCOMES] = {
		[MAP_MADE] = "made",     [MAP_PARTLY] = "incomplete",
		[MAP_KEPT] = "kept",     [MAP_NO_CODE] = "no precompiled code",
		[MAP_FAILED] = "failed",
	};

	return texts[outcome];
}

/* True: the methods of the image can be listed. False: *outcome_ret and *error_ret say why not. */
static bool has_code(const struct sym_image *image, enum map_outcome *outcome_ret,
		     struct sym_error **error_ret)
{
	const char *trouble = sym_image_problem(image);

	*outcome_ret = MAP_FAILED;
	if (trouble) {
		*error_ret = sym_error_create(SYM_ERROR_IO, "%s", trouble);
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
		*error_ret = sym_error_create(
			SYM_ERROR_IO,
			"a fragile native image (.NET Core 2.x): its methods cannot be listed");
		return false;
	default:
		*error_ret = sym_error_create(SYM_ERROR_IO, "not a .NET assembly");
		return false;
	}
}

/* A map in the cache is complete when it has a row for each method. It may be cut after a crash,
 * and names that one run found may have been missing in another. */
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

/* The number of methods without a row in a map of `rows` rows, where `made_rows` could be made now,
 * and why; heap, NULL: none. */
static struct sym_error *missing_rows(const struct map_maker *maker, struct sym_image *image,
				      uint64_t made_rows, uint64_t rows)
{
	struct sym_error *error;
	const char *why = NULL;
	uint64_t missing = 0;

	if (is_complete(rows, image))
		return NULL;
	error = sym_image_unnamed_methods(image, maker->format, &missing, &why);
	if (error)
		return error;
	if (missing <= rows - made_rows)
		return NULL;
	return sym_error_create(SYM_ERROR_IO, "%" PRIu64 " of %" PRIu64 " methods have no name: %s",
				missing - (rows - made_rows), missing + made_rows,
				why ?: "out of memory");
}

/* `kept_rows`: rows of the map in the cache, which is replaced only by a fuller one. */
static enum map_outcome relative_map_write(struct map_maker *maker, struct relmap_cache_entry *slot,
					   struct sym_image *image, uint64_t kept_rows,
					   struct sym_error **error_ret)
{
	enum map_outcome outcome = MAP_KEPT;
	char *text AUTO_FREE = NULL;
	size_t size_bytes;
	uint64_t rows;

	*error_ret = maker->crossgen ? crossgen_make(maker, slot, image, &text, &size_bytes)
				     : sym_image_map(image, maker->format, &text, &size_bytes);
	if (*error_ret)
		return MAP_FAILED;
	rows = map_rows(text, size_bytes);
	if (maker->crossgen || rows >= kept_rows) {
		outcome = MAP_MADE;
		*error_ret = relmap_cache_entry_write(&maker->place, image, slot, text, size_bytes);
	}
	if (*error_ret)
		return MAP_FAILED;
	if (maker->crossgen)
		return outcome;
	*error_ret = missing_rows(maker, image, rows, rows > kept_rows ? rows : kept_rows);
	return *error_ret ? MAP_PARTLY : outcome;
}

enum map_outcome relative_map_make(struct map_maker *maker, struct sym_image *image,
				   char **path_ret, struct sym_error **error_ret)
{
	struct relmap_cache_entry slot = { .directory_fd = -1 };
	enum map_outcome outcome;
	uint64_t kept_rows = 0;
	bool is_kept;

	*path_ret = NULL;
	*error_ret = NULL;
	if (!has_code(image, &outcome, error_ret))
		return outcome;
	/* An image that was unpacked into memory has addresses of this process in it, so no other
	 * process could use its map. */
	if (maker->place.is_cache && !sym_image_content_key(image))
		return MAP_KEPT;
	*error_ret = relmap_cache_entry_open(&maker->place, image, maker->format, &slot);
	if (*error_ret)
		return MAP_FAILED;
	is_kept = maker->place.is_cache && !maker->crossgen &&
		  relmap_cache_entry_rows(&slot, &kept_rows);
	if (is_kept && is_complete(kept_rows, image))
		outcome = MAP_KEPT;
	else
		outcome = relative_map_write(maker, &slot, image, kept_rows, error_ret);
	if (slot.aside && (outcome == MAP_MADE || outcome == MAP_PARTLY))
		message("%s: another image with a map of this name has other content; its map is "
			"%s",
			sym_image_path(image), slot.path);
	if (outcome == MAP_MADE || outcome == MAP_PARTLY || outcome == MAP_KEPT)
		*path_ret = STEAL(slot.path);
	relmap_cache_entry_close(&slot);
	return outcome;
}
