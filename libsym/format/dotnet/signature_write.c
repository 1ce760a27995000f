/* SPDX-License-Identifier: MIT */
/*
 * Writes signatures as text, in three styles: those of CoreCLR's PrettyPrintSig and TypeString, and
 * that of crossgen2's maps. Real maps define the grammar of each: see tests/dotnet/.
 *
 * The runtime writes the core of a type first and its suffixes ("[]", "*", "&", " modreq(C)") from
 * the inside out. Plain recursion produces exactly that order.
 */
#include "libsym/format/dotnet/signature.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "libsym/limits.h"

#define MAX_RANK    32
#define MAX_NESTING 64 /* LIMIT_NESTING_DEPTH as a constant expression */

/* Element types that signatures write as a word, and the full names of the same types. */
static const char *const primitive_words[0x1d] = {
	[0x01] = "void",        [0x02] = "bool",   [0x03] = "char",     [0x04] = "int8",
	[0x05] = "uint8",       [0x06] = "int16",  [0x07] = "uint16",   [0x08] = "int32",
	[0x09] = "uint32",      [0x0a] = "int64",  [0x0b] = "uint64",   [0x0c] = "float32",
	[0x0d] = "float64",     [0x0e] = "string", [0x16] = "typedref", [0x18] = "native int",
	[0x19] = "native uint", [0x1c] = "object",
};

static const char *const primitive_names[0x1d] = {
	[0x01] = "System.Void",   [0x02] = "System.Boolean", [0x03] = "System.Char",
	[0x04] = "System.SByte",  [0x05] = "System.Byte",    [0x06] = "System.Int16",
	[0x07] = "System.UInt16", [0x08] = "System.Int32",   [0x09] = "System.UInt32",
	[0x0a] = "System.Int64",  [0x0b] = "System.UInt64",  [0x0c] = "System.Single",
	[0x0d] = "System.Double", [0x0e] = "System.String",  [0x16] = "System.TypedReference",
	[0x18] = "System.IntPtr", [0x19] = "System.UIntPtr", [0x1c] = "System.Object",
};

static void signature_writer_fail(struct signature_writer *writer, const char *why)
{
	if (!writer->why)
		writer->why = why;
}

void signature_writer_init(struct signature_writer *writer, struct buf *out,
			   enum signature_style style)
{
	*writer = (struct signature_writer){
		.out = out,
		.max_size_bytes = out->size_bytes + LIMIT_NAME_BYTES,
		.style = style,
		.budget = signature_budget_full(),
	};
}

void signature_write(struct signature_writer *writer, const char *text, size_t size_bytes)
{
	struct buf *out = writer->out;

	if (out->size_bytes + size_bytes > writer->max_size_bytes)
		signature_writer_fail(writer, "name is longer than the limit");
	else if (!buf_append(out, text, size_bytes))
		signature_writer_fail(writer, out->failure == BUF_NO_MEMORY
						      ? "out of memory"
						      : "no room for the name");
}

void signature_write_heap_string(struct signature_writer *writer, const char *text)
{
	signature_write(writer, text, strnlen(text, LIMIT_NAME_BYTES + 1));
}

/* Writes a literal. */
static void write_word(struct signature_writer *writer, const char *text)
{
	signature_write(writer, text, strlen(text));
}

static void write_char(struct signature_writer *writer, char byte)
{
	signature_write(writer, &byte, 1);
}

static void write_number(struct signature_writer *writer, int64_t value)
{
	char digits[21];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	write_word(writer, digits);
}

/* ---- names of classes ----------------------------------------------------- */

/* The characters of TypeString's own grammar. */
static const bool is_escaped[UCHAR_MAX + 1] = {
	[','] = true, ['['] = true, [']'] = true,  ['&'] = true,
	['*'] = true, ['+'] = true, ['\\'] = true,
};

static void write_identifier(struct signature_writer *writer, const char *name)
{
	size_t size_bytes = strnlen(name, LIMIT_NAME_BYTES + 1), done = 0;

	for (size_t i = 0; i < size_bytes && writer->style == SIGNATURE_TYPE_STRING; i++) {
		if (!is_escaped[(unsigned char)name[i]])
			continue;
		signature_write(writer, name + done, i - done);
		write_char(writer, '\\');
		done = i;
	}
	signature_write(writer, name + done, size_bytes - done);
}

static void write_class(struct signature_writer *writer, const char *name_space, const char *name)
{
	if (*name_space) {
		write_identifier(writer, name_space);
		write_char(writer, '.');
	}
	write_identifier(writer, name);
}

