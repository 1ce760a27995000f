/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the ReadyToRun reader: r2r.c (header, look-up), r2r_entries.c (tables and
 * entries), r2r_functions.c (extents), r2r_instance.c (section 109), r2r_resumption.c (stubs that
 * resume methods), r2r_modules.c (modules, component assemblies), r2r_member.c (methods of other
 * assemblies), r2r_name.c (names). Private to these files.
 */
#ifndef LIBSYM_FORMAT_DOTNET_R2R_INTERNAL_H
#define LIBSYM_FORMAT_DOTNET_R2R_INTERNAL_H

#include "libsym/format/dotnet/r2r.h"
#include "libsym/format/dotnet/signature.h"

enum r2r_section {
	R2R_SECTION_FIRST = 100,
	R2R_SECTION_IMPORT_SECTIONS = 101,
	R2R_SECTION_RUNTIME_FUNCTIONS = 102,
	R2R_SECTION_METHOD_DEF_ENTRY_POINTS = 103,
	R2R_SECTION_DEBUG_INFO = 105,
	R2R_SECTION_DELAY_LOAD_THUNKS = 106,
	R2R_SECTION_INSTANCE_ENTRY_POINTS = 109,
	R2R_SECTION_MANIFEST_METADATA = 112,
	R2R_SECTION_COMPONENT_ASSEMBLIES = 115,
	R2R_SECTION_OWNER_COMPOSITE = 116,
	R2R_SECTION_MANIFEST_ASSEMBLY_MVIDS = 118,
	R2R_SECTION_HOT_COLD_MAP = 120,
	R2R_SECTION_END = 132, /* one past the last number in use */
};

/* READYTORUN_CORE_HEADER: where the tables are. */
struct r2r_core_header {
	uint32_t flags;
	struct pe_directory sections[R2R_SECTION_END - R2R_SECTION_FIRST];
};

static inline struct pe_directory r2r_section(const struct r2r_core_header *header,
					      enum r2r_section number)
{
	return header->sections[number - R2R_SECTION_FIRST];
}

/* Where a section is, by the header alone; zero if there is none. Nothing is checked. */
struct pe_directory r2r_find_section(const struct pe *pe, enum r2r_section number);

/* A module that signatures refer to by number. */
struct r2r_module {
	const struct metadata *metadata; /* NULL: not available, or not requested */
	struct metadata *owned;          /* embedded in a composite */
	const char *name;    /* simple name of the assembly; NULL: the number is unused */
	const uint8_t *mvid; /* as recorded in the image; NULL: not recorded */
	char mvid_text[37];  /* MVID of `metadata`, equal to `mvid`; "" without metadata */
	bool is_used;
};

#define R2R_NO_ENTRY UINT32_MAX

/* A method entry: of section 103 (rid and module), of section 109 (position of its signature), or a
 * stub that resumes the method of another entry. */
struct r2r_entry {
	uint32_t function; /* number of its first runtime function */
	/* rid, or position in r2r->instances, or the resumed entry; R2R_NO_ENTRY: no method claims
	 * the stub */
	uint32_t locator;
	uint32_t module; /* module of the rid; unused for other entries */
};

/* The definition that a MemberRef or a TypeRef of the manifest refers to. */
struct r2r_definition {
	const struct metadata *metadata;
	uint32_t rid;     /* of a MethodDef or TypeDef; 0: not found */
	bool is_resolved; /* was searched for */
};

struct r2r {
	const struct pe *pe;
	const struct metadata *metadata; /* the image's own; NULL for a composite */
	const struct metadata *manifest;
	struct metadata *manifest_owned;
	const struct r2r_assemblies *assemblies;
	enum r2r_flavour flavour;
	uint16_t major_version, minor_version;
	struct r2r_core_header header;

	uint32_t function_count;
	uint32_t function_bytes; /* size of one row of section 102 */
	const uint8_t *functions;
	uint32_t first_cold; /* number of the first cold runtime function, or function_count */

	const uint8_t *imports; /* rows of section 101, if they were read */
	uint32_t import_count;
	struct reader instances;   /* section 109 */
	struct r2r_entry *entries; /* 103 first, then 109, then stubs */
	size_t entry_count, method_def_count, entry_capacity;
	size_t stub_entry;  /* the first one that is a stub */
	bool has_no_memory; /* adding an entry failed for lack of memory */

