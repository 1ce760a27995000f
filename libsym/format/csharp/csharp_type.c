/* SPDX-License-Identifier: MIT */
/*
 * One recursive descent over the three ways to write a type. What differs:
 *
 *                 primitive      nested  arguments   before a class
 *   signature     int32          /       <A,B>       class [A] or valuetype [A]
 *   type string   System.Int32   +       [A,B]       nothing
 *   crossgen2     System.Int32   +       [A, B]      nothing
 *
 * A bracket behind a name holds arguments, or it is an array: arrays hold digits, dots, commas and
 * stars only. A part of a name that begins with '<' is made by a compiler: its brackets belong to
 * the name. Type strings have a backslash before the characters of their own grammar.
 */
#include "libsym/format/csharp/csharp_type.h"

#include <string.h>

#include "libsym/format/csharp/csharp_made.h"
#include "libsym/format/csharp/csharp_text.h"
#include "libsym/limits.h"

enum {
	/* Real names have a few, and the arguments may be long. */
	MOST_SUBSTITUTIONS = 256,
};

/* ---- writing --------------------------------------------------------------------------------- */

struct csharp_writer csharp_writer_over(char *room, size_t room_bytes, uint32_t flags,
					size_t name_bytes)
{
	return (struct csharp_writer){
		.room = room,
		.room_bytes = room_bytes,
		.longest = 4 * name_bytes + 1024,
		.flags = flags,
		.depth = LIMIT_SIGNATURE_DEPTH,
		.substitutions = MOST_SUBSTITUTIONS,
	};
}

void csharp_write(struct csharp_writer *writer, const char *text, size_t size_bytes)
{
	size_t left = writer->length < writer->room_bytes ? writer->room_bytes - writer->length : 0;

	if (size_bytes > writer->longest - writer->length) {
		writer->failed = true;
		return;
	}
	if (size_bytes && left)
		memcpy(writer->room + writer->length, text, size_bytes < left ? size_bytes : left);
	writer->length += size_bytes;
}

void csharp_write_word(struct csharp_writer *writer, const char *text)
{
	csharp_write(writer, text, strlen(text));
}

void csharp_write_char(struct csharp_writer *writer, char byte)
{
	csharp_write(writer, &byte, 1);
}

