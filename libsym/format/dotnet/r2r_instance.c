/* SPDX-License-Identifier: MIT */
/*
 * Section 109: the code of generic methods and of methods of generic types, one entry per
 * instantiation. An entry is a signature (which method, with which arguments), directly followed by
 * its entry point. r2r_name.c formats the signature.
 *
 *   flags; [0x80: module number]; [0x40: owner type]; rid;
 *   [0x04: count, method arguments]; [0x20: constraint type]
 *   all integers compressed as in ECMA-335 II.23.2, unlike those of the tables
 */
#include "libsym/format/dotnet/r2r_internal.h"

#include "libsym/format/dotnet/native_format.h"

/* Module of the definition that an owner type refers to: [0x15] 0x3f number. */
static uint32_t owner_module(struct reader owner, uint32_t otherwise)
{
	uint8_t element = reader_u8(&owner);

	if (element == ELEMENT_GENERICINST)
		element = reader_u8(&owner);
	return element == ELEMENT_MODULE_ZAPSIG ? signature_unsigned(&owner) : otherwise;
}

struct r2r_instance r2r_read_instance(struct reader *reader, struct signature_budget *budget)
{
	struct r2r_instance instance = { .flags = signature_unsigned(reader) };

	if (instance.flags & R2R_INSTANCE_UPDATE_CONTEXT) {
		instance.module = signature_unsigned(reader);
		if (reader_ok(reader) && budget->use_module)
			budget->use_module(budget->context, instance.module);
	}
	if (instance.flags & R2R_INSTANCE_OWNER_TYPE) {
		instance.owner = *reader;
		if (!(instance.flags & R2R_INSTANCE_UPDATE_CONTEXT))
			instance.module = owner_module(instance.owner, 0);
		signature_skip_type(reader, budget);
	}
	if (instance.flags & R2R_INSTANCE_SLOT)
		reader_fail(reader, "instance entry names a slot");
	instance.rid = signature_unsigned(reader);
	if (instance.flags & R2R_INSTANCE_METHOD_ARGUMENTS) {
		instance.argument_count = signature_unsigned(reader);
		instance.arguments = *reader;
		for (uint32_t i = 0; i < instance.argument_count && reader_ok(reader); i++)
			signature_skip_type(reader, budget);
	}
	if (instance.flags & R2R_INSTANCE_CONSTRAINED)
		signature_skip_type(reader, budget);
	if (instance.flags & ~0x1ffu)
		reader_fail(reader, "unknown flag of an instance entry");
	return instance;
}

struct instance_walk {
	struct r2r *r2r;
	size_t signature_bytes; /* total so far */
};

static bool visit_instance(void *context, uint32_t index, struct reader element)
{
	struct instance_walk *walk = context;
	struct signature_budget budget = signature_budget_full();
	size_t position = element.position;
	struct r2r_instance instance;
	uint32_t function;

	(void)index;
	budget.use_module = r2r_use_module;
	budget.context = walk->r2r;
	instance = r2r_read_instance(&element, &budget);
	function = r2r_read_entry_point(&element).function;
	/* Every signature has its own bytes. Without this check, many entries could refer to one
	 * long signature, which would be read again for each. */
	walk->signature_bytes += element.position - position;
	if (walk->signature_bytes > element.size_bytes)
		return false;
	if (!reader_ok(&element) || function >= walk->r2r->function_count ||
	    position > UINT32_MAX) {
		walk->r2r->undecodable_count++;
		return true;
	}
	walk->r2r->has_member_refs |= instance.flags & R2R_INSTANCE_MEMBER_REF;
	return r2r_add_entry(walk->r2r, function, (uint32_t)position, 0);
}

struct sym_error *r2r_read_instances(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_INSTANCE_ENTRY_POINTS);
	struct instance_walk walk = { .r2r = r2r };
	const uint8_t *bytes;

	if (!section.rva || !section.size_bytes)
		return NULL;
	bytes = r2r_table(r2r, section);
	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"instance entry points lie outside the image");
	r2r->instances = reader_over(bytes, section.size_bytes);
	if (!native_format_hashtable(&r2r->instances, 0, visit_instance, &walk))
		return r2r_table_error(r2r, "instance entry points");
	return NULL;
}
