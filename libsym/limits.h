/* SPDX-License-Identifier: MIT */
/*
 * Every bound of the library: unit, value, why this value, what happens beyond.
 * Exceeding one is an error of code SYM_ERROR_LIMIT that names it, never a
 * silent cut, unless the line says otherwise.
 */
#ifndef LIBSYM_LIMITS_H
#define LIBSYM_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of one file, of which only what is asked for is read. Debug files of browsers have 4 GB; it
 * takes addresses, of which processes of 32 bits have few. */
static const uint64_t LIMIT_FILE_BYTES = (uint64_t)1 << (sizeof(size_t) > 4 ? 40 : 30);

/* Bytes that are read of one file, of an image in memory, and of an assembly. The symbol table of a
 * browser and its strings have 400 MB, the largest composite image seen 49 MB; a single-file host
 * with everything inside stays below 1 GiB. */
static const uint64_t LIMIT_IMAGE_BYTES = (uint64_t)1 << 30;

/* Bytes of a file whose sum a .gnu_debuglink tells, all of which are read; a larger one is not the
 * debug file. */
static const uint64_t LIMIT_SUMMED_BYTES = (uint64_t)8 << 30;

/* Bytes of an unpacked .gnu_debugdata; beyond, it is not used. Those of Fedora's largest libraries
 * have 10 MB. */
static const uint64_t LIMIT_MINIDEBUG_BYTES = (uint64_t)256 << 20;

/* Bytes of a section of DWARF, unpacked: a small file may promise any size. Beyond, the section
 * is not used. .debug_info of a browser has 1.5 GB. */
static const uint64_t LIMIT_DEBUG_SECTION_BYTES = (uint64_t)2 << 30;

/* Bytes of all of them, of one image and of the files that its DWARF refers to: some sections of a
 * few MB may promise 2 GiB each. Beyond, a section is not used. A browser's have 3 GB. */
static const uint64_t LIMIT_DEBUG_FILES_BYTES = (uint64_t)4 << 30;

/* Bytes of a perf map. 4 GiB maps exist (users' reports); names are pooled by 32-bit offsets, so
 * beyond that nothing could be indexed. */
static const uint64_t LIMIT_PERF_MAP_BYTES = (uint64_t)8 << 30;

/* Bytes of a relative map. CoreLib's has 8 MB. */
static const uint64_t LIMIT_RELATIVE_MAP_BYTES = (uint64_t)256 << 20;

/* Bytes of a perfinfo file. A line has some 150; a process has a few hundred images. */
static const uint64_t LIMIT_PERFINFO_BYTES = (uint64_t)4 << 20;

/* Bytes of a single-file application's manifest. A row has some 60 bytes; an application has a few
 * thousand files. */
static const uint64_t LIMIT_BUNDLE_MANIFEST_BYTES = (uint64_t)16 << 20;

/* Bytes of the directory of a zip archive; beyond, nothing in it has names. A row has 46 bytes and
 * a name; the largest applications have some 100,000 members. */
static const uint64_t LIMIT_ZIP_DIRECTORY_BYTES = (uint64_t)64 << 20;

/* Bytes of one assembly in a bundle, packed or not; beyond, its metadata is not used. The largest
 * of .NET 10, CoreLib with its code, has 14 MB. */
static const uint64_t LIMIT_BUNDLED_BYTES = (uint64_t)256 << 20;

/* Bytes of a name. Longer ones are skipped and counted as bad lines: no compiler emits them, and
 * one 1 GiB line must not cost 1 GiB. Code to which a jitdump gives such a name has none. */
static const size_t LIMIT_NAME_BYTES = (size_t)1 << 16;

/* Bytes of /proc/PID/maps: vm.max_map_count allows 2^31 mappings in theory; 65,530 of them by
 * default need at most 20 MB. */
static const size_t LIMIT_MAPS_BYTES = (size_t)256 << 20;

