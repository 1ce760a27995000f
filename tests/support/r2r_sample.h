/* SPDX-License-Identifier: MIT */
/*
 * Two small assemblies and recipes of images made of them, for the tests of
 * the reader and for the seeds of its fuzz target.
 *
 *   App: Ns.Outer { Main(), Get(int32,string[]) }, nested Inner { .ctor() },
 *        Ns.G`1 { Add(!0), Conv<!!0>(!!0) }, rids 1 to 5; refers to System.Runtime, Lib
 *   Lib: Lib.L { One() }, Lib.H`1 { Put(!0), Turn(!!0) }, rids 1 to 3
 */
#ifndef TESTS_SUPPORT_R2R_SAMPLE_H
#define TESTS_SUPPORT_R2R_SAMPLE_H

#include "libsym/base/buf.h"
#include "tests/support/r2r_builder.h"

extern const uint8_t sample_app_mvid[16], sample_lib_mvid[16];

void build_app_metadata(struct buf *out);
void build_lib_metadata(struct buf *out);
/* In crossgen2's form: AssemblyRef App, Lib; no methods. */
void build_manifest_metadata(struct buf *out);

/*
 * As crossgen2 writes it for code of Lib in App: MemberRef 1 is Lib.H`1::Put(!0), 2 the same with a
 * parameter that no Put has, 3 a method of a type that Lib has not, 4 Lib.L::One(). `scope` names
 * Lib as the scope of the types ("#:2").
 */
void build_member_manifest(struct buf *out, const char *scope);

/* Five methods and one instance each of Add and Conv, in seven functions of an x64 image. Get has a
 * funclet. */
struct r2r_recipe plain_recipe(const struct buf *app_metadata);

/* App with runtime-async methods: Count, Plain and Lines of Ns.Outer, rids 2 to 4. */
void build_runtime_async_metadata(struct buf *out);

/* Entries 1 to 3 are their async variants. Functions 2 and 5 are stubs of Plain (4) and Count (1);
 * 3 is a stub that no method claims; 6 awaits and is never resumed. */
struct r2r_recipe runtime_async_recipe(const struct buf *metadata);

#endif
