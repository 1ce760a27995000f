/* SPDX-License-Identifier: MIT */
/* Parses the text in one pass without recursion, so nesting costs nothing. */
#include "libsym/clr/contract_text.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/limits.h"

/* Tokens that may come next, as a set of flags. */
enum expected {
	EXPECT_VALUE = 1 << 0,
	EXPECT_NAME = 1 << 1,
	EXPECT_CLOSE = 1 << 2,
	EXPECT_COMMA = 1 << 3,
};

struct parser {
	struct contract_text text;
	size_t at;
	size_t parent; /* index of the innermost open value; its `end` is its own parent */
	unsigned int expected;
	const char *trouble; /* static */
	bool no_memory;
};

static const size_t no_parent = UINT32_MAX;

static bool contract_text_fail(struct parser *parser, const char *trouble)
{
	parser->trouble = trouble;
	return false;
}

static struct contract_value *contract_text_add_value(struct parser *parser,
						      enum contract_kind kind)
{
	struct contract_text *text = &parser->text;

	if (!grow_items((void **)&text->values, &text->capacity, text->count,
			sizeof(*text->values))) {
		parser->no_memory = true;
		return NULL;
	}
	text->values[text->count] =
		(struct contract_value){ .kind = kind, .end = (uint32_t)text->count + 1 };
	return &text->values[text->count++];
}

/* Handles the end of a value. */
static bool contract_text_end_value(struct parser *parser)
{
	parser->expected = parser->parent == no_parent ? 0 : EXPECT_COMMA | EXPECT_CLOSE;
	return true;
}

static bool open_value(struct parser *parser, enum contract_kind kind)
{
	struct contract_value *value;

	if (!(parser->expected & EXPECT_VALUE))
		return contract_text_fail(parser, "a value that nothing asks for");
	value = contract_text_add_value(parser, kind);
	if (!value)
		return false;
	value->end = (uint32_t)parser->parent;
	parser->parent = parser->text.count - 1;
	parser->expected = EXPECT_CLOSE | (kind == CONTRACT_OBJECT ? EXPECT_NAME : EXPECT_VALUE);
	parser->at++;
	return true;
}

static bool names_differ(const struct parser *parser, const struct contract_value *object,
			 const struct contract_value *end)
{
	const struct contract_value *value = parser->text.values, *name, *other;
	size_t count = 0;

	for (name = object + 1; name < end; name = value + name[1].end) {
		if (++count > LIMIT_CONTRACT_NAMES)
			return false;
		for (other = object + 1; other < name; other = value + other[1].end)
			if (other->end == name->end && !strcmp(other->text, name->text))
				return false;
	}
	return true;
}

static bool close_value(struct parser *parser, enum contract_kind kind)
{
	struct contract_value *value;

	if (!(parser->expected & EXPECT_CLOSE) || parser->text.values[parser->parent].kind != kind)
		return contract_text_fail(parser, "an end without a beginning");
	value = &parser->text.values[parser->parent];
	parser->parent = value->end;
	value->end = (uint32_t)parser->text.count;
	if (kind == CONTRACT_OBJECT &&
	    !names_differ(parser, value, parser->text.values + parser->text.count))
		return contract_text_fail(parser, "a name twice, or too many names");
	parser->at++;
	return contract_text_end_value(parser);
}

/*
 * Reads a string from its opening quote on; NULL when it is invalid. The closing quote becomes a
 * NUL.
 */
static const char *read_quoted(struct parser *parser, uint32_t *hash_ret)
{
	char *begin = parser->text.bytes + parser->at + 1, *at = begin;
	uint32_t hash = 2166136261u;

	for (; *at != '"'; at++) {
		if (*at < ' ' || *at > '~' || *at == '\\')
			return NULL;
		hash = (hash ^ (uint32_t)*at) * 16777619;
	}
	*at = '\0';
	parser->at = (size_t)(at + 1 - parser->text.bytes);
	*hash_ret = hash;
	return begin;
}

static void skip_blanks(struct parser *parser)
{
	const char *bytes = parser->text.bytes;

	while (bytes[parser->at] == ' ' || bytes[parser->at] == '\n' || bytes[parser->at] == '\t' ||
	       bytes[parser->at] == '\r')
		parser->at++;
}

static bool read_text(struct parser *parser)
{
	bool is_name = parser->expected & EXPECT_NAME;
	struct contract_value *value;
	const char *text;
	uint32_t hash;

	if (!(parser->expected & (EXPECT_NAME | EXPECT_VALUE)))
		return contract_text_fail(parser, "a text that nothing asks for");
	text = read_quoted(parser, &hash);
	if (!text)
		return contract_text_fail(parser, "a text that has no end, or is not plain");
	value = contract_text_add_value(parser, is_name ? CONTRACT_NAME : CONTRACT_TEXT);
	if (!value)
		return false;
	value->text = text;
	if (!is_name)
		return contract_text_end_value(parser);
	value->end = hash;
	skip_blanks(parser);
	if (parser->text.bytes[parser->at] != ':')
		return contract_text_fail(parser, "a name without a value");
	parser->at++;
	parser->expected = EXPECT_VALUE;
	return true;
}

