/* SPDX-License-Identifier: MIT */
/* Names inside the vDSO, which the kernel maps into every process of the same kind alike. */
#ifndef LIBSYM_BCC_VDSO_NAMES_H
#define LIBSYM_BCC_VDSO_NAMES_H

#include <stdbool.h>

#include "libsym/bcc/libsym-bcc.h"
#include "libsym/libsym.h"

/* For an answer without a name that lies in "[vdso]"; false: there is none. */
bool vdso_names_find(const struct sym_snapshot *snapshot, const struct sym_answer *answer,
		     struct bcc_symbol *sym);

#endif
