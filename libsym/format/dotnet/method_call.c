/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/method_call.h"

#include <string.h>

#include "libsym/format/dotnet/signature.h"
#include "libsym/limits.h"

enum {
	ROW_BITS = 24,
	ROW_MASK = (1 << ROW_BITS) - 1
};

/* Compares names from the inside out. The assembly of the outermost type is not compared: types
 * are forwarded from one to another. */
static bool is_ref_of(const struct metadata *caller, uint32_t ref, const struct metadata *metadata,
		      uint32_t type_rid)
{
	for (unsigned int depth = 0; depth < LIMIT_SIGNATURE_DEPTH; depth++) {
		uint32_t encloser = metadata_type_def_encloser(metadata, type_rid);
		enum metadata_table table;
		uint32_t scope = metadata_type_ref_scope(caller, ref, &table);

		if (strcmp(metadata_type_ref_name(caller, ref),
			   metadata_type_def_name(metadata, type_rid)) != 0 ||
		    strcmp(metadata_type_ref_namespace(caller, ref),
			   metadata_type_def_namespace(metadata, type_rid)) != 0)
			return false;
		if (table != METADATA_TYPE_REF || !scope)
			return !encloser;
		if (!encloser)
			return false;
		ref = scope;
		type_rid = encloser;
	}
	return false;
}

static bool is_type_of(const struct metadata *caller, uint32_t member,
		       const struct called_method *method)
{
	struct signature_type type = signature_member_parent(caller, member);

	if (!type.rid || !method->type_rid)
		return false;
	if (!type.is_ref)
		return caller == method->metadata && type.rid == method->type_rid;
	return caller != method->metadata &&
	       is_ref_of(caller, type.rid, method->metadata, method->type_rid);
}

static enum method_call_match compare_signatures(const struct metadata *caller, uint32_t member,
						 const struct called_method *method,
						 struct buf *text)
{
	size_t middle;

	buf_clear(text);
	if (!signature_write_method(caller, metadata_member_ref_signature(caller, member), text))
		return METHOD_CALL_MAYBE;
	middle = text->size_bytes;
	if (!signature_write_method(method->metadata,
				    metadata_method_signature(method->metadata, method->rid), text))
		return METHOD_CALL_MAYBE;
	return text->size_bytes == 2 * middle && !memcmp(text->data, text->data + middle, middle)
		       ? METHOD_CALL_SAME
		       : METHOD_CALL_OTHER;
}

/* The name without the interface that an explicit implementation has before it. */
static const char *simple_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot != name ? dot + 1 : name;
}

/* A call of a method of another type. */
static enum method_call_match compare_foreign(const struct il_call *call, const char *name,
					      const struct called_method *method)
{
	const uint16_t is_virtual = 0x0040;
	const char *wanted = metadata_method_name(method->metadata, method->rid);

	if (strcmp(simple_name(name), simple_name(wanted)) != 0)
		return METHOD_CALL_OTHER;
	return call->is_constrained ||
			       metadata_method_flags(method->metadata, method->rid) & is_virtual
		       ? METHOD_CALL_MAYBE
		       : METHOD_CALL_OTHER;
}

static enum method_call_match compare_definition(const struct metadata *caller, uint32_t rid,
						 const struct il_call *call,
						 const struct called_method *method)
{
	if (caller == method->metadata && rid == method->rid)
		return METHOD_CALL_SAME;
	if (caller == method->metadata && method->type_rid &&
	    metadata_method_owner(caller, rid) == method->type_rid)
		return METHOD_CALL_OTHER;
	return compare_foreign(call, metadata_method_name(caller, rid), method);
}

static enum method_call_match compare_member(const struct metadata *caller, uint32_t member,
					     const struct il_call *call,
					     const struct called_method *method, struct buf *text)
{
	const char *name = metadata_member_ref_name(caller, member);

	if (!is_type_of(caller, member, method))
		return compare_foreign(call, name, method);
	return strcmp(name, metadata_method_name(method->metadata, method->rid)) != 0
		       ? METHOD_CALL_OTHER
		       : compare_signatures(caller, member, method, text);
}

enum method_call_match method_call_compare(const struct metadata *caller,
					   const struct il_call *call,
					   const struct called_method *method, struct buf *text)
{
	enum metadata_table table = (enum metadata_table)(call->token >> ROW_BITS);
	uint32_t rid = call->token & ROW_MASK;

	if (table == METADATA_METHOD_SPEC)
		rid = metadata_method_spec_method(caller, rid, &table);
	if (!rid || (table != METADATA_METHOD_DEF && table != METADATA_MEMBER_REF))
		return METHOD_CALL_MAYBE;
	return table == METADATA_METHOD_DEF ? compare_definition(caller, rid, call, method)
					    : compare_member(caller, rid, call, method, text);
}
