/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/resolve_answer.h"

#include <stdlib.h>
#include <string.h>

/* A name with bytes that are no UTF-8 gets question marks for them. */
static json_t *json_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy;

	if (value)
		return value;
	copy = strdup(text);
	for (char *byte = copy; byte && *byte; byte++)
		if (*byte & 0x80)
			*byte = '?';
	value = copy ? json_string(copy) : NULL;
	free(copy);
	return value;
}

static void set_function(json_t *object, const char *name, const char *linkage_name)
{
	if (*name)
		json_object_set_new(object, "function", json_text(name));
	if (linkage_name)
		json_object_set_new(object, "linkage_name", json_text(linkage_name));
}

static void set_place(json_t *object, const char *file, uint32_t line)
{
	if (file)
		json_object_set_new(object, "file", json_text(file));
	if (file && line)
		json_object_set_new(object, "line", json_integer(line));
}

/* Sets the place of the outermost function. */
static void set_inlines(json_t *object, const struct sym_answer *answer)
{
	const char *file = answer->file;
	uint32_t line = answer->line;
	json_t *list = json_array();

	for (size_t i = 0; i < answer->inlined_count; i++) {
		const struct sym_inlined *inlined = &answer->inlined[i];
		json_t *item = json_object();

		set_function(item, inlined->name, inlined->linkage_name);
		set_place(item, file, line);
		json_array_append_new(list, item);
		file = inlined->call_file;
		line = inlined->call_line;
	}
	set_place(object, file, line);
	if (answer->inlined_count)
		json_object_set(object, "inlines", list);
	json_decref(list);
}

json_t *resolve_answer_json(const struct sym_answer *answer)
{
	json_t *object;

	if (!answer || answer->status != SYM_RESOLVED || !answer->name)
		return json_null();
	object = json_object();
	json_object_set_new(object, "function", json_text(answer->name));
	json_object_set_new(object, "offset", json_integer((json_int_t)answer->offset_bytes));
	if (answer->linkage_name)
		json_object_set_new(object, "linkage_name", json_text(answer->linkage_name));
	set_inlines(object, answer);
	if (answer->line_quality == SYM_LINE_NEAREST || answer->line_quality == SYM_LINE_PROLOG)
		json_object_set_new(object, "line_quality",
				    json_string(sym_line_quality_text(
					    (enum sym_line_quality)answer->line_quality)));
	return object;
}
