/* SPDX-License-Identifier: MIT */
/*
 * A name is split (method_name.h) and written again, in this order:
 *
 *   async lambda(int) in  N.Outer<int>.Inner  .M<string>  (A, B)
 *   what it is            owner                member      parameters
 *
 * What the compiler has made is taken off from the inside out: first the types around the method
 * (closures, state machines), then the layers of the method's own name. What is left is the method
 * of the source, and its type. Where a layer is not known (csharp_made.h), it stays as it is.
 */
#include "libsym/format/csharp/csharp_name.h"

#include <string.h>

#include "libsym/format/csharp/csharp_made.h"
#include "libsym/format/csharp/csharp_text.h"
#include "libsym/format/csharp/csharp_type.h"
#include "libsym/limits.h"

enum {
	MOST_PARTS = 64,
	LONGEST_BASE_BYTES = 1024,
	LONGEST_WITH_ADDRESSES = 4096,
};

struct method {
	struct csharp_writer *writer;
	struct method_name_parts parts;
	bool has_signature;
	struct text_span owners[MOST_PARTS];
	size_t owner_count; /* without what the compiler has made */
	struct text_span arguments;
	struct text_span machine; /* the state machine around it, with its arity; empty: none */
};

static bool is_empty(struct text_span text)
{
	return text.start >= text.end;
}

/* ---- signatures ------------------------------------------------------------------------------ */

/* Is the last word of the return type `word` or `name`? */
static bool returns(const struct method *method, const char *word, const char *name)
{
	struct text_span last = method->parts.return_type;

	for (const char *c = last.start; c < last.end; c++)
		if (*c == ' ')
			last.start = c + 1;
	return csharp_text_is(last, word) || csharp_text_is(last, name);
}

static bool contains(struct text_span text, const char *word)
{
	return !is_empty(text) &&
	       memmem(text.start, (size_t)(text.end - text.start), word, strlen(word));
}

static bool is_init(const struct method *method)
{
	return contains(method->parts.return_type, " modreq(") &&
	       contains(method->parts.return_type, "IsExternalInit)");
}

/* crossgen2 leaves void out. */
static bool returns_void(const struct method *method)
{
	return returns(method, "void", "System.Void") || is_empty(method->parts.return_type) ||
	       is_init(method);
}

/* Variables of the method around it, which a local function gets by reference. */
static bool is_closure(struct text_span type)
{
	return contains(type, "/<>c__DisplayClass") && type.end[-1] == '&';
}

/* The first `count` parameters, between brackets. */
static void write_parameters(struct method *method, unsigned int count, const char *brackets)
{
	struct text_span left = method->parts.parameters;
	bool is_first = true;

	csharp_write_char(method->writer, brackets[0]);
	for (; count-- && !is_empty(left) && !method->writer->failed;) {
		struct text_span type = { left.start, csharp_item_end(left.start, left.end) };

		left.start = type.end + 1;
		if (method->writer->flags & CSHARP_NO_PARAMETERS || is_closure(type))
			continue;
		if (!is_first)
			csharp_write_word(method->writer, ", ");
		csharp_write_type(method->writer, type);
		is_first = false;
	}
	csharp_write_char(method->writer, brackets[1]);
}

static void write_list(struct method *method)
{
	if (method->has_signature && !(method->writer->flags & CSHARP_NO_PARAMETERS))
		write_parameters(method, UINT32_MAX, "()");
}

/* ---- members --------------------------------------------------------------------------------- */

