/* SPDX-License-Identifier: MIT */
#include "tests/support/stack_text_run.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	MOST_BYTES = 1 << 28,
	OWNER_NAME_BYTES = 32
};

static char owner_names[OWNER_NAME_BYTES];

static void note_query(struct stack_text_run *run, const struct stack_query *query)
{
	buf_printf(&run->queries, "%" PRIx64 "%s%.*s%s\n", query->value, query->image ? " " : "",
		   (int)query->image_bytes, query->image ? query->image : "",
		   query->is_return ? " return" : "");
}

static bool resolve(void *context, struct stack_owner owner, const struct stack_query *queries,
		    size_t count, struct stack_name *names)
{
	struct stack_text_run *run = context;

	snprintf(owner_names, sizeof(owner_names), "[%c %" PRId32 "]", "-PT"[owner.kind], owner.id);
	for (size_t i = 0; i < count; i++) {
		uint64_t address = queries[i].value - (queries[i].is_return ? 1 : 0);

		note_query(run, &queries[i]);
		if (run->no_names || address >> 47 || (address & 0xfff) >= 0x800)
			continue;
		names[i].name = run->keep_owners ? owner_names
				: run->name      ? run->name
						 : "A.B::C(int32)";
		names[i].tier = run->tier;
		if (run->lines) {
			bool is_approximate = (address & 0xfff) >= 0x400;

			names[i].place =
				(struct source_place){ "/src/Store.cs", is_approximate ? 90 : 88,
						       is_approximate };
			names[i].inlined = run->inlined;
			names[i].inlined_count = run->inlined_count;
		}
		names[i].path = "/lib/a b.dll";
		names[i].offset_bytes = queries[i].value - (address & ~UINT64_C(0xfff));
	}
	return true;
}

static bool write_out(void *context, const void *bytes, size_t size_bytes)
{
	struct stack_text_run *run = context;

	return buf_append(&run->output, bytes, size_bytes);
}

void stack_text_run(struct stack_text_run *run, const char *text, size_t size_bytes)
{
	struct stack_filter_client client = {
		.resolve = resolve,
		.write = write_out,
		.context = run,
		.names = run->names,
		.lines = run->lines,
		.has_default = !run->no_default,
	};
	struct stack_filter *filter = stack_filter_create(&client);
	size_t done = 0;

	if (!run->output.max_bytes) {
		buf_init(&run->output, MOST_BYTES);
		buf_init(&run->queries, MOST_BYTES);
	}
	run->failed = !filter;
	while (!run->failed && done < size_bytes) {
		size_t room_bytes, piece = size_bytes - done;
		char *room = stack_filter_room(filter, &room_bytes);

		if (run->piece_bytes && piece > run->piece_bytes)
			piece = run->piece_bytes;
		if (piece > room_bytes)
			piece = room_bytes;
		memcpy(room, text + done, piece);
		done += piece;
		run->failed = !stack_filter_push(filter, piece);
	}
	run->failed = run->failed || !stack_filter_finish(filter);
	run->missing = filter ? stack_filter_missing(filter) : (struct stack_missing){ 0 };
	stack_filter_destroy(filter);
}

void stack_text_run_deinit(struct stack_text_run *run)
{
	buf_deinit(&run->output);
	buf_deinit(&run->queries);
}
