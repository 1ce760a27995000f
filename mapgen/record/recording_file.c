/* SPDX-License-Identifier: MIT */
#include "mapgen/record/recording_file.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/record/zip_writer.h"

static struct sym_error *add_json(struct zip_writer *writer, const char *name, const json_t *value)
{
	char *text AUTO_FREE = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER);

	return text ? zip_writer_add_bytes(writer, name, text, strlen(text)) : &sym_error_no_memory;
}

struct sym_error *recording_file_write(FILE *file, const struct recording_parts *parts)
{
	struct zip_writer writer;
	struct sym_error *error;

	zip_writer_init(&writer, file);
	/* First what says how to read the rest. */
	error = add_json(&writer, RECORDING_ABOUT, parts->about);
	if (!error)
		error = zip_writer_add_bytes(&writer, RECORDING_SYMBOLS, parts->symbols->data,
					     parts->symbols->size_bytes);
	if (!error)
		error = zip_writer_add_bytes(&writer, RECORDING_STACKS, parts->stacks->data,
					     parts->stacks->size_bytes);
	if (!error)
		error = zip_writer_add(&writer, RECORDING_PERF_DATA, parts->perf_data);
	if (!error && parts->perfview_text)
		error = zip_writer_add(&writer, RECORDING_PERFVIEW, parts->perfview_text);
	for (size_t i = 0; !error && i < parts->stream_count; i++)
		error = zip_writer_add(&writer, parts->streams[i].member, parts->streams[i].file);
	if (!error)
		error = zip_writer_finish(&writer);
	zip_writer_deinit(&writer);
	return error;
}