static bool read_number(struct parser *parser)
{
	const char *begin = parser->text.bytes + parser->at, *at = begin + (*begin == '-');
	const char *digits = at;
	struct contract_value *value;
	int64_t number = 0;

	while (*at >= '0' && *at <= '9' && at - digits < 18)
		number = number * 10 + (*at++ - '0');
	if (at == digits || (*at >= '0' && *at <= '9') || (*digits == '0' && at - digits > 1))
		return contract_text_fail(parser, "no whole number");
	value = contract_text_add_value(parser, CONTRACT_NUMBER);
	if (!value)
		return false;
	value->number = *begin == '-' ? -number : number;
	parser->at = (size_t)(at - parser->text.bytes);
	return contract_text_end_value(parser);
}

static bool read_plain(struct parser *parser)
{
	static const char *const words[] = { "true", "false", "null" };
	const char *begin = parser->text.bytes + parser->at;

	if (!(parser->expected & EXPECT_VALUE))
		return contract_text_fail(parser, "a value that nothing asks for");
	if (*begin == '-' || (*begin >= '0' && *begin <= '9'))
		return read_number(parser);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(begin, words[i], strlen(words[i]))) {
			parser->at += strlen(words[i]);
			return contract_text_add_value(parser, CONTRACT_OTHER) &&
			       contract_text_end_value(parser);
		}
	return contract_text_fail(parser, "no value");
}

static bool read_comma(struct parser *parser)
{
	if (!(parser->expected & EXPECT_COMMA))
		return contract_text_fail(parser, "a comma that nothing asks for");
	parser->expected = parser->text.values[parser->parent].kind == CONTRACT_OBJECT
				   ? EXPECT_NAME
				   : EXPECT_VALUE;
	parser->at++;
	return true;
}

/* Reads the next token; false: the text is invalid, or out of memory. */
static bool contract_text_read_token(struct parser *parser)
{
	switch (parser->text.bytes[parser->at]) {
	case '{':
		return open_value(parser, CONTRACT_OBJECT);
	case '[':
		return open_value(parser, CONTRACT_ARRAY);
	case '}':
		return close_value(parser, CONTRACT_OBJECT);
	case ']':
		return close_value(parser, CONTRACT_ARRAY);
	case ',':
		return read_comma(parser);
	case '"':
		return read_text(parser);
	default:
		return read_plain(parser);
	}
}

static struct sym_error *parser_error(const struct parser *parser)
{
	if (parser->no_memory)
		return &sym_error_no_memory;
	return sym_error_create(SYM_ERROR_FORMAT, "data contract of the runtime: byte %zu: %s",
				parser->at, parser->trouble);
}

struct sym_error *contract_text_parse(const void *bytes, size_t size_bytes,
				      struct contract_text *ret)
{
	struct parser parser = { .parent = no_parent, .expected = EXPECT_VALUE };
	bool good = size_bytes < UINT32_MAX;

	/* One more byte for the NUL after the text. */
	parser.text.bytes = good ? malloc(size_bytes + 1) : NULL;
	if (!parser.text.bytes)
		return &sym_error_no_memory;
	if (size_bytes)
		memcpy(parser.text.bytes, bytes, size_bytes);
	parser.text.bytes[size_bytes] = '\0';
	for (skip_blanks(&parser); good && parser.at < size_bytes; skip_blanks(&parser))
		good = contract_text_read_token(&parser);
	if (good && parser.expected)
		good = contract_text_fail(&parser, "the end is missing");
	if (!good) {
		contract_text_deinit(&parser.text);
		return parser_error(&parser);
	}
	*ret = parser.text;
	return NULL;
}

void contract_text_deinit(struct contract_text *text)
{
	free(text->bytes);
	free(text->values);
	*text = (struct contract_text){ 0 };
}

const struct contract_value *contract_text_member(const struct contract_text *text,
						  const struct contract_value *object,
						  const char *name)
{
	const struct contract_value *end, *member;

	if (!object || object->kind != CONTRACT_OBJECT)
		return NULL;
	end = text->values + object->end;
	for (member = object + 1; member < end; member = text->values + member[1].end)
		if (!strcmp(member->text, name))
			return member + 1;
	return NULL;
}

const struct contract_value *contract_text_first(const struct contract_text *text,
						 const struct contract_value *value)
{
	if (!value || value->kind != CONTRACT_ARRAY)
		return value;
	return text->values + value->end > value + 1 ? value + 1 : NULL;
}
