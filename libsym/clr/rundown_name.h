/* SPDX-License-Identifier: MIT */
/*
 * The full name of a method that a rundown lists, in the dialect of the
 * runtime's perf map. A rundown's own text of a signature abbreviates beyond
 * repair (IntPtr and int are one word, assemblies and generic arguments are
 * missing), so the signature comes from metadata, by token; it is used only if
 * its method and its type are called as the rundown says.
 */
#ifndef LIBSYM_CLR_RUNDOWN_NAME_H
#define LIBSYM_CLR_RUNDOWN_NAME_H

#include "libsym/base/buf.h"
#include "libsym/clr/rundown.h"
#include "libsym/format/metadata.h"

/*
 * Appends the name. `metadata` is that of the method's module, NULL when it is not
 * to be had. Without metadata that fits, and for dynamic methods, the name is
 * owner and method alone. False when memory or room is short, or it is
 * longer than LIMIT_NAME_BYTES.
 */
bool rundown_write_name(const struct rundown_method *method, const struct metadata *metadata,
			struct buf *out);

#endif
