/* SPDX-License-Identifier: MIT */
/*
 * JSON as a runtime writes it into itself: ASCII, texts without escapes, whole
 * numbers, no name twice in an object. All else is refused, so what was read has one
 * meaning. Knows JSON; what a data contract is is not its business.
 *
 * A library reads any JSON and costs more than all other text of a reading together;
 * the first look at a process waits for this.
 */
#ifndef LIBSYM_CLR_CONTRACT_TEXT_H
#define LIBSYM_CLR_CONTRACT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"

enum contract_kind {
	CONTRACT_OBJECT,
	CONTRACT_ARRAY,
	CONTRACT_TEXT,
	CONTRACT_NUMBER,
	CONTRACT_OTHER, /* true, false, null */
	CONTRACT_NAME,  /* of the member whose value follows it */
};

/* A value; those inside it follow in the order of the text. */
struct contract_value {
	enum contract_kind kind;
	uint32_t end; /* index behind it and all that is in it; of a name: its hash */
	union {
		int64_t number;
		const char *text; /* NUL terminated */
	};
};

struct contract_text {
	char *bytes;
	struct contract_value *values; /* the whole first */
	size_t count, capacity;
};

/* Errors: FORMAT, NO_MEMORY. */
struct sym_error *contract_text_parse(const void *bytes, size_t size_bytes,
				      struct contract_text *ret)
	__attribute__((warn_unused_result));
void contract_text_deinit(struct contract_text *text);

/* A member of an object; NULL when there is none, or `object` is NULL or none. */
const struct contract_value *contract_text_member(const struct contract_text *text,
						  const struct contract_value *object,
						  const char *name);
/* The first item of an array, anything else itself; NULL when there is none. */
const struct contract_value *contract_text_first(const struct contract_text *text,
						 const struct contract_value *value);

#endif
