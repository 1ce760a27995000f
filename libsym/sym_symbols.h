/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: symbols, lists of symbols, and their text form.
 */
#ifndef LIBSYM_SYM_SYMBOLS_H
#define LIBSYM_SYM_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------
 * Symbols
 * ------------------------------------------------------------------------ */

/** Where a name came from. */
enum sym_source_kind {
	SYM_SOURCE_NONE = 0,
	SYM_SOURCE_ELF = 1, /**< .symtab or .dynsym of the mapped ELF file or its debug file */
	/**
	 * The perf map of the process, or an inherited one.
	 * An inherited map was begun by an ancestor; both processes hold it open for writing.
	 * It is used only for memory that is the same in both.
	 */
	SYM_SOURCE_PERF_MAP = 2,
	/** a relative map whose rows are method starts of the image */
	SYM_SOURCE_RELATIVE_MAP = 3,
	SYM_SOURCE_READYTORUN = 4, /**< the tables of the precompiled image */
	SYM_SOURCE_RUNTIME = 5,    /**< the runtime in the process; see enum sym_jit_method */
	/** .eh_frame of the mapped ELF file: bounds of functions, no names; see SYM_BOUNDS_ONLY */
	SYM_SOURCE_EH_FRAME = 6,
	SYM_SOURCE_DWARF = 7,   /**< DWARF of the mapped ELF file or its debug file */
	SYM_SOURCE_KERNEL = 8,  /**< /proc/kallsyms */
	SYM_SOURCE_JITDUMP = 9, /**< the jitdump of the process, or an inherited one as above */
	/** .gopclntab of the mapped ELF file: the function table of a Go program, stripped or not
	 */
	SYM_SOURCE_GOPCLNTAB = 10
};

/**
 * Returns a short word for a source; static.
 *
 * The words: "elf", "perfmap", "relmap", "r2r", "runtime", "eh_frame", "dwarf", "kernel",
 * "jitdump", "gopclntab".
 */
SYM_API const char *sym_source_text(enum sym_source_kind source);

/** The kinds of symbols. */
enum sym_symbol_kind {
	SYM_SYMBOL_FUNCTION = 0, /**< a function or method */
	SYM_SYMBOL_STUB = 1,     /**< code that a runtime generated between methods */
	SYM_SYMBOL_COLD = 2,     /**< cold part of a method; the hot part has the same name */
	/** a native function without a name; its text is IMAGE!0xVADDR, as for SYM_BOUNDS_ONLY */
	SYM_SYMBOL_UNNAMED = 3
};

/** One symbol of a list. */
struct sym_symbol {
	uint64_t start;      /**< rva, vaddr, offset or address: what the list was asked for */
	uint64_t size_bytes; /**< 0 when the source does not have it */
	const char *name;    /**< full name without tier; lives as long as the list */
	const char *tier;    /**< "PreJIT", "OptimizedTier1", ...; NULL when there is none */
	enum sym_symbol_kind kind;
	enum sym_source_kind source;
	uint32_t image_index; /**< image in the snapshot; UINT32_MAX outside images */
	uint32_t reserved;
};

/* ------------------------------------------------------------------------
 * Lists of symbols
 * ------------------------------------------------------------------------ */

/** An immutable list of symbols, sorted by start, then size, then name. */
struct sym_symbols;

/**
 * Frees a list.
 *
 * @param symbols  NULL is accepted.
 */
SYM_API void sym_symbols_destroy(struct sym_symbols *symbols);

/** Returns the number of symbols. */
SYM_API size_t sym_symbols_count(const struct sym_symbols *symbols);

/**
 * Returns a symbol by its index.
 *
 * @param index  From 0.
 * @return It lives as long as the list; NULL beyond the end.
 */
SYM_API const struct sym_symbol *sym_symbols_at(const struct sym_symbols *symbols, size_t index);

/** No index: the start and the end of a search in a list. */
#define SYM_NONE SIZE_MAX

/**
 * Finds symbols by name.
 *
 * In a list of a process it finds addresses; in a list of an image rvas, vaddrs or offsets.
 * The names after `previous` are compared one after the other.
 *
 *     for (size_t i = SYM_NONE; (i = sym_symbols_find(list, "main", i)) != SYM_NONE;)
 *             printf("%" PRIx64 "\n", sym_symbols_at(list, i)->start);
 *
 * @param name  The whole name: as in sym_symbol.name, or its short form by sym_name_shorten().
 * @param previous  SYM_NONE at first, then the result of the previous call.
 * @return Index of the next symbol after `previous` that has this name; SYM_NONE at the end.
 */
