/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/runtime_async.h"

#include <string.h>

#include "libsym/format/dotnet/signature.h"

enum {
	TASK = 1,
	VALUE_TASK = 2,
	BITS_OF_ONE = 2,
	MOST_TASKS = 7,
	TOO_MANY_TASKS = 0xffff, /* a kind is never both bits */
};

/* Moves *text past `word`, if it starts with it. */
static bool skip_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) != 0)
		return false;
	*text += length;
	return true;
}

struct task_word {
	const char *word;
	uint16_t kind;
	bool has_value;
};

/* The task type at the start of `text`, which is moved past it; NULL if there is none. */
static const struct task_word *read_task_word(const char **text)
{
	static const struct task_word words[] = {
		{ "class System.Threading.Tasks.Task`1<", TASK, true },
		{ "value class System.Threading.Tasks.ValueTask`1<", VALUE_TASK, true },
		{ "class System.Threading.Tasks.Task", TASK, false },
		{ "value class System.Threading.Tasks.ValueTask", VALUE_TASK, false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *after = *text;

		/* Rejects TaskScheduler, ValueTaskSourceStatus and the like. */
		if (!skip_word(&after, words[i].word) ||
		    (!words[i].has_value && !strchr(" (>", *after)))
			continue;
		*text = after;
		return &words[i];
	}
	return NULL;
}

/* Adds one more enclosing task. Returns false if there are more than can be stored. */
static bool add_task(uint16_t *tasks, unsigned int *count, uint16_t kind)
{
	if (*count == MOST_TASKS) {
		*tasks = TOO_MANY_TASKS;
		return false;
	}
	*tasks |= (uint16_t)(kind << BITS_OF_ONE * (*count)++);
	return true;
}

struct runtime_async_text runtime_async_read_text(const char *signature)
{
	static const char *const heads[] = { "explicit ", "instance ", "generic ", "vararg " };
	struct runtime_async_text text = { .is_known = *signature != '\0' };
	const struct task_word *word;
	unsigned int count = 0;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		skip_word(&signature, heads[i]);
	text.is_modified = skip_word(&signature, "required_modifier System.Threading.Tasks.");
	while (!text.is_modified && (word = read_task_word(&signature)))
		if (!add_task(&text.tasks, &count, word->kind) || !word->has_value)
			break;
	return text;
}

/* ---- metadata rows ------------------------------------------------------------ */

/* Reads the token of a class or value type. Returns TASK, VALUE_TASK, or 0 for any other type. */
static uint16_t read_task_token(const struct metadata *metadata, struct reader *reader)
{
	uint32_t token = signature_unsigned(reader), rid = token >> 2;
	const char *space = "", *name = "";

	if ((token & 3) == 0 && rid && rid <= metadata_row_count(metadata, METADATA_TYPE_DEF)) {
		space = metadata_type_def_namespace(metadata, rid);
		name = metadata_type_def_name(metadata, rid);
	} else if ((token & 3) == 1 && rid &&
		   rid <= metadata_row_count(metadata, METADATA_TYPE_REF)) {
		space = metadata_type_ref_namespace(metadata, rid);
		name = metadata_type_ref_name(metadata, rid);
	}
	if (strcmp(space, "System.Threading.Tasks") != 0)
		return 0;
	if (!strcmp(name, "Task") || !strcmp(name, "Task`1"))
		return TASK;
	return !strcmp(name, "ValueTask") || !strcmp(name, "ValueTask`1") ? VALUE_TASK : 0;
}

/* The tasks around the type at `reader`, encoded like runtime_async_text.tasks. */
static uint16_t read_tasks(const struct metadata *metadata, struct reader reader)
{
	unsigned int count = 0;
	bool has_value = true;
	uint16_t tasks = 0;

	while (has_value) {
		uint8_t element = reader_u8(&reader);
		uint16_t kind;

		has_value = element == ELEMENT_GENERICINST;
		if (has_value)
			element = reader_u8(&reader);
		if (element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE)
			break;
		kind = read_task_token(metadata, &reader);
		if (!kind || !reader_ok(&reader) || !add_task(&tasks, &count, kind))
			break;
		if (has_value)
			signature_unsigned(&reader); /* the number of arguments: one */
	}
	return tasks;
}

enum runtime_async_form runtime_async_form_of(const struct runtime_async_text *text,
					      const struct metadata *metadata,
					      struct metadata_blob row)
{
	struct reader reader = reader_over(row.data, row.size_bytes);
	uint16_t tasks;

	signature_read_method(&reader);
	tasks = read_tasks(metadata, reader);
	if (!text->is_known || !tasks)
		return RUNTIME_ASYNC_NONE;
	if (text->is_modified)
		return RUNTIME_ASYNC_MODIFIED;
	if (tasks == TOO_MANY_TASKS || text->tasks == TOO_MANY_TASKS)
		return RUNTIME_ASYNC_UNCLEAR;
	if (text->tasks == tasks)
		return RUNTIME_ASYNC_NONE;
	return text->tasks == tasks >> BITS_OF_ONE ? RUNTIME_ASYNC_VALUE : RUNTIME_ASYNC_UNCLEAR;
}

bool runtime_async_modify(struct metadata_blob row, struct buf *out)
{
	static const uint8_t modifier = ELEMENT_CMOD_REQD, nothing = ELEMENT_VOID;
	struct reader reader = reader_over(row.data, row.size_bytes);
	size_t token, after_token;
	uint8_t element;
	bool has_value;

	signature_read_method(&reader);
	buf_append(out, row.data, reader.position);
	element = reader_u8(&reader);
	has_value = element == ELEMENT_GENERICINST;
	if (has_value)
		element = reader_u8(&reader);
	token = reader.position;
	signature_unsigned(&reader);
	after_token = reader.position;
	if ((element != ELEMENT_CLASS && element != ELEMENT_VALUETYPE) ||
	    (has_value && signature_unsigned(&reader) != 1) || !reader_ok(&reader))
		return false;
	buf_append(out, &modifier, 1);
	buf_append(out, row.data + token, after_token - token);
	if (!has_value)
		buf_append(out, &nothing, 1);
	/* The task's type argument, and the parameters. */
	buf_append(out, row.data + reader.position, row.size_bytes - reader.position);
	return out->failure == BUF_OK;
}
