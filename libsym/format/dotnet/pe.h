/* SPDX-License-Identifier: MIT */
/*
 * PE files as far as managed code needs them: headers, sections, data directories, CLI header,
 * debug directory entry 21 (r2rmap). The bytes may be laid out as in the file or as loaded in
 * memory.
 *
 * Layout: Microsoft PE/COFF specification; ECMA-335 II.25.
 */
#ifndef LIBSYM_FORMAT_DOTNET_PE_H
#define LIBSYM_FORMAT_DOTNET_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"
#include "libsym/error.h"

enum pe_layout {
	PE_LAYOUT_FILE,
	PE_LAYOUT_LOADED, /* byte i of data is rva i */
};

struct pe_section {
	uint32_t virtual_address; /* rva */
	uint32_t virtual_size_bytes;
	uint32_t raw_offset; /* into the PE file */
	uint32_t raw_size_bytes;
	uint32_t characteristics; /* 0x20000000 execute, 0x40000000 read, 0x80000000 write */
};

#define PE_SECTION_EXECUTE 0x20000000u
#define PE_MAX_SECTIONS    96

struct pe_directory {
	uint32_t rva;
	uint32_t size_bytes;
};

/* The machine field without the operating system's constant. */
enum pe_machine {
	PE_MACHINE_I386 = 0x014c,
	PE_MACHINE_ARM = 0x01c4,
	PE_MACHINE_AMD64 = 0x8664,
	PE_MACHINE_ARM64 = 0xaa64,
	PE_MACHINE_LOONGARCH64 = 0x6264,
	PE_MACHINE_RISCV64 = 0x5064,
};

/* The operating system whose constant the machine field carries. */
enum pe_system {
	PE_SYSTEM_WINDOWS, /* or none: not every image is for one system */
	PE_SYSTEM_LINUX,
	PE_SYSTEM_APPLE,
	PE_SYSTEM_FREEBSD,
	PE_SYSTEM_NETBSD,
	PE_SYSTEM_SUNOS,
	PE_SYSTEM_UNKNOWN,
};

struct pe {
	const uint8_t *data; /* borrowed */
	size_t size_bytes;
	enum pe_layout layout;
	uint16_t machine_raw; /* as in the file */
	uint16_t machine;     /* enum pe_machine, or machine_raw when unknown */
	enum pe_system system;
	uint32_t timestamp;
	uint32_t checksum;
	uint32_t size_of_image_bytes;
	uint32_t size_of_headers_bytes;
	bool is_64bit; /* PE32+ */
	uint32_t section_count;
	struct pe_section sections[PE_MAX_SECTIONS];
	/* cli: data directory 14; all zero if absent */
	struct pe_directory export_table, debug, cli;
	struct pe_directory metadata, managed_native_header; /* from the CLI header */
	uint32_t cli_flags;
	bool has_r2rmap_entry; /* debug directory entry of type 21 */
	uint8_t r2rmap_signature[16];
	uint32_t r2rmap_version;
	const char *r2rmap_name; /* points into the data; NULL if the entry has no usable name */
};

/* Errors: FORMAT, also for overlapping sections, sections beyond the end, and too many sections. */
struct sym_error *pe_parse(struct pe *pe, const void *data, size_t size_bytes,
			   enum pe_layout layout);

/* The bytes of [rva, rva + size_bytes), or NULL if the data does not contain all of them. */
const uint8_t *pe_bytes(const struct pe *pe, uint32_t rva, size_t size_bytes);

/*
 * Like pe_bytes(); *available_bytes_ret is the number of bytes up to the end of the section's data.
 */
const uint8_t *pe_bytes_to_end(const struct pe *pe, uint32_t rva, size_t *available_bytes_ret);

/* An entry of the debug directory. */
struct pe_debug_entry {
	uint32_t stamp, type;
	uint16_t minor;
	struct pe_directory content;
};

/* Returns false past the last entry, or if the directory is not in the data. */
bool pe_debug_entry(const struct pe *pe, unsigned int index, struct pe_debug_entry *ret);

/* Does `data` begin like a PE file: "MZ", an e_lfanew inside, "PE\0\0"? */
bool pe_recognise(const void *data, size_t size_bytes);

#endif
