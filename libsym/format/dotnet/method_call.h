/* SPDX-License-Identifier: MIT */
/*
 * Which method a call in IL names. The token is one of the caller's module; the method may be
 * defined in another one:
 *
 *   MethodSpec -> MethodDef or MemberRef
 *   MemberRef  -> name, signature, parent: TypeDef, TypeRef, or TypeSpec of a generic type
 *
 * Type, name and signature must be equal. A call of a virtual method names the base's, and may
 * still reach the method of a derived type.
 */
#ifndef LIBSYM_FORMAT_DOTNET_METHOD_CALL_H
#define LIBSYM_FORMAT_DOTNET_METHOD_CALL_H

#include "libsym/base/buf.h"
#include "libsym/format/dotnet/il.h"
#include "libsym/format/dotnet/metadata.h"

struct called_method {
	const struct metadata *metadata; /* equal pointers: the same module */
	uint32_t type_rid;               /* TypeDef */
	uint32_t rid;                    /* MethodDef */
};

enum method_call_match {
	METHOD_CALL_OTHER = 0, /* certainly another method */
	METHOD_CALL_SAME,
	METHOD_CALL_MAYBE /* the type of the receiver decides, or the call cannot be read */
};

/* `text`: room for signatures as text; its failure says that memory ran out. */
enum method_call_match method_call_compare(const struct metadata *caller,
					   const struct il_call *call,
					   const struct called_method *method, struct buf *text);

#endif