	/* AssemblyRef rows of the image, which have the first module numbers */
	uint32_t own_reference_count;
	struct r2r_module *modules;
	size_t module_count;
	struct r2r_module core; /* the core library, which members may refer to without a number */
	bool has_member_refs;   /* some entries refer to their method by a MemberRef */
	struct r2r_members *members;

	struct r2r_range *ranges;
	size_t range_count;
	size_t undecodable_count, ownerless_count;
	size_t table_bytes; /* of all tables read so far; see r2r_table() */
};

/* ---- r2r_entries.c */
bool r2r_read_core_header(struct reader *reader, struct r2r_core_header *ret);

/* The bytes of a table. NULL if they lie outside the image, or if all tables together are larger
 * than the image: then tables overlap, and the work would be unbounded. */
const uint8_t *r2r_table(struct r2r *r2r, struct pe_directory directory);

/* Adds an entry. Returns false if out of memory or past the bound that the image's size sets. */
bool r2r_add_entry(struct r2r *r2r, uint32_t function, uint32_t locator, uint32_t module);

struct r2r_entry_point {
	uint32_t function; /* number of its first runtime function */
	bool has_fixups;
	size_t fixups; /* their position in the reader's data */
};

struct r2r_entry_point r2r_read_entry_point(struct reader *reader);

/* The error of a failed walk over a table of entries. */
struct sym_error *r2r_table_error(const struct r2r *r2r, const char *table)
	__attribute__((warn_unused_result));

/* Reads section 103 of one core header; its rids belong to `module`. */
struct sym_error *r2r_read_method_defs(struct r2r *r2r, const struct r2r_core_header *header,
				       uint32_t module, uint32_t max_rid);

/* ---- r2r_modules.c */
extern const char r2r_core_library[];
struct sym_error *r2r_open_modules(struct r2r *r2r);
void r2r_close_modules(struct r2r *r2r);
/* Module number of a row of the manifest's AssemblyRef table. */
uint32_t r2r_manifest_module(const struct r2r *r2r, uint32_t assembly_ref);
void r2r_use_module(void *context, uint32_t index);
/* Requests the metadata of all modules in use. */
void r2r_find_modules(struct r2r *r2r);
const struct metadata *r2r_module_metadata(const struct r2r *r2r, uint32_t index,
					   const char **why_ret);
struct sym_error *r2r_read_components(struct r2r *r2r);

/* ---- r2r_member.c */
void r2r_use_member_modules(struct r2r *r2r);
struct sym_error *r2r_resolve_members(struct r2r *r2r);
struct r2r_definition r2r_member_definition(const struct r2r *r2r, uint32_t rid);
void r2r_close_members(struct r2r *r2r);

/* ---- r2r_name.c */
/* The metadata and the rid of the method of an entry; NULL with *why_ret if it is not available. */
const struct metadata *r2r_entry_definition(const struct r2r *r2r, uint32_t number,
					    uint32_t *rid_ret, bool *is_stub_ret,
					    const char **why_ret);

/* ---- r2r_instance.c */
enum r2r_instance_flag {
	R2R_INSTANCE_METHOD_ARGUMENTS = 0x04,
	R2R_INSTANCE_SLOT = 0x08,
	R2R_INSTANCE_MEMBER_REF = 0x10,
	R2R_INSTANCE_CONSTRAINED = 0x20,
	R2R_INSTANCE_OWNER_TYPE = 0x40,
	R2R_INSTANCE_UPDATE_CONTEXT = 0x80,
	/* the runtime-async variant, which returns the task's value */
	R2R_INSTANCE_ASYNC_VARIANT = 0x100,
};

struct r2r_instance {
	uint32_t flags;
	uint32_t module;     /* module of owner and rid */
	struct reader owner; /* positioned at the owner's type; only with OWNER_TYPE */
	uint32_t rid;
	uint32_t argument_count;
	struct reader arguments; /* positioned at the first method argument */
};

/* Reads one method signature and leaves `reader` at the entry point after it. */
struct r2r_instance r2r_read_instance(struct reader *reader, struct signature_budget *budget);
struct sym_error *r2r_read_instances(struct r2r *r2r);

/* ---- r2r_resumption.c */
struct sym_error *r2r_read_resumption_stubs(struct r2r *r2r);

#endif