static char nesting_separator(const struct signature_writer *writer)
{
	return writer->style == SIGNATURE_RUNTIME ? '/' : '+';
}

void signature_write_type_def(struct signature_writer *writer, const struct metadata *metadata,
			      uint32_t rid)
{
	uint32_t chain[MAX_NESTING];
	size_t depth = 0;

	if (!rid || rid > metadata_row_count(metadata, METADATA_TYPE_DEF)) {
		signature_writer_fail(writer, "no such TypeDef row");
		return;
	}
	for (; rid; rid = metadata_type_def_encloser(metadata, rid)) {
		if (depth == MAX_NESTING) {
			signature_writer_fail(writer, "types are nested too deeply");
			return;
		}
		chain[depth++] = rid;
	}
	while (depth--) {
		write_class(writer, metadata_type_def_namespace(metadata, chain[depth]),
			    metadata_type_def_name(metadata, chain[depth]));
		if (depth)
			write_char(writer, nesting_separator(writer));
	}
}

static void write_type_ref_scope(struct signature_writer *writer, const struct metadata *metadata,
				 enum metadata_table table, uint32_t rid)
{
	if (writer->style != SIGNATURE_RUNTIME || !rid)
		return;
	if (table == METADATA_ASSEMBLY_REF) {
		write_char(writer, '[');
		signature_write_heap_string(writer, metadata_assembly_ref_name(metadata, rid));
		write_char(writer, ']');
	} else if (table == METADATA_MODULE_REF) {
		write_word(writer, "[.module ");
		signature_write_heap_string(writer, metadata_module_ref_name(metadata, rid));
		write_char(writer, ']');
	}
}

static void signature_write_type_ref(struct signature_writer *writer,
				     const struct metadata *metadata, uint32_t rid)
{
	uint32_t chain[MAX_NESTING];
	enum metadata_table table;
	uint32_t scope = rid;
	size_t depth = 0;

	if (!rid || rid > metadata_row_count(metadata, METADATA_TYPE_REF)) {
		signature_writer_fail(writer, "no such TypeRef row");
		return;
	}
	do {
		if (depth == MAX_NESTING) {
			signature_writer_fail(writer, "types are nested too deeply");
			return;
		}
		chain[depth++] = scope;
		scope = metadata_type_ref_scope(metadata, scope, &table);
	} while (scope && table == METADATA_TYPE_REF);
	write_type_ref_scope(writer, metadata, table, scope);
	while (depth--) {
		write_class(writer, metadata_type_ref_namespace(metadata, chain[depth]),
			    metadata_type_ref_name(metadata, chain[depth]));
		if (depth)
			write_char(writer, nesting_separator(writer));
	}
}

static void write_token(struct signature_writer *writer, struct reader *reader,
			struct signature_scope scope)
{
	uint32_t token = signature_unsigned(reader);
	struct metadata_blob blob;
	struct reader inner;

	if (!scope.metadata) {
		signature_writer_fail(writer, "metadata of a referenced assembly is not available");
		return;
	}
	switch (token & 3) {
	case 0:
		signature_write_type_def(writer, scope.metadata, token >> 2);
		return;
	case 1:
		signature_write_type_ref(writer, scope.metadata, token >> 2);
		return;
	case 2:
		blob = metadata_type_spec_signature(scope.metadata, token >> 2);
		inner = reader_over(blob.data, blob.size_bytes);
		scope.arguments = scope.metadata;
		signature_write_type(writer, &inner, scope);
		return;
	default:
		signature_writer_fail(writer, "malformed token in a signature");
	}
}

/* ---- types ---------------------------------------------------------------- */

/* Writes bounds in CoreCLR's style; in other styles only reads them. */
static void write_array(struct signature_writer *writer, struct reader *reader)
{
	uint32_t rank = signature_unsigned(reader), size_count, bound_count;
	uint32_t sizes[MAX_RANK] = { 0 };
	int32_t bounds[MAX_RANK] = { 0 };

	size_count = rank ? signature_unsigned(reader) : 0;
	if (!rank || rank > MAX_RANK || size_count > rank) {
		signature_writer_fail(writer, "malformed array in a signature");
		return;
	}
	for (uint32_t i = 0; i < size_count; i++)
		sizes[i] = signature_unsigned(reader);
	bound_count = signature_unsigned(reader);
	if (bound_count > rank) {
		signature_writer_fail(writer, "malformed array in a signature");
		return;
	}
	for (uint32_t i = 0; i < bound_count; i++)
		bounds[i] = signature_signed(reader);
	write_char(writer, '[');
	if (writer->style != SIGNATURE_RUNTIME) {
		if (rank == 1)
			write_char(writer, '*');
		for (uint32_t i = 1; i < rank; i++)
			write_char(writer, ',');
	} else if (rank == 1 && !size_count && !bound_count) {
		write_word(writer, "...");
	} else {
		for (uint32_t i = 0; i < rank; i++) {
			if (i)
				write_char(writer, ',');
			if (!bounds[i] && i < size_count) {
				write_number(writer, sizes[i]);
			} else if (i < bound_count) {
				write_number(writer, bounds[i]);
				write_word(writer, "...");
				if (i < size_count)
					write_number(writer, (int64_t)bounds[i] + sizes[i] - 1);
			}
		}
	}
	write_char(writer, ']');
}

