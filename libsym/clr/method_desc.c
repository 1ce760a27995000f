/* SPDX-License-Identifier: MIT */
/*
 * MethodDescs and their chunks (dotnet/runtime
 * docs/design/datacontracts/RuntimeTypeSystem.md, version 1).
 *
 * A chunk holds the MethodTable once and then its MethodDescs; ChunkIndex
 * counts from its end in units of MethodDescAlignment. The row of MethodDef is
 * split between the two: high bits in the chunk, low bits in the MethodDesc.
 */
#include "libsym/clr/method_desc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/signature.h"
#include "libsym/limits.h"

/* Flags & 7 */
enum classification {
	CLASS_ARRAY = 4,
	CLASS_DYNAMIC = 7,
};

static const uint32_t max_signature_bytes = 65536;
static const uint32_t max_dynamic_name_bytes = 4096;
static const unsigned int max_version_nodes = 4096;

struct methods {
	struct remote_memory *memory;
	const struct layout *layout;
	struct modules *modules;
	struct types *types;
	struct buf signature; /* of the method in hand */
	bool last_was_dynamic;
	bool is_volatile;
};

/* What the MethodDesc itself says. */
struct description {
	uint64_t address;
	uint64_t method_table;
	uint32_t rid;
	uint16_t slot;
	uint8_t classification;
};

struct sym_error *methods_create(struct remote_memory *memory, const struct layout *layout,
				 struct modules *modules, struct types *types, struct methods **ret)
{
	struct methods *methods = calloc(1, sizeof(*methods));

	if (!methods)
		return &sym_error_no_memory;
	methods->memory = memory;
	methods->layout = layout;
	methods->modules = modules;
	methods->types = types;
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

static bool read_description(struct methods *methods, uint64_t address, struct description *ret)
{
	const struct layout *layout = methods->layout;
	struct remote_memory *memory = methods->memory;
	uint64_t low_bits = layout->token_remainder_bits, chunk;
	uint16_t low, high;

	ret->address = address;
	ret->slot = remote_u16(memory, address + layout->method_desc.slot);
	ret->classification = remote_u16(memory, address + layout->method_desc.flags) & 7;
	low = remote_u16(memory, address + layout->method_desc.flags3_and_token);
	chunk = address - layout->chunk.size_bytes -
		remote_u8(memory, address + layout->method_desc.chunk_index) *
			layout->method_desc_alignment_bytes;
	high = remote_u16(memory, chunk + layout->chunk.flags_and_token_range);
	ret->method_table = remote_u64(memory, chunk + layout->chunk.method_table);
	ret->rid = (uint32_t)(high & ((1u << (24 - low_bits)) - 1)) << low_bits |
		   (low & ((1u << low_bits) - 1));
	return remote_state(memory) == REMOTE_OK;
}

/* ---- signatures ----------------------------------------------------------------- */

/* ELEMENT_TYPE_INTERNAL: a type handle inside a signature that was made at run time. */
static bool write_handle(void *context, struct signature_writer *writer, uint64_t handle)
{
	struct methods *methods = context;
	const struct type *type;
	char text[40];
	int length;

	if (handle & 2)
		return false;
	type = types_get(methods->types, handle);
	if (!type || !type->rid)
		return false;
	methods->is_volatile |= type->is_volatile;
	signature_write_type_def(writer, type->module->metadata, type->rid);
	length = snprintf(text, sizeof(text), " /* MT: 0x%" PRIx64 " */", handle);
	signature_write(writer, text, (size_t)length);
	return true;
}

/* "ret [assembly] owner::name(parameters)" */
static bool write_name(struct methods *methods, const struct metadata *metadata,
		       struct metadata_blob signature, const char *owner, const char *name,
		       struct buf *out)
{
	struct signature_handles handles = { .context = methods, .write = write_handle };
	struct signature_scope scope = { metadata, metadata };
	struct reader reader = reader_over(signature.data, signature.size_bytes);
	struct signature_writer writer;
	struct signature_method method;

