/* SPDX-License-Identifier: MIT */
/*
 * The list of needed fields, by the runtime's names.
 *
 * The contract versions are those of .NET 10 (numbers) and .NET 11 (texts).
 * Together with the version of the description they define the structures.
 */
#include "libsym/clr/layout.h"

#include <stddef.h>
#include <string.h>

#include "libsym/process/remote_memory.h"

struct need {
	const char *type, *field; /* field "!": size of the type */
	size_t place;             /* of a uint32_t in the filled struct */
};

static struct sym_error *layout_load_fields(const struct contract *contract,
					    const struct need *needs, size_t count, void *ret)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t *place = (uint32_t *)((char *)ret + needs[i].place);
		struct sym_error *error;

		if (needs[i].field[0] == '!')
			error = contract_type_size(contract, needs[i].type, place);
		else
			error = contract_field(contract, needs[i].type, needs[i].field, place);
		if (error)
			return error;
	}
	return NULL;
}

static struct sym_error *number_between(const struct contract *contract, const char *name,
					uint64_t least, uint64_t most, uint64_t *ret)
{
	struct sym_error *error = contract_number(contract, name, ret);

	if (!error && (*ret < least || *ret > most))
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "data contract of the runtime: global %s makes no sense",
					 name);
	return error;
}

/*
 * Number of bytes from the start of a structure that contain all of these fields, each at most
 * `width_bytes` wide.
 */
static struct sym_error *read_bytes(const char *type, const uint32_t *offsets, size_t count,
				    uint32_t width_bytes, uint32_t *ret)
{
	uint32_t last = 0;

	for (size_t i = 0; i < count; i++)
		last = offsets[i] > last ? offsets[i] : last;
	*ret = last + width_bytes;
	if (*ret <= REMOTE_STRUCTURE_BYTES)
		return NULL;
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: type %s is too large", type);
}

#define NEEDS_COUNT(needs) (sizeof(needs) / sizeof((needs)[0]))

