/* SPDX-License-Identifier: MIT */
/*
 * From a Module to its metadata, and the table of modules that were read.
 *
 *	Module -> PEAssembly -> PEImage -> loaded layout -> {base, size, flags}
 *	Module -> DynamicMetadata {u32 size, bytes}         (emitted assemblies)
 *
 * Bit 0 of the layout's flags set: sections are at their rvas (a mapped image). Clear: the bytes
 * are as in the file.
 * CLI header: data directory 14 (ECMA-335 II.25.3.3).
 * Only the root and the streams #~ (#-), #Strings and #Blob of the metadata are copied.
 */
#include "libsym/clr/module_metadata.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_table.h"
#include "libsym/base/huge_memory.h"
#include "libsym/clr/module_place.h"
#include "libsym/limits.h"

enum step {
	STEP_LOCATE, /* find its metadata */
	STEP_COPY,   /* copies are requested */
	STEP_DONE,
};

#define MAX_STREAMS 16

struct entry {
	struct module module;      /* first: an entry is found by it */
	struct module_place place; /* of its image */
	uint64_t sections;         /* address of the image's section table */
	uint32_t section_count;
	enum step step;
	uint64_t metadata_address;
	size_t metadata_bytes;
	uint8_t *bytes; /* the copy */
	size_t copy_bytes;
	struct metadata *metadata;
	struct part {
		size_t header; /* of the stream, in the root */
		size_t offset, size_bytes, done_bytes;
		size_t place; /* in the copy */
	} parts[MAX_STREAMS];
	size_t part_count;
	uint64_t asked_in; /* round of fetching; asking again before the next one is useless */
	struct entry *next;
};

struct modules {
	struct remote_memory *memory;
	const struct layout *layout;
	struct entry *entries;
	struct address_table table; /* entries by address */
	struct entry *last;
	uint64_t copies_bytes;
	bool any_editable;
	bool no_memory;
};

static const uint64_t max_metadata_bytes = (uint64_t)256 << 20;
static const size_t most_forgotten_bytes = (size_t)64 << 10;

struct sym_error *modules_create(struct remote_memory *memory, const struct layout *layout,
				 struct modules **ret)
{
	struct modules *modules = calloc(1, sizeof(*modules));

	if (!modules)
		return &sym_error_no_memory;
	modules->memory = memory;
	modules->layout = layout;
	*ret = modules;
	return NULL;
}

static void entry_destroy(struct modules *modules, struct entry *entry)
{
	metadata_close(entry->metadata);
	if (entry->bytes)
		modules->copies_bytes -= entry->copy_bytes;
	free(entry->bytes);
	free(entry);
}

/* Drops all modules except immutable ones of more than `most_bytes`. */
static void module_metadata_forget(struct modules *modules, size_t most_bytes)
{
	struct entry **link = &modules->entries;

	address_table_deinit(&modules->table);
	while (*link) {
		struct entry *entry = *link;

		if (entry->step == STEP_DONE && entry->metadata && !entry->module.is_volatile &&
		    entry->copy_bytes > most_bytes &&
		    address_table_add(&modules->table, entry->module.address, entry)) {
			link = &entry->next;
		} else {
			*link = entry->next;
			entry_destroy(modules, entry);
		}
	}
	modules->last = NULL;
	modules->no_memory = false;
}

void modules_destroy(struct modules *modules)
{
	if (!modules)
		return;
	module_metadata_forget(modules, SIZE_MAX);
	free(modules);
}

void modules_forget_volatile(struct modules *modules)
{
	module_metadata_forget(modules, 0);
}

/*
 * A module that is just being loaded or freed does not show that it is collectible.
 * A small module is copied again quickly. If it were kept, plug-ins that come and go would fill the
 * memory, and a module loaded at the same address would get its names.
 */
void modules_forget_small(struct modules *modules)
{
	module_metadata_forget(modules, most_forgotten_bytes);
}

bool modules_any_editable(const struct modules *modules)
{
	return modules->any_editable;
}

bool modules_lack_row(struct modules *modules, const struct module *module,
		      enum metadata_table table, uint32_t rid)
{
	/* The metadata of an emitted assembly grows by itself. */
	if (module->is_volatile || rid <= metadata_row_count(module->metadata, table))
		return false;
	modules->any_editable = true;
	return true;
}

struct sym_error *modules_error(const struct modules *modules)
{
	return modules->no_memory ? &sym_error_no_memory : NULL;
}

/* ---- where the metadata is ------------------------------------------------------ */

