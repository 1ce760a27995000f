/* SPDX-License-Identifier: MIT */
/*
 * What the environment asks for. Programs that only know libbcc's functions have
 * no other way to say it. Read once for each cache; unknown values count as unset.
 */
#ifndef LIBSYM_BCC_SETTINGS_H
#define LIBSYM_BCC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct bcc_settings {
	bool strict;         /* LIBSYM_BCC_STRICT=1: answer as libbcc does */
	bool short_names;    /* LIBSYM_BCC_NAMES=short */
	bool no_tiers;       /* LIBSYM_BCC_TIERS=strip */
	bool report;         /* LIBSYM_BCC_REPORT=1: say on stderr what was answered */
	bool notice;         /* LIBSYM_BCC_NOTICE=1: say on stderr when a process is asked */
	uint32_t jit;        /* LIBSYM_BCC_JIT=auto|contract|...: enum sym_jit_way */
	uint32_t refresh_ms; /* LIBSYM_BCC_REFRESH_MS: shortest time between two looks at a process
			      */
};

void bcc_settings_read(struct bcc_settings *ret);
bool bcc_settings_are_same(const struct bcc_settings *a, const struct bcc_settings *b);

#endif
