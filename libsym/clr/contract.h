/* SPDX-License-Identifier: MIT */
/*
 * The data contract that a .NET runtime publishes about its own memory: which
 * versions of its structures it has, where their fields are, and a few global
 * values. Knows how the description is written and how to ask it; refuses to
 * guess: whatever is asked for and not there is an UNSUPPORTED error that names it.
 *
 *	{"version": 0, "baseline": "empty",
 *	 "types":     {TYPE: {"!": size, FIELD: offset | [offset, "type"]}},
 *	 "globals":   {NAME: "0x.." | ["0x..", "type"] | [[index], "pointer"]},
 *	 "contracts": {NAME: integer | "text"}}
 *
 * [index] stands for an entry of the pointer table beside the text. Format:
 * dotnet/runtime docs/design/datacontracts/contract-descriptor.md. Read are version 0, which
 * numbers contracts (.NET 9 and 10), and version 2, which counts them anew in texts (.NET 11).
 */
#ifndef LIBSYM_CLR_CONTRACT_H
#define LIBSYM_CLR_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

struct contract;

/* The text may end in NUL bytes. `pointers` is copied. Errors: FORMAT, UNSUPPORTED, LIMIT,
 * NO_MEMORY. */
struct sym_error *contract_parse(const void *text, size_t text_bytes, const uint64_t *pointers,
				 size_t pointer_count, struct contract **ret);
void contract_close(struct contract *contract);

/* A version of a contract: its number in version 0, its text in version 2. */
struct contract_version {
	uint32_t number;
	const char *text;
};

/* The contract must be there with exactly this version. */
struct sym_error *contract_require(const struct contract *contract, const char *name,
				   struct contract_version version);

/* Whether the description has this field; of a type that it has not, it has none. */
bool contract_has_field(const struct contract *contract, const char *type, const char *field);

/* Offset of a field; offsets beyond 64 KiB are refused as nonsense. */
struct sym_error *contract_field(const struct contract *contract, const char *type,
				 const char *field, uint32_t *ret);
struct sym_error *contract_type_size(const struct contract *contract, const char *type,
				     uint32_t *ret);

/* A number written in the description. */
struct sym_error *contract_number(const struct contract *contract, const char *name, uint64_t *ret);
/* An entry of the pointer table: an address. */
struct sym_error *contract_pointer(const struct contract *contract, const char *name,
				   uint64_t *ret);
/* A text; NULL when there is none. Lives as long as the contract. */
const char *contract_string(const struct contract *contract, const char *name);

DEFINE_GUARD(contract, struct contract *, contract_close)
#define AUTO_CONTRACT GUARDED(contract)

#endif
