/* SPDX-License-Identifier: MIT */
/*
 * jitdump (jit-PID.dump), which a JIT writes for `perf inject --jit`. Specification:
 * tools/perf/Documentation/jitdump-specification.txt (version 1); for .NET 5 to 10,
 * pal/src/misc/perfjitdump.cpp. In the byte order of the machine that wrote it:
 *
 *   header  u32 magic 0x4a695444 ("DTiJ" in the file), version 1, size, machine, pad, pid;
 *           u64 timestamp, flags (bit 0: time stamps count the processor's cycles, not ns of
 *           CLOCK_MONOTONIC)
 *   record  u32 id, total_size; u64 timestamp
 *     0 load   u32 pid, tid; u64 vma, code_address, code_size, code_index; name NUL; code
 *     1 move   u32 pid, tid; u64 vma, old_address, new_address, code_size, code_index
 *     2 lines  u64 code_address, count; count times: u64 address; u32 line, discriminator;
 *              file NUL, where the one byte 0xff is the file of the entry before
 *     3 close, 4 unwinding: skipped
 *
 * Lines come before the load of their code. Addresses of perf's own agent (tools/perf/jvmti) count
 * from the code. Those of V8 (src/diagnostics/perf-jit.cc, Node.js 20) and LLVM
 * (PerfJITEventListener.cpp) are JITDUMP_ELF_BYTES higher: they count from the ELF file that perf
 * will make of the code. V8 may also write bytes of other memory as the name of the file.
 *
 * Some writers omit the code of a load, and then total_size does not include it. A record can be
 * cut: .NET 10.0.12 stops inside the code of its second record, and a JIT may be writing right now.
 * The part before the code is then complete.
 */
#ifndef LIBSYM_FORMAT_PERF_JITDUMP_H
#define LIBSYM_FORMAT_PERF_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_HEADER_BYTES = 40,
	JITDUMP_RECORD_BYTES = 16, /* the header of every record */
	JITDUMP_LOAD_BYTES = 56,   /* up to the name */
	JITDUMP_LINES_BYTES = 32,  /* up to the first line */
	JITDUMP_LOAD = 0,
	JITDUMP_MOVE = 1,
	JITDUMP_LINES = 2,
	JITDUMP_CLOSE = 3,
	JITDUMP_ELF_BYTES = 64,
	/* Erlang records the line of a function's head where the code that raises function_clause
	 * starts, before the function (OTP 25: 50 to 55 bytes). */
	JITDUMP_HEAD_BYTES = 64,
	JITDUMP_CYCLES = 1 /* flag: time stamps are not ns */
};

struct jitdump_header {
	uint32_t size_bytes; /* offset of the first record; at least JITDUMP_HEADER_BYTES */
	uint32_t machine;    /* e_machine of ELF */
	uint32_t pid;        /* in the process's own pid namespace */
	uint64_t timestamp;
	uint64_t flags;
	bool swapped; /* big-endian, for jitdump_record_read() */
};

/* Returns NULL, or a static text with the reason why it cannot be read. */
const char *jitdump_header_read(const void *bytes, size_t size_bytes, struct jitdump_header *ret);

struct jitdump_record {
	uint32_t id;
	uint32_t size_bytes; /* of the whole record; the next one follows it */
	uint64_t timestamp;
	uint32_t pid;
	uint64_t code_address;    /* for a move: the new address */
	uint64_t code_size_bytes; /* 0 also for a load or a move that contradicts itself */
	uint64_t old_address;     /* move only */
	uint64_t line_count;      /* lines only */
	uint64_t first_line_address;
	const char *name;  /* load only; points into the bytes */
	size_t name_bytes; /* 0 also for more than LIMIT_NAME_BYTES */
};

enum jitdump_outcome {
	JITDUMP_GOOD,
	JITDUMP_SHORT, /* not enough bytes for the name or the fields before it */
	JITDUMP_BAD    /* smaller than its header, so the next record cannot be found */
};

/* Reads the record at `bytes`. The code after the name may be missing, and all lines except the
 * first. Records of other kinds have only id, size and timestamp. */
enum jitdump_outcome jitdump_record_read(const void *bytes, size_t size_bytes, bool swapped,
					 struct jitdump_record *ret);

struct jitdump_line {
	const char *file; /* points into the bytes */
	size_t file_bytes;
	uint32_t line;
};

/*
 * Finds the line of the byte at `offset_bytes` of code that has `code_size_bytes`. `bytes` contain
 * all line entries; their addresses are `shift_bytes` too high. Returns false if no entry covers
 * the byte, or if any entry is malformed.
 */
bool jitdump_line_find(const void *bytes, size_t size_bytes, bool swapped, uint64_t code_size_bytes,
		       uint64_t shift_bytes, uint64_t offset_bytes, struct jitdump_line *ret);

#endif
