/* SPDX-License-Identifier: MIT */
#include "libsym/image/bundle_manifest.h"

#include "libsym/limits.h"

/*
 * The host keeps the mark in initialised data, after its code. So segments are searched from the
 * last one back.
 */
static struct sym_error *find_manifest(struct object_file *host, struct sparse_file *view,
				       uint64_t *offset_ret)
{
	*offset_ret = 0;
	for (size_t i = host->segment_count; i-- > 0 && !*offset_ret;) {
		const struct object_segment *segment = &host->segments[i];
		struct sym_error *error;

		if (segment->executable || segment->offset > view->size_bytes ||
		    segment->size_bytes > view->size_bytes - segment->offset)
			continue;
		error = sparse_file_need(view, host->path, segment->offset, segment->size_bytes);
		if (error)
			return error;
		bundle_find_header(view->data + segment->offset, (size_t)segment->size_bytes,
				   offset_ret);
	}
	return NULL;
}

struct sym_error *bundle_manifest_read(struct object_file *host, struct sparse_file *view,
				       struct bundle *ret, bool *is_bundle_ret)
{
	uint64_t offset, size_bytes;
	struct sym_error *error = find_manifest(host, view, &offset);

	*is_bundle_ret = !error && offset;
	if (!*is_bundle_ret)
		return error;
	if (offset > view->size_bytes)
		return sym_error_create_path(SYM_ERROR_FORMAT, host->path, offset,
					     "the bundle's manifest lies beyond the end");
	size_bytes = view->size_bytes - offset;
	if (size_bytes > LIMIT_BUNDLE_MANIFEST_BYTES)
		size_bytes = LIMIT_BUNDLE_MANIFEST_BYTES;
	error = sparse_file_need(view, host->path, offset, size_bytes);
	if (!error)
		error = bundle_parse(view->data + offset, (size_t)size_bytes, view->size_bytes,
				     ret);
	return sym_error_with_path(error, host->path);
}