static const struct need needs[] = {
	{ "RangeSectionMap", "TopLevelData",
	  offsetof(struct layout, range_section_map.top_level_data) },
	{ "RangeSectionFragment", "Next", offsetof(struct layout, fragment.next) },
	{ "RangeSectionFragment", "RangeBegin", offsetof(struct layout, fragment.range_begin) },
	{ "RangeSectionFragment", "RangeEndOpen",
	  offsetof(struct layout, fragment.range_end_open) },
	{ "RangeSectionFragment", "RangeSection", offsetof(struct layout, fragment.range_section) },
	{ "RangeSection", "RangeBegin", offsetof(struct layout, range_section.range_begin) },
	{ "RangeSection", "RangeEndOpen", offsetof(struct layout, range_section.range_end_open) },
	{ "RangeSection", "Flags", offsetof(struct layout, range_section.flags) },
	{ "RangeSection", "HeapList", offsetof(struct layout, range_section.heap_list) },
	{ "CodeHeapListNode", "StartAddress", offsetof(struct layout, code_heap.start_address) },
	{ "CodeHeapListNode", "EndAddress", offsetof(struct layout, code_heap.end_address) },
	{ "CodeHeapListNode", "MapBase", offsetof(struct layout, code_heap.map_base) },
	{ "CodeHeapListNode", "HeaderMap", offsetof(struct layout, code_heap.header_map) },
	{ "RealCodeHeader", "MethodDesc", offsetof(struct layout, code_header.method_desc) },
	{ "RealCodeHeader", "NumUnwindInfos", offsetof(struct layout, code_header.unwind_count) },
	{ "RealCodeHeader", "UnwindInfos", offsetof(struct layout, code_header.unwind_infos) },
	{ "RuntimeFunction", "!", offsetof(struct layout, runtime_function.size_bytes) },
	{ "RuntimeFunction", "BeginAddress", offsetof(struct layout, runtime_function.begin) },
	{ "MethodDesc", "!", offsetof(struct layout, method_desc.size_bytes) },
	{ "MethodDesc", "Flags3AndTokenRemainder",
	  offsetof(struct layout, method_desc.flags3_and_token) },
	{ "MethodDesc", "ChunkIndex", offsetof(struct layout, method_desc.chunk_index) },
	{ "MethodDesc", "Slot", offsetof(struct layout, method_desc.slot) },
	{ "MethodDesc", "Flags", offsetof(struct layout, method_desc.flags) },
	{ "MethodDescChunk", "!", offsetof(struct layout, chunk.size_bytes) },
	{ "MethodDescChunk", "MethodTable", offsetof(struct layout, chunk.method_table) },
	{ "MethodDescChunk", "FlagsAndTokenRange",
	  offsetof(struct layout, chunk.flags_and_token_range) },
	{ "DynamicMethodDesc", "MethodName", offsetof(struct layout, dynamic_method.method_name) },
	{ "StoredSigMethodDesc", "Sig", offsetof(struct layout, stored_signature.signature) },
	{ "StoredSigMethodDesc", "cSig",
	  offsetof(struct layout, stored_signature.signature_bytes) },
	{ "MethodTable", "MTFlags", offsetof(struct layout, method_table.flags) },
	{ "MethodTable", "MTFlags2", offsetof(struct layout, method_table.flags2) },
	{ "MethodTable", "Module", offsetof(struct layout, method_table.module) },
	{ "MethodTable", "EEClassOrCanonMT",
	  offsetof(struct layout, method_table.class_or_canonical) },
	{ "MethodTable", "PerInstInfo", offsetof(struct layout, method_table.per_instance_info) },
	{ "MethodTable", "NumVirtuals", offsetof(struct layout, method_table.virtual_count) },
	{ "EEClass", "MethodTable", offsetof(struct layout, ee_class.method_table) },
	{ "EEClass", "InternalCorElementType", offsetof(struct layout, ee_class.element_type) },
	{ "GenericsDictInfo", "NumDicts", offsetof(struct layout, generics_info.dictionary_count) },
	{ "GenericsDictInfo", "NumTypeArgs",
	  offsetof(struct layout, generics_info.argument_count) },
	{ "TypeDesc", "TypeAndFlags", offsetof(struct layout, type_desc.type_and_flags) },
	{ "ParamTypeDesc", "TypeArg", offsetof(struct layout, param_type.argument) },
	{ "TypeVarTypeDesc", "Module", offsetof(struct layout, type_variable.module) },
	{ "TypeVarTypeDesc", "Token", offsetof(struct layout, type_variable.token) },
	{ "FnPtrTypeDesc", "NumArgs", offsetof(struct layout, function_pointer.argument_count) },
	{ "FnPtrTypeDesc", "CallConv",
	  offsetof(struct layout, function_pointer.calling_convention) },
	{ "FnPtrTypeDesc", "RetAndArgTypes", offsetof(struct layout, function_pointer.types) },
	{ "Module", "Assembly", offsetof(struct layout, module.assembly) },
	{ "Module", "Flags", offsetof(struct layout, module.flags) },
	{ "Module", "PEAssembly", offsetof(struct layout, module.pe_assembly) },
	{ "Module", "DynamicMetadata", offsetof(struct layout, module.dynamic_metadata) },
	{ "Module", "ReadyToRunInfo", offsetof(struct layout, module.ready_to_run_info) },
	{ "Assembly", "IsCollectible", offsetof(struct layout, assembly.is_collectible) },
	{ "PEAssembly", "PEImage", offsetof(struct layout, pe_assembly.image) },
	{ "PEImage", "LoadedImageLayout", offsetof(struct layout, pe_image.loaded_layout) },
	{ "PEImageLayout", "Base", offsetof(struct layout, pe_image_layout.base) },
	{ "PEImageLayout", "Size", offsetof(struct layout, pe_image_layout.size_bytes) },
	{ "PEImageLayout", "Flags", offsetof(struct layout, pe_image_layout.flags) },
	{ "DynamicMetadata", "Size", offsetof(struct layout, dynamic_metadata.size_bytes) },
	{ "DynamicMetadata", "Data", offsetof(struct layout, dynamic_metadata.data) },
};