static const char *find_operator(struct text_span name)
{
	static const char *const operators[][2] = {
		{ "Equality", "==" },
		{ "Inequality", "!=" },
		{ "LessThan", "<" },
		{ "GreaterThan", ">" },
		{ "LessThanOrEqual", "<=" },
		{ "GreaterThanOrEqual", ">=" },
		{ "Addition", "+" },
		{ "Subtraction", "-" },
		{ "Multiply", "*" },
		{ "Division", "/" },
		{ "Modulus", "%" },
		{ "BitwiseAnd", "&" },
		{ "BitwiseOr", "|" },
		{ "ExclusiveOr", "^" },
		{ "LeftShift", "<<" },
		{ "RightShift", ">>" },
		{ "UnsignedRightShift", ">>>" },
		{ "UnaryPlus", "+" },
		{ "UnaryNegation", "-" },
		{ "LogicalNot", "!" },
		{ "OnesComplement", "~" },
		{ "Increment", "++" },
		{ "Decrement", "--" },
		{ "True", "true" },
		{ "False", "false" },
		{ "AdditionAssignment", "+=" },
		{ "SubtractionAssignment", "-=" },
		{ "MultiplicationAssignment", "*=" },
		{ "DivisionAssignment", "/=" },
		{ "ModulusAssignment", "%=" },
		{ "BitwiseAndAssignment", "&=" },
		{ "BitwiseOrAssignment", "|=" },
		{ "ExclusiveOrAssignment", "^=" },
		{ "LeftShiftAssignment", "<<=" },
		{ "RightShiftAssignment", ">>=" },
		{ "UnsignedRightShiftAssignment", ">>>=" },
		{ "IncrementAssignment", "++" },
		{ "DecrementAssignment", "--" },
	};

	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (csharp_text_is(name, operators[i][0]))
			return operators[i][1];
	return NULL;
}

/* The type that a conversion makes: the return type without "static" words before it. */
static void write_conversion(struct method *method, const char *word, bool knows_signature)
{
	csharp_write_word(method->writer, word);
	if (!knows_signature || is_empty(method->parts.return_type))
		return;
	csharp_write_char(method->writer, ' ');
	csharp_write_type(method->writer, method->parts.return_type);
}

static bool write_operator(struct method *method, struct text_span name, bool knows_signature)
{
	const char *sign;
	bool is_checked;

	if (!csharp_text_starts_with(name, "op_"))
		return false;
	name.start += 3;
	if (csharp_text_is(name, "Implicit")) {
		write_conversion(method, "implicit operator", knows_signature);
		return true;
	}
	is_checked = csharp_text_starts_with(name, "Checked");
	name.start += is_checked ? sizeof("Checked") - 1 : 0;
	if (csharp_text_is(name, "Explicit")) {
		write_conversion(method,
				 is_checked ? "explicit operator checked" : "explicit operator",
				 knows_signature);
		return true;
	}
	sign = find_operator(name);
	if (!sign)
		return false;
	csharp_write_word(method->writer, is_checked ? "operator checked " : "operator ");
	csharp_write_word(method->writer, sign);
	return true;
}

/* "X.get" or "this[A].get"; `taken` parameters belong to the accessor itself. */
static bool write_accessor_as(struct method *method, struct text_span name, const char *word,
			      bool knows_signature, unsigned int taken)
{
	unsigned int count = knows_signature ? csharp_count_items(method->parts.parameters) : taken;
	bool is_indexer =
		count > taken && (csharp_text_is(name, "Item") || csharp_text_is(name, "Chars"));

	if (is_empty(name) || count < taken || (count > taken && !is_indexer))
		return false;
	if (is_indexer) {
		csharp_write_word(method->writer, "this");
		write_parameters(method, count - taken, "[]");
	} else {
		csharp_write_identifier(method->writer, name);
	}
	csharp_write_char(method->writer, '.');
	csharp_write_word(method->writer, word);
	return true;
}