/* Address of an rva; 0 when no section contains it. */
static uint64_t rva_address(struct remote_memory *memory, const struct entry *entry, uint32_t rva,
			    uint32_t size_bytes)
{
	if (!entry->place.is_mapped) {
		uint32_t i;

		for (i = 0; i < entry->section_count && remote_state(memory) == REMOTE_OK; i++) {
			uint64_t section = entry->sections + 40 * (uint64_t)i;
			uint32_t start = remote_u32(memory, section + 12);
			uint32_t raw_bytes = remote_u32(memory, section + 16);
			uint32_t raw_offset = remote_u32(memory, section + 20);

			if (rva < start || rva - start >= raw_bytes)
				continue;
			if (raw_offset > UINT32_MAX - (rva - start))
				return 0;
			rva = raw_offset + (rva - start);
			break;
		}
		if (i == entry->section_count)
			return 0;
	}
	if (rva > entry->place.size_bytes || size_bytes > entry->place.size_bytes - rva)
		return 0;
	return entry->place.base + rva;
}

uint64_t module_rva_address(struct remote_memory *memory, const struct module *module, uint32_t rva,
			    uint32_t size_bytes)
{
	return rva_address(memory, (const struct entry *)module, rva, size_bytes);
}

/* Finds the metadata of a PE image in memory; false with the state set. */
static bool locate_in_pe(struct remote_memory *memory, struct entry *entry)
{
	uint64_t base = entry->place.base, header = base + remote_u32(memory, base + 0x3c);
	uint16_t optional_bytes = remote_u16(memory, header + 20);
	uint16_t magic = remote_u16(memory, header + 24);
	uint64_t directories = header + 24 + (magic == 0x20b ? 112 : 96);
	uint64_t cli;
	uint32_t size_bytes;

	if (remote_state(memory) != REMOTE_OK || remote_u16(memory, base) != 0x5a4d ||
	    remote_u32(memory, header) != 0x4550 || (magic != 0x20b && magic != 0x10b))
		return false;
	entry->section_count = remote_u16(memory, header + 6);
	entry->sections = header + 24 + optional_bytes;
	cli = rva_address(memory, entry, remote_u32(memory, directories + 14 * 8), 72);
	if (!cli)
		return false;
	size_bytes = remote_u32(memory, cli + 12);
	entry->metadata_address =
		rva_address(memory, entry, remote_u32(memory, cli + 8), size_bytes);
	entry->metadata_bytes = size_bytes;
	return remote_state(memory) == REMOTE_OK && entry->metadata_address;
}

/* In Module.Flags (Loader.md of the data contracts): DEBUGGER_ALLOW_JIT_OPTS_PRIV. */
static const uint32_t may_be_optimized = 0x800;

static bool module_metadata_locate(struct modules *modules, struct entry *entry)
{
	const struct layout *layout = modules->layout;
	struct remote_memory *memory = modules->memory;
	uint64_t module = entry->module.address;
	uint32_t flags = remote_u32(memory, module + layout->module.flags);
	uint64_t dynamic = remote_u64(memory, module + layout->module.dynamic_metadata);

	module_place_read(memory, layout, module, &entry->place);
	if (remote_state(memory) != REMOTE_OK)
		return false;
	entry->module.is_volatile = entry->place.is_collectible || !entry->place.base;
	entry->module.is_unoptimized = !(flags & may_be_optimized);
	modules->any_editable |= entry->place.is_editable;
	if (entry->place.base)
		return locate_in_pe(memory, entry);
	if (!dynamic)
		return false;
	entry->metadata_address = dynamic + layout->dynamic_metadata.data;
	entry->metadata_bytes = remote_u32(memory, dynamic + layout->dynamic_metadata.size_bytes);
	return remote_state(memory) == REMOTE_OK;
}

/* ---- the copy --------------------------------------------------------------------- */

static bool stream_is_needed(const char *name)
{
	return !strcmp(name, "#~") || !strcmp(name, "#-") || !strcmp(name, "#Strings") ||
	       !strcmp(name, "#Blob");
}

/*
 * Reads the root (ECMA-335 II.24.2.1): u32 signature, 8 bytes, u32 length of the version text, the
 * text, u16, u16 number of streams, then for each u32 offset, u32 size, name padded to 4.
 * Requests the parts to copy, the root last.
 */
static bool plan_copy(struct remote_memory *memory, struct entry *entry)
{
	uint64_t root = entry->metadata_address, at;
	uint32_t version_bytes = remote_u32(memory, root + 12);
	uint16_t count;

	if (remote_u32(memory, root) != 0x424a5342 || version_bytes > 1024)
		return false;
	count = remote_u16(memory, root + 16 + version_bytes + 2);
	at = root + 16 + version_bytes + 4;
	entry->part_count = 0;
	for (uint16_t i = 0; i < count && remote_state(memory) == REMOTE_OK; i++) {
		uint32_t offset = remote_u32(memory, at), size_bytes = remote_u32(memory, at + 4);
		struct part part = { .header = (size_t)(at - root), .offset = offset };
		char name[33] = "";
		size_t length;

		for (length = 0; length < 32; length++) {
			name[length] = (char)remote_u8(memory, at + 8 + length);
			if (!name[length])
				break;
		}
		at += 8 + (length / 4 + 1) * 4;
		if (entry->part_count == MAX_STREAMS - 1 || offset > entry->metadata_bytes ||
		    size_bytes > entry->metadata_bytes - offset)
			return false;
		part.size_bytes = stream_is_needed(name) ? size_bytes : 0;
		entry->parts[entry->part_count++] = part;
	}
	if (at - root > entry->metadata_bytes)
		return false;
	entry->copy_bytes = (size_t)(at - root);
	for (size_t i = 0; i < entry->part_count; i++) {
		entry->parts[i].place = entry->copy_bytes;
		entry->copy_bytes += (entry->parts[i].size_bytes + 3) & ~(size_t)3;
	}
	entry->parts[entry->part_count++] = (struct part){ .size_bytes = (size_t)(at - root) };
	/* More than the original, when streams overlap. */
	return entry->copy_bytes <= 2 * max_metadata_bytes && remote_state(memory) == REMOTE_OK;
}

