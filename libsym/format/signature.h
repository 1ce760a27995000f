/* SPDX-License-Identifier: MIT */
/*
 * Type and method signatures (ECMA-335 II.23.2) and the extended form that
 * ReadyToRun images use for instantiations (dotnet/runtime
 * docs/design/coreclr/botr/readytorun-format.md, "fixup encodings"): skipping
 * them, and writing them out in the dialects of the field. Knows nothing of
 * images and entry points; modules that a signature refers to by number are
 * asked for through a callback.
 *
 * Work is bounded by limits.h: depth, types visited, bytes written.
 */
#ifndef LIBSYM_FORMAT_SIGNATURE_H
#define LIBSYM_FORMAT_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/format/metadata.h"

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
	/* The same as a modifier, behind a byte that tells whether it is required (.NET 9 and
	 * later: src/coreclr/inc/corhdr.h); in the stubs of P/Invoke. */
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

/* What is left to spend on one signature, and who wants to hear of module numbers. */
struct signature_budget {
	unsigned int depth;
	unsigned int nodes;
	void (*use_module)(void *context, uint32_t index);
	void *context;
};

struct signature_budget signature_budget_full(void);

/* Moves `reader` behind one type; fails it when the type is malformed or past the budget. */
void signature_skip_type(struct reader *reader, struct signature_budget *budget);

enum signature_style {
	SIGNATURE_RUNTIME,     /* class [A]Ns.C, int32, as CoreCLR prints signatures */
	SIGNATURE_TYPE_STRING, /* Ns.C, System.Int32, escaped, as CoreCLR prints owners */
	SIGNATURE_CROSSGEN2,   /* Ns.C, System.Int32, parameters replaced by their arguments */
};

/* Where tokens of a type are to be looked up, and where those of its generic arguments are. */
struct signature_scope {
	const struct metadata *metadata; /* NULL: not to be had; a token is then a failure */
	const struct metadata *arguments;
};

/* Modules by number, as instance signatures have them. */
struct signature_modules {
	void *context;
	/* NULL with a static text when it is not to be had */
	const struct metadata *(*find)(void *context, uint32_t index, const char **why_ret);
};

struct signature_names;
struct signature_writer;

/* Types by address (ELEMENT_INTERNAL), in signatures that a runtime makes for itself. */
struct signature_handles {
	void *context;
	/* Writes the type; false when it is not to be had. */
	bool (*write)(void *context, struct signature_writer *writer, uint64_t handle);
};

/* As many as are read of a live runtime's types. Beyond, an instantiation has no name in
 * crossgen2's style, the only one that looks them up. */
#define SIGNATURE_MAX_ARGUMENTS 1024

/* Arguments of one instantiation. */
struct signature_arguments {
	struct signature_scope scope;
	uint32_t count;
	struct reader types;                         /* one behind another */
	uint32_t positions[SIGNATURE_MAX_ARGUMENTS]; /* where in that each of them begins */
};

struct signature_writer {
	struct buf *out;
	size_t max_size_bytes; /* of `out`, for this name */
	enum signature_style style;
	const struct signature_modules *modules; /* may be NULL */
	const struct signature_handles *handles; /* may be NULL */
	/* Of the module that names_metadata is of; runtime style only; may be NULL. */
	struct signature_names *names;
	const struct metadata *names_metadata;
	const struct signature_arguments *type_arguments, *method_arguments; /* may be NULL */
	struct signature_budget budget;
	const char *why; /* first failure, a static text */
};

void signature_writer_init(struct signature_writer *writer, struct buf *out,
			   enum signature_style style);

/* Bytes, and a string of a heap; past the limit of a name the writer fails. */
void signature_write(struct signature_writer *writer, const char *text, size_t size_bytes);
void signature_write_heap_string(struct signature_writer *writer, const char *text);
void signature_write_type(struct signature_writer *writer, struct reader *reader,
			  struct signature_scope scope);

/* Namespace, enclosing classes and name, as the style has them. */
void signature_write_type_def(struct signature_writer *writer, const struct metadata *metadata,
			      uint32_t rid);
void signature_write_type_ref(struct signature_writer *writer, const struct metadata *metadata,
			      uint32_t rid);

/* Head of a method signature, and how many parameters follow the return type. */
struct signature_method {
	uint8_t calling_convention;
	uint32_t parameter_count;
	/* Of the variant of a method that awaits (.NET 11): it returns what is in the task that the
	 * signature says, or nothing. To be set by who knows it. */
	bool is_awaiting;
};

struct signature_method signature_read_method(struct reader *reader);

/* "instance void " of the runtime dialect, "Ns.Type " of crossgen2's; the reader then stands at the
 * parameters. */
void signature_write_return(struct signature_writer *writer, struct reader *reader,
			    struct signature_scope scope, const struct signature_method *method);
void signature_write_parameters(struct signature_writer *writer, struct reader *reader,
				struct signature_scope scope,
				const struct signature_method *method);

#endif
