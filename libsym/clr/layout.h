/* SPDX-License-Identifier: MIT */
/*
 * The offsets of the fields needed to name jitted code.
 * They are taken from a runtime's data contract once, so that reading needs no look-up. There are
 * no offsets of our own.
 * All values are offsets in bytes unless the name differs.
 * Structures that every method has are read in one piece: `read_bytes`, at most
 * REMOTE_STRUCTURE_BYTES.
 */
#ifndef LIBSYM_CLR_LAYOUT_H
#define LIBSYM_CLR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/clr/contract.h"
#include "libsym/format/dotnet/debug_info.h"

struct layout {
	uint64_t range_map_address; /* of the RangeSectionMap */
	uint64_t token_remainder_bits;
	uint64_t method_desc_alignment_bytes;
	uint64_t stub_kind_last;

	struct {
		uint32_t top_level_data;
	} range_section_map;
	struct {
		uint32_t next, range_begin, range_end_open, range_section;
	} fragment;
	struct {
		uint32_t range_begin, range_end_open, flags, heap_list;
	} range_section;
	struct {
		uint32_t start_address, end_address, map_base, header_map;
	} code_heap;
	struct {
		uint32_t method_desc, unwind_count, unwind_infos;
		uint32_t read_bytes; /* from its start, with the first RuntimeFunction */
	} code_header;
	struct {
		uint32_t size_bytes, begin;
		uint32_t last; /* its end; with `is_unwind_data` the field that contains its size */
		bool is_unwind_data; /* ARM64: packed, or address of the unwind record */
	} runtime_function;
	struct {
		uint32_t size_bytes, flags3_and_token, chunk_index, slot, flags;
		uint32_t read_bytes;
	} method_desc;
	/* Optional parts after a MethodDesc, one after another, selected by its flags. */
	struct {
		bool is_known;            /* some methods may await */
		bool is_by_row;           /* .NET 10: the value must be the row's variant */
		uint32_t desc_bytes[8];   /* of a MethodDesc by classification; 0: none */
		uint32_t slot_bytes[3];   /* of the parts in between, by flags from 0x08 on */
		uint32_t signature;       /* in AsyncMethodData */
		uint32_t pointer, length; /* in the signature */
	} awaiting;
	struct {
		uint32_t size_bytes, method_table, flags_and_token_range;
		uint32_t read_bytes;
	} chunk;
	struct {
		uint32_t method_name;
	} dynamic_method;
	struct {
		uint32_t signature, signature_bytes;
	} stored_signature;
	struct {
		uint32_t flags, flags2, module, class_or_canonical, per_instance_info,
			virtual_count;
		uint32_t read_bytes;
	} method_table;
	struct {
		uint32_t method_table, element_type;
	} ee_class;
	struct {
		bool has_rank;
		uint32_t rank;        /* in ArrayClass, which follows EEClass; with `has_rank` */
		uint32_t base_size;   /* in MethodTable; without it */
		uint64_t least_bytes; /* of an empty array without dimensions */
	} array;
	struct {
		uint32_t dictionary_count, argument_count;
	} generics_info;
	struct {
		uint32_t type_and_flags;
	} type_desc;
	struct {
		uint32_t argument;
	} param_type;
	struct {
		uint32_t module, token;
	} type_variable;
	struct {
		uint32_t argument_count, calling_convention, types;
	} function_pointer;
	struct {
		uint32_t assembly, flags, pe_assembly, dynamic_metadata, ready_to_run_info;
	} module;
	struct {
		uint32_t is_collectible;
	} assembly;
	struct {
		uint32_t image;
	} pe_assembly;
	struct {
		uint32_t loaded_layout;
	} pe_image;
	struct {
		uint32_t base, size_bytes, flags;
	} pe_image_layout;
	struct {
		uint32_t size_bytes, data;
	} dynamic_metadata;
};

/*
 * UNSUPPORTED with the name of the first contract, type, field or global that is missing or has
 * another version.
 */
struct sym_error *layout_load(const struct contract *contract, struct layout *ret);

/* Optional: needed for tiers. */
struct layout_tiers {
	uint32_t code_data;                     /* in MethodDesc */
	uint32_t versioning_state;              /* in MethodDescCodeData */
	uint32_t first_node;                    /* in MethodDescVersioningState */
	uint32_t code, method_desc, next, tier; /* in NativeCodeVersionNode */
	uint32_t node_bytes;                    /* that contain these four */
	uint32_t desc_bytes;                    /* of a MethodDesc, that contain `code_data` */
	/*
	 * From .NET 11 on: MethodDescCodeData has the tier of code without a version node, and
	 * where.
	 */
	bool has_own;
	uint32_t own;
};

struct sym_error *layout_load_tiers(const struct contract *contract, struct layout_tiers *ret);

/* Optional: needed to name precodes. */
struct layout_precodes {
	uint64_t metadata_address; /* of PlatformMetadata */
	uint32_t machine;          /* PrecodeMachineDescriptor in PlatformMetadata */
	uint32_t code_page_size;   /* these in PrecodeMachineDescriptor */
	uint32_t fixup_size, fixup_bytes, fixup_ignored;
	uint32_t stub_size, stub_bytes, stub_ignored, stub_type, import_type, return_buffer_type;
	uint32_t fixup_method_desc;         /* in FixupPrecodeData */
	uint32_t secret, type;              /* in StubPrecodeData */
	uint32_t return_buffer_method_desc; /* in ThisPtrRetBufPrecodeData */
};

struct sym_error *layout_load_precodes(const struct contract *contract,
				       struct layout_precodes *ret);

/* Optional: needed for lines of jitted code. */
struct layout_debug {
	uint32_t debug_information; /* in RealCodeHeader: a pointer */
	enum debug_info_form form;
};

struct sym_error *layout_load_debug(const struct contract *contract, struct layout_debug *ret);

/* Optional: needed for functions that the runtime names (.NET 11). */
struct layout_auxiliary {
	uint64_t symbols_address, count_address;
	uint32_t size_bytes, address, name; /* of AuxiliarySymbolInfo; in it */
};

struct sym_error *layout_load_auxiliary(const struct contract *contract,
					struct layout_auxiliary *ret);

#endif