static void write_generic_instance(struct signature_writer *writer, struct reader *reader,
				   struct signature_scope scope)
{
	struct signature_scope argument_scope = { scope.arguments, scope.arguments };
	uint32_t count;

	signature_write_type(writer, reader, scope);
	count = signature_unsigned(reader);
	write_char(writer, writer->style == SIGNATURE_RUNTIME ? '<' : '[');
	for (uint32_t i = 0; i < count && !writer->why; i++) {
		if (i)
			signature_write(writer, ", ", writer->style == SIGNATURE_CROSSGEN2 ? 2 : 1);
		signature_write_type(writer, reader, argument_scope);
	}
	write_char(writer, writer->style == SIGNATURE_RUNTIME ? '>' : ']');
}

static void write_function_pointer(struct signature_writer *writer, struct reader *reader,
				   struct signature_scope scope)
{
	struct signature_method method;

	if (writer->style == SIGNATURE_TYPE_STRING) {
		/* TypeString does not print the signature (src/coreclr/vm/typestring.cpp). */
		write_word(writer, "(fnptr)");
		method = signature_read_method(reader);
		signature_skip_type(reader, &writer->budget);
		while (method.parameter_count-- && reader_ok(reader))
			signature_skip_type(reader, &writer->budget);
		if (!reader_ok(reader))
			signature_writer_fail(writer, reader->failure);
		return;
	}
	if (writer->style == SIGNATURE_RUNTIME)
		write_word(writer, "method ");
	method = signature_read_method(reader);
	if (writer->style == SIGNATURE_RUNTIME) {
		signature_write_return(writer, reader, scope, &method);
		write_char(writer, '*');
	} else {
		/* Unlike in a method's own signature, void is written here. */
		signature_write_type(writer, reader, scope);
		write_char(writer, ' ');
	}
	signature_write_parameters(writer, reader, scope, &method);
}

static void write_parameter(struct signature_writer *writer, struct reader *reader,
			    const struct signature_arguments *arguments, const char *mark)
{
	const struct signature_arguments *type_arguments = writer->type_arguments;
	const struct signature_arguments *method_arguments = writer->method_arguments;
	uint32_t index = signature_unsigned(reader);
	struct reader type;

	if (writer->style != SIGNATURE_CROSSGEN2 || !arguments || index >= arguments->count) {
		write_word(writer, mark);
		write_number(writer, index);
		return;
	}
	/* Parameters inside an argument belong to another list. */
	writer->type_arguments = NULL;
	writer->method_arguments = NULL;
	type = arguments->types;
	reader_seek(&type, arguments->positions[index]);
	signature_write_type(writer, &type, arguments->scope);
	writer->type_arguments = type_arguments;
	writer->method_arguments = method_arguments;
}

static void write_modified(struct signature_writer *writer, struct reader *reader,
			   struct signature_scope scope, bool required)
{
	struct reader token = *reader;

	signature_unsigned(reader);
	signature_write_type(writer, reader, scope);
	if (writer->style != SIGNATURE_RUNTIME)
		return;
	write_word(writer, required ? " modreq(" : " modopt(");
	write_token(writer, &token, scope);
	write_char(writer, ')');
}

static void write_in_module(struct signature_writer *writer, struct reader *reader,
			    struct signature_scope scope)
{
	uint32_t index = signature_unsigned(reader);
	const char *why = "signature refers to another module";

	scope.metadata = writer->modules
				 ? writer->modules->find(writer->modules->context, index, &why)
				 : NULL;
	if (!scope.metadata)
		signature_writer_fail(writer, why);
	else
		signature_write_type(writer, reader, scope);
}

static void write_handle(struct signature_writer *writer, struct reader *reader)
{
	uint64_t handle = reader_u64(reader);

	if (!reader_ok(reader))
		signature_writer_fail(writer, reader->failure);
	else if (!writer->handles ||
		 !writer->handles->write(writer->handles->context, writer, handle))
		signature_writer_fail(writer, "type handle in a signature");
}

