/* SPDX-License-Identifier: MIT */
/*
 * The full name of a method in a rundown, in the dialect of the runtime's perf map.
 * The signature text of a rundown is ambiguous (IntPtr and int are one word; assemblies and generic
 * arguments are missing).
 * So the signature comes from metadata, by token. It is used only if its method and type have the
 * names in the rundown.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_NAME_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_NAME_H

#include "libsym/base/buf.h"
#include "libsym/clr/diagnostics/rundown.h"
#include "libsym/format/dotnet/metadata.h"

/*
 * Appends the name. `metadata`: that of the method's module; NULL when it is not available.
 * For dynamic methods, and without matching metadata, the name is owner and method only.
 * False when memory or room is short, or the name is longer than LIMIT_NAME_BYTES.
 */
bool rundown_write_name(const struct rundown_method *method, const struct metadata *metadata,
			struct buf *out);

#endif
