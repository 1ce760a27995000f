/* SPDX-License-Identifier: MIT */
/* The budget of a program that links libsym-bcc: one for all its caches. */
#ifndef LIBSYM_BCC_BCC_BUDGET_H
#define LIBSYM_BCC_BCC_BUDGET_H

#include "libsym/bcc/bcc_settings.h"

struct sym_budget;

/* NULL: there is no limit, because the settings or want of memory exclude one. It is never
 * destroyed. The times begin again after a minute. */
struct sym_budget *bcc_budget_get(const struct bcc_settings *settings);

#endif
