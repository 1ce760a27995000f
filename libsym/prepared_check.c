/* SPDX-License-Identifier: MIT */
/*
 * Two independent readings of the same methods beside each other: what the runtime has prepared of
 * its precompiled code, by its memory, and what lies there by the tables of the images.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/live_code.h"
#include "libsym/snapshot.h"

static bool lies_in_image(const struct sym_snapshot *snapshot, uint64_t address,
			  struct sym_answer *ret)
{
	size_t line = address_space_find(snapshot->space, address);
	struct sym_image *module = NULL;

	if (line == ADDRESS_SPACE_NONE)
		return false;
	sym_error_destroy(snapshot_image_of(snapshot, line, &module));
	if (!module || !snapshot->lines[line].placed)
		return false;
	*ret = (struct sym_answer){ .address = address };
	module_find(module, address - module->load_base, ret);
	return true;
}

static void note_difference(const struct jit_prepared *prepared, const struct sym_answer *answer,
			    struct buf *text)
{
	buf_clear(text);
	buf_printf(text, "0x%" PRIx64 ": the runtime has %s, the image %s", prepared->address,
		   prepared->name, answer->name ? answer->name : sym_status_text(answer->status));
	if (answer->name && answer->offset_bytes)
		buf_printf(text, "+0x%" PRIx64, answer->offset_bytes);
}

static void compare(const struct sym_snapshot *snapshot, const struct jit_prepared_list *list,
		    struct sym_prepared_check *ret, struct buf *text)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct jit_prepared *prepared = &list->items[i];
		struct sym_answer answer = { .status = SYM_UNMAPPED };

		ret->count++;
		if (!prepared->name)
			ret->unnamed_count++;
		else if (lies_in_image(snapshot, prepared->address, &answer) && answer.name &&
			 !answer.offset_bytes && !strcmp(answer.name, prepared->name))
			ret->equal_count++;
		else if (!ret->different_count++)
			note_difference(prepared, &answer, text);
	}
}

struct sym_error *sym_snapshot_prepared_check(struct sym_snapshot *snapshot,
					      struct sym_prepared_check *check,
					      char **difference_ret)
{
	struct jit_reader *reader AUTO_JIT_READER = NULL;
	struct sym_prepared_check result = { 0 };
	struct jit_prepared_list list = { 0 };
	struct sym_error *error;
	struct buf text;

	if (check->size < sizeof(check->size))
		return sym_error_create(SYM_ERROR_ARGUMENT, "sym_prepared_check.size is not set");
	error = live_open_contract(snapshot, &reader);
	if (!error)
		error = jit_reader_read_prepared(reader, &list);
	if (!error)
		error = process_check(snapshot->process);
	if (error) {
		jit_prepared_deinit(&list);
		return error;
	}
	buf_init(&text, 4 * LIMIT_NAME_BYTES);
	compare(snapshot, &list, &result, &text);
	jit_prepared_deinit(&list);
	if (difference_ret)
		*difference_ret = result.different_count ? buf_steal(&text, NULL) : NULL;
	buf_deinit(&text);
	result.size = check->size;
	memcpy(check, &result, check->size < sizeof(result) ? check->size : sizeof(result));
	return NULL;
}
