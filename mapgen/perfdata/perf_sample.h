/* SPDX-License-Identifier: MIT */
/*
 * The fields of a perf record, as the attribute of its event lays them out. Bytes in, fields out;
 * bounded by the size of the record. Knows the layout, not what the fields are good for.
 *
 *   sample   IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, READ, CALLCHAIN, RAW,
 *            BRANCH_STACK, REGS_USER, STACK_USER, ...: each where sample_type has its bit
 *   others   their own fields, then with sample_id_all TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER
 *
 * include/uapi/linux/perf_event.h; tools/perf/util/evsel.c, evsel__parse_sample().
 */
#ifndef MAPGEN_PERFDATA_PERF_SAMPLE_H
#define MAPGEN_PERFDATA_PERF_SAMPLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers that a sample can have; perf's numbers are below 64. */
enum {
	PERF_SAMPLE_REGISTERS = 64
};

struct perf_sample {
	uint64_t ip;
	uint64_t time_ns;
	uint64_t address;
	uint64_t id;
	uint64_t period;
	uint32_t pid, tid, cpu;
	const uint8_t *chain; /* u64 each, not aligned; NULL: none */
	size_t chain_count;
	const uint8_t *raw;
	size_t raw_bytes;
	uint64_t registers_abi;                    /* 0: none; 1: 32 bits; 2: 64 bits */
	uint64_t registers[PERF_SAMPLE_REGISTERS]; /* by perf's number */
	const uint8_t *stack;                      /* from the stack pointer on; NULL: none */
	size_t stack_bytes;
};

/* `record`: the whole record with its header. False when fields reach beyond its end. */
bool perf_sample_read(const struct perf_event_attr *attr, const void *record, size_t size_bytes,
		      struct perf_sample *ret);

/* Only the time of a sample; 0 when the attribute has none. */
bool perf_sample_read_time(const struct perf_event_attr *attr, const void *record,
			   size_t size_bytes, uint64_t *ret);

/* The fields behind a record that is no sample: thread, time, event and processor. Zero when the
 * attribute has no such fields. False when the record is too short for them. */
bool perf_sample_read_id(const struct perf_event_attr *attr, const void *record, size_t size_bytes,
			 struct perf_sample *ret);

/*
 * The id of the event of a record, when there are several attributes. With PERF_SAMPLE_IDENTIFIER
 * it has the same place in all samples, and the same place from the end of all other records. False
 * when the record is too short.
 */
bool perf_sample_read_identifier(const void *record, size_t size_bytes, uint64_t *ret);

#endif
