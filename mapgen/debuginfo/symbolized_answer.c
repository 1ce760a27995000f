/* SPDX-License-Identifier: MIT */
#include "mapgen/debuginfo/symbolized_answer.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "mapgen/cli/message.h"

enum {
	MOST_INLINED = 64
};

struct symbolized_answers {
	struct symbolize_client *client;
	uint32_t fields;
	size_t missing; /* answers that the server should have completed and did not */
	char *reason;   /* heap: of an answer that the server named */
	struct sym_inlined inlined[MOST_INLINED];
};

struct symbolized_answers *symbolized_answers_create(const char *url, uint32_t fields)
{
	struct symbolized_answers *answers = calloc(1, sizeof(*answers));

	if (!answers) {
		message("out of memory");
		return NULL;
	}
	answers->fields = fields;
	answers->client = symbolize_client_create(url, fields & SYM_FIELD_LINES);
	if (answers->client)
		answers->reason =
			message_format("named by %s", symbolize_client_url(answers->client));
	if (answers->reason)
		return answers;
	symbolized_answers_destroy(answers);
	return NULL;
}

void symbolized_answers_destroy(struct symbolized_answers *answers)
{
	if (!answers)
		return;
	symbolize_client_destroy(answers->client);
	free(answers->reason);
	free(answers);
}

/* The identity of what an answer lacks; false when nothing can be asked. */
static bool read_lack(const struct symbolized_answers *answers, struct sym_image *image,
		      const struct sym_answer *answer, struct sym_identity *ret)
{
	bool is_whole = answer->status == SYM_RESOLVED &&
			(!(answers->fields & SYM_FIELD_LINES) || answer->file);
	struct sym_error *error;

	*ret = (struct sym_identity){ .size = sizeof(*ret) };
	if (!image || is_whole || answer->image_position == UINT64_MAX)
		return false;
	error = sym_image_identity(image, ret);
	sym_error_destroy(error);
	return !error;
}

/* The byte that is looked up: a return address belongs to the call before. */
static uint64_t asked_position(const struct symbolized_answers *answers,
			       const struct sym_answer *answer)
{
	bool is_return = answers->fields & SYM_FIELD_RETURN_ADDRESSES && answer->image_position;

	return answer->image_position - is_return;
}

void symbolized_answers_note(struct symbolized_answers *answers, struct sym_image *image,
			     const struct sym_answer *answer)
{
	struct sym_identity identity;

	if (read_lack(answers, image, answer, &identity))
		symbolize_client_add(answers->client, &identity,
				     path_file_name(sym_image_path(image)),
				     asked_position(answers, answer));
}

void symbolized_answers_ask(struct symbolized_answers *answers)
{
	symbolize_client_ask(answers->client);
}

/* ---- answers ---------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static uint32_t line_of(const json_t *object)
{
	json_int_t line = json_integer_value(json_object_get(object, "line"));

	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static uint32_t quality_of(const json_t *found)
{
	const char *text = text_of(found, "line_quality");

	if (!text)
		return SYM_LINE_EXACT;
	return strcmp(text, "prolog") ? SYM_LINE_NEAREST : SYM_LINE_PROLOG;
}

/* The server gives each function its own place; libsym gives each the place of its call. */
static void set_places(struct symbolized_answers *answers, const json_t *found,
		       struct sym_answer *ret)
{
	const json_t *inlines = json_object_get(found, "inlines");
	size_t count = json_array_size(inlines);
	const json_t *innermost = count ? json_array_get(inlines, 0) : found;

	ret->file = text_of(innermost, "file");
	ret->line = ret->file ? line_of(innermost) : 0;
	ret->line_quality = ret->file ? quality_of(found) : SYM_LINE_NONE;
	if (ret->file)
		ret->line_reason = NULL;
	if (!(answers->fields & SYM_FIELD_INLINED) || count > MOST_INLINED)
		return;
	for (size_t i = 0; i < count; i++) {
		const json_t *own = json_array_get(inlines, i);
		const json_t *caller = i + 1 < count ? json_array_get(inlines, i + 1) : found;

		answers->inlined[i] = (struct sym_inlined){
			.name = text_of(own, "function") ?: "",
			.linkage_name = text_of(own, "linkage_name"),
			.call_file = text_of(caller, "file"),
			.call_line = line_of(caller),
		};
	}
	ret->inlined = answers->inlined;
	ret->inlined_count = count;
}

static void set_name(const struct symbolized_answers *answers, const json_t *found,
		     uint64_t offset_bytes, bool is_elf, struct sym_answer *ret)
{
	ret->status = SYM_RESOLVED;
	ret->source = is_elf ? SYM_SOURCE_ELF : SYM_SOURCE_READYTORUN;
	ret->kind = SYM_SYMBOL_FUNCTION;
	ret->name = text_of(found, "function");
	ret->linkage_name = text_of(found, "linkage_name");
	ret->tier = NULL;
	ret->offset_bytes = offset_bytes;
	ret->size_bytes = 0;
	ret->reason = answers->reason;
}

const struct sym_answer *symbolized_answers_complete(struct symbolized_answers *answers,
						     struct sym_image *image,
						     const struct sym_answer *answer,
						     struct sym_answer *room)
{
	struct sym_identity identity;
	const json_t *found;
	uint64_t offset_bytes;

	if (!read_lack(answers, image, answer, &identity))
		return answer;
	found = symbolize_client_answer(answers->client, &identity,
					path_file_name(sym_image_path(image)),
					asked_position(answers, answer));
	if (!found || !text_of(found, "function")) {
		answers->missing++;
		return answer;
	}
	offset_bytes = (uint64_t)json_integer_value(json_object_get(found, "offset")) +
		       (answer->image_position - asked_position(answers, answer));
	*room = *answer;
	if (answer->status != SYM_RESOLVED)
		set_name(answers, found, offset_bytes, identity.kind == SYM_IDENTITY_ELF, room);
	/* Lines of another function than the one that this machine knows are not its lines. */
	if (answers->fields & SYM_FIELD_LINES && room->offset_bytes == offset_bytes)
		set_places(answers, found, room);
	return room;
}

bool symbolized_answers_say(const struct symbolized_answers *answers)
{
	const char *problem = symbolize_client_problem(answers->client);

	if (!problem || !answers->missing)
		return false;
	message("%zu answers lack what the server should know: %s", answers->missing, problem);
	return true;
}
