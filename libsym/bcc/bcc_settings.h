/* SPDX-License-Identifier: MIT */
/*
 * Settings in the environment. Programs that only know libbcc's functions have no other way to set
 * them.
 * Read once for each cache. Unknown values count as unset.
 */
#ifndef LIBSYM_BCC_SETTINGS_H
#define LIBSYM_BCC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum bcc_names {
	BCC_NAMES_FULL = 0,
	BCC_NAMES_SHORT,  /* type and method only */
	BCC_NAMES_CSHARP, /* sym_name_csharp() */
};

struct bcc_settings {
	enum bcc_names names; /* LIBSYM_BCC_NAMES=short|csharp */
	bool no_tiers;        /* LIBSYM_BCC_TIERS=strip */
	bool folded;          /* LIBSYM_BCC_FOLDED=1: no ';' in names, which separates frames */
	bool report;          /* LIBSYM_BCC_REPORT=1: print on stderr what was answered */
	bool notice;          /* LIBSYM_BCC_NOTICE=1: print on stderr when a runtime is asked */
	bool no_limits;       /* LIBSYM_BCC_NO_LIMITS=1: other users' input may cost any amount */
	uint32_t jit;         /* LIBSYM_BCC_JIT=auto|memory|...: enum sym_jit_method */
	uint32_t refresh_ms;  /* LIBSYM_BCC_REFRESH_MS: shortest time between two refreshes of a
				 process */
	/* A test sets its clock here: ns that never go back. NULL: CLOCK_MONOTONIC_COARSE. */
	uint64_t (*clock_ns)(void *context);
};

void bcc_settings_read(struct bcc_settings *ret);
bool bcc_settings_are_same(const struct bcc_settings *a, const struct bcc_settings *b);

/* Now, by their clock. */
uint64_t bcc_settings_now_ns(const struct bcc_settings *settings);

#endif
