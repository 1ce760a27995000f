/* SPDX-License-Identifier: MIT */
/*
 * The name of a method entry: its signature, its owner with the instantiation that the image has
 * code for, and its own name, in the requested dialect. Nothing is allocated or cached; the text
 * goes directly to the buffer.
 *
 *   runtime:   RET [Assembly] Owner::Name(A,B)   signature as it is in metadata
 *   crossgen2: [RET ]Owner::Name(A, B)           parameters replaced by arguments
 */
#include "libsym/format/dotnet/r2r_internal.h"

static const uint16_t last_major_version_of_foreign_arguments = 16;

struct method {
	const struct metadata *metadata; /* of name and signature */
	const struct metadata *context;  /* of the owner's token */
	const char *assembly;
	const char *name;
	struct metadata_blob signature;
	uint32_t rid;                 /* MethodDef rid in `metadata`; 0: not known */
	uint32_t owner;               /* TypeDef rid; 0: the owner is in `instance` */
	struct r2r_instance instance; /* flags 0 for an entry of section 103 */
	bool is_stub;                 /* a stub that resumes the method */
};

static const struct metadata *find_module(void *context, uint32_t index, const char **why_ret)
{
	return r2r_module_metadata(context, index, why_ret);
}

/* Fills the fields that both kinds of entries share, from a MethodDef row. */
static bool describe_method_def(struct method *method, uint32_t rid, const char **why_ret)
{
	if (!rid || rid > metadata_row_count(method->metadata, METADATA_METHOD_DEF)) {
		*why_ret = "no such MethodDef row";
		return false;
	}
	method->rid = rid;
	method->assembly = metadata_assembly_name(method->metadata);
	method->name = metadata_method_name(method->metadata, rid);
	method->signature = metadata_method_signature(method->metadata, rid);
	method->owner = metadata_method_owner(method->metadata, rid);
	return true;
}

/* The runtime names a method by its definition. crossgen2 does too, but the MemberRef contains
 * everything that it prints. */
static bool describe_member(const struct r2r *r2r, struct method *method, enum r2r_dialect dialect,
			    const char **why_ret)
{
	uint32_t rid = method->instance.rid;
	struct r2r_definition definition;

	if (dialect == R2R_NAME_CROSSGEN2) {
		method->name = metadata_member_ref_name(method->context, rid);
		method->signature = metadata_member_ref_signature(method->context, rid);
		return true;
	}
	definition = r2r_member_definition(r2r, rid);
	if (method->context != r2r->manifest || !definition.rid) {
		*why_ret = "definition of another assembly's method is not available";
		return false;
	}
	method->metadata = definition.metadata;
	return describe_method_def(method, definition.rid, why_ret);
}

static bool describe_instance(const struct r2r *r2r, struct reader reader, struct method *method,
			      enum r2r_dialect dialect, const char **why_ret)
{
	struct signature_budget budget = signature_budget_full();

	method->instance = r2r_read_instance(&reader, &budget);
	method->metadata = r2r_module_metadata(r2r, method->instance.module, why_ret);
	method->context = method->metadata;
	if (!method->metadata)
		return false;
	if (method->instance.flags & R2R_INSTANCE_MEMBER_REF)
		return describe_member(r2r, method, dialect, why_ret);
	return describe_method_def(method, method->instance.rid, why_ret);
}

static bool describe_entry(const struct r2r *r2r, uint32_t number, struct method *method,
			   enum r2r_dialect dialect, const char **why_ret)
{
	const struct r2r_entry *entry = &r2r->entries[number];
	struct reader reader = r2r->instances;

	*method = (struct method){ .is_stub = number >= r2r->stub_entry };
	if (method->is_stub) {
		number = entry->locator;
		if (number == R2R_NO_ENTRY) {
			*why_ret = "stub that resumes an unknown method";
			return false;
		}
		entry = &r2r->entries[number];
	}
	if (number >= r2r->method_def_count) {
		reader_seek(&reader, entry->locator);
		return describe_instance(r2r, reader, method, dialect, why_ret);
	}
	method->metadata = r2r_module_metadata(r2r, entry->module, why_ret);
	method->context = method->metadata;
	return method->metadata && describe_method_def(method, entry->locator, why_ret);
}

