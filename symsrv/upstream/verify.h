/* SPDX-License-Identifier: MIT */
/* Whether a file is what its key says. Decides on everything that arrives, and trusts no header and
 * no name. */
#ifndef SYMSRV_UPSTREAM_VERIFY_H
#define SYMSRV_UPSTREAM_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "symsrv/key/key.h"

/*
 * Reads the first size_bytes of `fd`: 0; -EBADMSG with *reason (reason_bytes long) when they are
 * not the object of `key`; or another negative errno when that is unknown. *contents_ret: enum
 * sym_content.
 */
int verify_content(int fd, uint64_t size_bytes, const struct key *key, uint32_t *contents_ret,
		   char *reason, size_t reason_bytes);

#endif
