/* SPDX-License-Identifier: MIT */
/*
 * MethodDescs and their chunks (dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md,
 * version 1).
 *
 * A chunk contains the MethodTable once, then its MethodDescs.
 * ChunkIndex counts from the end of the chunk header, in units of MethodDescAlignment.
 * The row of MethodDef is split between both: the high bits are in the chunk, the low bits in the
 * MethodDesc.
 */
#include "libsym/clr/method_desc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/il.h"
#include "libsym/format/dotnet/runtime_async.h"
#include "libsym/format/dotnet/signature.h"
#include "libsym/limits.h"

/* Flags & 7 */
enum classification {
	CLASS_ARRAY = 4,
	CLASS_DYNAMIC = 7,
};

static const uint32_t max_signature_bytes = 65536;
enum {
	MAX_IL_BYTES = 65536,          /* longer code is not searched */
	MAX_DYNAMIC_NAME_BYTES = 65536 /* with its NUL; as LIMIT_NAME_BYTES */
};
static const unsigned int max_version_nodes = 4096;

struct methods {
	struct remote_memory *memory;
	const struct layout *layout;
	const struct layout_tiers *tiers;
	struct types *types;
	uint32_t desc_bytes;   /* of a MethodDesc, that contain the fields read */
	struct buf signature;  /* of the current method */
	bool last_was_dynamic; /* the current method is dynamic */
	bool is_volatile;
	uint8_t il[MAX_IL_BYTES];                  /* of the current method */
	char dynamic_name[MAX_DYNAMIC_NAME_BYTES]; /* of the current method */
};

struct sym_error *methods_create(struct remote_memory *memory, const struct layout *layout,
				 const struct layout_tiers *tiers, struct types *types,
				 struct methods **ret)
{
	struct methods *methods = calloc(1, sizeof(*methods));

	if (!methods)
		return &sym_error_no_memory;
	methods->memory = memory;
	methods->layout = layout;
	methods->tiers = tiers;
	methods->types = types;
	methods->desc_bytes = layout->method_desc.read_bytes;
	if (tiers && tiers->desc_bytes > methods->desc_bytes)
		methods->desc_bytes = tiers->desc_bytes;
	buf_init(&methods->signature, max_signature_bytes);
	*ret = methods;
	return NULL;
}

void methods_destroy(struct methods *methods)
{
	if (!methods)
		return;
	buf_deinit(&methods->signature);
	free(methods);
}

bool methods_last_was_dynamic(const struct methods *methods)
{
	return methods->last_was_dynamic;
}

/* The address of the async signature of a MethodDesc with these flags; 0: none. */
static uint64_t runtime_async_address(const struct layout *layout, uint64_t address, uint16_t flags)
{
	const uint16_t has_data = 0x40, has_slots = 0x08;
	uint32_t desc_bytes = layout->awaiting.desc_bytes[flags & 7];

	if (!layout->awaiting.is_known || !(flags & has_data) || !desc_bytes)
		return 0;
	address += desc_bytes + layout->awaiting.signature;
	for (unsigned int i = 0; i < 3; i++)
		if (flags & has_slots << i)
			address += layout->awaiting.slot_bytes[i];
	return address;
}

static bool read_description(struct methods *methods, uint64_t address,
			     struct method_description *ret)
{
	const struct layout *layout = methods->layout;
	struct remote_memory *memory = methods->memory;
	uint64_t low_bits = layout->token_remainder_bits, chunk;
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes = remote_structure(memory, address, room, methods->desc_bytes);
	uint64_t awaiting;
	uint16_t high, flags;

