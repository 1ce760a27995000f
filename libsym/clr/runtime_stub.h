/* SPDX-License-Identifier: MIT */
/*
 * Short code that the runtime puts between methods, recognised by its bytes, for runtimes that
 * report methods only.
 * x86-64 from .NET 8 on, ARM64 from .NET 9 on. Unknown code is left alone: it may be a method.
 */
#ifndef LIBSYM_CLR_RUNTIME_STUB_H
#define LIBSYM_CLR_RUNTIME_STUB_H

#include <stddef.h>
#include <stdint.h>

enum {
	RUNTIME_STUB_BYTES = 40, /* enough to recognise a stub */
	RUNTIME_STUB_ALIGNMENT = 8
};

/* Size of the stub that starts there; 0: not a known stub. */
size_t runtime_stub_size(const uint8_t code[RUNTIME_STUB_BYTES]);

#endif
