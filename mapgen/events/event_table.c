/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_table.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"

/* clang-format off */
__asm__(".pushsection .rodata\n"
	".hidden native_events_text\n"
	".globl native_events_text\n"
	"native_events_text:\n"
	".incbin \"mapgen/events/native_events.txt\"\n"
	".byte 0\n"
	".popsection\n");
/* clang-format on */

extern const char native_events_text[] __attribute__((visibility("hidden")));

enum {
	MOST_DEPTH = 4,
};

void event_table_deinit(struct event_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		nettrace_fields_deinit(&table->items[i].fields);
	free(table->items);
	free(table->text);
	*table = (struct event_table){ 0 };
}

/* ---- the text -------------------------------------------------------------------------------- */

/* The next word of a line, which is changed; NULL: there is none. */
static char *next_word(char **rest)
{
	char *word = strsep(rest, " ");

	return word && *word ? word : NULL;
}

static bool type_of(const char *word, size_t length, uint8_t *ret)
{
	static const struct {
		const char *word;
		uint8_t type;
	} types[] = {
		{ "u8", NETTRACE_U8 },        { "u16", NETTRACE_U16 },
		{ "u32", NETTRACE_U32 },      { "u64", NETTRACE_U64 },
		{ "i32", NETTRACE_I32 },      { "i64", NETTRACE_I64 },
		{ "f64", NETTRACE_F64 },      { "bool", NETTRACE_BOOL32 },
		{ "ptr", NETTRACE_POINTER },  { "str", NETTRACE_STRING16 },
		{ "ansi", NETTRACE_STRING8 }, { "guid", NETTRACE_GUID },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strlen(types[i].word) == length && !strncmp(types[i].word, word, length)) {
			*ret = types[i].type;
			return true;
		}
	return false;
}

static bool find_field(const struct nettrace_fields *fields, const char *name, uint16_t *ret)
{
	for (size_t i = 0; i < fields->count; i++)
		if (!strcmp(fields->items[i].name, name)) {
			*ret = (uint16_t)i;
			return true;
		}
	return false;
}

/* "[3]" or "[Count]": an array of what `element` is, which becomes its own element. */
static bool make_array(const struct nettrace_fields *fields, char *brackets,
		       struct nettrace_field *field)
{
	size_t length = strlen(brackets);
	struct nettrace_field inner = *field, *element;

	if (length < 3 || brackets[length - 1] != ']')
		return false;
	brackets[length - 1] = '\0';
	*field = (struct nettrace_field){ 0 };
	element = nettrace_fields_add(&field->inner);
	if (!element) {
		nettrace_fields_deinit(&inner.inner);
		return false;
	}
	*element = inner;
	if (brackets[1] >= '0' && brackets[1] <= '9') {
		field->type = NETTRACE_FIXED_ARRAY;
		field->count = (uint16_t)strtoul(brackets + 1, NULL, 10);
		return true;
	}
	field->type = NETTRACE_COUNTED_ARRAY;
	return find_field(fields, brackets + 1, &field->counted_by);
}

static bool read_fields(char **rest, struct nettrace_fields *fields, unsigned int depth,
			char **end_ret);

/* "u32", "ptr[2]", or what stands behind "{" up to "}[Count]". */
static bool read_type(char **rest, const struct nettrace_fields *fields, char *word,
		      unsigned int depth, struct nettrace_field *field)
{
	char *end = NULL, *brackets = strchr(word, '[');
	size_t length = brackets ? (size_t)(brackets - word) : strlen(word);

	if (strcmp(word, "{") != 0)
		return type_of(word, length, &field->type) &&
		       (!brackets || make_array(fields, brackets, field));
	field->type = NETTRACE_OBJECT;
	return depth < MOST_DEPTH && read_fields(rest, &field->inner, depth + 1, &end) && end &&
	       (!end[1] || make_array(fields, end + 1, field));
}

static bool read_fields(char **rest, struct nettrace_fields *fields, unsigned int depth,
			char **end_ret)
{
	char *word;

	while ((word = next_word(rest))) {
		struct nettrace_field *field, made = { 0 };

		if (*word == '}') {
			*end_ret = word;
			return true;
		}
		if (!read_type(rest, fields, word, depth, &made)) {
			nettrace_fields_deinit(&made.inner);
			return false;
		}
		word = next_word(rest);
		made.name = word ? strdup(word) : NULL;
		field = made.name ? nettrace_fields_add(fields) : NULL;
		if (!field) {
			free(made.name);
			nettrace_fields_deinit(&made.inner);
			return false;
		}
		*field = made;
	}
	return !depth;
}

static bool read_event(struct event_table *table, const char *provider, char *line)
{
	const char *id = next_word(&line), *version = next_word(&line);
	struct native_event event = { .provider = provider, .name = next_word(&line) };

	if (!provider || !id || !version || !event.name ||
	    !grow_items((void **)&table->items, &table->capacity, table->count,
			sizeof(*table->items)))
		return false;
	event.id = (uint32_t)strtoul(id, NULL, 10);
	event.version = (uint32_t)strtoul(version, NULL, 10);
	table->items[table->count++] = event;
	return read_fields(&line, &table->items[table->count - 1].fields, 0, NULL);
}

static int compare(const void *left, const void *right)
{
	const struct native_event *a = left, *b = right;
	int order = strcmp(a->provider, b->provider);

	if (order)
		return order;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->version > b->version) - (a->version < b->version);
}

static bool read_lines(struct event_table *table)
{
	static const char head[] = "provider ";
	const char *provider = NULL;
	char *line, *rest = table->text;

	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, head, sizeof(head) - 1))
			provider = line + sizeof(head) - 1;
		else if (*line && *line != '#' && !read_event(table, provider, line))
			return false;
	}
	return true;
}

struct sym_error *event_table_init(struct event_table *table)
{
	*table = (struct event_table){ .text = strdup(native_events_text) };
	if (!table->text)
		return &sym_error_no_memory;
	if (!read_lines(table)) {
		event_table_deinit(table);
		return sym_error_create(SYM_ERROR_FORMAT, "the table of events is malformed");
	}
	qsort(table->items, table->count, sizeof(*table->items), compare);
	return NULL;
}

const struct native_event *event_table_find(const struct event_table *table, const char *provider,
					    uint32_t id, uint32_t version)
{
	const struct native_event *found = NULL;

	for (size_t i = 0; i < table->count; i++) {
		const struct native_event *event = &table->items[i];

		if (event->id != id || strcmp(event->provider, provider) != 0)
			continue;
		/* An older one than all that are known has fewer fields than the oldest. */
		if (!found || event->version <= version)
			found = event;
	}
	return found;
}