	ret->address = address;
	ret->type = NULL;
	if (remote_state(memory) != REMOTE_OK)
		return false;
	ret->slot = structure_u16(bytes, layout->method_desc.slot);
	flags = structure_u16(bytes, layout->method_desc.flags);
	ret->classification = flags & 7;
	awaiting = runtime_async_address(layout, address, flags);
	ret->flags3 = structure_u16(bytes, layout->method_desc.flags3_and_token);
	ret->code_data = methods->tiers ? structure_u64(bytes, methods->tiers->code_data) : 0;
	chunk = address - layout->chunk.size_bytes -
		bytes[layout->method_desc.chunk_index] * layout->method_desc_alignment_bytes;
	bytes = remote_structure(memory, chunk, room, layout->chunk.read_bytes);
	high = structure_u16(bytes, layout->chunk.flags_and_token_range);
	ret->method_table = structure_u64(bytes, layout->chunk.method_table);
	ret->rid = (uint32_t)(high & ((1u << (24 - low_bits)) - 1)) << low_bits |
		   (ret->flags3 & ((1u << low_bits) - 1));
	ret->variant_address = 0;
	ret->variant_bytes = 0;
	if (awaiting) {
		ret->variant_address = remote_u64(memory, awaiting + layout->awaiting.pointer);
		ret->variant_bytes = remote_u32(memory, awaiting + layout->awaiting.length);
	}
	return remote_state(memory) == REMOTE_OK;
}

bool methods_read_owner(struct methods *methods, uint64_t method_desc, struct method_owner *ret)
{
	struct method_description description;

	if (!read_description(methods, method_desc, &description) ||
	    description.classification == CLASS_ARRAY ||
	    description.classification == CLASS_DYNAMIC)
		return false;
	ret->method_table = description.method_table;
	ret->rid = description.rid;
	return description.rid;
}

/* ---- signatures ----------------------------------------------------------------- */

/*
 * ELEMENT_TYPE_INTERNAL: a type handle inside a signature made at run time. Stubs that marshal a
 * structure have one for its native form.
 */
static bool write_handle(void *context, struct signature_writer *writer, uint64_t handle)
{
	struct methods *methods = context;
	static const char no_row[] = " [ERROR: INVALID TOKEN 0x02000000] ";
	bool is_native = handle & 2;
	const struct type *type;
	char text[60];
	int length;

	if (is_native)
		handle = types_native_value(methods->types, handle);
	type = handle ? types_get(methods->types, handle) : NULL;
	if (!type || (!type->rid && !type->is_array))
		return false;
	methods->is_volatile |= type->is_volatile;
	/* An array has no row. The runtime prints it like this (prettyprintsig.cpp). */
	if (type->is_array)
		signature_write(writer, no_row, sizeof(no_row) - 1);
	else
		signature_write_type_def(writer, type->module->metadata, type->rid);
	length = snprintf(text, sizeof(text), "%s /* MT: 0x%" PRIx64 " */",
			  is_native ? "_NativeValueType" : "", handle);
	signature_write(writer, text, (size_t)length);
	return true;
}

/* "[assembly] owner::name" */
static void write_middle(const struct methods *methods, struct signature_writer *writer,
			 const struct type *type, const char *name)
{
	if (methods->last_was_dynamic) {
		signature_write(writer, "[", 1);
		signature_write_heap_string(writer, metadata_assembly_name(type->module->metadata));
		signature_write(writer, "] dynamicClass::", 16);
	} else {
		signature_write(writer, type->owner, type->owner_bytes);
	}
	signature_write_heap_string(writer, name);
}

/* "ret [assembly] owner::name(parameters)" */
static bool write_name(struct methods *methods, const struct type *type,
		       struct metadata_blob signature, const char *name, struct buf *out)
{
	const struct metadata *metadata = type->module->metadata;
	struct signature_handles handles = { .context = methods, .write = write_handle };
	struct signature_scope scope = { metadata, metadata };
	struct reader reader = reader_over(signature.data, signature.size_bytes);
	struct signature_writer writer;
	struct signature_method method;

	signature_writer_init(&writer, out, SIGNATURE_RUNTIME);
	writer.handles = &handles;
	method = signature_read_method(&reader);
	signature_write_return(&writer, &reader, scope, &method);
	write_middle(methods, &writer, type, name);
	signature_write_parameters(&writer, &reader, scope, &method);
	return !writer.why && reader_ok(&reader) && remote_state(methods->memory) == REMOTE_OK;
}