static bool write_accessor(struct method *method, struct text_span name, bool knows_signature)
{
	static const struct {
		const char *prefix, *word;
		unsigned int taken;
		bool is_void;
	} accessors[] = {
		{ "get_", "get", 0, false },
		{ "set_", "set", 1, true },
		{ "add_", "add", 1, true },
		{ "remove_", "remove", 1, true },
	};

	for (size_t i = 0; i < sizeof(accessors) / sizeof(*accessors); i++) {
		const char *word = accessors[i].word;
		struct text_span rest = { name.start + strlen(accessors[i].prefix), name.end };

		if (!csharp_text_starts_with(name, accessors[i].prefix) ||
		    (knows_signature && returns_void(method) != accessors[i].is_void))
			continue;
		if (accessors[i].word[0] == 's' && knows_signature && is_init(method))
			word = "init";
		return write_accessor_as(method, rest, word, knows_signature, accessors[i].taken);
	}
	return false;
}

/* Where the simple name begins: behind the interface that the method implements. */
static const char *skip_interface(struct text_span name)
{
	const char *simple = name.start;

	for (const char *c = name.start; c < name.end; c++) {
		if (*c == '<' || *c == '(' || *c == '[')
			c = csharp_text_skip_brackets(c, name.end) - 1;
		else if (*c == '.' && c > name.start && c + 1 < name.end)
			simple = c + 1;
	}
	return simple;
}