void csharp_write_identifier(struct csharp_writer *writer, struct text_span text)
{
	for (const char *c = text.start; c < text.end; c++) {
		if (*c == '\\' && c + 1 < text.end)
			c++;
		csharp_write_char(writer, *c);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool ends_with(struct text_span text, const char *ending)
{
	size_t size_bytes = strlen(ending);

	return (size_t)(text.end - text.start) >= size_bytes &&
	       !memcmp(text.end - size_bytes, ending, size_bytes);
}

static bool is_open(char byte)
{
	return byte == '[' || byte == '<' || byte == '(';
}

/* The next byte of [at, end) that is one of `wanted` and in no bracket; `end` without. */
static const char *find_outside(const char *at, const char *end, const char *wanted)
{
	while (at < end) {
		if (*at == '\\')
			at = at + 2 < end ? at + 2 : end;
		else if (strchr(wanted, *at) && *at)
			return at;
		else
			at = is_open(*at) ? csharp_text_skip_brackets(at, end) : at + 1;
	}
	return end;
}

const char *csharp_item_end(const char *start, const char *end)
{
	return find_outside(start, end, ",");
}

/* Where arguments of a class name begin: at a bracket that is not at the beginning of a part. */
static const char *find_arguments(struct text_span text)
{
	bool begins = true;

	for (const char *c = text.start; c < text.end;) {
		if (begins && *c == '<') {
			c = csharp_text_skip_brackets(c, text.end);
			begins = false;
			continue;
		}
		if (*c == '[' || *c == '<')
			return c;
		begins = *c == '+' || *c == '/' || *c == '.';
		c += *c == '\\' && c + 1 < text.end ? 2 : 1;
	}
	return text.end;
}

struct csharp_class csharp_class_split(struct text_span text)
{
	const char *open = find_arguments(text);
	struct csharp_class class = { { text.start, open }, { text.end, text.end } };

	if (text.end - open >= 2 && text.end[-1] == (*open == '[' ? ']' : '>') &&
	    csharp_text_skip_brackets(open, text.end) == text.end)
		class.arguments = (struct text_span){ open + 1, text.end - 1 };
	return class;
}

struct text_span csharp_next_part(struct text_span *names)
{
	const char *end = find_outside(names->start, names->end, "+/");
	struct text_span part = { names->start, end };

	names->start = end < names->end ? end + 1 : end;
	return part;
}

unsigned int csharp_arity(struct text_span part, const char **name_end_ret)
{
	const char *c = part.end;
	unsigned int arity = 0, scale = 1;

	*name_end_ret = part.end;
	while (c > part.start && c[-1] >= '0' && c[-1] <= '9' && scale < 10000) {
		c--;
		arity += scale * (unsigned int)(*c - '0');
		scale *= 10;
	}
	if (c == part.start || c[-1] != '`' || c == part.end)
		return 0;
	*name_end_ret = c - 1;
	return arity;
}

static struct text_span skip_namespace(struct text_span part)
{
	struct text_span simple = part;

	for (const char *c = part.start; c < part.end;) {
		c = find_outside(c, part.end, ".");
		if (c < part.end)
			simple.start = ++c;
	}
	return simple;
}

/* ---- classes --------------------------------------------------------------------------------- */

void csharp_write_part(struct csharp_writer *writer, struct text_span part)
{
	struct text_span simple = skip_namespace(part);
	struct csharp_made made;

	csharp_arity(part, &part.end);
	simple.end = part.end;
	made = csharp_made_of(simple);
	if (!(writer->flags & CSHARP_NO_NAMESPACES))
		csharp_write_identifier(writer, (struct text_span){ part.start, simple.start });
	while (made.kind == CSHARP_STATE_MACHINE || made.kind == CSHARP_LAMBDA ||
	       made.kind == CSHARP_LOCAL || made.kind == CSHARP_FILE_LOCAL) {
		simple = made.of;
		made = csharp_made_of(simple);
	}
	csharp_write_identifier(writer, made.kind == CSHARP_TOP_LEVEL ? made.of : simple);
}

void csharp_write_arguments(struct csharp_writer *writer, struct text_span *arguments,
			    unsigned int count)
{
	bool shown = !(writer->flags & CSHARP_NO_TYPE_ARGUMENTS);

	if (!count)
		return;
	if (shown)
		csharp_write_char(writer, '<');
	for (unsigned int i = 0; i < count && !writer->failed; i++) {
		const char *end = csharp_item_end(arguments->start, arguments->end);

		if (i && shown)
			csharp_write_word(writer, arguments->start < arguments->end ? ", " : ",");
		if (shown && arguments->start < arguments->end)
			csharp_write_type(writer, (struct text_span){ arguments->start, end });
		arguments->start = end < arguments->end ? end + 1 : end;
	}
	if (shown)
		csharp_write_char(writer, '>');
}

unsigned int csharp_count_items(struct text_span list)
{
	unsigned int count = 0;

	while (list.start < list.end) {
		list.start = csharp_item_end(list.start, list.end) + 1;
		count++;
	}
	return count;
}

static void write_class(struct csharp_writer *writer, struct csharp_class class)
{
	while (class.names.start < class.names.end && !writer->failed) {
		struct text_span part = csharp_next_part(&class.names);
		const char *name_end;
		unsigned int arity = csharp_arity(part, &name_end);

		/* C# itself writes names of interfaces without the number. */
		if (class.names.start == class.names.end)
			arity = csharp_count_items(class.arguments) ?: arity;
		csharp_write_part(writer, part);
		csharp_write_arguments(writer, &class.arguments, arity);
		if (class.names.start < class.names.end)
			csharp_write_char(writer, '.');
	}
}

/* ---- types with a notation of their own ------------------------------------------------------ */

static const char *find_keyword(struct text_span text)
{
	static const char *const keywords[][3] = {
		{ "int32", "System.Int32", "int" },
		{ "string", "System.String", "string" },
		{ "object", "System.Object", "object" },
		{ "bool", "System.Boolean", "bool" },
		{ "void", "System.Void", "void" },
		{ "char", "System.Char", "char" },
		{ "int64", "System.Int64", "long" },
		{ "uint8", "System.Byte", "byte" },
		{ "int8", "System.SByte", "sbyte" },
		{ "int16", "System.Int16", "short" },
		{ "uint16", "System.UInt16", "ushort" },
		{ "uint32", "System.UInt32", "uint" },
		{ "uint64", "System.UInt64", "ulong" },
		{ "float32", "System.Single", "float" },
		{ "float64", "System.Double", "double" },
		{ "native int", "System.IntPtr", "nint" },
		{ "native uint", "System.UIntPtr", "nuint" },
		{ "typedref", "System.TypedReference", "TypedReference" },
		{ "decimal", "System.Decimal", "decimal" },
		{ "...", "...", "__arglist" },
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
		if (csharp_text_is(text, keywords[i][0]) || csharp_text_is(text, keywords[i][1]))
			return keywords[i][2];
	return NULL;
}

/* "!0" is what the owner was made with, where that is known. "!!0" is never known. */
static void write_parameter(struct csharp_writer *writer, struct text_span text)
{
	bool of_method = text.end - text.start > 1 && text.start[1] == '!';
	struct text_span number = { text.start + 1 + of_method, text.end };
	struct text_span left = writer->arguments;
	unsigned int index = 0;

	for (const char *c = number.start; c < number.end; c++) {
		if (*c < '0' || *c > '9' || index > 10000) {
			writer->failed = true;
			return;
		}
		index = 10 * index + (unsigned int)(*c - '0');
	}
	for (unsigned int i = 0; i < index && left.start < left.end && !of_method; i++)
		left.start = csharp_item_end(left.start, left.end) + 1;
	if (number.start == number.end || !writer->substitutions--) {
		writer->failed = true;
	} else if (of_method || left.start >= left.end) {
		csharp_write_char(writer, of_method ? 'M' : 'T');
		csharp_write_identifier(writer, number);
	} else {
		struct text_span arguments = writer->arguments;

		writer->arguments = (struct text_span){ NULL, NULL };
		left.end = csharp_item_end(left.start, left.end);
		csharp_write_type(writer, left);
		writer->arguments = arguments;
	}
}

/* "A,B" of ValueTuple`2 to "(A, B)", "A" of Nullable`1 to "A?"; false when it is another class. */
static bool write_shorthand(struct csharp_writer *writer, const struct csharp_class *class)
{
	unsigned int count = csharp_count_items(class->arguments);

	if (!count || writer->flags & CSHARP_NO_TYPE_ARGUMENTS)
		return false;
	if (count == 1 && csharp_text_is(class->names, "System.Nullable`1")) {
		csharp_write_type(writer, class->arguments);
		csharp_write_char(writer, '?');
		return true;
	}
	if (count < 2 || count > 7 ||
	    !csharp_text_starts_with(class->names, "System.ValueTuple`") ||
	    class->names.end - class->names.start != sizeof("System.ValueTuple`2") - 1)
		return false;
	csharp_write_char(writer, '(');
	csharp_write_types(writer, class->arguments);
	csharp_write_char(writer, ')');
	return true;
}

static struct text_span skip_convention(struct text_span text)
{
	static const char *const words[] = { "explicit ", "instance ", "unmanaged ", "cdecl ",
					     "stdcall ",  "thiscall ", "fastcall ",  "vararg " };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (csharp_text_starts_with(text, words[i]))
			text.start += strlen(words[i]);
	return text;
}

/* "method int32 *(string)" to "delegate*<string, int>". */
static void write_function_pointer(struct csharp_writer *writer, struct text_span text)
{
	const char *star = text.end, *start = text.start + sizeof("method ") - 1;

	for (const char *c = start; c < text.end; c++)
		if (c[0] == '*' && c + 1 < text.end && c[1] == '(' &&
		    csharp_text_skip_brackets(c + 1, text.end) == text.end)
			star = c;
	if (star == text.end || star == start || star[-1] != ' ') {
		writer->failed = true;
		return;
	}
	csharp_write_word(writer, "delegate*<");
	if (star + 2 < text.end - 1) {
		csharp_write_types(writer, (struct text_span){ star + 2, text.end - 1 });
		csharp_write_word(writer, ", ");
	}
	text = skip_convention((struct text_span){ start, star - 1 });
	csharp_write_type(writer, text);
	csharp_write_char(writer, '>');
}

/* The bracket that is closed at the end of the text; NULL when it holds no bounds of an array. */
static const char *find_array(struct text_span text)
{
	const char *open = NULL;

	for (const char *c = text.start; c < text.end;) {
		c = find_outside(c, text.end, "[");
		if (c == text.end)
			break;
		open = c;
		c = csharp_text_skip_brackets(c, text.end);
		if (c < text.end)
			open = NULL;
	}
	if (!open || text.end - open < 2 || open == text.start || text.end[-1] != ']')
		return NULL;
	for (const char *c = open + 1; c < text.end - 1; c++)
		if (!strchr("0123456789.,*-", *c) || !*c)
			return NULL;
	return open;
}

/* In C# the outermost array stands first: int32[][0...,0...] is int[,][]. */
static bool write_arrays(struct csharp_writer *writer, struct text_span text)
{
	struct text_span element = text, bounds;
	const char *open;

	while ((open = find_array(element)) != NULL)
		element.end = open;
	if (element.end == text.end)
		return false;
	csharp_write_type(writer, element);
	for (bounds = text; (open = find_array(bounds)) != NULL; bounds.end = open) {
		csharp_write_char(writer, '[');
		for (const char *c = open; c < bounds.end; c++)
			if (*c == ',')
				csharp_write_char(writer, ',');
		csharp_write_char(writer, ']');
	}
	return true;
}

/* "int32 modreq(C)" to "int32"; modifiers are of no language. */
static struct text_span strip_modifiers(struct text_span text)
{
	for (;;) {
		const char *open;

		if (ends_with(text, " pinned")) {
			text.end -= sizeof(" pinned") - 1;
			continue;
		}
		open = find_outside(text.start, text.end, "(");
		while (open < text.end && csharp_text_skip_brackets(open, text.end) < text.end)
			open = find_outside(csharp_text_skip_brackets(open, text.end), text.end,
					    "(");
		if (open == text.end ||
		    (!ends_with((struct text_span){ text.start, open }, " modreq") &&
		     !ends_with((struct text_span){ text.start, open }, " modopt")))
			return text;
		text.end = open - (sizeof(" modreq") - 1);
	}
}

static void write_core(struct csharp_writer *writer, struct text_span text)
{
	const char *keyword;
	struct csharp_class class;

	if (csharp_text_starts_with(text, "class "))
		text.start += sizeof("class ") - 1;
	else if (csharp_text_starts_with(text, "valuetype "))
		text.start += sizeof("valuetype ") - 1;
	if (text.start < text.end && *text.start == '[')
		text.start = csharp_text_skip_brackets(text.start, text.end);
	keyword = find_keyword(text);
	if (keyword) {
		csharp_write_word(writer, keyword);
		return;
	}
	class = csharp_class_split(text);
	if (class.names.start == class.names.end ||
	    find_outside(text.start, text.end, " ") < text.end ||
	    (class.arguments.start == class.arguments.end && class.names.end < text.end))
		writer->failed = true;
	else if (!write_shorthand(writer, &class))
		write_class(writer, class);
}

static void write_any(struct csharp_writer *writer, struct text_span text)
{
	char last = text.end > text.start ? text.end[-1] : '\0';
	bool escaped = text.end - text.start > 1 && text.end[-2] == '\\';
	struct text_span rest = { text.start, text.end - 1 };

	if (last == '&' && !escaped) {
		csharp_write_word(writer, "ref ");
		csharp_write_type(writer, rest);
	} else if (last == '*' && !escaped) {
		csharp_write_type(writer, rest);
		csharp_write_char(writer, '*');
	} else if (csharp_text_starts_with(text, "method ") && last == ')') {
		write_function_pointer(writer, text);
	} else if (last == '\0') {
		writer->failed = true;
	} else if (*text.start == '!') {
		write_parameter(writer, text);
	} else if (csharp_text_is(text, "(fnptr)")) {
		csharp_write_word(writer, "delegate*");
	} else if (last != ']' || !write_arrays(writer, text)) {
		write_core(writer, text);
	}
}

void csharp_write_type(struct csharp_writer *writer, struct text_span text)
{
	if (!writer->depth)
		writer->failed = true;
	if (writer->failed)
		return;
	while (text.start < text.end && *text.start == ' ')
		text.start++;
	writer->depth--;
	write_any(writer, strip_modifiers(text));
	writer->depth++;
}

void csharp_write_types(struct csharp_writer *writer, struct text_span list)
{
	while (list.start < list.end && !writer->failed) {
		const char *end = csharp_item_end(list.start, list.end);

		csharp_write_type(writer, (struct text_span){ list.start, end });
		list.start = end < list.end ? end + 1 : end;
		if (end < list.end)
			csharp_write_word(writer, ", ");
	}
}
