/* SPDX-License-Identifier: MIT */
/*
 * Methods of other assemblies for which an image has code without their rids (crossgen2
 * --opt-cross-module, --non-local-generics-module): the image's manifest metadata describes each by
 * a MemberRef. The runtime names a method by its definition, so the definition is searched for: the
 * parent's TypeRef leads to the module and the type, name and signature to the method. A method
 * that is not found, or found twice, has no name in the runtime's dialect.
 *
 *   TypeRef -> scope TypeRef (nested), AssemblyRef, or ModuleRef with the name
 *   "#:N" (module number N) or "System.Private.CoreLib"
 */
#include "libsym/format/dotnet/r2r_internal.h"

#include <stdlib.h>

#include "libsym/limits.h"

struct r2r_members {
	struct r2r_definition *definitions; /* by MemberRef rid of the manifest */
	struct r2r_definition *types;       /* by TypeRef rid: rid is a TypeDef's */
	uint32_t member_count, type_count;
	size_t steps;                 /* rows examined */
	struct buf wanted, candidate; /* signatures as text */
	bool has_no_memory;           /* some definition is missing for lack of memory */
};

/* The module that a TypeRef's scope refers to; NULL if there is none. */
static struct r2r_module *scope_module(struct r2r *r2r, enum metadata_table table, uint32_t rid)
{
	const char *name;
	uint32_t number;

	if (table == METADATA_ASSEMBLY_REF && rid)
		return &r2r->modules[r2r_manifest_module(r2r, rid)];
	if (table != METADATA_MODULE_REF)
		return NULL;
	name = metadata_module_ref_name(r2r->manifest, rid);
	if (!strcmp(name, r2r_core_library))
		return &r2r->core;
	if (name[0] != '#' || name[1] != ':')
		return NULL;
	number = (uint32_t)strtoul(name + 2, NULL, 10);
	return number < r2r->module_count ? &r2r->modules[number] : NULL;
}

void r2r_use_member_modules(struct r2r *r2r)
{
	uint32_t count = metadata_row_count(r2r->manifest, METADATA_TYPE_REF);

	for (uint32_t rid = 1; rid <= count; rid++) {
		enum metadata_table table;
		uint32_t scope = metadata_type_ref_scope(r2r->manifest, rid, &table);
		struct r2r_module *module = scope_module(r2r, table, scope);

		if (module)
			module->is_used = true;
	}
}

/* ---- types ---------------------------------------------------------------- */

static uint32_t find_type(struct r2r_members *members, const struct metadata *metadata,
			  uint32_t encloser, const char *name_space, const char *name)
{
	uint32_t count = metadata_row_count(metadata, METADATA_TYPE_DEF);

	for (uint32_t rid = 1; rid <= count; rid++) {
		if (++members->steps > LIMIT_MEMBER_SEARCH_STEPS)
			return 0;
		if (metadata_type_def_encloser(metadata, rid) == encloser &&
		    !strcmp(metadata_type_def_name(metadata, rid), name) &&
		    !strcmp(metadata_type_def_namespace(metadata, rid), name_space))
			return rid;
	}
	return 0;
}

static struct r2r_definition resolve_type(struct r2r *r2r, struct r2r_members *members,
					  uint32_t rid, unsigned int depth)
{
	struct r2r_definition *type = &members->types[rid], encloser = { 0 };
	const struct r2r_module *module;
	enum metadata_table table;
	uint32_t scope;

	if (!depth || type->is_resolved)
		return *type;
	type->is_resolved = true;
	scope = metadata_type_ref_scope(r2r->manifest, rid, &table);
	if (table == METADATA_TYPE_REF) {
		if (scope)
			encloser = resolve_type(r2r, members, scope, depth - 1);
		if (!encloser.rid)
			return *type;
		type->metadata = encloser.metadata;
	} else {
		module = scope_module(r2r, table, scope);
		type->metadata = module ? module->metadata : NULL;
	}
	if (type->metadata)
		type->rid = find_type(members, type->metadata, encloser.rid,
				      metadata_type_ref_namespace(r2r->manifest, rid),
				      metadata_type_ref_name(r2r->manifest, rid));
	return *type;
}

/* TypeRef rid of a MemberRef's parent, also if that is an instantiation; 0 for any other parent. */
static uint32_t parent_type_ref(const struct metadata *manifest, uint32_t member)
{
	struct signature_type type = signature_member_parent(manifest, member);

	return type.is_ref && type.rid <= metadata_row_count(manifest, METADATA_TYPE_REF) ? type.rid
											  : 0;
}