	signature_writer_init(&writer, out, SIGNATURE_RUNTIME);
	writer.handles = &handles;
	method = signature_read_method(&reader);
	signature_write_return(&writer, &reader, scope, &method);
	signature_write(&writer, "[", 1);
	signature_write_heap_string(&writer, metadata_assembly_name(metadata));
	signature_write(&writer, "] ", 2);
	signature_write(&writer, owner, strlen(owner));
	signature_write(&writer, "::", 2);
	signature_write_heap_string(&writer, name);
	signature_write_parameters(&writer, &reader, scope, &method);
	return !writer.why && reader_ok(&reader) && remote_state(methods->memory) == REMOTE_OK;
}

/* The signature that the MethodDesc itself keeps; not in its metadata. */
static bool read_stored_signature(struct methods *methods, uint64_t address,
				  struct metadata_blob *ret)
{
	const struct layout *layout = methods->layout;
	uint64_t at = remote_u64(methods->memory, address + layout->stored_signature.signature);
	uint32_t size_bytes =
		remote_u32(methods->memory, address + layout->stored_signature.signature_bytes);
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

/* ---- the three kinds --------------------------------------------------------------- */

static bool write_ordinary(struct methods *methods, const struct description *description,
			   const struct type *type, struct buf *out)
{
	const struct metadata *metadata = type->module->metadata;

	if (!type->rid || metadata_method_owner(metadata, description->rid) != type->rid)
		return false;
	return write_name(methods, metadata, metadata_method_signature(metadata, description->rid),
			  type->name, metadata_method_name(metadata, description->rid), out);
}

static bool write_array_method(struct methods *methods, const struct description *description,
			       const struct type *type, struct buf *out)
{
	static const char *const names[] = { "Get", "Set", "Address" };
	unsigned int index = (unsigned int)description->slot - type->virtual_count;
	struct metadata_blob signature;

	if (!type->is_array || description->slot < type->virtual_count ||
	    !read_stored_signature(methods, description->address, &signature))
		return false;
	return write_name(methods, type->module->metadata, signature, type->name,
			  index < 3 ? names[index] : ".ctor", out);
}

/* A C string in the process; false when it has no end in sight. */
static bool read_string(struct remote_memory *memory, uint64_t address, char *room,
			size_t room_bytes)
{
	for (size_t i = 0; i < room_bytes; i++) {
		room[i] = (char)remote_u8(memory, address + i);
		if (remote_state(memory) != REMOTE_OK)
			return false;
		if (!room[i])
			return i > 0;
	}
	return false;
}

static bool write_dynamic(struct methods *methods, const struct description *description,
			  const struct type *type, struct buf *out)
{
	const struct layout *layout = methods->layout;
	uint64_t name_address = remote_u64(
		methods->memory, description->address + layout->dynamic_method.method_name);
	struct metadata_blob signature;
	char name[4096];

	_Static_assert(sizeof(name) == 4096, "as max_dynamic_name_bytes");
	if (!read_string(methods->memory, name_address, name, max_dynamic_name_bytes) ||
	    !read_stored_signature(methods, description->address, &signature))
		return false;
	return write_name(methods, type->module->metadata, signature, "dynamicClass", name, out);
}

enum method_outcome methods_write_name(struct methods *methods, uint64_t method_desc,
				       struct buf *out, bool *is_volatile_ret)
{
	struct remote_memory *memory = methods->memory;
	size_t size_before = out->size_bytes;
	struct description description;
	const struct type *type = NULL;
	bool good;

	remote_begin(memory);
	methods->is_volatile = false;
	methods->last_was_dynamic = false;
	good = !(method_desc & 7) && read_description(methods, method_desc, &description);
	if (good)
		type = types_get(methods->types, description.method_table);
	good = good && type;
	if (good) {
		methods->is_volatile =
			type->is_volatile || description.classification == CLASS_DYNAMIC;
		methods->last_was_dynamic = description.classification == CLASS_DYNAMIC;
		if (description.classification == CLASS_DYNAMIC)
			good = write_dynamic(methods, &description, type, out);
		else if (description.classification == CLASS_ARRAY)
			good = write_array_method(methods, &description, type, out);
		else
			good = write_ordinary(methods, &description, type, out);
	}
	*is_volatile_ret = methods->is_volatile;
	if (good && out->failure == BUF_OK)
		return METHOD_NAMED;
	buf_truncate(out, size_before);
	return remote_state(memory) == REMOTE_PENDING ? METHOD_PENDING : METHOD_BAD;
}

/* ---- tiers --------------------------------------------------------------------------- */

enum method_outcome methods_read_tier(struct methods *methods, const struct layout_tiers *tiers,
				      uint64_t method_desc, uint64_t code, const char **tier_ret)
{
	static const char *const names[] = {
		"QuickJitted", "OptimizedTier1",   "OptimizedTier1OSR",
		"Optimized",   "InstrumentedTier", "InstrumentedTierOptimized",
	};
	const uint16_t eligible = 0x8000; /* in Flags3: may be compiled again */
	struct remote_memory *memory = methods->memory;
	const struct layout *layout = methods->layout;
	const char *name = NULL;
	uint64_t node;

	remote_begin(memory);
	node = remote_u64(memory, method_desc + tiers->code_data);
	if (node)
		node = remote_u64(memory, node + tiers->versioning_state);
	if (node)
		node = remote_u64(memory, node + tiers->first_node);
	for (unsigned int i = 0; node && i < max_version_nodes; i++) {
		uint32_t tier;

		if (remote_u64(memory, node + tiers->code) == code &&
		    remote_u64(memory, node + tiers->method_desc) == method_desc) {
			tier = remote_u32(memory, node + tiers->tier);
			name = tier < sizeof(names) / sizeof(names[0]) ? names[tier] : NULL;
			break;
		}
		node = remote_u64(memory, node + tiers->next);
	}
	if (!node && remote_state(memory) == REMOTE_OK)
		name = remote_u16(memory, method_desc + layout->method_desc.flags3_and_token) &
				       eligible
			       ? names[0]
			       : names[3];
	if (remote_state(memory) == REMOTE_PENDING)
		return METHOD_PENDING;
	*tier_ret = remote_state(memory) == REMOTE_OK ? name : NULL;
	return METHOD_NAMED;
}
