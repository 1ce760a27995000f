/* SPDX-License-Identifier: MIT */
/*
 * The descriptor (64-bit):
 *	 0 u64 magic "DNCCDAC\0"	 8 u32 flags (bit 0: set, bit 1: 32-bit)
 *	12 u32 text size		16 u64 address of the JSON text
 *	24 u32 pointer count		32 u64 address of the pointer table
 */
#include "libsym/clr/contract_locate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "libsym/limits.h"
#include "libsym/process/remote_symbol.h"

static const char symbol_name[] = "DotNetRuntimeContractDescriptor";
static const uint64_t descriptor_magic = 0x0043414443434E44;

static struct sym_error *read_contract(struct remote_memory *memory, uint64_t address,
				       struct contract **ret)
{
	struct {
		uint64_t magic;
		uint32_t flags, text_bytes;
		uint64_t text;
		uint32_t pointer_count, padding;
		uint64_t pointers;
	} descriptor;
	AUTO_FREE char *text = NULL;
	AUTO_FREE uint64_t *pointers = NULL;
	struct sym_error *error = remote_read_now(memory, address, &descriptor, sizeof(descriptor),
						  "the data contract descriptor");

	if (error)
		return error;
	if (descriptor.magic != descriptor_magic)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"data contract of the runtime: unknown magic number 0x%" PRIx64,
			descriptor.magic);
	if ((descriptor.flags & 3) != 1)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"data contract of the runtime: unknown flags 0x%" PRIx32,
					descriptor.flags);
	if (descriptor.text_bytes > LIMIT_CONTRACT_BYTES ||
	    descriptor.pointer_count > LIMIT_CONTRACT_POINTERS)
		return sym_error_create(SYM_ERROR_LIMIT,
					"data contract of the runtime: %" PRIu32
					" bytes and %" PRIu32 " pointers are too many",
					descriptor.text_bytes, descriptor.pointer_count);
	text = calloc(1, (size_t)descriptor.text_bytes + 1);
	pointers = calloc((size_t)descriptor.pointer_count + 1, sizeof(*pointers));
	if (!text || !pointers)
		return &sym_error_no_memory;
	error = remote_read_now(memory, descriptor.text, text, descriptor.text_bytes,
				"the text of the data contract");
	if (!error)
		error = remote_read_now(memory, descriptor.pointers, pointers,
					descriptor.pointer_count * sizeof(*pointers),
					"the pointers of the data contract");
	if (error)
		return error;
	return contract_parse(text, descriptor.text_bytes, pointers, descriptor.pointer_count, ret);
}

struct sym_error *contract_locate(struct remote_memory *memory, uint64_t base_address,
				  struct contract **ret)
{
	uint64_t address;
	struct sym_error *error = remote_symbol_find(memory, base_address, symbol_name, &address);

	if (error)
		return error;
	if (!address)
		return sym_error_create(
			SYM_ERROR_NOT_FOUND,
			"the runtime publishes no data contract (.NET 9 is the first that does)");
	return read_contract(memory, address, ret);
}