/* ---- methods -------------------------------------------------------------- */

static bool signature_text(struct r2r_members *members, struct buf *out,
			   const struct metadata *metadata, struct metadata_blob blob)
{
	bool done;

	buf_clear(out);
	done = signature_write_method(metadata, blob, out);
	members->has_no_memory |= out->failure == BUF_NO_MEMORY;
	return done;
}

/* The only method of a type with this name and signature; 0 if there is none or more than one. */
static uint32_t find_method(struct r2r_members *members, const struct r2r_definition *type,
			    const char *name)
{
	const struct metadata *metadata = type->metadata;
	uint32_t count = metadata_row_count(metadata, METADATA_METHOD_DEF), found = 0;
	uint32_t rid = metadata_first_method(metadata, type->rid);

	for (; rid && rid <= count && metadata_method_owner(metadata, rid) == type->rid; rid++) {
		if (++members->steps > LIMIT_MEMBER_SEARCH_STEPS)
			return 0;
		if (strcmp(metadata_method_name(metadata, rid), name))
			continue;
		members->steps += 100; /* a signature is written for this method */
		if (!signature_text(members, &members->candidate, metadata,
				    metadata_method_signature(metadata, rid)) ||
		    members->candidate.size_bytes != members->wanted.size_bytes ||
		    memcmp(members->candidate.data, members->wanted.data,
			   members->wanted.size_bytes))
			continue;
		if (found)
			return 0;
		found = rid;
	}
	return found;
}

static void resolve_member(struct r2r *r2r, struct r2r_members *members, uint32_t rid)
{
	struct r2r_definition *definition = &members->definitions[rid], type = { 0 };
	uint32_t parent;

	if (definition->is_resolved)
		return;
	definition->is_resolved = true;
	parent = parent_type_ref(r2r->manifest, rid);
	if (parent)
		type = resolve_type(r2r, members, parent, LIMIT_NESTING_DEPTH);
	if (!type.rid || !signature_text(members, &members->wanted, r2r->manifest,
					 metadata_member_ref_signature(r2r->manifest, rid)))
		return;
	definition->metadata = type.metadata;
	definition->rid = find_method(members, &type, metadata_member_ref_name(r2r->manifest, rid));
}

struct sym_error *r2r_resolve_members(struct r2r *r2r)
{
	struct r2r_members *members = calloc(1, sizeof(*members));

	r2r->members = members;
	if (!members)
		return &sym_error_no_memory;
	members->member_count = metadata_row_count(r2r->manifest, METADATA_MEMBER_REF);
	members->type_count = metadata_row_count(r2r->manifest, METADATA_TYPE_REF);
	members->definitions =
		calloc((size_t)members->member_count + 1, sizeof(*members->definitions));
	members->types = calloc((size_t)members->type_count + 1, sizeof(*members->types));
	buf_init(&members->wanted, 2 * LIMIT_NAME_BYTES);
	buf_init(&members->candidate, 2 * LIMIT_NAME_BYTES);
	if (!members->definitions || !members->types)
		return &sym_error_no_memory;
	for (size_t i = r2r->method_def_count; i < r2r->entry_count; i++) {
		struct signature_budget budget = signature_budget_full();
		struct reader reader = r2r->instances;
		struct r2r_instance instance;
		const char *why;

		reader_seek(&reader, r2r->entries[i].locator);
		instance = r2r_read_instance(&reader, &budget);
		if (instance.flags & R2R_INSTANCE_MEMBER_REF && instance.rid &&
		    instance.rid <= members->member_count &&
		    r2r_module_metadata(r2r, instance.module, &why) == r2r->manifest)
			resolve_member(r2r, members, instance.rid);
	}
	return members->has_no_memory ? &sym_error_no_memory : NULL;
}

struct r2r_definition r2r_member_definition(const struct r2r *r2r, uint32_t rid)
{
	if (!r2r->members || rid > r2r->members->member_count)
		return (struct r2r_definition){ 0 };
	return r2r->members->definitions[rid];
}

void r2r_close_members(struct r2r *r2r)
{
	if (!r2r->members)
		return;
	buf_deinit(&r2r->members->wanted);
	buf_deinit(&r2r->members->candidate);
	free(r2r->members->definitions);
	free(r2r->members->types);
	free(r2r->members);
}
