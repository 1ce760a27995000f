/* SPDX-License-Identifier: MIT */
/* Names inside the vDSO, which the kernel maps identically into every process of the same kind. */
#ifndef LIBSYM_BCC_VDSO_NAMES_H
#define LIBSYM_BCC_VDSO_NAMES_H

#include <stdbool.h>

#include "libsym/bcc/libsym-bcc.h"
#include "libsym/libsym.h"

/* Names an answer that lies in "[vdso]" and has no name; false: there is none. */
bool vdso_names_find(const struct sym_snapshot *snapshot, const struct sym_answer *answer,
		     struct bcc_symbol *sym);

#endif
