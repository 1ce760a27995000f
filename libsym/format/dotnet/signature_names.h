/* SPDX-License-Identifier: MIT */
/* A cache of type names of one module, in the runtime's style of signatures: few types occur in
 * most signatures. signature_write.c makes the texts. */
#ifndef LIBSYM_FORMAT_DOTNET_SIGNATURE_NAMES_H
#define LIBSYM_FORMAT_DOTNET_SIGNATURE_NAMES_H

#include "libsym/base/buf.h"
#include "libsym/format/dotnet/metadata.h"

struct signature_names;

/* `metadata` is borrowed and must outlive the object. NULL if out of memory. */
struct signature_names *signature_names_create(const struct metadata *metadata);
void signature_names_destroy(struct signature_names *names);

/* The cached name of a TypeDef or TypeRef row, valid until the next one is added; NULL if it is not
 * cached. */
const char *signature_names_find(const struct signature_names *names, enum metadata_table table,
				 uint32_t rid, size_t *size_bytes_ret);

/* The signature's part in a method's name: "instance void " and "(int32)". */
struct signature_text {
	const char *text;
	uint32_t return_bytes, parameter_bytes; /* parts of the text, in this order */
};

/* Finds the text by the address of the signature's bytes in the module's metadata. Returns false if
 * it is not cached. */
bool signature_names_find_method(const struct signature_names *names, const uint8_t *signature,
				 struct signature_text *ret);

void signature_names_add_method(struct signature_names *names, const uint8_t *signature,
				const char *return_text, size_t return_bytes,
				const char *parameter_text, size_t parameter_bytes);

/* Caches a name. If out of memory, it is not cached. */
void signature_names_add(struct signature_names *names, enum metadata_table table, uint32_t rid,
			 const char *text, size_t size_bytes);

#endif
