/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of perf_data.c: the state of one copy, the expansion of compressed records,
 * and the header and feature sections of a file whose data has grown. No other file includes this.
 */
#ifndef MAPGEN_PERFDATA_PERF_COPY_H
#define MAPGEN_PERFDATA_PERF_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/perfdata/perf_data.h"
#include "mapgen/perfdata/perf_stream.h"

/* ---- compressed records ------------------------------------------------------ */

/*
 * One zstd stream runs through all compressed records of a file, and records may cross the borders
 * between them.
 */
struct perf_expansion {
	void *stream; /* ZSTD_DStream; NULL until the first record */
	uint8_t *data;
	size_t size_bytes; /* in `data`: bytes that wait, and bytes of the last call */
	const uint8_t *payload;
	size_t payload_bytes;
	size_t payload_used;
	bool more; /* the stream may have more output */
	uint64_t record_expanded_bytes;
	uint64_t taken_bytes, expanded_bytes;
	bool no_memory; /* what perf_expansion_more() returned is malformed */
};

/* False when out of memory. `payload` is borrowed until the next call. */
bool perf_expansion_begin(struct perf_expansion *expansion, const uint8_t *payload, size_t count);
/* The bytes that wait and those that follow; *available_ret is 0 at the end. NULL, or why not
 * (static). */
const char *perf_expansion_more(struct perf_expansion *expansion, const uint8_t **bytes_ret,
				size_t *available_ret);
/* `used` bytes of the last call are done; the others wait. */
void perf_expansion_keep(struct perf_expansion *expansion, size_t used);
/* Bytes of a record that is not complete yet. */
size_t perf_expansion_held(const struct perf_expansion *expansion);

/* ---- a copy -------------------------------------------------------------------- */

struct perf_aux_move {
	uint64_t input_offset, output_offset;
};

struct perf_copy {
	const struct perf_data_job *job;
	struct perf_input input;
	struct perf_output output;
	enum perf_data_shape shape;
	struct perf_file_header header;
	bool was_compressed;
	struct perf_expansion expansion;
	uint64_t record_count;
	/* Places of records with trace data; an index in the file points to them. */
	struct perf_aux_move *aux;
	size_t aux_count, aux_capacity;
	char *cut;
	struct sym_error *failure;
};

/* False, with `failure` set, when out of memory. */
bool perf_copy_note_aux(struct perf_copy *copy, uint64_t input_offset, uint64_t output_offset);

/*
 * Called after the data was expanded, with the input behind the data. Copies the feature sections
 * to their new places, without the one about compression, and rewrites the header.
 */
struct sym_error *perf_copy_finish_expanded(struct perf_copy *copy);
void perf_copy_deinit(struct perf_copy *copy);

#endif
