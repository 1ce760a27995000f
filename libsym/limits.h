/* SPDX-License-Identifier: MIT */
/*
 * All limits of the library but those of a budget (budget_api.c): unit, value, why this value, what
 * happens beyond.
 * Exceeding one is SYM_ERROR_LIMIT with its name, never a silent cut, unless its comment differs.
 */
#ifndef LIBSYM_LIMITS_H
#define LIBSYM_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of a file that is read in parts. Debug files of browsers have 4 GB. Files take address
 * space, which 32-bit processes lack.
 */
static const uint64_t LIMIT_FILE_BYTES = (uint64_t)1 << (sizeof(size_t) > 4 ? 40 : 30);

/*
 * Bytes read of one file, of an image in memory, and of an assembly. The symbol table of a browser
 * and its strings have 400 MB, the largest composite image seen has 49 MB, a single-file host with
 * everything inside has less than 1 GiB.
 */
static const uint64_t LIMIT_IMAGE_BYTES = (uint64_t)1 << 30;

/*
 * Bytes of a file whose .gnu_debuglink checksum is computed. A larger file is not the debug file.
 */
static const uint64_t LIMIT_SUMMED_BYTES = (uint64_t)8 << 30;

/*
 * Bytes of an unpacked .gnu_debugdata. A larger one is not used. Those of Fedora's largest
 * libraries have 10 MB.
 */
static const uint64_t LIMIT_MINIDEBUG_BYTES = (uint64_t)256 << 20;

/*
 * Bytes of the addresses that sym_resolver_resolve_rows() finds. All methods of the largest
 * framework have 20 MB.
 */
static const uint64_t LIMIT_LINE_ROWS_BYTES = (uint64_t)256 << 20;

/*
 * Bytes of an unpacked DWARF section: a small file can claim any size. A larger section is not
 * used. .debug_info of a browser has 1.5 GB.
 */
static const uint64_t LIMIT_DEBUG_SECTION_BYTES = (uint64_t)2 << 30;

/*
 * Bytes of all DWARF sections of one image and of the files that it refers to: small sections can
 * claim 2 GiB each. Further sections are not used. A browser's have 3 GB.
 */
static const uint64_t LIMIT_DEBUG_FILES_BYTES = (uint64_t)4 << 30;

/*
 * Bytes of a perf map. Maps of 4 GiB exist (users' reports). Names have 32-bit numbers, so reading
 * a much larger map fails with LIMIT all the same.
 */
static const uint64_t LIMIT_PERF_MAP_BYTES = (uint64_t)8 << 30;

/* Bytes of a relative map. CoreLib's has 8 MB. */
static const uint64_t LIMIT_RELATIVE_MAP_BYTES = (uint64_t)256 << 20;

/* Bytes of a perfinfo file. A line has some 150; a process has a few hundred images. */
static const uint64_t LIMIT_PERFINFO_BYTES = (uint64_t)4 << 20;

/* Bytes of a single-file application's manifest. A row has some 60 bytes; an application has a few
 * thousand files. */
static const uint64_t LIMIT_BUNDLE_MANIFEST_BYTES = (uint64_t)16 << 20;

/*
 * Bytes of the directory of a zip archive. With a larger one no member has names. A row has 46
 * bytes and a name; the largest applications have some 100,000 members.
 */
static const uint64_t LIMIT_ZIP_DIRECTORY_BYTES = (uint64_t)64 << 20;

/*
 * Bytes of one assembly in a bundle, compressed or not. The metadata of a larger one are not used.
 * The largest of .NET 10, CoreLib with its code, has 14 MB.
 */
static const uint64_t LIMIT_BUNDLED_BYTES = (uint64_t)256 << 20;

/*
 * Bytes of a portable PDB. The largest of .NET 10, CoreLib's, has 5 MB; a larger one gives no
 * lines.
 */
static const uint64_t LIMIT_PDB_BYTES = (uint64_t)256 << 20;

/*
 * Bytes of a name. Lines with longer names are skipped and counted as bad: no compiler emits them,
 * and one line of 1 GiB must not cost 1 GiB. Code with such a name in a jitdump has no name.
 */
static const size_t LIMIT_NAME_BYTES = (size_t)1 << 16;

