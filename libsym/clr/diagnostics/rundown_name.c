/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics/rundown_name.h"

#include <string.h>

#include "libsym/format/dotnet/runtime_async.h"
#include "libsym/format/dotnet/signature.h"
#include "libsym/limits.h"

/* True when the owner in the rundown is this type, with or without arguments. */
static bool is_type(const char *owner, const struct metadata *metadata, uint32_t rid)
{
	struct signature_writer writer;
	struct buf name;
	bool same;

	buf_init(&name, LIMIT_NAME_BYTES);
	signature_writer_init(&writer, &name, SIGNATURE_TYPE_STRING);
	signature_write_type_def(&writer, metadata, rid);
	same = !writer.why && name.size_bytes && !strncmp(owner, name.data, name.size_bytes) &&
	       (owner[name.size_bytes] == '\0' || owner[name.size_bytes] == '[');
	buf_deinit(&name);
	return same;
}

static bool is_method_named(const struct rundown_method *method, const struct metadata *metadata)
{
	uint32_t rid = method->token & 0xffffff;

	return metadata && !(method->flags & RUNDOWN_DYNAMIC) && method->token >> 24 == 6 && rid &&
	       rid <= metadata_row_count(metadata, METADATA_METHOD_DEF) &&
	       !strcmp(metadata_method_name(metadata, rid), method->name) &&
	       is_type(method->owner, metadata, metadata_method_owner(metadata, rid));
}

static bool write_signature(const struct rundown_method *method, const struct metadata *metadata,
			    struct metadata_blob blob, bool is_async_variant, struct buf *out)
{
	struct reader reader = reader_over(blob.data, blob.size_bytes);
	struct signature_scope scope = { metadata, metadata };
	struct signature_method signature;
	struct signature_writer writer;

	signature_writer_init(&writer, out, SIGNATURE_RUNTIME);
	signature = signature_read_method(&reader);
	signature.is_async_variant = is_async_variant;
	signature_write_return(&writer, &reader, scope, &signature);
	signature_write(&writer, "[", 1);
	signature_write_heap_string(&writer, metadata_assembly_name(metadata));
	signature_write(&writer, "] ", 2);
	signature_write(&writer, method->owner, strlen(method->owner));
	signature_write(&writer, "::", 2);
	signature_write(&writer, method->name, strlen(method->name));
	signature_write_parameters(&writer, &reader, scope, &signature);
	return !writer.why && reader_ok(&reader);
}

static bool write_full(const struct rundown_method *method, const struct metadata *metadata,
		       struct buf *out)
{
	struct metadata_blob row = metadata_method_signature(metadata, method->token & 0xffffff);
	enum runtime_async_form form = runtime_async_form_of(&method->returned, metadata, row);
	struct buf variant;
	bool good;

	if (form == RUNTIME_ASYNC_UNCLEAR)
		return false;
	if (form != RUNTIME_ASYNC_MODIFIED)
		return write_signature(method, metadata, row, form == RUNTIME_ASYNC_VALUE, out);
	buf_init(&variant, row.size_bytes + 1);
	good = runtime_async_modify(row, &variant);
	if (good)
		good = write_signature(
			method, metadata,
			(struct metadata_blob){ (const uint8_t *)variant.data, variant.size_bytes },
			false, out);
	else if (variant.failure == BUF_NO_MEMORY)
		out->failure = BUF_NO_MEMORY;
	buf_deinit(&variant);
	return good;
}

bool rundown_write_name(const struct rundown_method *method, const struct metadata *metadata,
			struct buf *out)
{
	size_t size_before = out->size_bytes;

	if (is_method_named(method, metadata) && write_full(method, metadata, out) &&
	    out->size_bytes - size_before <= LIMIT_NAME_BYTES)
		return true;
	if (out->failure != BUF_OK)
		return false;
	buf_truncate(out, size_before);
	buf_append_string(out, method->owner);
	buf_append_string(out, "::");
	buf_append_string(out, method->name);
	return out->failure == BUF_OK && out->size_bytes - size_before <= LIMIT_NAME_BYTES;
}
