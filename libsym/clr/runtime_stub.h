/* SPDX-License-Identifier: MIT */
/*
 * Code of a few instructions that the runtime puts between methods, on x86-64 from .NET 8 on and on
 * ARM64 from .NET 9 on, known by its bytes: for runtimes that tell of their methods only. What is
 * not known is left alone: it may be a method.
 */
#ifndef LIBSYM_CLR_RUNTIME_STUB_H
#define LIBSYM_CLR_RUNTIME_STUB_H

#include <stddef.h>
#include <stdint.h>

enum {
	RUNTIME_STUB_BYTES = 40, /* that tell */
	RUNTIME_STUB_ALIGNMENT = 8
};

/* Bytes of the stub that begins there; 0: none that is known does. */
size_t runtime_stub_size(const uint8_t code[RUNTIME_STUB_BYTES]);

#endif
