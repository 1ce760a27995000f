/* SPDX-License-Identifier: MIT */
/* Reads a function of a Go table, with its size. */
#ifndef TESTS_SUPPORT_GO_TABLE_READ_H
#define TESTS_SUPPORT_GO_TABLE_READ_H

#include "libsym/format/elf/gopclntab.h"

static inline bool read_function(const struct gopclntab *table, uint64_t number,
				 struct gopclntab_function *ret)
{
	if (!gopclntab_record(table, number, ret))
		return false;
	ret->size_bytes = gopclntab_measure(table, ret);
	return true;
}

#endif
