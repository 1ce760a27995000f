/* SPDX-License-Identifier: MIT */
/*
 * Names of methods in the dialects of the field, from metadata and signatures,
 * and the short form of such a name.
 *
 * Runtime dialect (perf map, crossgen v1):
 *   ["explicit "]["instance "][callconv]RET [Assembly] Ns.Outer+Inner`1[Arg]::Method(A,B)
 * crossgen2 dialect:
 *   [RET ]Ns.Type`1[Arg]::Method(A, B)
 */
#ifndef LIBSYM_FORMAT_METHOD_NAME_H
#define LIBSYM_FORMAT_METHOD_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Length of the prefix-less short name: writes "Ns.Type::Method" of a full
 * name to `room` (NUL terminated when room_bytes > 0) and returns the length
 * of the whole, as snprintf() does. A text that is no method name is copied.
 */
size_t method_name_shorten(const char *name, size_t name_bytes, char *room, size_t room_bytes);

#endif
