/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: symbols, lists of them, and their form on output.
 */
#ifndef LIBSYM_SYM_SYMBOLS_H
#define LIBSYM_SYM_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where a name came from. */
enum sym_source_kind {
	SYM_SOURCE_NONE = 0,
	SYM_SOURCE_ELF = 1, /**< .symtab or .dynsym of the mapped ELF file or its debug file */
	/** The perf map of the process; or one that another began, which the process and a live
	 * ancestor hold open for writing: in memory that is the same in both. */
	SYM_SOURCE_PERF_MAP = 2,
	SYM_SOURCE_RELATIVE_MAP =
		3,                 /**< a relative map whose rows are method starts of the image */
	SYM_SOURCE_READYTORUN = 4, /**< the tables of the precompiled image itself */
	SYM_SOURCE_RUNTIME =
		5, /**< the runtime in the process, looked at or asked; see sym_jit_way */
	/** .eh_frame of the mapped ELF file: bounds of functions, no names; see SYM_UNNAMED */
	SYM_SOURCE_EH_FRAME = 6,
	SYM_SOURCE_DWARF = 7,   /**< DWARF of the mapped ELF file or its debug file */
	SYM_SOURCE_KERNEL = 8,  /**< what the kernel says of itself: /proc/kallsyms */
	SYM_SOURCE_JITDUMP = 9, /**< the jitdump that the process writes; forked: as a perf map */
	/** .gopclntab of the mapped ELF file: the function table of a Go program, stripped or not
	 */
	SYM_SOURCE_GOPCLNTAB = 10
};

/** Short word for a source: "elf", "perfmap", "relmap", "r2r", "runtime", "eh_frame", "dwarf",
 * "kernel", "jitdump", "gopclntab"; static. */
SYM_API const char *sym_source_text(enum sym_source_kind source);

/** What a symbol covers. */
enum sym_symbol_kind {
	SYM_SYMBOL_FUNCTION = 0, /**< a function or method */
	SYM_SYMBOL_STUB = 1,     /**< code that a runtime generated between methods */
	SYM_SYMBOL_COLD =
		2, /**< cold part of a method; its hot part is another symbol of the same name */
	/**
	 * A native function of which only the bounds are known; what stands for its name is
	 * IMAGE!0xVADDR, as of SYM_UNNAMED.
	 */
	SYM_SYMBOL_UNNAMED = 3
};

/** One symbol of a list. */
struct sym_symbol {
	uint64_t start;      /**< rva, vaddr or address, as the list says */
	uint64_t size_bytes; /**< 0 only where the source does not know it */
	const char *name;    /**< full name without tier */
	const char *tier;    /**< "PreJIT", "OptimizedTier1", ...; NULL when there is none */
	enum sym_symbol_kind kind;
	enum sym_source_kind source;
	/** Index of the image in the snapshot; UINT32_MAX for what lies in no image. */
	uint32_t image_index;
	uint32_t reserved;
};

/** An immutable list of symbols, sorted by start, then size, then name. */
struct sym_symbols;

SYM_API size_t sym_symbols_count(const struct sym_symbols *symbols);

/** The symbol at `index` (0 based); NULL beyond the end. Lives as long as the list. */
SYM_API const struct sym_symbol *sym_symbols_at(const struct sym_symbols *symbols, size_t index);

SYM_API void sym_symbols_destroy(struct sym_symbols *symbols);

/** No index: the end of a search in a list. */
#define SYM_NONE SIZE_MAX

/**
 * Finds symbols by name: the first one behind index `previous` of the list
 * that has exactly this name. In a list of a process that is name to address,
 * in one of an image name to rva or vaddr. The first search of a list makes a table
 * of its names, further ones take a few steps.
 *
 *     for (size_t i = SYM_NONE; (i = sym_symbols_find(list, "main", i)) != SYM_NONE;)
 *             printf("%" PRIx64 "\n", sym_symbols_at(list, i)->start);
 *
 * @param name as in sym_symbol.name, or what sym_name_shorten() makes of that
 * @param previous SYM_NONE to begin with, then what the last call returned
 * @return SYM_NONE when there is none (any more)
 */
SYM_API size_t sym_symbols_find(const struct sym_symbols *symbols, const char *name,
				size_t previous);

/** Form of a name on output. */
enum sym_name_form {
	SYM_NAME_FULL =
		0, /**< as the runtime writes it: return type, assembly, type, method, parameters */
	SYM_NAME_SHORT = 1 /**< type and method only */
};

/** Form of a map on output. */
enum sym_map_format {
	/**
	 * A perf map: "START SIZE NAME" by address, lower-case hex without
	 * prefix, control characters in names replaced by '?', a newline behind
	 * every line. Tiers are appended as "[TIER]".
	 */
	SYM_MAP_PERF = 0,
	/** A relative map as crossgen wrote it: rva as 8 digits, no tiers, no stubs, no cold parts.
	 */
	SYM_MAP_RELATIVE = 1,
	/**
	 * A relative map as crossgen2 writes it (an r2rmap): header rows that say of which image
	 * it is, names in crossgen2's dialect. Only from sym_image_map().
	 */
	SYM_MAP_R2RMAP = 2
};

enum sym_write_flags {
	SYM_WRITE_NO_TIERS = 1 << 0, /**< perf map without "[TIER]" */
	SYM_WRITE_SHORT_NAMES = 1 << 1
};

/**
 * Renders symbols [first, first + count) of a list as map lines.
 *
 * @param text_ret heap text, to be ended with free(); NUL terminated behind its last newline
 * @param size_bytes_ret its length without the NUL
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_symbols_format(const struct sym_symbols *symbols,
							    size_t first, size_t count,
							    enum sym_map_format format,
							    uint32_t write_flags, char **text_ret,
							    size_t *size_bytes_ret);

/**
 * Shortens a full .NET name ("void [A] N.T::M(int32)") to type and method
 * ("N.T::M"). A name that is none is copied as it is.
 *
 * @param room where to write, always NUL terminated when room_bytes > 0
 * @return length of the whole short name without NUL, as snprintf() counts
 */
SYM_API size_t sym_name_shorten(const char *name, char *room, size_t room_bytes);

#ifdef __cplusplus
}
#endif

#endif
