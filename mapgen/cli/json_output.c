/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/json_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/utf8.h"

static bool lacked_memory;

/* jansson leaves out members for which it gets no memory. */
static void *json_output_allocate(size_t size_bytes)
{
	void *memory = malloc(size_bytes);

	lacked_memory |= !memory;
	return memory;
}

void json_output_begin(void)
{
	json_set_alloc_funcs(json_output_allocate, free);
}

static json_t *repaired_text(const char *text)
{
	struct buf buf;
	json_t *value = NULL;

	buf_init(&buf, 4 * strlen(text) + 4);
	while (*text)
		text += utf8_append(&buf, text);
	if (buf.failure == BUF_OK)
		value = json_stringn(buf.data ? buf.data : "", buf.size_bytes);
	buf_deinit(&buf);
	return value;
}

json_t *json_output_text(const char *text)
{
	json_t *value;

	if (!text)
		return json_null();
	value = json_string(text);
	return value ? value : repaired_text(text);
}

json_t *json_output_take(struct buf *text)
{
	json_t *value = json_output_text(buf_string(text));

	buf_deinit(text);
	return value;
}

json_t *json_output_address(uint64_t address)
{
	if (address == UINT64_MAX)
		return json_null();
	return json_sprintf("0x%" PRIx64, address);
}

json_t *json_output_failures(const struct failures *failures)
{
	json_t *array = json_array();

	for (size_t i = 0; i < failures->count; i++)
		json_array_append_new(
			array, json_pack("{s:o, s:o}", "subject",
					 json_output_text(failures->items[i].subject), "reason",
					 json_output_text(failures->items[i].reason)));
	return array;
}

static bool json_output_write(json_t *value, FILE *to, size_t flags)
{
	/* json_dumpf() could print half an object. */
	char *text AUTO_FREE = value ? json_dumps(value, flags) : NULL;

	json_decref(value);
	/* main() reports a full disk or missing memory once. */
	lacked_memory |= !text;
	if (lacked_memory)
		return false;
	return fputs(text, to) >= 0;
}

bool json_output_has_failed(void)
{
	return lacked_memory;
}

bool json_output_compact(json_t *value)
{
	return json_output_write(value, stdout, JSON_COMPACT);
}

bool json_output_print_to(json_t *value, FILE *to)
{
	if (!json_output_write(value, to, JSON_INDENT(2)))
		return false;
	putc('\n', to);
	return true;
}

bool json_output_print(json_t *value)
{
	return json_output_print_to(value, stdout);
}