/* A method of the source; `has_list`: the parameters of `method` are its own. */
static void write_member(struct method *method, struct text_span name, bool has_list)
{
	struct text_span simple = { skip_interface(name), name.end };

	if (simple.start > name.start) {
		csharp_write_type(method->writer,
				  (struct text_span){ name.start, simple.start - 1 });
		csharp_write_char(method->writer, '.');
	}
	if (write_accessor(method, simple, has_list && method->has_signature))
		return;
	if (!write_operator(method, simple, has_list && method->has_signature))
		csharp_write_identifier(method->writer, simple);
	if (has_list)
		write_list(method);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Methods that are made at run time have this owner, which is no type. */
static bool is_dynamic(const struct method *method)
{
	return method->owner_count == 1 && csharp_text_is(method->owners[0], "dynamicClass");
}

static struct csharp_made made_type(struct text_span part)
{
	csharp_arity(part, &part.end);
	return csharp_made_of(part);
}

static void write_owner(struct method *method)
{
	uint32_t flags = method->writer->flags;

	for (size_t i = 0; i < method->owner_count; i++) {
		struct text_span owner = method->owners[i];
		enum csharp_made_kind kind = made_type(owner).kind;
		bool is_hidden = kind == CSHARP_EXTENSION;
		const char *name_end;
		unsigned int arity = csharp_arity(owner, &name_end);

		if (is_hidden)
			method->writer->flags |= CSHARP_NO_TYPE_ARGUMENTS;
		else if (i)
			csharp_write_char(method->writer, '.');
		if (kind == CSHARP_STATE_MACHINE)
			csharp_write_identifier(method->writer,
						(struct text_span){ owner.start, name_end });
		else if (!is_hidden)
			csharp_write_part(method->writer, owner);
		csharp_write_arguments(method->writer, &method->arguments, arity);
		method->writer->flags = flags;
	}
}

/* Writes the type arguments of a generic method. The compiler puts them on the state machine. */
static void write_method_arguments(struct method *method)
{
	const char *name_end;

	if (!is_empty(method->machine))
		csharp_write_arguments(method->writer, &method->arguments,
				       csharp_arity(method->machine, &name_end));
}

/* The method `name` of the source, with its owner. */
static void write_source_method(struct method *method, struct text_span name, bool has_list)
{
	bool is_constructor = csharp_text_is(name, ".ctor"),
	     is_static = csharp_text_is(name, ".cctor");

	if (is_constructor || is_static)
		csharp_write_word(method->writer, is_constructor ? "new " : "static ");
	if (!is_dynamic(method)) {
		write_owner(method);
		if (!is_constructor && !is_static)
			csharp_write_char(method->writer, '.');
	}
	if (!is_constructor && !is_static)
		write_member(method, name, has_list);
	else if (has_list)
		write_list(method);
}

/* ---- what the compiler has made -------------------------------------------------------------- */

/* In names of types the compiler writes '-' for '.', and the runtime a backslash. */
static struct text_span to_method_name(struct text_span name, char *room)
{
	struct text_span copy = { room, room };

	if (name.end - name.start > LONGEST_BASE_BYTES)
		return name;
	for (const char *c = name.start; c < name.end; c++) {
		if (*c == '\\' && c + 1 < name.end)
			c++;
		room[copy.end++ - room] = *c == '-' ? '.' : *c;
	}
	return copy;
}

/* Writes the layers of a name from outside in, and then the method of the source. */
static void write_layers(struct method *method, struct text_span name, bool has_list)
{
	static const char with[] = "with";
	struct csharp_made made = csharp_made_of(name);
	bool is_made = false;

	for (; made.kind == CSHARP_LAMBDA || made.kind == CSHARP_LOCAL;
	     made = csharp_made_of(name)) {
		if (made.kind == CSHARP_LAMBDA) {
			csharp_write_word(method->writer, "lambda");
		} else {
			csharp_write_word(method->writer, "local ");
			csharp_write_identifier(method->writer, made.name);
		}
		if (has_list)
			write_list(method);
		csharp_write_word(method->writer, " in ");
		has_list = false;
		is_made = true;
		name = made.of;
	}
	if (made.kind == CSHARP_ENTRY_POINT)
		csharp_write_word(method->writer, "entry point ");
	if (made.kind == CSHARP_ENTRY_POINT || made.kind == CSHARP_TOP_LEVEL)
		name = made.of;
	if (made.kind == CSHARP_CLONE)
		name = (struct text_span){ with, with + sizeof(with) - 1 };
	write_source_method(method, name, has_list);
	if (!is_made)
		write_method_arguments(method);
}

/* MoveNext is the body: of an iterator it returns whether there is more. */
static void write_in_machine(struct method *method, struct text_span of)
{
	struct text_span name = method->parts.method;
	struct text_span simple = { skip_interface(name), name.end };
	char room[LONGEST_BASE_BYTES];

	if (csharp_text_is(simple, "MoveNext")) {
		if (method->has_signature && returns(method, "bool", "System.Boolean"))
			csharp_write_word(method->writer, "iterator ");
		else if (method->has_signature && returns_void(method))
			csharp_write_word(method->writer, "async ");
	} else if (csharp_made_of(name).kind == CSHARP_FINALLY) {
		csharp_write_word(method->writer, "finally in ");
	} else {
		write_member(method, name, true);
		csharp_write_word(method->writer, " of ");
	}
	write_layers(method, to_method_name(of, room), false);
}

/* Takes closures and the state machine off the owners. Returns the state machine. */
static struct csharp_made strip_made_types(struct method *method)
{
	struct csharp_made machine = { .kind = CSHARP_NOT_MADE };

	while (method->owner_count > 1) {
		struct text_span part = method->owners[method->owner_count - 1];
		struct csharp_made made = made_type(part);

		if (made.kind == CSHARP_STATE_MACHINE && machine.kind == CSHARP_NOT_MADE) {
			machine = made;
			method->machine = part;
		} else if (made.kind != CSHARP_CLOSURE) {
			break;
		}
		method->owner_count--;
	}
	return machine;
}

static bool split_owner(struct method *method)
{
	struct csharp_class owner = csharp_class_split(method->parts.owner);

	method->arguments = owner.arguments;
	method->writer->arguments = owner.arguments;
	while (!is_empty(owner.names)) {
		if (method->owner_count == MOST_PARTS)
			return false;
		method->owners[method->owner_count++] = csharp_next_part(&owner.names);
	}
	return method->owner_count &&
	       (!is_empty(owner.arguments) || owner.names.end == method->parts.owner.end);
}

static void write_method(struct method *method)
{
	size_t all_owners;
	struct csharp_made machine;
	struct text_span name = method->parts.method;

	if (!split_owner(method) || is_empty(name)) {
		method->writer->failed = true;
		return;
	}
	all_owners = method->owner_count;
	machine = strip_made_types(method);
	if (csharp_text_is(name, ".ctor") || csharp_text_is(name, ".cctor") ||
	    (machine.kind == CSHARP_NOT_MADE && csharp_made_of(name).kind == CSHARP_NOT_MADE)) {
		/* a member of the made type itself */
		method->owner_count = all_owners;
		method->machine = (struct text_span){ NULL, NULL };
		write_source_method(method, name, true);
	} else if (machine.kind == CSHARP_STATE_MACHINE) {
		write_in_machine(method, machine.of);
	} else {
		write_layers(method, name, true);
	}
}

/* "N.T::M" without a signature. */
static bool split_bare(struct text_span text, struct method_name_parts *ret)
{
	const char *colons = NULL;

	for (const char *c = text.start; c < text.end; c++) {
		if (*c == '[' || *c == '<')
			c = csharp_text_skip_brackets(c, text.end) - 1;
		else if (c + 1 < text.end && c[0] == ':' && c[1] == ':')
			colons = c++;
	}
	*ret = (struct method_name_parts){ 0 };
	if (!colons)
		return false;
	ret->owner = (struct text_span){ text.start, colons };
	ret->method = (struct text_span){ colons + 2, text.end };
	return true;
}

static const char address_start[] = " /* MT: 0x", address_end[] = " */";

/* The runtime prints the address of a type in the signature of a dynamic method behind its name
 * (prettyprintsig.cpp). C# has no addresses. Returns the length of the rest. */
static size_t leave_out_addresses(const char *name, size_t name_bytes, char *room)
{
	const char *end = name + name_bytes;
	size_t length = 0;

	while (name < end) {
		const char *found = memmem(name, (size_t)(end - name), address_start,
					   sizeof(address_start) - 1);
		const char *stop = found ? memmem(found, (size_t)(end - found), address_end,
						  sizeof(address_end) - 1)
					 : NULL;
		size_t kept = (size_t)((stop ? found : end) - name);

		memcpy(room + length, name, kept);
		length += kept;
		name = stop ? stop + sizeof(address_end) - 1 : end;
	}
	return length;
}

static size_t write_name(const char *name, size_t name_bytes, uint32_t flags, char *room,
			 size_t room_bytes)
{
	size_t kept = method_name_mark_bytes(name, name_bytes);
	struct text_span whole = { name + kept, name + name_bytes };
	struct csharp_writer writer = csharp_writer_over(room, room_bytes, flags, name_bytes);
	struct method method = { .writer = &writer };

	csharp_write(&writer, name, kept);
	method.has_signature = name_bytes <= LIMIT_NAME_BYTES &&
			       method_name_split(whole.start, name_bytes - kept, &method.parts);
	if (method.has_signature || (flags & CSHARP_IS_MANAGED && name_bytes <= LIMIT_NAME_BYTES &&
				     split_bare(whole, &method.parts)))
		write_method(&method);
	else
		writer.failed = true;
	if (writer.failed) {
		writer = csharp_writer_over(room, room_bytes, flags, name_bytes);
		csharp_write(&writer, name, name_bytes);
	}
	if (room_bytes)
		room[writer.length < room_bytes ? writer.length : room_bytes - 1] = '\0';
	return writer.length;
}

size_t csharp_name(const char *name, size_t name_bytes, uint32_t flags, char *room,
		   size_t room_bytes)
{
	char plain[LONGEST_WITH_ADDRESSES];

	if (name_bytes <= sizeof(plain) &&
	    memmem(name, name_bytes, address_start, sizeof(address_start) - 1)) {
		name_bytes = leave_out_addresses(name, name_bytes, plain);
		name = plain;
	}
	return write_name(name, name_bytes, flags, room, room_bytes);
}