static bool read_signature(struct methods *methods, uint64_t at, uint32_t size_bytes,
			   struct metadata_blob *ret)
{
	char *room;

	if (remote_state(methods->memory) != REMOTE_OK || !size_bytes ||
	    size_bytes > max_signature_bytes)
		return false;
	buf_clear(&methods->signature);
	room = buf_reserve(&methods->signature, size_bytes);
	if (!room || !remote_read(methods->memory, at, room, size_bytes))
		return false;
	*ret = (struct metadata_blob){ (const uint8_t *)room, size_bytes };
	return true;
}

/* Reads the signature in the MethodDesc itself. */
static bool read_stored_signature(struct methods *methods, uint64_t address,
				  struct metadata_blob *ret)
{
	const struct layout *layout = methods->layout;
	uint64_t at = remote_u64(methods->memory, address + layout->stored_signature.signature);
	uint32_t size_bytes =
		remote_u32(methods->memory, address + layout->stored_signature.signature_bytes);

	return read_signature(methods, at, size_bytes, ret);
}

/* ---- the three kinds --------------------------------------------------------------- */

/*
 * True when it is the async variant that .NET 10 derives from this row. Out of memory is a failure
 * of `out`.
 */
static bool is_variant_of(struct metadata_blob variant, struct metadata_blob row, struct buf *out)
{
	struct buf expected;
	bool same;

	buf_init(&expected, row.size_bytes + 1);
	same = runtime_async_modify(row, &expected) && expected.size_bytes == variant.size_bytes &&
	       !memcmp(expected.data, variant.data, variant.size_bytes);
	if (expected.failure == BUF_NO_MEMORY)
		out->failure = BUF_NO_MEMORY;
	buf_deinit(&expected);
	return same;
}

static bool write_variant(struct methods *methods, const struct method_description *description,
			  const struct type *type, struct buf *out)
{
	struct metadata_blob variant;

	if (!read_signature(methods, description->variant_address, description->variant_bytes,
			    &variant))
		return false;
	if (methods->layout->awaiting.is_by_row &&
	    !is_variant_of(variant, description->signature, out))
		return false;
	return write_name(methods, type, variant, description->name, out);
}

static bool write_ordinary(struct methods *methods, const struct method_description *description,
			   const struct type *type, struct buf *out)
{
	if (!description->name)
		return false;
	if (description->variant_bytes)
		return write_variant(methods, description, type, out);
	return write_name(methods, type, description->signature, description->name, out);
}

static bool write_array_method(struct methods *methods,
			       const struct method_description *description,
			       const struct type *type, struct buf *out)
{
	static const char *const names[] = { "Get", "Set", "Address" };
	unsigned int index = (unsigned int)description->slot - type->virtual_count;
	struct metadata_blob signature;

	if (!type->is_array || description->slot < type->virtual_count ||
	    !read_stored_signature(methods, description->address, &signature))
		return false;
	return write_name(methods, type, signature, index < 3 ? names[index] : ".ctor", out);
}

static bool write_dynamic(struct methods *methods, const struct method_description *description,
			  const struct type *type, struct buf *out)
{
	const struct layout *layout = methods->layout;
	uint64_t name_address = remote_u64(
		methods->memory, description->address + layout->dynamic_method.method_name);
	struct metadata_blob signature;

	/* The name may be empty. */
	if (!remote_string(methods->memory, name_address, methods->dynamic_name,
			   sizeof(methods->dynamic_name)) ||
	    !read_stored_signature(methods, description->address, &signature))
		return false;
	return write_name(methods, type, signature, methods->dynamic_name, out);
}

