/* SPDX-License-Identifier: MIT */
/*
 * /metadata: the files that are here, by build-id, path or pattern. Files of upstreams are not
 * listed. With upstreams, or before the first scan has ended, the answer is incomplete, and says
 * so.
 */
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "symsrv/report/report.h"

static const size_t most_results = 10000;
static const unsigned int most_stars = 6;

struct search {
	enum {
		BY_BUILD_ID,
		BY_FILE,
		BY_GLOB
	} by;
	const char *value;
	json_t *results;
	bool left_some_out;
};

static bool metadata_matches(const struct search *search, const struct key *key, const char *path)
{
	char id[2 * KEY_MAX_ID + 1];

	switch (search->by) {
	case BY_BUILD_ID:
		hex_write_bytes(id, key->id, key->id_bytes);
		return !strcmp(id, search->value);
	case BY_FILE:
		return !strcmp(path, search->value);
	default:
		return !fnmatch(search->value, path, FNM_PATHNAME);
	}
}

static bool add(void *context, const char *text, const char *path)
{
	struct search *search = context;
	char id[2 * KEY_MAX_ID + 1];
	struct key key;
	json_t *result;

	if (!key_from_text(&key, text) ||
	    (key.kind != KEY_EXECUTABLE && key.kind != KEY_DEBUGINFO) ||
	    !metadata_matches(search, &key, path))
		return true;
	hex_write_bytes(id, key.id, key.id_bytes);
	result = json_pack("{s:s, s:s, s:s%}", "type", key_kind_text(key.kind), "buildid", id,
			   "file", path, strlen(path));
	/* JSON cannot hold a path that is not UTF-8. */
	if (!result || json_array_append_new(search->results, result))
		search->left_some_out = true;
	return json_array_size(search->results) < most_results;
}

static bool set_kind(struct search *search, const char *key, const char *value)
{
	unsigned int stars = 0;

	if (!strcmp(key, "buildid"))
		search->by = BY_BUILD_ID;
	else if (!strcmp(key, "file"))
		search->by = BY_FILE;
	else if (!strcmp(key, "glob"))
		search->by = BY_GLOB;
	else
		return false;
	search->value = value;
	/* fnmatch() tries every way to place each '*', so their number is limited. */
	for (; *value; value++)
		stars += *value == '*';
	if (stars > most_stars || value - search->value > KEY_MAX_NAME)
		return false;
	return search->value[0] != 0;
}

bool report_metadata(const struct reported *reported, const char *key, const char *value,
		     struct buf *buf)
{
	bool was_scanned = file_index_is_whole(reported->holdings->index);
	struct store_usage usage;
	struct upstream_set *set;
	struct search search = { 0 };
	char *text AUTO_FREE = NULL;
	bool is_complete;
	json_t *root;

	if (!set_kind(&search, key, value))
		return false;
	search.results = json_array();
	file_index_each(reported->holdings->index, add, &search);
	store_each(reported->holdings->store, add, &search);
	set = fetcher_upstreams(reported->holdings->fetcher);
	store_usage(reported->holdings->store, &usage);
	is_complete = !set->count && usage.is_scanned && was_scanned && !search.left_some_out &&
		      json_array_size(search.results) < most_results;
	upstream_set_release(set);
	root = json_pack("{s:o, s:b}", "results", search.results, "complete", is_complete);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	if (text)
		buf_append_string(buf, text);
	json_decref(root);
	return text != NULL;
}
