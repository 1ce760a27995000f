/* SPDX-License-Identifier: MIT */
/*
 * Type and method signatures (ECMA-335 II.23.2) and the extended form that ReadyToRun images use
 * for instantiations (dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, "fixup
 * encodings"): skips them, and writes them in the dialects of the field. A callback provides the
 * modules that a signature refers to by number.
 *
 * limits.h bounds the work: depth, types visited, bytes written.
 */
#ifndef LIBSYM_FORMAT_DOTNET_SIGNATURE_H
#define LIBSYM_FORMAT_DOTNET_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/format/dotnet/metadata.h"

enum signature_element {
	ELEMENT_END = 0x00,
	ELEMENT_VOID = 0x01,
	ELEMENT_U1 = 0x05,
	ELEMENT_PTR = 0x0f,
	ELEMENT_BYREF = 0x10,
	ELEMENT_VALUETYPE = 0x11,
	ELEMENT_CLASS = 0x12,
	ELEMENT_VAR = 0x13,
	ELEMENT_ARRAY = 0x14,
	ELEMENT_GENERICINST = 0x15,
	ELEMENT_FNPTR = 0x1b,
	ELEMENT_OBJECT = 0x1c,
	ELEMENT_SZARRAY = 0x1d,
	ELEMENT_MVAR = 0x1e,
	ELEMENT_CMOD_REQD = 0x1f,
	ELEMENT_CMOD_OPT = 0x20,
	ELEMENT_INTERNAL = 0x21, /* an address in a running process; never in files */
	/* An address as a modifier, after a byte that is nonzero if it is required (.NET 9 and
	 * later: src/coreclr/inc/corhdr.h). In the stubs of P/Invoke. */
	ELEMENT_CMOD_INTERNAL = 0x22,
	ELEMENT_VAR_ZAPSIG = 0x3b,
	ELEMENT_NATIVE_ARRAY_TEMPLATE_ZAPSIG = 0x3c,
	ELEMENT_NATIVE_VALUETYPE_ZAPSIG = 0x3d,
	ELEMENT_CANON_ZAPSIG = 0x3e,
	ELEMENT_MODULE_ZAPSIG = 0x3f,
	ELEMENT_SENTINEL = 0x41,
	ELEMENT_PINNED = 0x45,
};

/* Compressed integers of II.23.2. */
uint32_t signature_unsigned(struct reader *reader);
int32_t signature_signed(struct reader *reader);

/* How much work is left for one signature, and a callback for module numbers. */
struct signature_budget {
	unsigned int depth;
	unsigned int nodes;
	void (*use_module)(void *context, uint32_t index);
	void *context;
};

struct signature_budget signature_budget_full(void);

/* Moves `reader` past one type. Fails it if the type is malformed or exceeds the budget. */
void signature_skip_type(struct reader *reader, struct signature_budget *budget);

enum signature_style {
	SIGNATURE_RUNTIME,     /* class [A]Ns.C, int32, as CoreCLR prints signatures */
	SIGNATURE_TYPE_STRING, /* Ns.C, System.Int32, escaped, as CoreCLR prints owners */
	SIGNATURE_CROSSGEN2,   /* Ns.C, System.Int32, parameters replaced by their arguments */
};

/* The metadata that tokens of a type refer to, and the one for its generic arguments. */
struct signature_scope {
	const struct metadata *metadata; /* NULL: not available; a token is then a failure */
	const struct metadata *arguments;
};

/* Modules by number, in instance signatures. */
struct signature_modules {
	void *context;
	/* Returns NULL and a static text if it is not available. */
	const struct metadata *(*find)(void *context, uint32_t index, const char **why_ret);
};

struct signature_writer;

/* Types by address (ELEMENT_INTERNAL), in signatures that a runtime makes for itself. */
struct signature_handles {
	void *context;
	/* Writes the type. Returns false if it is not available. */
	bool (*write)(void *context, struct signature_writer *writer, uint64_t handle);
};

/* The limit for types of a live runtime, too. A larger instantiation has no name in crossgen2's
 * style, which alone looks arguments up. */
#define SIGNATURE_MAX_ARGUMENTS 1024

/* The arguments of one instantiation. */
struct signature_arguments {
	struct signature_scope scope;
	uint32_t count;
	struct reader types;                         /* one after another */
	uint32_t positions[SIGNATURE_MAX_ARGUMENTS]; /* start of each argument in `types` */
};

struct signature_writer {
	struct buf *out;
	size_t max_size_bytes; /* limit of `out` for this name */
	enum signature_style style;
	const struct signature_modules *modules;                             /* may be NULL */
	const struct signature_handles *handles;                             /* may be NULL */
	const struct signature_arguments *type_arguments, *method_arguments; /* may be NULL */
	struct signature_budget budget;
	const char *why; /* the first failure; a static text */
};

void signature_writer_init(struct signature_writer *writer, struct buf *out,
			   enum signature_style style);

/* Write bytes, or a string of a heap. Past the limit of a name the writer fails. */
void signature_write(struct signature_writer *writer, const char *text, size_t size_bytes);
void signature_write_heap_string(struct signature_writer *writer, const char *text);
void signature_write_type(struct signature_writer *writer, struct reader *reader,
			  struct signature_scope scope);

/* Write namespace, enclosing classes and name in the style. */
void signature_write_type_def(struct signature_writer *writer, const struct metadata *metadata,
			      uint32_t rid);
/* The head of a method signature; the return type and the parameters follow. */
struct signature_method {
	uint8_t calling_convention;
	uint32_t parameter_count;
	/* Set by the caller for the .NET 11 variant of a runtime-async method: it returns the value
	 * of the task in the signature, or nothing. */
	bool is_async_variant;
};

struct signature_method signature_read_method(struct reader *reader);

/* Writes "instance void " in the runtime's dialect, "Ns.Type " in crossgen2's. Leaves the reader at
 * the parameters. */
void signature_write_return(struct signature_writer *writer, struct reader *reader,
			    struct signature_scope scope, const struct signature_method *method);
void signature_write_parameters(struct signature_writer *writer, struct reader *reader,
				struct signature_scope scope,
				const struct signature_method *method);

/* Appends a method's signature as text that does not depend on the module's tokens. Returns false
 * if that fails. */
bool signature_write_method(const struct metadata *metadata, struct metadata_blob blob,
			    struct buf *out);

/* A row of TypeDef or TypeRef. */
struct signature_type {
	bool is_ref;
	uint32_t rid; /* 0: another kind of type */
};

/* The type of a MemberRef's parent; the generic type if the parent is an instantiation. */
struct signature_type signature_member_parent(const struct metadata *metadata, uint32_t member);

#endif
