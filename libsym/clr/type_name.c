/* SPDX-License-Identifier: MIT */
/*
 * MethodTables and TypeDescs (dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md,
 * version 1), and their names in the grammar of the runtime's TypeString.
 */
#include "libsym/clr/type_name.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_table.h"
#include "libsym/format/dotnet/signature.h"
#include "libsym/limits.h"

/* MTFlags */
enum {
	FLAG_HAS_COMPONENT_SIZE = 0x80000000u,
	FLAG_CATEGORY_MASK = 0x000c0000,
	FLAG_CATEGORY_ARRAY = 0x00080000,
	FLAG_IS_VECTOR = 0x00020000, /* of an array: one dimension, lower bound 0 */
	FLAG_GENERICS_MASK = 0x00000030,
	FLAG_GENERICS_OPEN = 0x00000030,
};

/*
 * Types nested in each other during reading, as LIMIT_SIGNATURE_DEPTH. Each takes 1 KiB of stack.
 */
#define MAX_DEPTH 64
static const uint32_t max_arguments = 1024;
static const uint32_t max_rank = 32;

/* Memory for entries and their texts, one after another. */
struct block {
	struct block *next;
	size_t used_bytes, size_bytes;
	_Alignas(16) char bytes[];
};

static const size_t usual_block_bytes = 32768;

struct entry {
	struct type type;
	enum {
		TYPE_PENDING,
		TYPE_READ,
		TYPE_BAD,
	} state;
	bool is_open;      /* being read: meeting it again is a cycle */
	uint64_t asked_in; /* round of fetching; asking again before the next one is useless */
};

struct types {
	struct remote_memory *memory;
	const struct layout *layout;
	struct modules *modules;
	struct block *blocks; /* the one in use first */
	struct entry *last;
	struct address_table table;
	struct buf names[MAX_DEPTH]; /* one for each nested type that is being read */
	unsigned int depth;
	bool is_too_deep; /* a type was not read because it is nested too deep, which is not its
			     fault */
	bool no_memory;
};

struct sym_error *types_create(struct remote_memory *memory, const struct layout *layout,
			       struct modules *modules, struct types **ret)
{
	struct types *types = calloc(1, sizeof(*types));

	if (!types)
		return &sym_error_no_memory;
	types->memory = memory;
	types->layout = layout;
	types->modules = modules;
	for (unsigned int i = 0; i < MAX_DEPTH; i++)
		buf_init(&types->names[i], LIMIT_NAME_BYTES);
	*ret = types;
	return NULL;
}

void types_forget(struct types *types)
{
	while (types->blocks) {
		struct block *block = types->blocks;

		types->blocks = block->next;
		free(block);
	}
	types->last = NULL;
	types->no_memory = false;
	address_table_deinit(&types->table);
}

/* Allocates memory that lives until types_forget(); NULL when out of memory. */
static void *type_name_allocate(struct types *types, size_t size_bytes)
{
	struct block *block = types->blocks;

	size_bytes = (size_bytes + 15) & ~(size_t)15;
	if (!block || size_bytes > block->size_bytes - block->used_bytes) {
		size_t block_bytes =
			size_bytes > usual_block_bytes ? size_bytes : usual_block_bytes;

		block = malloc(sizeof(*block) + block_bytes);
		if (!block)
			return NULL;
		*block = (struct block){ .next = types->blocks, .size_bytes = block_bytes };
		types->blocks = block;
	}
	block->used_bytes += size_bytes;
	return block->bytes + (block->used_bytes - size_bytes);
}

void types_destroy(struct types *types)
{
	if (!types)
		return;
	types_forget(types);
	for (unsigned int i = 0; i < MAX_DEPTH; i++)
		buf_deinit(&types->names[i]);
	free(types);
}

struct sym_error *types_error(const struct types *types)
{
	return types->no_memory ? &sym_error_no_memory : modules_error(types->modules);
}

static bool type_name_invalid(struct types *types)
{
	remote_set_unreadable(types->memory);
	return false;
}

/*
 * The class of a type. It must point back to the canonical MethodTable from which it was reached. 0
 * on failure.
 */