static void write_modified_by_handle(struct signature_writer *writer, struct reader *reader,
				     struct signature_scope scope)
{
	bool required = reader_u8(reader);
	struct reader handle = *reader;

	reader_skip(reader, sizeof(uint64_t));
	signature_write_type(writer, reader, scope);
	if (writer->style != SIGNATURE_RUNTIME || writer->why)
		return;
	write_word(writer, required ? " modreq(" : " modopt(");
	write_handle(writer, &handle);
	write_char(writer, ')');
}

static void write_suffixed(struct signature_writer *writer, struct reader *reader,
			   struct signature_scope scope, const char *suffix)
{
	signature_write_type(writer, reader, scope);
	write_word(writer, suffix);
}

static void write_primitive(struct signature_writer *writer, uint8_t element)
{
	const char *word = NULL;

	if (element < sizeof(primitive_words) / sizeof(primitive_words[0]))
		word = writer->style == SIGNATURE_RUNTIME ? primitive_words[element]
							  : primitive_names[element];
	if (word)
		write_word(writer, word);
	else
		signature_writer_fail(writer, "unknown element type in a signature");
}

static void write_element(struct signature_writer *writer, struct reader *reader,
			  struct signature_scope scope, uint8_t element)
{
	switch (element) {
	case ELEMENT_VALUETYPE:
	case ELEMENT_CLASS:
		if (writer->style == SIGNATURE_RUNTIME)
			write_word(writer, element == ELEMENT_CLASS ? "class " : "valuetype ");
		write_token(writer, reader, scope);
		return;
	case ELEMENT_SZARRAY:
		write_suffixed(writer, reader, scope, "[]");
		return;
	case ELEMENT_PTR:
		write_suffixed(writer, reader, scope, "*");
		return;
	case ELEMENT_BYREF:
		write_suffixed(writer, reader, scope, "&");
		return;
	case ELEMENT_PINNED:
		write_suffixed(writer, reader, scope,
			       writer->style == SIGNATURE_RUNTIME ? " pinned" : "");
		return;
	case ELEMENT_ARRAY:
		signature_write_type(writer, reader, scope);
		write_array(writer, reader);
		return;
	case ELEMENT_GENERICINST:
		write_generic_instance(writer, reader, scope);
		return;
	case ELEMENT_VAR:
	case ELEMENT_VAR_ZAPSIG:
		write_parameter(writer, reader, writer->type_arguments, "!");
		return;
	case ELEMENT_MVAR:
		write_parameter(writer, reader, writer->method_arguments, "!!");
		return;
	case ELEMENT_FNPTR:
		write_function_pointer(writer, reader, scope);
		return;
	case ELEMENT_CMOD_REQD:
	case ELEMENT_CMOD_OPT:
		write_modified(writer, reader, scope, element == ELEMENT_CMOD_REQD);
		return;
	case ELEMENT_CMOD_INTERNAL:
		write_modified_by_handle(writer, reader, scope);
		return;
	case ELEMENT_CANON_ZAPSIG:
		write_word(writer, "System.__Canon");
		return;
	case ELEMENT_INTERNAL:
		write_handle(writer, reader);
		return;
	case ELEMENT_MODULE_ZAPSIG:
		write_in_module(writer, reader, scope);
		return;
	case ELEMENT_NATIVE_ARRAY_TEMPLATE_ZAPSIG:
	case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
		signature_write_type(writer, reader, scope);
		return;
	default:
		write_primitive(writer, element);
	}
}

void signature_write_type(struct signature_writer *writer, struct reader *reader,
			  struct signature_scope scope)
{
	uint8_t element = reader_u8(reader);

	if (!reader_ok(reader))
		signature_writer_fail(writer, reader->failure);
	if (writer->why)
		return;
	if (!writer->budget.depth || !writer->budget.nodes) {
		signature_writer_fail(writer, "signature past the limits");
		return;
	}
	writer->budget.depth--;
	writer->budget.nodes--;
	write_element(writer, reader, scope, element);
	writer->budget.depth++;
}

/* ---- methods -------------------------------------------------------------- */

static const char *convention_words(uint8_t calling_convention)
{
	static const char *const words[16] = {
		[0] = "",
		[1] = "unmanaged cdecl ",
		[2] = "unmanaged stdcall ",
		[3] = "unmanaged thiscall ",
		[4] = "unmanaged fastcall ",
		[5] = "vararg ",
		[9] = "unmanaged ",
		[11] = "native vararg ",
	};

	return words[calling_convention & 15];
}