/* The copy has the root first, then one stream after the other. */
static void begin_copy(struct modules *modules, struct entry *entry)
{
	entry->bytes = huge_memory_allocate(entry->copy_bytes);
	if (!entry->bytes) {
		modules->no_memory = true;
		return;
	}
	modules->copies_bytes += entry->copy_bytes;
	for (size_t i = 0; i < entry->part_count; i++) {
		struct part *part = &entry->parts[i];

		remote_want_copy(modules->memory, entry->metadata_address + part->offset,
				 entry->bytes + part->place, part->size_bytes, &part->done_bytes);
	}
}

/* Sets the offsets of the streams in the copied root. Streams that were not copied are empty. */
static void move_streams(struct entry *entry)
{
	for (size_t i = 0; i + 1 < entry->part_count; i++) {
		const struct part *part = &entry->parts[i];
		uint32_t fields[2] = { htole32((uint32_t)part->place),
				       htole32((uint32_t)part->size_bytes) };

		memcpy(entry->bytes + part->header, fields, sizeof(fields));
	}
}

static bool is_of_fsharp(const struct metadata *metadata)
{
	static const char core[] = "FSharp.Core";

	return metadata_find_assembly_ref(metadata, core) ||
	       !strcmp(metadata_assembly_name(metadata), core);
}

static void finish_copy(struct modules *modules, struct entry *entry)
{
	struct sym_error *error;

	entry->step = STEP_DONE;
	for (size_t i = 0; i < entry->part_count; i++)
		if (entry->parts[i].done_bytes != entry->parts[i].size_bytes)
			return;
	move_streams(entry);
	error = metadata_open(entry->bytes, entry->copy_bytes, &entry->metadata);
	if (sym_error_is_no_memory(error))
		modules->no_memory = true;
	sym_error_destroy(error);
	entry->module.metadata = entry->metadata;
	if (!entry->metadata)
		return;
	entry->module.may_tail_call = is_of_fsharp(entry->metadata);
}

/* ---- the table ---------------------------------------------------------------------- */

static struct entry *module_metadata_add(struct modules *modules, uint64_t address)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry || !address_table_add(&modules->table, address, entry)) {
		free(entry);
		return NULL;
	}
	entry->module.address = address;
	entry->asked_in = UINT64_MAX;
	entry->next = modules->entries;
	modules->entries = entry;
	return entry;
}

static struct entry *find_or_add(struct modules *modules, uint64_t address)
{
	struct entry *entry;

	if (modules->last && modules->last->module.address == address)
		return modules->last;
	if (!address)
		return NULL;
	entry = address_table_find(&modules->table, address);
	if (!entry)
		entry = module_metadata_add(modules, address);
	if (!entry)
		modules->no_memory = true;
	modules->last = entry;
	return entry;
}

static void module_metadata_advance(struct modules *modules, struct entry *entry)
{
	struct remote_memory *memory = modules->memory;

	if (entry->step == STEP_LOCATE) {
		bool good =
			module_metadata_locate(modules, entry) && entry->metadata_bytes >= 20 &&
			entry->metadata_bytes <= max_metadata_bytes && plan_copy(memory, entry) &&
			modules->copies_bytes + entry->copy_bytes <= LIMIT_METADATA_COPIES_BYTES;

		entry->asked_in = remote_memory_round(memory);
		if (remote_state(memory) == REMOTE_PENDING)
			return;
		entry->step = good ? STEP_COPY : STEP_DONE;
		if (!good)
			return;
		begin_copy(modules, entry);
		remote_set_pending(memory);
	} else {
		finish_copy(modules, entry);
	}
}

const struct module *modules_get(struct modules *modules, uint64_t address)
{
	struct entry *entry;

	if (remote_state(modules->memory) != REMOTE_OK)
		return NULL;
	entry = find_or_add(modules, address);
	if (entry && entry->step != STEP_DONE && !modules->no_memory) {
		if (entry->asked_in == remote_memory_round(modules->memory))
			remote_set_pending(modules->memory);
		else
			module_metadata_advance(modules, entry);
	}
	if (entry && entry->step == STEP_DONE && entry->metadata)
		return &entry->module;
	if (remote_state(modules->memory) == REMOTE_OK)
		remote_set_unreadable(modules->memory);
	return NULL;
}