/* Structures that depend on the processor. Their methods were compared with a runtime's own map. */
static struct sym_error *load_processor(const struct contract *contract, struct layout *layout)
{
	static const struct need x64[] = {
		{ "RuntimeFunction", "EndAddress", offsetof(struct layout, runtime_function.last) },
	};
	static const struct need arm64[] = {
		{ "RuntimeFunction", "UnwindData", offsetof(struct layout, runtime_function.last) },
	};
	const char *architecture = contract_string(contract, "Architecture");

	if (!architecture)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"data contract of the runtime: global Architecture is missing");
	layout->runtime_function.is_unwind_data = !strcmp(architecture, "arm64");
	if (layout->runtime_function.is_unwind_data)
		return layout_load_fields(contract, arm64, NEEDS_COUNT(arm64), layout);
	if (!strcmp(architecture, "x64"))
		return layout_load_fields(contract, x64, NEEDS_COUNT(x64), layout);
	return sym_error_create(SYM_ERROR_UNSUPPORTED,
				"data contract of the runtime: architecture %s is not read, only "
				"x64 and arm64 are",
				architecture);
}

/*
 * The number of dimensions of an array type: in its class, or from .NET 11 on from the size of an
 * empty array, which has two numbers of 4 bytes for each.
 */
static struct sym_error *load_array(const struct contract *contract, struct layout *layout)
{
	struct sym_error *error;

	layout->array.has_rank = contract_has_field(contract, "ArrayClass", "Rank");
	if (layout->array.has_rank)
		return contract_field(contract, "ArrayClass", "Rank", &layout->array.rank);
	error = contract_field(contract, "MethodTable", "BaseSize", &layout->array.base_size);
	if (!error)
		error = number_between(contract, "ArrayBaseSize", 1, UINT16_MAX,
				       &layout->array.least_bytes);
	return error;
}