static uint64_t find_class(struct types *types, uint64_t address, uint64_t class_address)
{
	const struct layout *layout = types->layout;
	uint64_t canonical = address;

	if (class_address & 1) {
		canonical = class_address & ~(uint64_t)1;
		class_address = remote_u64(types->memory,
					   canonical + layout->method_table.class_or_canonical);
	}
	if ((class_address & 7) || (canonical & 7) ||
	    remote_u64(types->memory, class_address + layout->ee_class.method_table) != canonical) {
		type_name_invalid(types);
		return 0;
	}
	return class_address;
}

static bool write_arguments(struct types *types, uint64_t address, struct buf *out,
			    bool *is_volatile)
{
	const struct layout *layout = types->layout;
	struct remote_memory *memory = types->memory;
	uint64_t instance = remote_u64(memory, address + layout->method_table.per_instance_info);
	uint64_t info = instance - 8; /* GenericsDictInfo is right before the dictionaries */
	uint16_t dictionaries = remote_u16(memory, info + layout->generics_info.dictionary_count);
	uint16_t count = remote_u16(memory, info + layout->generics_info.argument_count);
	uint64_t dictionary;

	if (!dictionaries || !count || count > max_arguments)
		return type_name_invalid(types);
	dictionary = remote_u64(memory, instance + 8 * ((uint64_t)dictionaries - 1));
	buf_append_char(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			buf_append_char(out, ',');
		if (!types_write_handle(types, remote_u64(memory, dictionary + 8 * (uint64_t)i),
					out, is_volatile))
			return false;
	}
	buf_append_char(out, ']');
	return true;
}

static void append_rank(struct buf *out, uint32_t rank)
{
	buf_append_string(out, rank == 1 ? "[*" : "[");
	for (uint32_t i = 1; i < rank; i++)
		buf_append_char(out, ',');
	buf_append_char(out, ']');
}

static uint32_t read_rank(struct types *types, const struct type *type, uint64_t class_address)
{
	const struct layout *layout = types->layout;
	uint64_t base_size;

	if (layout->array.has_rank)
		return remote_u8(types->memory, class_address + layout->array.rank);
	base_size = remote_u32(types->memory, type->address + layout->array.base_size);
	return base_size > layout->array.least_bytes
		       ? (uint32_t)(base_size - layout->array.least_bytes) / 8
		       : 0;
}

static bool write_array(struct types *types, const struct type *type, uint32_t flags,
			uint64_t class_address, struct buf *out, bool *is_volatile)
{
	const struct layout *layout = types->layout;
	uint64_t element =
		remote_u64(types->memory, type->address + layout->method_table.per_instance_info);
	uint32_t rank;

	if (!types_write_handle(types, element, out, is_volatile))
		return false;
	if (flags & FLAG_IS_VECTOR) {
		buf_append_string(out, "[]");
		return true;
	}
	rank = read_rank(types, type, class_address);
	if (!rank || rank > max_rank)
		return type_name_invalid(types);
	append_rank(out, rank);
	return true;
}

static bool write_plain(struct types *types, const struct type *type, uint32_t flags,
			struct buf *out, bool *is_volatile)
{
	uint32_t generics = flags & FLAG_GENERICS_MASK;
	struct signature_writer writer;

	signature_writer_init(&writer, out, SIGNATURE_TYPE_STRING);
	signature_write_type_def(&writer, type->module->metadata, type->rid);
	if (writer.why)
		return type_name_invalid(types);
	if ((flags & FLAG_HAS_COMPONENT_SIZE) || !generics || generics == FLAG_GENERICS_OPEN)
		return true;
	return write_arguments(types, type->address, out, is_volatile);
}