SYM_API size_t sym_symbols_find(const struct sym_symbols *symbols, const char *name,
				size_t previous);

/* ------------------------------------------------------------------------
 * Text
 * ------------------------------------------------------------------------ */

/** Form of a map in output. */
enum sym_map_format {
	/**
	 * A perf map: lines "START SIZE NAME" by address.
	 * Numbers are lower-case hex without prefix.
	 * Control characters in names become '?'.
	 * The tier follows the name as "[TIER]".
	 * Each line ends with a newline.
	 * Symbols without a size are left out.
	 */
	SYM_MAP_PERF = 0,
	/** A relative map as crossgen wrote it: rva as 8 digits; no tiers, stubs or cold parts. */
	SYM_MAP_RELATIVE = 1,
	/**
	 * A relative map as crossgen2 writes it (r2rmap).
	 * Header rows identify the image.
	 * Names are in crossgen2's dialect.
	 * Only sym_image_map() can write it.
	 */
	SYM_MAP_R2RMAP = 2
};

enum sym_write_flags {
	SYM_WRITE_NO_TIERS = 1 << 0,    /**< perf map without "[TIER]" */
	SYM_WRITE_SHORT_NAMES = 1 << 1, /**< names as by sym_name_shorten() */
	SYM_WRITE_CSHARP_NAMES = 1 << 2 /**< names as by sym_name_csharp() */
};

/**
 * Writes symbols [first, first + count) of a list as lines of a map.
 *
 * @param format  SYM_MAP_PERF or SYM_MAP_RELATIVE.
 * @param write_flags  enum sym_write_flags.
 * @param text_ret  The lines and a NUL; free() it.
 * @param size_bytes_ret  Length of the text without the NUL.
 *
 * Errors: ARGUMENT for a range beyond the list, an unknown format or unknown flags; LIMIT;
 * NO_MEMORY.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_symbols_format(const struct sym_symbols *symbols,
							    size_t first, size_t count,
							    enum sym_map_format format,
							    uint32_t write_flags, char **text_ret,
							    size_t *size_bytes_ret);

/**
 * Shortens a full .NET name ("void [A] N.T::M(int32)") to type and method ("N.T::M").
 *
 * Any other text is copied unchanged.
 *
 * @param room  Receives the short name and a NUL, cut where the room ends.
 * @param room_bytes  Size of `room`; 0: nothing is written.
 * @return Length of the whole short name without NUL, as snprintf() returns it.
 */
SYM_API size_t sym_name_shorten(const char *name, char *room, size_t room_bytes);

enum sym_csharp_flags {
	SYM_CSHARP_NO_NAMESPACES = 1 << 0,     /**< "T.M()" for "N.T.M()" */
	SYM_CSHARP_NO_TYPE_ARGUMENTS = 1 << 1, /**< "List.Add" for "List<int>.Add" */
	SYM_CSHARP_NO_PARAMETERS = 1 << 2,     /**< "T.M" for "T.M(string)" */
	/** The name is known to be of managed code, and may be "T::M" without a signature. */
	SYM_CSHARP_IS_MANAGED = 1 << 3
};

/**
 * Writes a full .NET name as C# code names the method.
 *
 * "void [A] N.T::M(string)" becomes "N.T.M(string)".
 * "instance void [A] N.T+<M>d__3::MoveNext()" becomes "async N.T.M".
 * An iterator becomes "iterator N.T.M", a lambda "lambda(int) in N.T.M".
 * A local function becomes "local L() in N.T.M", a constructor "new N.T()".
 * An accessor becomes "N.T.P.get" or "N.T.this[int].get".
 * T0 and M0 stand for type parameters whose names or arguments are not in the text.
 * What the compiler has made and is not known stays as it is.
 * Any other text is copied unchanged.
 * Two methods may get the same text: the full name is what distinguishes them.
 *
 * @param flags  enum sym_csharp_flags.
 * @param room  Receives the name and a NUL, cut where the room ends.
 * @param room_bytes  Size of `room`; 0: nothing is written.
 * @return Length of the whole name without NUL, as snprintf() returns it.
 */
SYM_API size_t sym_name_csharp(const char *name, uint32_t flags, char *room, size_t room_bytes);

#ifdef __cplusplus
}
#endif

#endif
