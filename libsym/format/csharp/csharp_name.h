/* SPDX-License-Identifier: MIT */
/*
 * Full names of managed methods as a C# developer writes them:
 *
 *   void [A] N.T::M(string)                      N.T.M(string)
 *   instance void [A] N.T::.ctor()               new N.T()
 *   instance int32 [A] N.T::get_P()              N.T.P.get
 *   instance void [A] N.T+<M>d__3::MoveNext()    async N.T.M
 *   instance bool [A] N.T+<M>d__3::MoveNext()    iterator N.T.M
 *   instance void [A] N.T+<>c::<M>b__7_1(int32)  lambda(int) in N.T.M
 *   void [A] N.T::<M>g__L|7_3()                  local L() in N.T.M
 *
 * Only the text is read, so that a recording needs no process and no file. Text does not have
 * everything: overloads of M, the order of lambdas and the names of type parameters are not in it.
 * The full name stays the identity of a method.
 */
#ifndef LIBSYM_FORMAT_CSHARP_CSHARP_NAME_H
#define LIBSYM_FORMAT_CSHARP_CSHARP_NAME_H

#include <stddef.h>
#include <stdint.h>

/* Writes the name to `room` (NUL terminated if room_bytes > 0). `flags`: enum csharp_flags. Returns
 * its full length, like snprintf(). A text that is not a method name is copied. */
size_t csharp_name(const char *name, size_t name_bytes, uint32_t flags, char *room,
		   size_t room_bytes);

#endif
