/* SPDX-License-Identifier: MIT */
/*
 * Finds the data contract of a runtime in the memory of its process: the exported symbol
 * DotNetRuntimeContractDescriptor of libcoreclr.so, or of an executable that contains the runtime.
 * It reads memory, not files, because the pointers in the descriptor are valid only after
 * relocation.
 */
#ifndef LIBSYM_CLR_CONTRACT_LOCATE_H
#define LIBSYM_CLR_CONTRACT_LOCATE_H

#include "libsym/clr/contract.h"
#include "libsym/process/remote_memory.h"

/*
 * `base_address`: where the ELF header of the library or executable is mapped.
 * Errors: NOT_FOUND when it exports no descriptor; UNSUPPORTED for another kind (32-bit, unknown
 * magic).
 */
struct sym_error *contract_locate(struct remote_memory *memory, uint64_t base_address,
				  struct contract **ret);

#endif
