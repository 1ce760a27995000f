/* SPDX-License-Identifier: MIT */
/*
 * jitdump (jit-PID.dump): what a jit writes for `perf inject --jit`, from
 * tools/perf/Documentation/jitdump-specification.txt (version 1) and, for .NET 5
 * to 10, pal/src/misc/perfjitdump.cpp. In the byte order of the machine that wrote it:
 *
 *   header  u32 magic 0x4a695444 ("DTiJ" in the file), version 1, size, machine, pad, pid;
 *           u64 timestamp, flags (bit 0: time stamps count the processor's cycles, not ns of
 *           CLOCK_MONOTONIC)
 *   record  u32 id, total_size; u64 timestamp
 *     0 load   u32 pid, tid; u64 vma, code_address, code_size, code_index; name NUL; code
 *     1 move   u32 pid, tid; u64 vma, old_address, new_address, code_size, code_index
 *     2 lines  u64 code_address, count; count times: u64 address; u32 line, discriminator;
 *              file NUL, where the one byte 0xff is the file of the entry before
 *     3 close, 4 unwinding: stepped over
 *
 * Lines come before the load of their code. V8 (src/diagnostics/perf-jit.cc, Node.js 20) and LLVM
 * (PerfJITEventListener.cpp) count their addresses from the ELF file that perf is going to make of
 * the code, JITDUMP_ELF_BYTES further on than perf's own agent does (tools/perf/jvmti). V8 may also
 * write bytes of other memory for the name of the file.
 *
 * Some write loads without the code, which then is not counted in total_size either.
 * A record may be cut: .NET 10.0.12 gives up in the middle of the code of its
 * second one, and a jit may just be writing. What stands before the code is whole then.
 */
#ifndef LIBSYM_FORMAT_JITDUMP_H
#define LIBSYM_FORMAT_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JITDUMP_HEADER_BYTES = 40,
	JITDUMP_RECORD_BYTES = 16, /* what every record begins with */
	JITDUMP_LOAD_BYTES = 56,   /* up to the name */
	JITDUMP_LINES_BYTES = 32,  /* up to the first line */
	JITDUMP_LOAD = 0,
	JITDUMP_MOVE = 1,
	JITDUMP_LINES = 2,
	JITDUMP_CLOSE = 3,
	JITDUMP_ELF_BYTES = 64,
	/* Erlang tells the line of the head of a function where what raises function_clause begins,
	 * in front of the function (OTP 25: 50 to 55 bytes). */
	JITDUMP_HEAD_BYTES = 64,
	JITDUMP_CYCLES = 1 /* flag: time stamps are no ns */
};

struct jitdump_header {
	uint32_t size_bytes; /* the first record lies there; at least JITDUMP_HEADER_BYTES */
	uint32_t machine;    /* e_machine of ELF */
	uint32_t pid;        /* as the process counts itself */
	uint64_t timestamp;
	uint64_t flags;
	bool swapped; /* big-endian, for jitdump_record_read() */
};

/* NULL, or why it is no jitdump that can be read; static. */
const char *jitdump_header_read(const void *bytes, size_t size_bytes, struct jitdump_header *ret);

struct jitdump_record {
	uint32_t id;
	uint32_t size_bytes; /* of the whole record; the next one lies behind */
	uint64_t timestamp;
	uint32_t pid;
	uint64_t code_address;    /* of a move: where it is from then on */
	uint64_t code_size_bytes; /* 0 also for a load or a move that contradicts itself */
	uint64_t old_address;     /* move only */
	uint64_t line_count;      /* lines only, and the address of the first one */
	uint64_t first_line_address;
	const char *name;  /* load only; into the bytes */
	size_t name_bytes; /* 0 also for more than LIMIT_NAME_BYTES */
};

enum jitdump_outcome {
	JITDUMP_GOOD,
	JITDUMP_SHORT, /* not enough bytes: the rest of the name, or of what stands before it */
	JITDUMP_BAD    /* smaller than its head: where the next one lies cannot be known */
};

/*
 * Reads the record at `bytes`; the code behind the name need not be there, nor any line but the
 * first. Records of other kinds have only id, size and timestamp.
 */
enum jitdump_outcome jitdump_record_read(const void *bytes, size_t size_bytes, bool swapped,
					 struct jitdump_record *ret);

struct jitdump_line {
	const char *file; /* into the bytes */
	size_t file_bytes;
	uint32_t line;
};

/*
 * What the lines at `bytes`, all of them, say of the byte at `offset_bytes` of their code, which
 * has `code_size_bytes`. Their addresses are `shift_bytes` too high. False when they say nothing of
 * it, and when anything in them makes no sense.
 */
bool jitdump_line_find(const void *bytes, size_t size_bytes, bool swapped, uint64_t code_size_bytes,
		       uint64_t shift_bytes, uint64_t offset_bytes, struct jitdump_line *ret);

#endif