/* Is it void, also after modifiers? An init accessor returns `void modreq(IsExternalInit)`. */
static bool returns_void(struct reader reader)
{
	for (;;) {
		uint8_t element = reader_u8(&reader);

		if (element != ELEMENT_CMOD_REQD && element != ELEMENT_CMOD_OPT)
			return element == ELEMENT_VOID;
		signature_unsigned(&reader);
	}
}

/* Moves `reader` to the type argument of a task. Returns false if it has none; `reader` is then
 * past the task. */
static bool enter_task(struct signature_writer *writer, struct reader *reader)
{
	if (!reader_left(reader) || reader->data[reader->position] != ELEMENT_GENERICINST) {
		signature_skip_type(reader, &writer->budget);
		return false;
	}
	reader_skip(reader, 1);
	signature_skip_type(reader, &writer->budget);
	if (signature_unsigned(reader) != 1)
		reader_fail(reader, "a runtime-async method does not return a task");
	return true;
}

void signature_write_return(struct signature_writer *writer, struct reader *reader,
			    struct signature_scope scope, const struct signature_method *method)
{
	const char *words = convention_words(method->calling_convention);
	bool is_void = method->is_async_variant && !enter_task(writer, reader);

	if (!words) {
		signature_writer_fail(writer, "unknown calling convention");
		return;
	}
	if (writer->style == SIGNATURE_CROSSGEN2) {
		if (!is_void && returns_void(*reader)) {
			signature_skip_type(reader, &writer->budget);
			is_void = true;
		}
		if (!reader_ok(reader))
			signature_writer_fail(writer, reader->failure);
		if (is_void)
			return;
	} else {
		if (method->calling_convention & 0x40)
			write_word(writer, "explicit ");
		if (method->calling_convention & 0x20)
			write_word(writer, "instance ");
		write_word(writer, words);
	}
	if (is_void)
		write_word(writer, "void");
	else
		signature_write_type(writer, reader, scope);
	write_char(writer, ' ');
}

void signature_write_parameters(struct signature_writer *writer, struct reader *reader,
				struct signature_scope scope, const struct signature_method *method)
{
	write_char(writer, '(');
	for (uint32_t i = 0; i < method->parameter_count && !writer->why; i++) {
		if (i)
			signature_write(writer, ", ", writer->style == SIGNATURE_CROSSGEN2 ? 2 : 1);
		if (reader_left(reader) && reader->data[reader->position] == ELEMENT_SENTINEL) {
			reader_skip(reader, 1);
			write_word(writer, "...");
			/* A sentinel does not count as a parameter. */
			if (i < method->parameter_count)
				signature_write(writer, ", ",
						writer->style == SIGNATURE_CROSSGEN2 ? 2 : 1);
		}
		signature_write_type(writer, reader, scope);
	}
	write_char(writer, ')');
}

bool signature_write_method(const struct metadata *metadata, struct metadata_blob blob,
			    struct buf *out)
{
	struct reader reader = reader_over(blob.data, blob.size_bytes);
	struct signature_scope scope = { metadata, metadata };
	struct signature_method head = signature_read_method(&reader);
	struct signature_writer writer;

	buf_append_char(out, (char)head.calling_convention);
	signature_writer_init(&writer, out, SIGNATURE_CROSSGEN2);
	signature_write_return(&writer, &reader, scope, &head);
	signature_write_parameters(&writer, &reader, scope, &head);
	return !writer.why && reader_ok(&reader) && out->failure == BUF_OK;
}

/* The generic type of an instantiation. */
static struct signature_type spec_type(const struct metadata *metadata, uint32_t rid)
{
	struct metadata_blob blob = metadata_type_spec_signature(metadata, rid);
	struct reader reader = reader_over(blob.data, blob.size_bytes);
	uint8_t element = reader_u8(&reader);
	uint32_t token;

	if (element == ELEMENT_GENERICINST)
		element = reader_u8(&reader);
	token = signature_unsigned(&reader);
	if (!reader_ok(&reader) || (element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE) ||
	    (token & 3) > 1)
		return (struct signature_type){ 0 };
	return (struct signature_type){ token & 3, token >> 2 };
}

struct signature_type signature_member_parent(const struct metadata *metadata, uint32_t member)
{
	enum metadata_table table;
	uint32_t rid = metadata_member_ref_parent(metadata, member, &table);

	if (table == METADATA_TYPE_SPEC)
		return spec_type(metadata, rid);
	if (table != METADATA_TYPE_DEF && table != METADATA_TYPE_REF)
		rid = 0;
	return (struct signature_type){ table == METADATA_TYPE_REF, rid };
}