const struct metadata *r2r_entry_definition(const struct r2r *r2r, uint32_t number,
					    uint32_t *rid_ret, bool *is_stub_ret,
					    const char **why_ret)
{
	struct method method;

	if (!describe_entry(r2r, number, &method, R2R_NAME_RUNTIME, why_ret))
		return NULL;
	*rid_ret = method.rid;
	*is_stub_ret = method.is_stub;
	return method.metadata;
}

/* Records where each of `count` types starts. */
static bool locate_arguments(struct signature_arguments *arguments, struct reader types,
			     uint32_t count)
{
	struct signature_budget budget = signature_budget_full();

	arguments->count = count;
	arguments->types = types;
	if (count > SIGNATURE_MAX_ARGUMENTS || types.size_bytes > UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		arguments->positions[i] = (uint32_t)types.position;
		signature_skip_type(&types, &budget);
	}
	return reader_ok(&types);
}

/* Locates the arguments of an owner type: [0x3f number] 0x15 definition count types. */
static bool locate_owner_arguments(struct signature_arguments *arguments, struct reader owner)
{
	struct signature_budget budget = signature_budget_full();
	uint8_t element = reader_u8(&owner);

	arguments->count = 0;
	if (element == ELEMENT_MODULE_ZAPSIG) {
		signature_unsigned(&owner);
		element = reader_u8(&owner);
	}
	if (element != ELEMENT_GENERICINST)
		return reader_ok(&owner);
	signature_skip_type(&owner, &budget);
	return locate_arguments(arguments, owner, signature_unsigned(&owner));
}

static void write_owner(struct signature_writer *writer, const struct r2r *r2r,
			const struct method *method)
{
	struct signature_scope scope = { method->context, r2r->modules[0].metadata };
	struct reader owner = method->instance.owner;

	if (!(method->instance.flags & R2R_INSTANCE_OWNER_TYPE)) {
		signature_write_type_def(writer, method->metadata, method->owner);
		return;
	}
	signature_write_type(writer, &owner, scope);
}

/* crossgen2's signature of a resumption stub: `static object Name(object, ref byte)`. */
static const uint8_t stub_signature[] = { 0x00,          2,         ELEMENT_OBJECT, ELEMENT_OBJECT,
					  ELEMENT_BYREF, ELEMENT_U1 };

static struct reader signature_of(const struct method *method)
{
	return method->is_stub ? reader_over(stub_signature, sizeof(stub_signature))
			       : reader_over(method->signature.data, method->signature.size_bytes);
}

static struct signature_method read_signature_head(const struct method *method,
						   struct reader *signature)
{
	struct signature_method head = signature_read_method(signature);

	head.is_async_variant =
		!method->is_stub && method->instance.flags & R2R_INSTANCE_ASYNC_VARIANT;
	return head;
}

static void write_runtime_name(struct signature_writer *writer, const struct r2r *r2r,
			       const struct method *method)
{
	struct reader reader = signature_of(method);
	struct signature_scope scope = { method->metadata, method->metadata };
	struct signature_method head = read_signature_head(method, &reader);

	signature_write_return(writer, &reader, scope, &head);
	signature_write(writer, "[", 1);
	signature_write_heap_string(writer, method->assembly);
	signature_write(writer, "] ", 2);
	writer->style = SIGNATURE_TYPE_STRING;
	write_owner(writer, r2r, method);
	writer->style = SIGNATURE_RUNTIME;
	signature_write(writer, "::", 2);
	signature_write_heap_string(writer, method->name);
	signature_write_parameters(writer, &reader, scope, &head);
	if (!reader_ok(&reader) && !writer->why)
		writer->why = reader.failure;
}

