/* SPDX-License-Identifier: MIT */
/*
 * Rows for code that a .NET runtime has jitted, on x86-64: by the unwind infos in the header of the
 * method's code, read from the process's memory.
 *
 *   u64 before the code   address of the RealCodeHeader (a small number: a block of stubs)
 *   RealCodeHeader        4 pointers (debug info, EH info, GC info, MethodDesc),
 *                         u32 count, count x RUNTIME_FUNCTION (pe_unwind.h)
 *   RUNTIME_FUNCTION      numbers count from the begin of the heap's range section
 *
 * dotnet/runtime src/coreclr/vm/codeman.h, .NET Core 3.1 to .NET 11; .NET 10 and later publish the
 * offsets in their data contract (RealCodeHeader NumUnwindInfos 32, UnwindInfos 36).
 */
#ifndef LIBSYM_UNWIND_JITTED_ROWS_H
#define LIBSYM_UNWIND_JITTED_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/format/elf/frame_row.h"
#include "libsym/process/process.h"

/*
 * Makes the row for an instruction of a method whose start and size are known.
 * False when the header cannot be read or contradicts them: then nothing is known about the frame.
 * `is_call`: the address is in a call instruction, which is in no prolog and no epilog.
 */
bool jitted_row_find(const struct process *process, uint64_t start_address, uint64_t size_bytes,
		     uint64_t address, bool is_call, struct frame_row *ret);

#endif
