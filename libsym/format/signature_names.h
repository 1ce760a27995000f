/* SPDX-License-Identifier: MIT */
/*
 * The names of a module's types as the runtime's style has them in signatures,
 * kept from one signature to the next: a few types stand in most of them.
 * Knows rows and texts; what a name looks like is signature_write.c's business.
 */
#ifndef LIBSYM_FORMAT_SIGNATURE_NAMES_H
#define LIBSYM_FORMAT_SIGNATURE_NAMES_H

#include "libsym/base/buf.h"
#include "libsym/format/metadata.h"

struct signature_names;

/* `metadata` is borrowed and must outlive the object. NULL: no memory. */
struct signature_names *signature_names_create(const struct metadata *metadata);
void signature_names_destroy(struct signature_names *names);

/* NULL, or the name that was kept of a row of TypeDef or TypeRef, until the next one is kept. */
const char *signature_names_find(const struct signature_names *names, enum metadata_table table,
				 uint32_t rid, size_t *size_bytes_ret);

/* What a method's signature is in its name: "instance void " and "(int32)". */
struct signature_text {
	const char *text;
	uint32_t return_bytes, parameter_bytes; /* of the text, in this order */
};

/* By the address of the signature's bytes in the module's metadata. False: it was not kept. */
bool signature_names_find_method(const struct signature_names *names, const uint8_t *signature,
				 struct signature_text *ret);
/* Tells the processor where signature_names_find_method() will look. */
void signature_names_prefetch(const struct signature_names *names, const uint8_t *signature);
void signature_names_keep_method(struct signature_names *names, const uint8_t *signature,
				 const char *return_text, size_t return_bytes,
				 const char *parameter_text, size_t parameter_bytes);

/* Keeps a name; without memory it does not, and that is all. */
void signature_names_keep(struct signature_names *names, enum metadata_table table, uint32_t rid,
			  const char *text, size_t size_bytes);

#endif
