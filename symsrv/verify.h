/* SPDX-License-Identifier: MIT */
/* Whether a file is what its key says. The last word on everything that arrives; trusts no header
 * and no name. */
#ifndef SYMSRV_VERIFY_H
#define SYMSRV_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "symsrv/key.h"

/*
 * Looks at the first size_bytes of `fd`: 0, or -EBADMSG with *reason (reason_bytes long)
 * filled in when they are not what `key` asks for, or another negative errno when that
 * cannot be told. *contents_ret: enum sym_content.
 */
int verify_content(int fd, uint64_t size_bytes, const struct key *key, uint32_t *contents_ret,
		   char *reason, size_t reason_bytes);

#endif