enum method_outcome methods_describe(struct methods *methods, uint64_t method_desc,
				     struct method_description *ret)
{
	remote_begin(methods->memory);
	if (method_desc & 7 || !read_description(methods, method_desc, ret))
		return remote_state(methods->memory) == REMOTE_PENDING ? METHOD_PENDING
								       : METHOD_BAD;
	remote_want(methods->memory, ret->method_table, methods->layout->method_table.read_bytes);
	if (ret->code_data)
		remote_want(methods->memory, ret->code_data + methods->tiers->versioning_state,
			    sizeof(uint64_t));
	return METHOD_READ;
}

enum method_outcome methods_find_row(struct methods *methods,
				     struct method_description *description)
{
	const struct metadata *metadata;

	remote_begin(methods->memory);
	description->name = NULL;
	description->is_added = false;
	description->type = types_get(methods->types, description->method_table);
	if (!description->type && remote_state(methods->memory) == REMOTE_PENDING)
		return METHOD_PENDING;
	if (!description->type) {
		description->is_added = types_lack_type(methods->types, description->method_table);
		return METHOD_BAD;
	}
	if (description->classification == CLASS_DYNAMIC ||
	    description->classification == CLASS_ARRAY)
		return METHOD_READ;
	metadata = description->type->module->metadata;
	if (!description->type->rid ||
	    metadata_method_owner(metadata, description->rid) != description->type->rid) {
		description->is_added =
			types_lack_method(methods->types, description->type, description->rid);
		return METHOD_READ; /* without a name */
	}
	description->name = metadata_method_name(metadata, description->rid);
	description->signature = metadata_method_signature(metadata, description->rid);
	return METHOD_READ;
}

enum method_outcome methods_write_described(struct methods *methods,
					    const struct method_description *description,
					    struct buf *out, bool *is_volatile_ret)
{
	const struct type *type = description->type;
	struct remote_memory *memory = methods->memory;
	size_t size_before = out->size_bytes;
	bool good;

	remote_begin(memory);
	methods->last_was_dynamic = description->classification == CLASS_DYNAMIC;
	methods->is_volatile = type->is_volatile || methods->last_was_dynamic;
	if (description->classification == CLASS_DYNAMIC)
		good = write_dynamic(methods, description, type, out);
	else if (description->classification == CLASS_ARRAY)
		good = write_array_method(methods, description, type, out);
	else
		good = write_ordinary(methods, description, type, out);
	*is_volatile_ret = methods->is_volatile;
	if (good && out->failure == BUF_OK)
		return METHOD_READ;
	buf_truncate(out, size_before);
	return remote_state(memory) == REMOTE_PENDING ? METHOD_PENDING : METHOD_BAD;
}

enum method_outcome methods_write_name(struct methods *methods, uint64_t method_desc,
				       struct buf *out, bool *is_volatile_ret)
{
	struct method_description description;
	enum method_outcome outcome = methods_describe(methods, method_desc, &description);

	*is_volatile_ret = false;
	if (outcome == METHOD_READ)
		outcome = methods_find_row(methods, &description);
	if (outcome == METHOD_READ)
		outcome = methods_write_described(methods, &description, out, is_volatile_ret);
	return outcome;
}

/* ---- tiers --------------------------------------------------------------------------- */

const char *methods_only_tier(const struct method_description *description)
{
	const uint16_t no_optimization = 0x0040; /* ECMA-335 II.23.1.11 */
	const struct module *module = description->type ? description->type->module : NULL;

	return module && (module->is_unoptimized ||
			  metadata_method_impl_flags(module->metadata, description->rid) &
				  no_optimization)
		       ? "MinOptJitted"
		       : "Optimized";
}