static bool read_type(struct types *types, struct type *type, struct buf *name)
{
	const struct layout *layout = types->layout;
	struct remote_memory *memory = types->memory;
	uint8_t room[REMOTE_STRUCTURE_BYTES];
	const uint8_t *bytes =
		remote_structure(memory, type->address, room, layout->method_table.read_bytes);
	uint32_t flags = structure_u32(bytes, layout->method_table.flags);
	uint32_t flags2 = structure_u32(bytes, layout->method_table.flags2);
	uint64_t class_address = structure_u64(bytes, layout->method_table.class_or_canonical);

	/* The next fields are requested together with the class. */
	if (remote_state(memory) != REMOTE_OK)
		return false;
	if (!(flags & FLAG_HAS_COMPONENT_SIZE) && flags & FLAG_GENERICS_MASK)
		remote_want(memory,
			    structure_u64(bytes, layout->method_table.per_instance_info) - 8, 16);
	class_address = find_class(types, type->address, class_address);
	type->virtual_count = structure_u16(bytes, layout->method_table.virtual_count);
	type->is_array = (flags & FLAG_HAS_COMPONENT_SIZE) &&
			 (flags & FLAG_CATEGORY_MASK) == FLAG_CATEGORY_ARRAY;
	type->module =
		modules_get(types->modules, structure_u64(bytes, layout->method_table.module));
	if (remote_state(memory) != REMOTE_OK || !type->module)
		return false;
	type->is_volatile = type->module->is_volatile;
	if (type->is_array)
		return write_array(types, type, flags, class_address, name, &type->is_volatile);
	type->rid = flags2 >> 8;
	if (!type->rid)
		return true;
	type->is_added =
		modules_lack_row(types->modules, type->module, METADATA_TYPE_DEF, type->rid);
	return write_plain(types, type, flags, name, &type->is_volatile);
}

/* Keeps the names of a type that was read. */
static void type_name_keep(struct types *types, struct entry *entry, const struct buf *name)
{
	const char *assembly = metadata_assembly_name(entry->type.module->metadata);
	size_t assembly_bytes = strnlen(assembly, LIMIT_NAME_BYTES);
	size_t owner_bytes = assembly_bytes + name->size_bytes + 5;
	char *text = type_name_allocate(types, owner_bytes);

	if (name->failure == BUF_NO_MEMORY || !text) {
		types->no_memory = true;
		type_name_invalid(types);
		return;
	}
	text[0] = '[';
	memcpy(text + 1, assembly, assembly_bytes);
	memcpy(text + assembly_bytes + 1, "] ", 2);
	if (name->size_bytes)
		memcpy(text + assembly_bytes + 3, name->data, name->size_bytes);
	memcpy(text + owner_bytes - 2, "::", 2);
	entry->type.owner = text;
	entry->type.owner_bytes = (uint32_t)owner_bytes;
	entry->type.name = text + assembly_bytes + 3;
	entry->type.name_bytes = (uint32_t)name->size_bytes;
	entry->state = TYPE_READ;
}

static struct entry *find_or_add(struct types *types, uint64_t address)
{
	struct entry *entry;

	if (types->last && types->last->type.address == address)
		return types->last;
	entry = address_table_find(&types->table, address);
	if (!entry) {
		entry = type_name_allocate(types, sizeof(*entry));
		if (!entry || !address_table_add(&types->table, address, entry)) {
			types->no_memory = true;
			return NULL;
		}
		*entry = (struct entry){ .type.address = address, .asked_in = UINT64_MAX };
	}
	types->last = entry;
	return entry;
}

static void type_name_advance(struct types *types, struct entry *entry)
{
	struct remote_memory *memory = types->memory;
	struct buf *name = &types->names[types->depth];
	bool good;

	if (!types->depth)
		types->is_too_deep = false;
	buf_clear(name);
	entry->is_open = true;
	types->depth++;
	good = read_type(types, &entry->type, name);
	if (good && name->failure == BUF_TOO_BIG)
		good = type_name_invalid(types);
	if (good && remote_state(memory) == REMOTE_OK)
		type_name_keep(types, entry, name);
	types->depth--;
	entry->is_open = false;
	if (remote_state(memory) == REMOTE_PENDING)
		entry->asked_in = remote_memory_round(memory);
	else if (entry->state == TYPE_PENDING && !types->is_too_deep)
		entry->state = TYPE_BAD;
}

const struct type *types_get(struct types *types, uint64_t address)
{
	struct entry *entry;

	if (remote_state(types->memory) != REMOTE_OK)
		return NULL;
	entry = address & 7 || !address ? NULL : find_or_add(types, address);
	if (entry && entry->state == TYPE_READ)
		return &entry->type;
	if (!entry || entry->state == TYPE_BAD || entry->is_open) {
		type_name_invalid(types);
		return NULL;
	}
	if (types->depth == MAX_DEPTH) {
		types->is_too_deep = true;
		type_name_invalid(types);
		return NULL;
	}
	if (entry->asked_in == remote_memory_round(types->memory)) {
		remote_set_pending(types->memory);
		return NULL;
	}
	type_name_advance(types, entry);
	if (entry->state == TYPE_READ)
		return &entry->type;
	if (remote_state(types->memory) == REMOTE_OK)
		type_name_invalid(types);
	return NULL;
}

