/* SPDX-License-Identifier: MIT */
/*
 * Finds the data contract of a runtime in the memory of its process: the
 * exported symbol DotNetRuntimeContractDescriptor of libcoreclr.so, or of the
 * executable where the runtime is linked into it. Reads memory only, no file,
 * because what the descriptor points to exists after relocation only.
 */
#ifndef LIBSYM_CLR_CONTRACT_LOCATE_H
#define LIBSYM_CLR_CONTRACT_LOCATE_H

#include "libsym/clr/contract.h"
#include "libsym/clr/remote_memory.h"

/*
 * `base_address` is where the ELF header of the module is mapped.
 * NOT_FOUND: it exports no descriptor. UNSUPPORTED: one of another kind (32-bit, unknown magic).
 */
struct sym_error *contract_locate(struct remote_memory *memory, uint64_t base_address,
				  struct contract **ret);

#endif