static const struct need runtime_async_sizes[] = {
	{ "MethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[0]) },
	{ "FCallMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[1]) },
	{ "PInvokeMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[2]) },
	{ "EEImplMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[3]) },
	{ "ArrayMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[4]) },
	{ "InstantiatedMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[5]) },
	{ "DynamicMethodDesc", "!", offsetof(struct layout, awaiting.desc_bytes[7]) },
	{ "NonVtableSlot", "!", offsetof(struct layout, awaiting.slot_bytes[0]) },
	{ "MethodImpl", "!", offsetof(struct layout, awaiting.slot_bytes[1]) },
	{ "NativeCodeSlot", "!", offsetof(struct layout, awaiting.slot_bytes[2]) },
};

/*
 * .NET 10 publishes everything except AsyncMethodData: u32 kind, then the signature: pointer, u32
 * length (src/coreclr/vm/method.hpp).
 * This layout is used only if all published sizes are those of 10.0, and a value only if it is the
 * signature that follows from the row.
 */
static void assume_awaiting(const struct contract *contract, struct layout *layout)
{
	static const uint32_t desc_bytes[8] = { 16, 24, 56, 32, 32, 40, 0, 48 };
	static const uint32_t slot_bytes[3] = { 8, 16, 8 };
	struct layout found = { 0 };
	struct sym_error *error = layout_load_fields(contract, runtime_async_sizes,
						     NEEDS_COUNT(runtime_async_sizes), &found);

	if (error || memcmp(found.awaiting.desc_bytes, desc_bytes, sizeof(desc_bytes)) ||
	    memcmp(found.awaiting.slot_bytes, slot_bytes, sizeof(slot_bytes))) {
		sym_error_destroy(error);
		return;
	}
	layout->awaiting = found.awaiting;
	layout->awaiting.is_known = true;
	layout->awaiting.is_by_row = true;
	layout->awaiting.signature = 8;
	layout->awaiting.pointer = 0;
	layout->awaiting.length = 8;
}

static struct sym_error *load_awaiting(const struct contract *contract, struct layout *layout)
{
	static const struct need wanted[] = {
		{ "AsyncMethodData", "Signature", offsetof(struct layout, awaiting.signature) },
		{ "Signature", "SignaturePointer", offsetof(struct layout, awaiting.pointer) },
		{ "Signature", "SignatureLength", offsetof(struct layout, awaiting.length) },
	};
	struct sym_error *error;

	if (!contract_has_field(contract, "AsyncMethodData", "Signature")) {
		assume_awaiting(contract, layout);
		return NULL;
	}
	layout->awaiting.is_known = true;
	error = layout_load_fields(contract, wanted, NEEDS_COUNT(wanted), layout);
	return error ? error
		     : layout_load_fields(contract, runtime_async_sizes,
					  NEEDS_COUNT(runtime_async_sizes), layout);
}

static struct sym_error *layout_measure(struct layout *layout)
{
	const uint32_t header[] = {
		layout->code_header.method_desc, layout->code_header.unwind_count,
		layout->code_header.unwind_infos + layout->runtime_function.begin,
		layout->code_header.unwind_infos + layout->runtime_function.last
	};
	const uint32_t method_desc[] = { layout->method_desc.flags3_and_token,
					 layout->method_desc.chunk_index, layout->method_desc.slot,
					 layout->method_desc.flags };
	const uint32_t chunk[] = { layout->chunk.method_table,
				   layout->chunk.flags_and_token_range };
	const uint32_t method_table[] = {
		layout->method_table.flags,
		layout->method_table.flags2,
		layout->method_table.module,
		layout->method_table.class_or_canonical,
		layout->method_table.per_instance_info,
		layout->method_table.virtual_count,
		layout->array.base_size,
	};
	struct sym_error *error = read_bytes("RealCodeHeader", header, NEEDS_COUNT(header), 8,
					     &layout->code_header.read_bytes);

	if (!error)
		error = read_bytes("MethodDesc", method_desc, NEEDS_COUNT(method_desc), 2,
				   &layout->method_desc.read_bytes);
	if (!error)
		error = read_bytes("MethodDescChunk", chunk, NEEDS_COUNT(chunk), 8,
				   &layout->chunk.read_bytes);
	if (!error)
		error = read_bytes("MethodTable", method_table, NEEDS_COUNT(method_table), 8,
				   &layout->method_table.read_bytes);
	return error;
}

struct sym_error *layout_load(const struct contract *contract, struct layout *ret)
{
	static const struct {
		const char *name;
		struct contract_version version;
	} versions[] = {
		{ "ExecutionManager", { 2, "c1" } },
		{ "RuntimeTypeSystem", { 1, "c1" } },
		{ "Loader", { 1, "c1" } },
		{ "EcmaMetadata", { 1, "c1" } },
	};
	struct layout layout = { 0 };
	struct sym_error *error;

	for (size_t i = 0; i < NEEDS_COUNT(versions); i++) {
		error = contract_require(contract, versions[i].name, versions[i].version);
		if (error)
			return error;
	}
	error = load_processor(contract, &layout);
	if (!error)
		error = layout_load_fields(contract, needs, NEEDS_COUNT(needs), &layout);
	if (!error)
		error = load_array(contract, &layout);
	if (!error)
		error = load_awaiting(contract, &layout);
	if (!error)
		error = layout_measure(&layout);
	if (!error)
		error = contract_pointer(contract, "ExecutionManagerCodeRangeMapAddress",
					 &layout.range_map_address);
	if (!error)
		error = number_between(contract, "MethodDescTokenRemainderBitCount", 1, 15,
				       &layout.token_remainder_bits);
	if (!error)
		error = number_between(contract, "MethodDescAlignment", 1, 256,
				       &layout.method_desc_alignment_bytes);
	if (!error)
		error = number_between(contract, "StubCodeBlockLast", 1, 255,
				       &layout.stub_kind_last);
	if (!error)
		*ret = layout;
	return error;
}

/*
 * .NET 10 does not publish where a version node keeps its tier.
 * The offset is used only if every published field is where it is in 10.0. That leaves one place
 * between NativeCodeVersionNode.Next and .Flags, which was found to contain the tier (27,000 nodes
 * compared).
 * A tier is a hint; no name depends on it.
 */
static struct sym_error *tier_offset(const struct contract *contract,
				     const struct layout_tiers *tiers, uint32_t *ret)
{
	uint32_t flags = 0, il_version = 0;
	struct sym_error *error =
		contract_field(contract, "NativeCodeVersionNode", "OptimizationTier", ret);

	if (!error)
		return NULL;
	sym_error_destroy(error);
	error = contract_field(contract, "NativeCodeVersionNode", "Flags", &flags);
	if (!error)
		error = contract_field(contract, "NativeCodeVersionNode", "ILVersionId",
				       &il_version);
	if (error)
		return error;
	if (tiers->code != 0 || tiers->method_desc != 8 || il_version != 16 || tiers->next != 24 ||
	    flags != 52)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: field "
					"NativeCodeVersionNode.OptimizationTier "
					"is missing");
	*ret = 36;
	return NULL;
}

struct sym_error *layout_load_tiers(const struct contract *contract, struct layout_tiers *ret)
{
	static const struct need wanted[] = {
		{ "MethodDesc", "CodeData", offsetof(struct layout_tiers, code_data) },
		{ "MethodDescCodeData", "VersioningState",
		  offsetof(struct layout_tiers, versioning_state) },
		{ "MethodDescVersioningState", "NativeCodeVersionNode",
		  offsetof(struct layout_tiers, first_node) },
		{ "NativeCodeVersionNode", "NativeCode", offsetof(struct layout_tiers, code) },
		{ "NativeCodeVersionNode", "MethodDesc",
		  offsetof(struct layout_tiers, method_desc) },
		{ "NativeCodeVersionNode", "Next", offsetof(struct layout_tiers, next) },
	};
	struct layout_tiers tiers = { 0 };
	struct sym_error *error =
		contract_require(contract, "CodeVersions", (struct contract_version){ 1, "c1" });

	if (!error)
		error = layout_load_fields(contract, wanted, NEEDS_COUNT(wanted), &tiers);
	tiers.has_own = contract_has_field(contract, "MethodDescCodeData", "OptimizationTier");
	if (!error && tiers.has_own)
		error = contract_field(contract, "MethodDescCodeData", "OptimizationTier",
				       &tiers.own);
	if (!error)
		error = tier_offset(contract, &tiers, &tiers.tier);
	if (!error) {
		const uint32_t node[] = { tiers.code, tiers.method_desc, tiers.next, tiers.tier };

		error = read_bytes("NativeCodeVersionNode", node, NEEDS_COUNT(node), 8,
				   &tiers.node_bytes);
	}
	if (!error)
		error = read_bytes("MethodDesc", &tiers.code_data, 1, 8, &tiers.desc_bytes);
	if (!error)
		*ret = tiers;
	return error;
}

struct sym_error *layout_load_precodes(const struct contract *contract, struct layout_precodes *ret)
{
	static const char machine[] = "PrecodeMachineDescriptor";
	static const struct need wanted[] = {
		{ "PlatformMetadata", machine, offsetof(struct layout_precodes, machine) },
		{ machine, "StubCodePageSize", offsetof(struct layout_precodes, code_page_size) },
		{ machine, "FixupStubPrecodeSize", offsetof(struct layout_precodes, fixup_size) },
		{ machine, "FixupBytes", offsetof(struct layout_precodes, fixup_bytes) },
		{ machine, "FixupIgnoredBytes", offsetof(struct layout_precodes, fixup_ignored) },
		{ machine, "StubPrecodeSize", offsetof(struct layout_precodes, stub_size) },
		{ machine, "StubBytes", offsetof(struct layout_precodes, stub_bytes) },
		{ machine, "StubIgnoredBytes", offsetof(struct layout_precodes, stub_ignored) },
		{ machine, "StubPrecodeType", offsetof(struct layout_precodes, stub_type) },
		{ machine, "PInvokeImportPrecodeType",
		  offsetof(struct layout_precodes, import_type) },
		{ machine, "ThisPointerRetBufPrecodeType",
		  offsetof(struct layout_precodes, return_buffer_type) },
		{ "FixupPrecodeData", "MethodDesc",
		  offsetof(struct layout_precodes, fixup_method_desc) },
		{ "StubPrecodeData", "SecretParam", offsetof(struct layout_precodes, secret) },
		{ "StubPrecodeData", "Type", offsetof(struct layout_precodes, type) },
		{ "ThisPtrRetBufPrecodeData", "MethodDesc",
		  offsetof(struct layout_precodes, return_buffer_method_desc) },
	};
	struct layout_precodes precodes = { 0 };
	struct sym_error *error =
		contract_require(contract, "PrecodeStubs", (struct contract_version){ 3, "c1" });

	if (!error)
		error = contract_require(contract, "PlatformMetadata",
					 (struct contract_version){ 1, "c1" });
	if (!error)
		error = layout_load_fields(contract, wanted, NEEDS_COUNT(wanted), &precodes);
	if (!error)
		error = contract_pointer(contract, "PlatformMetadata", &precodes.metadata_address);
	if (!error)
		*ret = precodes;
	return error;
}

/*
 * .NET 10 does not publish where the header of a method has its debug information.
 * The offset is used only if every published field is where it is in 10.0. That leaves 0 to 15 for
 * two pointers, of which the first was right for all 4,700 methods compared.
 */
static struct sym_error *assume_debug(const struct contract *contract, struct layout_debug *ret)
{
	static const char type[] = "RealCodeHeader";
	static const struct {
		const char *field;
		uint32_t offset;
	} fields[] = {
		{ "GCInfo", 16 },
		{ "MethodDesc", 24 },
		{ "NumUnwindInfos", 32 },
		{ "UnwindInfos", 36 },
	};

	for (size_t i = 0; i < NEEDS_COUNT(fields); i++) {
		uint32_t offset;
		struct sym_error *error = contract_field(contract, type, fields[i].field, &offset);

		if (error)
			return error;
		if (offset != fields[i].offset)
			return sym_error_create(SYM_ERROR_UNSUPPORTED,
						"data contract of the runtime: field "
						"RealCodeHeader.DebugInfo is missing");
	}
	ret->debug_information = 0;
	ret->form = DEBUG_INFO_JIT_PACKED;
	return NULL;
}

struct sym_error *layout_load_debug(const struct contract *contract, struct layout_debug *ret)
{
	struct sym_error *error;

	if (!contract_has_field(contract, "RealCodeHeader", "DebugInfo"))
		return assume_debug(contract, ret);
	error = contract_require(contract, "DebugInfo", (struct contract_version){ 0, "c1" });
	if (!error)
		error = contract_field(contract, "RealCodeHeader", "DebugInfo",
				       &ret->debug_information);
	ret->form = DEBUG_INFO_JIT_FAT;
	return error;
}

struct sym_error *layout_load_auxiliary(const struct contract *contract,
					struct layout_auxiliary *ret)
{
	static const char type[] = "AuxiliarySymbolInfo";
	static const struct need wanted[] = {
		{ type, "!", offsetof(struct layout_auxiliary, size_bytes) },
		{ type, "Address", offsetof(struct layout_auxiliary, address) },
		{ type, "Name", offsetof(struct layout_auxiliary, name) },
	};
	struct layout_auxiliary auxiliary = { 0 };
	struct sym_error *error = contract_require(contract, "AuxiliarySymbols",
						   (struct contract_version){ 1, "c1" });

	if (!error)
		error = layout_load_fields(contract, wanted, NEEDS_COUNT(wanted), &auxiliary);
	if (!error)
		error = contract_pointer(contract, "AuxiliarySymbols", &auxiliary.symbols_address);
	if (!error)
		error = contract_pointer(contract, "AuxiliarySymbolCount",
					 &auxiliary.count_address);
	if (!error)
		*ret = auxiliary;
	return error;
}
