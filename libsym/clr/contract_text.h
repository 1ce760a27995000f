/* SPDX-License-Identifier: MIT */
/*
 * JSON as a runtime embeds it: ASCII, strings without escapes, whole numbers, no name twice in an
 * object.
 * Anything else is rejected, so an accepted text has one meaning.
 * It knows no data contract.
 *
 * A JSON library would cost more than all other parsing of a runtime together, and the first answer
 * waits for it.
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
	CONTRACT_NAME,  /* the name of the member whose value follows */
};

/* A value. The values inside it follow in the order of the text. */
struct contract_value {
	enum contract_kind kind;
	uint32_t end; /* index after it and its contents; for a name: its hash */
	union {
		int64_t number;
		const char *text; /* NUL terminated */
	};
};

struct contract_text {
	char *bytes;
	struct contract_value *values; /* the outermost value first */
	size_t count, capacity;
};

/* Errors: FORMAT, NO_MEMORY. */
struct sym_error *contract_text_parse(const void *bytes, size_t size_bytes,
				      struct contract_text *ret)
	__attribute__((warn_unused_result));
void contract_text_deinit(struct contract_text *text);

/* A member of an object; NULL when there is none, or `object` is NULL or not an object. */
const struct contract_value *contract_text_member(const struct contract_text *text,
						  const struct contract_value *object,
						  const char *name);
/* The first item of an array; any other value itself; NULL when there is none. */
const struct contract_value *contract_text_first(const struct contract_text *text,
						 const struct contract_value *value);

#endif