/* Symbols in one index. */
static const size_t LIMIT_INDEX_SYMBOLS = (size_t)1 << 28;

/* Times 64 KiB of the address space in which symbols of one index start (1 TiB): each costs memory
 * while the index is built, and a file may name an address in every one. */
static const size_t LIMIT_INDEX_AREAS = (size_t)1 << 24;

/* Bytes of names in one index: offsets into the pool have 32 bits. */
static const size_t LIMIT_INDEX_NAME_BYTES = UINT32_MAX;

/* Nested types inside one signature. Real ones stay below 20; a recursive reader must not exhaust
 * its stack. */
static const unsigned int LIMIT_SIGNATURE_DEPTH = 64;

/* Types visited in one signature: without it, 2^depth type arguments could be spelt out from a few
 * bytes. */
static const unsigned int LIMIT_SIGNATURE_NODES = 4096;

/* Enclosing classes of a nested type. NestedClass rows may form a cycle. */
static const unsigned int LIMIT_NESTING_DEPTH = 64;

/*
 * Rows looked at to find the definitions that an image's MemberRefs mean. Real images stay below a
 * million; what is not found by then has no name.
 */
static const size_t LIMIT_MEMBER_SEARCH_STEPS = (size_t)1 << 25;

/* Places in the lists by which a jitdump tells what lay where at a time (1 GiB). Two or three for
 * each record where code lies side by side, at most twice the binary logarithm of the number of
 * records. Beyond, times of questions are not looked at. */
static const size_t LIMIT_HISTORY_ENTRIES = (size_t)1 << 28;

/* A record of source lines in a jitdump. A method of 64 KiB with a line for each of its bytes and a
 * path of 200 has 14 MB. One that is larger has no lines. */
static const size_t LIMIT_JITDUMP_LINES_BYTES = (size_t)16 << 20;

/* What a process has written with stdio and holds back of one file. A buffer has 4 KiB where nobody
 * chose another size. Of more nothing is read. */
static const size_t LIMIT_STDIO_BYTES = (size_t)64 << 20;

/* Small files below /proc (stat, status, environ, cmdline). */
static const size_t LIMIT_PROC_FILE_BYTES = (size_t)4 << 20;

/* Pages of 4 KiB cached of another process's memory (1 GiB). A compiler with 50,000 jitted methods
 * needs 20,000. */
static const size_t LIMIT_REMOTE_PAGES = (size_t)1 << 18;

/* Bytes of metadata copied out of another process's memory; names of further modules are not had.
 * The assemblies of a web application have 60 MB, and many modules may say that they have the same
 * bytes. */
static const uint64_t LIMIT_METADATA_COPIES_BYTES = (uint64_t)1 << 30;

/* Rounds of following pointers through another process's memory. A reading needs about 30; a list
 * that never ends must. */
static const unsigned int LIMIT_REMOTE_ROUNDS = 4096;

/* Bytes of a runtime's contract description. .NET 10's has 10,563, .NET 11's 17,396. */
static const size_t LIMIT_CONTRACT_BYTES = (size_t)1 << 20;

/* Names in one object of it, which are compared with each other. .NET 11 has 166. Beyond: FORMAT.
 */
static const size_t LIMIT_CONTRACT_NAMES = 512;

/* Pointers beside it. .NET 11 has 46. */
static const size_t LIMIT_CONTRACT_POINTERS = 4096;

/* Bytes of one rundown. The C# compiler's has 5 MB. */
static const size_t LIMIT_RUNDOWN_BYTES = (size_t)1 << 30;

/* Segments of a core file: one for each mapping, of which a process has 65,530 by default. */
static const size_t LIMIT_CORE_SEGMENTS = (size_t)1 << 22;

/* Bytes of a core file's notes: some KB for each thread, and the paths of what was mapped. */
static const size_t LIMIT_CORE_NOTES_BYTES = (size_t)256 << 20;

#endif
