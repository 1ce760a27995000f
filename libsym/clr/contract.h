/* SPDX-License-Identifier: MIT */
/*
 * The data contract of a .NET runtime: a description of its own memory that it publishes.
 * It has the versions of its structures, the offsets of their fields, and a few global values.
 * Anything that is requested and missing is an UNSUPPORTED error that names it.
 *
 *	{"version": 0, "baseline": "empty",
 *	 "types":     {TYPE: {"!": size, FIELD: offset | [offset, "type"]}},
 *	 "globals":   {NAME: "0x.." | ["0x..", "type"] | [[index], "pointer"]},
 *	 "contracts": {NAME: integer | "text"}}
 *
 * [index] is an entry of the pointer table beside the text.
 * Format: dotnet/runtime docs/design/datacontracts/contract-descriptor.md.
 * Supported: version 0, with numbers for contracts (.NET 9 and 10), and version 2, with texts (.NET
 * 11).
 */
#ifndef LIBSYM_CLR_CONTRACT_H
#define LIBSYM_CLR_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

struct contract;

/*
 * Parses a description. The text may end in NUL bytes. `pointers` is copied.
 * Errors: FORMAT, UNSUPPORTED, LIMIT, NO_MEMORY.
 */
struct sym_error *contract_parse(const void *text, size_t text_bytes, const uint64_t *pointers,
				 size_t pointer_count, struct contract **ret);
void contract_close(struct contract *contract);

/* Version of a contract: a number in version 0, a text in version 2. */
struct contract_version {
	uint32_t number;
	const char *text;
};

/* Requires a contract with exactly this version. */
struct sym_error *contract_require(const struct contract *contract, const char *name,
				   struct contract_version version);

/* True when the description has this field. False for an unknown type. */
bool contract_has_field(const struct contract *contract, const char *type, const char *field);

/* Offset of a field. Offsets beyond 64 KiB are rejected as invalid. */
struct sym_error *contract_field(const struct contract *contract, const char *type,
				 const char *field, uint32_t *ret);
struct sym_error *contract_type_size(const struct contract *contract, const char *type,
				     uint32_t *ret);

/* A number in the description. */
struct sym_error *contract_number(const struct contract *contract, const char *name, uint64_t *ret);
/* An entry of the pointer table: an address. */
struct sym_error *contract_pointer(const struct contract *contract, const char *name,
				   uint64_t *ret);
/* A text; NULL when there is none. It lives as long as the contract. */
const char *contract_string(const struct contract *contract, const char *name);

DEFINE_GUARD(contract, struct contract *, contract_close)
#define AUTO_CONTRACT GUARDED(contract)

#endif
