/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: stacks from user registers and a copy of the stack.
 *
 * Both come from perf_event_open() (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER) or ptrace().
 * Native frames are unwound by .eh_frame and .debug_frame.
 * Managed frames are unwound by the unwind codes of the ReadyToRun image, or by those that the
 * runtime keeps beside jitted code.
 * Other code is assumed to keep a frame pointer; such frames are marked SYM_FRAME_IS_GUESSED.
 */
#ifndef LIBSYM_SYM_UNWIND_H
#define LIBSYM_SYM_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_image;
struct sym_live;
struct sym_resolver;

/** Machines whose stacks can be unwound. */
enum sym_unwind_machine {
	SYM_UNWIND_X86_64 = 0,
	SYM_UNWIND_ARM64 = 1
};

/** Number of registers in struct sym_unwind_registers. */
#define SYM_UNWIND_REGISTERS 33

/**
 * User registers of a thread, by DWARF number.
 *
 * x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8 to 15 r8 to r15, 16 rip.
 * arm64: 0 to 30 x0 to x30, 31 sp, 32 pc.
 */
struct sym_unwind_registers {
	uint32_t size;    /**< sizeof(struct sym_unwind_registers) */
	uint32_t machine; /**< enum sym_unwind_machine */
	uint64_t known;   /**< bit n: values[n] is set; program counter and stack pointer must be */
	uint64_t values[SYM_UNWIND_REGISTERS];
};

/**
 * Converts the registers of a perf_event_open() sample, which have other numbers.
 *
 * @param machine  The machine of the sample.
 * @param mask  perf_event_attr.sample_regs_user.
 * @param values  64 values by perf's number; values that are not in the mask are not read.
 * @param ret  All fields are set; `known` has the program counter and the stack pointer only if the
 *   mask has them.
 */
SYM_API void sym_unwind_registers_of_sample(enum sym_unwind_machine machine, uint64_t mask,
					    const uint64_t *values,
					    struct sym_unwind_registers *ret);

/** A copy of the stack, from the stack pointer on. */
struct sym_unwind_stack {
	uint64_t address;  /**< of the first byte, in the process */
	const void *bytes; /**< borrowed, during the call */
	size_t size_bytes;
};

/** How a frame was found, from the frame that it called. */
enum sym_frame_origin {
	SYM_FRAME_REGISTERS = 0,    /**< the innermost frame: from the registers */
	SYM_FRAME_CALL_INFO = 1,    /**< by .eh_frame or .debug_frame of the called frame */
	SYM_FRAME_UNWIND_CODES = 2, /**< by unwind codes of the called managed frame */
	SYM_FRAME_POINTER = 3,      /**< by the frame pointer of the called frame */
	SYM_FRAME_LEAF = 4          /**< the called frame is a stub that has pushed nothing */
};

enum sym_frame_flags {
	/** The address is a return address; the instruction before it is the call. */
	SYM_FRAME_IS_RETURN = 1 << 0,
	/** There were no unwind data: nothing proves that this is the caller. */
	SYM_FRAME_IS_GUESSED = 1 << 1
};

/** One frame, innermost first. */
struct sym_frame {
	uint64_t address;       /**< in the process */
	uint64_t stack_address; /**< value of the stack pointer in this frame */
	uint32_t origin;        /**< enum sym_frame_origin */
	uint32_t flags;         /**< enum sym_frame_flags */
};

/** Why the unwinding ended. */
enum sym_unwind_end {
	SYM_UNWIND_WHOLE = 0, /**< the last frame is the start of the thread */
	SYM_UNWIND_SHORT = 1, /**< the copy of the stack ends before the next frame */
	/** the code of the last frame has no unwind data, and no frame pointer was found */
	SYM_UNWIND_NO_RULE = 2,
	SYM_UNWIND_LOOP = 3,     /**< the stack pointer did not increase */
	SYM_UNWIND_NOT_CODE = 4, /**< the next return address is not in executable memory */
	SYM_UNWIND_FULL = 5      /**< the room for frames is full */
};

/** Returns a short text for people; static. */
SYM_API const char *sym_unwind_end_text(enum sym_unwind_end end);

/** Unwinds the stacks of one process. Use it from one thread at a time. */
struct sym_unwinder;

/**
 * Creates an unwinder.
 *
 * A refresh of the resolver refreshes the unwinder too.
 *
 * @param resolver  The resolver of the process; borrowed; it must outlive the unwinder.
 * @param ret  The unwinder; free it with sym_unwinder_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_unwinder_create(struct sym_resolver *resolver,
							     struct sym_unwinder **ret);

/** The code at an address of a recording. All zero: executable memory without a file. */
struct sym_unwind_code {
	/** The very file that was mapped there; borrowed until the function returns. */
	struct sym_image *image;
	uint64_t offset;   /**< of the address, into the file of the image */
	uint32_t not_code; /**< 1: no executable memory */
	uint32_t reserved; /**< 0 */
};

/**
 * Finds the code at an address of a recorded process.
 *
 * @param context  As given with the function.
 * @param ret  All zero before the call.
 */
typedef void sym_unwind_find_fn(void *context, uint64_t address, struct sym_unwind_code *ret);

/**
 * Creates an unwinder for stacks of a recording.
 *
 * The process is gone; the caller knows its mappings.
 * The unwind codes of jitted code were in its memory.
 * So jitted code is unwound by its frame pointer, and marked SYM_FRAME_IS_GUESSED.
 *
 * @param find  sym_unwinder_unwind() calls it once for each new address.
 * @param context  Passed to `find`.
 * @param ret  The unwinder; free it with sym_unwinder_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_unwinder_create_recorded(sym_unwind_find_fn *find, void *context, struct sym_unwinder **ret);

/**
 * Creates an unwinder for a process that is kept fresh.
 *
 * It never refreshes.
 * When a stack ends early or has guessed frames, call sym_live_update() and unwind it again.
 * It follows `live` across exec().
 *
 * @param live  Borrowed; it must outlive the unwinder.
 * @param ret  The unwinder; free it with sym_unwinder_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_unwinder_create_live(struct sym_live *live,
								  struct sym_unwinder **ret);

/**
 * Frees an unwinder.
 *
 * @param unwinder  NULL is accepted.
 */
SYM_API void sym_unwinder_destroy(struct sym_unwinder *unwinder);

/** Discards all known code, because the mappings have changed: `find` is called again. */
SYM_API void sym_unwinder_forget(struct sym_unwinder *unwinder);

/**
 * Unwinds one stack.
 *
 * @param registers  Registers of the thread; set the program counter and the stack pointer.
 * @param stack  Copy of its stack; nothing else of the stack is read.
 * @param frames  Room for the frames, innermost first.
 * @param capacity  Number of frames that fit; at least 1.
 * @param count_ret  Number of frames; at least 1.
 * @param end_ret  Why there are no more.
 *
 * Errors: ARGUMENT for registers without program counter or stack pointer.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_unwinder_unwind(struct sym_unwinder *unwinder, const struct sym_unwind_registers *registers,
		    const struct sym_unwind_stack *stack, struct sym_frame *frames, size_t capacity,
		    size_t *count_ret, enum sym_unwind_end *end_ret);

#ifdef __cplusplus
}
#endif

#endif
