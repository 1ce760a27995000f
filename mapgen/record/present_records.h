/* SPDX-License-Identifier: MIT */
/*
 * Records that the kernel would have made of a process, had it been recorded since it began: names
 * of its threads, and what is mapped. What comes later the events bring.
 */
#ifndef MAPGEN_RECORD_PRESENT_RECORDS_H
#define MAPGEN_RECORD_PRESENT_RECORDS_H

#include "mapgen/record/perf_writer.h"
#include "mapgen/record/recorded_process.h"

/* Writes threads and mappings. It is no error if the process ends. `budget` may be NULL. */
struct sym_error *present_records_put(struct perf_writer *writer, struct sym_budget *budget,
				      struct recorded_process *process)
	__attribute__((warn_unused_result));

/* Only the threads, which the table of names gets too. */
struct sym_error *present_records_put_threads(struct perf_writer *writer,
					      struct recorded_process *process)
	__attribute__((warn_unused_result));

#endif