/*
 * Bytes of /proc/PID/maps. vm.max_map_count allows 2^31 mappings in theory. The default of 65,530
 * needs at most 20 MB.
 */
static const size_t LIMIT_MAPS_BYTES = (size_t)256 << 20;

/* Symbols in one index. */
static const size_t LIMIT_INDEX_SYMBOLS = (size_t)1 << 28;

/* Bytes of names in one index: offsets into the pool have 32 bits. */
static const size_t LIMIT_INDEX_NAME_BYTES = UINT32_MAX;

/*
 * Nested types inside one signature. Real ones stay below 20. Bounds the stack of a recursive
 * reader.
 */
static const unsigned int LIMIT_SIGNATURE_DEPTH = 64;

/* Types visited in one signature. Without it a few bytes could mean 2^depth type arguments. */
static const unsigned int LIMIT_SIGNATURE_NODES = 4096;

/* Enclosing classes of a nested type. NestedClass rows may form a cycle. */
static const unsigned int LIMIT_NESTING_DEPTH = 64;

/*
 * Rows searched for the definitions of an image's MemberRefs. Real images stay below a million. A
 * definition not found by then has no name.
 */
static const size_t LIMIT_MEMBER_SEARCH_STEPS = (size_t)1 << 25;

/*
 * Entries in the lists of a jitdump's history (1 GiB). Each record has two or three if code does
 * not overlap, at most twice the binary logarithm of the number of records. Beyond, times are
 * ignored, and a dump in which code moves is not read.
 */
static const size_t LIMIT_HISTORY_ENTRIES = (size_t)1 << 28;

/*
 * Bytes of a record of source lines in a jitdump. A method of 64 KiB with a line for each byte and
 * a path of 200 bytes has 14 MB. A larger record is not used.
 */
static const size_t LIMIT_JITDUMP_LINES_BYTES = (size_t)16 << 20;

/*
 * Unflushed stdio bytes of one file. A buffer has 4 KiB unless the program chose another size.
 * Larger buffers are not read.
 */
static const size_t LIMIT_STDIO_BYTES = (size_t)64 << 20;

/* Small files below /proc (stat, status, environ, cmdline). */
static const size_t LIMIT_PROC_FILE_BYTES = (size_t)4 << 20;

/* Pages of 4 KiB cached of another process's memory (1 GiB). A compiler with 50,000 jitted methods
 * needs 20,000. */
static const size_t LIMIT_REMOTE_PAGES = (size_t)1 << 18;

/*
 * Bytes of metadata copied from another process's memory. Further modules have no names. The
 * assemblies of a web application have 60 MB, but many modules may refer to the same bytes.
 */
static const uint64_t LIMIT_METADATA_COPIES_BYTES = (uint64_t)1 << 30;

/*
 * Rounds of following pointers in another process's memory. A reading needs about 30. Ends the
 * reading of a cyclic list.
 */
static const unsigned int LIMIT_REMOTE_ROUNDS = 4096;

/* Bytes of a runtime's contract description. .NET 10's has 10,563, .NET 11's 17,396. */
static const size_t LIMIT_CONTRACT_BYTES = (size_t)1 << 20;

/*
 * Names in one object of a contract description, which are compared with each other. .NET 11 has
 * 166. Beyond: FORMAT.
 */
static const size_t LIMIT_CONTRACT_NAMES = 512;

/* Pointers beside a contract description. .NET 11 has 46. */
static const size_t LIMIT_CONTRACT_POINTERS = 4096;

/* Bytes of one rundown; with a budget at most an eighth of it. The C# compiler's has 5 MB. */
static const size_t LIMIT_RUNDOWN_BYTES = (size_t)1 << 30;

/* Segments of a core file: one for each mapping, of which a process has 65,530 by default. */
static const size_t LIMIT_CORE_SEGMENTS = (size_t)1 << 22;

/* Bytes of a core file's notes: some KB for each thread, and the paths of what was mapped. */
static const size_t LIMIT_CORE_NOTES_BYTES = (size_t)256 << 20;

/* Bytes of all stack copies in one list of threads. A waiting thread has some KB. */
static const size_t LIMIT_THREAD_STACKS_BYTES = (size_t)256 << 20;

#endif