bool types_lack_type(const struct types *types, uint64_t address)
{
	const struct entry *entry = address_table_find(&types->table, address);

	return entry && entry->type.is_added;
}

/* "Ret(A, B)", as TypeString writes it. */
static bool write_function_pointer(struct types *types, uint64_t address, struct buf *out,
				   bool *is_volatile)
{
	const struct layout *layout = types->layout;
	uint32_t count =
		remote_u32(types->memory, address + layout->function_pointer.argument_count);
	uint32_t convention =
		remote_u32(types->memory, address + layout->function_pointer.calling_convention);
	uint64_t handles = address + layout->function_pointer.types;

	if (count > max_arguments)
		return type_name_invalid(types);
	for (uint32_t i = 0; i <= count; i++) {
		if (i > 1)
			buf_append_string(out, ", ");
		if (!types_write_handle(types, remote_u64(types->memory, handles + 8 * (uint64_t)i),
					out, is_volatile))
			return false;
		if (!i)
			buf_append_char(out, '(');
	}
	if ((convention & 15) == 5)
		buf_append_string(out, count ? ", ..." : "...");
	buf_append_char(out, ')');
	return true;
}

static bool write_type_desc(struct types *types, uint64_t address, struct buf *out,
			    bool *is_volatile)
{
	const struct layout *layout = types->layout;
	uint32_t element =
		remote_u32(types->memory, address + layout->type_desc.type_and_flags) & 0xff;
	uint64_t argument;

	if (remote_state(types->memory) != REMOTE_OK)
		return false;
	switch (element) {
	case ELEMENT_PTR:
	case ELEMENT_BYREF:
	case ELEMENT_VALUETYPE:
		argument = remote_u64(types->memory, address + layout->param_type.argument);
		if (element == ELEMENT_VALUETYPE)
			buf_append_string(out, "VALUETYPE");
		if (!types_write_handle(types, argument, out, is_volatile))
			return false;
		if (element != ELEMENT_VALUETYPE)
			buf_append_char(out, element == ELEMENT_PTR ? '*' : '&');
		return true;
	case ELEMENT_FNPTR:
		return write_function_pointer(types, address, out, is_volatile);
	default:
		/* A type parameter: running code has arguments in its place. */
		return type_name_invalid(types);
	}
}

bool types_lack_method(struct types *types, const struct type *type, uint32_t rid)
{
	return modules_lack_row(types->modules, type->module, METADATA_METHOD_DEF, rid);
}

uint64_t types_native_value(struct types *types, uint64_t handle)
{
	const struct layout *layout = types->layout;
	uint64_t address = handle & ~(uint64_t)2;
	uint32_t element =
		remote_u32(types->memory, address + layout->type_desc.type_and_flags) & 0xff;
	uint64_t argument = remote_u64(types->memory, address + layout->param_type.argument);

	return remote_state(types->memory) == REMOTE_OK && element == ELEMENT_VALUETYPE ? argument
											: 0;
}

bool types_write_handle(struct types *types, uint64_t handle, struct buf *out, bool *is_volatile)
{
	const struct type *type;
	bool good;

	if (remote_state(types->memory) != REMOTE_OK)
		return false;
	if (handle & 2) {
		if (types->depth == MAX_DEPTH) {
			types->is_too_deep = true;
			return type_name_invalid(types);
		}
		types->depth++;
		good = write_type_desc(types, handle & ~(uint64_t)2, out, is_volatile) &&
		       remote_state(types->memory) == REMOTE_OK;
		types->depth--;
		return good;
	}
	type = types_get(types, handle);
	if (!type)
		return false;
	if (!type->name_bytes)
		return type_name_invalid(types);
	*is_volatile |= type->is_volatile;
	buf_append(out, type->name, type->name_bytes);
	return true;
}