/* Up to .NET 10, tokens in the arguments of a method belong to the module that the entry names. In
 * the arguments of a type, and since .NET 11 in both, they belong to the image itself. */
static bool locate_all_arguments(const struct r2r *r2r, const struct method *method,
				 struct signature_arguments *type_arguments,
				 struct signature_arguments *method_arguments)
{
	const struct r2r_instance *instance = &method->instance;
	const struct metadata *own = r2r->modules[0].metadata;

	type_arguments->scope = (struct signature_scope){ own, own };
	type_arguments->count = 0;
	method_arguments->scope = type_arguments->scope;
	method_arguments->count = 0;
	if (instance->flags & R2R_INSTANCE_UPDATE_CONTEXT &&
	    r2r->major_version <= last_major_version_of_foreign_arguments)
		method_arguments->scope.metadata = method->context;
	if (instance->flags & R2R_INSTANCE_OWNER_TYPE &&
	    !locate_owner_arguments(type_arguments, instance->owner))
		return false;
	return !(instance->flags & R2R_INSTANCE_METHOD_ARGUMENTS) ||
	       locate_arguments(method_arguments, instance->arguments, instance->argument_count);
}

static void write_crossgen2_name(struct signature_writer *writer, const struct r2r *r2r,
				 const struct method *method)
{
	struct reader reader = signature_of(method);
	struct signature_scope scope = { method->metadata, method->metadata };
	struct signature_arguments type_arguments, method_arguments;
	struct signature_method head;

	if (!locate_all_arguments(r2r, method, &type_arguments, &method_arguments)) {
		writer->why = "more type arguments than the limit";
		return;
	}
	writer->type_arguments = &type_arguments;
	writer->method_arguments = &method_arguments;
	head = read_signature_head(method, &reader);
	signature_write_return(writer, &reader, scope, &head);
	write_owner(writer, r2r, method);
	signature_write(writer, "::", 2);
	signature_write_heap_string(writer, method->name);
	signature_write_parameters(writer, &reader, scope, &head);
	if (!reader_ok(&reader) && !writer->why)
		writer->why = reader.failure;
}

bool r2r_name(const struct r2r *r2r, uint32_t entry, enum r2r_dialect dialect, struct buf *buf,
	      const char **why_ret)
{
	const struct signature_modules modules = { (void *)r2r, find_module };
	size_t start = buf->size_bytes;
	struct signature_writer writer;
	const char *why = NULL;
	struct method method;

	if (entry >= r2r->entry_count) {
		*why_ret = "no such method entry";
		return false;
	}
	if (!describe_entry(r2r, entry, &method, dialect, &why)) {
		*why_ret = why;
		return false;
	}
	signature_writer_init(&writer, buf, SIGNATURE_RUNTIME);
	writer.modules = &modules;
	if (dialect == R2R_NAME_RUNTIME) {
		write_runtime_name(&writer, r2r, &method);
	} else {
		writer.style = SIGNATURE_CROSSGEN2;
		write_crossgen2_name(&writer, r2r, &method);
	}
	if (!writer.why)
		return true;
	buf_truncate(buf, start);
	*why_ret = writer.why;
	return false;
}

const char *r2r_entry_assembly(const struct r2r *r2r, uint32_t entry)
{
	const char *why;
	struct method method;

	if (entry >= r2r->entry_count ||
	    !describe_entry(r2r, entry, &method, R2R_NAME_RUNTIME, &why))
		return NULL;
	return method.assembly;
}

const char *r2r_entry_mvid(const struct r2r *r2r, uint32_t entry)
{
	const char *why;
	struct method method;

	if (r2r->flavour != R2R_COMPOSITE || entry >= r2r->entry_count ||
	    !describe_entry(r2r, entry, &method, R2R_NAME_RUNTIME, &why))
		return NULL;
	for (size_t i = 0; i < r2r->module_count; i++)
		if (r2r->modules[i].metadata == method.metadata && r2r->modules[i].mvid_text[0])
			return r2r->modules[i].mvid_text;
	return NULL;
}