const uint8_t *methods_read_il(struct methods *methods,
			       const struct method_description *description, uint32_t *count_ret)
{
	struct remote_memory *memory = methods->memory;
	const struct module *module = description->type->module;
	uint32_t rva = metadata_method_rva(module->metadata, description->rid), code_bytes = 0;
	uint8_t header[IL_HEADER_BYTES] = { 0 };
	uint32_t header_bytes = IL_TINY_HEADER_BYTES;
	uint64_t address = rva ? module_rva_address(memory, module, rva, header_bytes) : 0;

	*count_ret = 0;
	if (!address)
		return methods->il;
	header[0] = remote_u8(memory, address);
	if (!il_is_tiny(header[0])) {
		header_bytes = IL_HEADER_BYTES;
		remote_read(memory, address, header, header_bytes);
	}
	if (remote_state(memory) == REMOTE_OK && il_code_bytes(header, &code_bytes) &&
	    code_bytes <= sizeof(methods->il) &&
	    remote_read(memory, address + header_bytes, methods->il, code_bytes))
		*count_ret = code_bytes;
	return methods->il;
}

/*
 * True when the method has a call marked "tail.". The JIT optimizes such a method at once and
 * records that nowhere. Unreadable code counts as having none.
 */
static bool has_tail_call(struct methods *methods, const struct method_description *description)
{
	uint32_t count;
	const uint8_t *il = methods_read_il(methods, description, &count);

	return il_has_tail_call(il, count);
}

/* The tier of code without a version node. `has_others`: the method has version nodes. */
static const char *first_tier(struct methods *methods, const struct method_description *description,
			      bool has_others)
{
	const uint16_t eligible = 0x8000; /* in Flags3: may be compiled again */
	const char *tier = "QuickJitted";

	if (!(description->flags3 & eligible))
		return methods_only_tier(description);
	if (has_others || !description->type || !description->type->module->may_tail_call)
		return tier;
	if (has_tail_call(methods, description))
		tier = "Optimized";
	if (remote_state(methods->memory) == REMOTE_UNREADABLE)
		remote_begin(methods->memory);
	return tier;
}

/* Other numbers mean that no tier is recorded. */
static const char *tier_name(uint32_t number)
{
	static const char *const names[] = {
		"QuickJitted", "OptimizedTier1",   "OptimizedTier1OSR",
		"Optimized",   "InstrumentedTier", "InstrumentedTierOptimized",
	};

	return number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

/*
 * The runtime records a tier only where the method's kind does not determine it: for a method that
 * started at tier 0 and that the JIT optimized at once.
 */
static const char *noted_tier(struct methods *methods, const struct method_description *description)
{
	const struct layout_tiers *tiers = methods->tiers;

	return tiers->has_own && description->code_data
		       ? tier_name(remote_u32(methods->memory, description->code_data + tiers->own))
		       : NULL;
}

enum method_outcome methods_read_tier(struct methods *methods,
				      const struct method_description *description, uint64_t code,
				      const char **tier_ret)
{
	struct remote_memory *memory = methods->memory;
	const struct layout_tiers *tiers = methods->tiers;
	const char *name = NULL;
	uint64_t node = description->code_data, first_node;
	uint8_t room[REMOTE_STRUCTURE_BYTES];

	remote_begin(memory);
	if (node)
		node = remote_u64(memory, node + tiers->versioning_state);
	if (node)
		node = remote_u64(memory, node + tiers->first_node);
	first_node = node;
	for (unsigned int i = 0; node && i < max_version_nodes; i++) {
		const uint8_t *bytes = remote_structure(memory, node, room, tiers->node_bytes);

		if (structure_u64(bytes, tiers->code) == code &&
		    structure_u64(bytes, tiers->method_desc) == description->address) {
			name = tier_name(structure_u32(bytes, tiers->tier));
			break;
		}
		node = structure_u64(bytes, tiers->next);
	}
	if (!node)
		name = noted_tier(methods, description);
	if (!node && !name && remote_state(memory) == REMOTE_OK)
		name = first_tier(methods, description, first_node != 0);
	if (remote_state(memory) == REMOTE_PENDING)
		return METHOD_PENDING;
	if (remote_state(memory) != REMOTE_OK) {
		*tier_ret = NULL;
		return METHOD_BAD;
	}
	*tier_ret = name;
	return METHOD_READ;
}
