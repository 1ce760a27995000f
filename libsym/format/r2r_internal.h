/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the ReadyToRun reader share: r2r.c (header, extents,
 * look-up), r2r_functions.c (extents), r2r_instance.c (section 109),
 * r2r_resumption.c (stubs that resume methods), r2r_composite.c (modules, component assemblies),
 * r2r_member.c (methods of other assemblies), r2r_name.c (names). For these files only.
 */
#ifndef LIBSYM_FORMAT_R2R_INTERNAL_H
#define LIBSYM_FORMAT_R2R_INTERNAL_H

#include "libsym/format/r2r.h"
#include "libsym/format/signature.h"

enum r2r_section {
	R2R_SECTION_FIRST = 100,
	R2R_SECTION_IMPORT_SECTIONS = 101,
	R2R_SECTION_RUNTIME_FUNCTIONS = 102,
	R2R_SECTION_METHOD_DEF_ENTRY_POINTS = 103,
	R2R_SECTION_DELAY_LOAD_THUNKS = 106,
	R2R_SECTION_INSTANCE_ENTRY_POINTS = 109,
	R2R_SECTION_MANIFEST_METADATA = 112,
	R2R_SECTION_COMPONENT_ASSEMBLIES = 115,
	R2R_SECTION_OWNER_COMPOSITE = 116,
	R2R_SECTION_MANIFEST_ASSEMBLY_MVIDS = 118,
	R2R_SECTION_HOT_COLD_MAP = 120,
	R2R_SECTION_END = 132, /* one behind the last number that is looked at */
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

bool r2r_read_core_header(struct reader *reader, struct r2r_core_header *ret);

/* A module that signatures refer to by number. */
struct r2r_module {
	const struct metadata *metadata; /* NULL: not to be had, or not asked for */
	struct metadata *owned;          /* embedded in a composite */
	const char *name;    /* simple name of the assembly; NULL when the number means nothing */
	const uint8_t *mvid; /* what the image says it is; NULL when it does not say */
	char mvid_text[37];  /* of its metadata, which is the same; "" without metadata */
	bool is_used;
};

#define R2R_NO_ENTRY UINT32_MAX

/*
 * A method entry: of section 103 (rid and module), of section 109 (position of its signature), or
 * the stub that resumes the method of another one.
 */
struct r2r_entry {
	uint32_t function; /* number of its first runtime function */
	uint32_t locator;  /* rid, or position in r2r->instances, or the other entry: R2R_NO_ENTRY
			    * when no method says that the stub is its own */
	uint32_t module;   /* number of the module of the rid; unused for the others */
};

/* What a MemberRef or a TypeRef of the manifest means. */
struct r2r_definition {
	const struct metadata *metadata;
	uint32_t rid;     /* of a MethodDef or TypeDef; 0: not found */
	bool is_resolved; /* was looked for */
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
	uint32_t function_bytes; /* one row of section 102 */
	const uint8_t *functions;
	uint32_t first_cold; /* number of the first cold runtime function, or function_count */

	const uint8_t *imports; /* rows of section 101, if they were read */
	uint32_t import_count;
	struct reader instances;   /* section 109 */
	struct r2r_entry *entries; /* 103 first, then 109, then stubs */
	size_t entry_count, method_def_count, entry_capacity;
	size_t stub_entry;  /* the first one that is a stub */
	bool has_no_memory; /* why adding an entry failed */

	uint32_t own_reference_count; /* AssemblyRef rows that module numbers begin with */
	struct r2r_module *modules;
	size_t module_count;
	struct r2r_module core; /* the core library, which members may name without a number */
	bool has_member_refs;   /* entries that name their method by a MemberRef */
	struct r2r_members *members;

	struct r2r_range *ranges;
	size_t range_count;
	/* Number of the first range at or behind the beginning of each bucket; one more, for the
	 * end. */
	uint32_t *buckets;
	size_t bucket_count;
	unsigned int bucket_shift; /* width */
	size_t undecodable_count, ownerless_count;
	size_t table_bytes; /* of all tables read so far; see r2r_table() */
};

/*
 * The bytes of a table; NULL when they lie outside the image, or when all tables together are
 * larger than the image: then some bytes stand in several tables, and work would grow without end.
 */
const uint8_t *r2r_table(struct r2r *r2r, struct pe_directory directory);

/* Adds an entry; false when out of memory or past the bound that the image's size sets. */
bool r2r_add_entry(struct r2r *r2r, uint32_t function, uint32_t locator, uint32_t module);

struct r2r_entry_point {
	uint32_t function; /* number of its first runtime function */
	bool has_fixups;
	size_t fixups; /* their position in what was read */
};

struct r2r_entry_point r2r_read_entry_point(struct reader *reader);

/* ---- r2r_composite.c */
extern const char r2r_core_library[];
struct sym_error *r2r_open_modules(struct r2r *r2r);
void r2r_close_modules(struct r2r *r2r);
/* Number of the module that a row of the manifest's AssemblyRef table is. */
uint32_t r2r_manifest_module(const struct r2r *r2r, uint32_t assembly_ref);
void r2r_use_module(void *context, uint32_t index);
/* Asks for the metadata of all modules that were used. */
struct sym_error *r2r_find_modules(struct r2r *r2r);
const struct metadata *r2r_module_metadata(const struct r2r *r2r, uint32_t index,
					   const char **why_ret);
struct sym_error *r2r_read_components(struct r2r *r2r);

/* ---- r2r_member.c */
void r2r_use_member_modules(struct r2r *r2r);
struct sym_error *r2r_resolve_members(struct r2r *r2r);
struct r2r_definition r2r_member_definition(const struct r2r *r2r, uint32_t rid);
void r2r_close_members(struct r2r *r2r);

/* ---- r2r_instance.c */
enum r2r_instance_flag {
	R2R_INSTANCE_METHOD_ARGUMENTS = 0x04,
	R2R_INSTANCE_SLOT = 0x08,
	R2R_INSTANCE_MEMBER_REF = 0x10,
	R2R_INSTANCE_CONSTRAINED = 0x20,
	R2R_INSTANCE_OWNER_TYPE = 0x40,
	R2R_INSTANCE_UPDATE_CONTEXT = 0x80,
	R2R_INSTANCE_ASYNC_VARIANT = 0x100, /* awaits, and returns what its task would hold */
};

struct r2r_instance {
	uint32_t flags;
	uint32_t module;     /* of owner and rid */
	struct reader owner; /* at the owner's type; only with OWNER_TYPE */
	uint32_t rid;
	uint32_t argument_count;
	struct reader arguments; /* at the first method argument */
};

/* Reads one method signature; leaves `reader` at the method entry behind it. */
struct r2r_instance r2r_read_instance(struct reader *reader, struct signature_budget *budget);
struct sym_error *r2r_read_instances(struct r2r *r2r);

/* ---- r2r_resumption.c */
struct sym_error *r2r_read_resumption_stubs(struct r2r *r2r);

/* What a walk over a table of entries failed for. */
struct sym_error *r2r_table_error(const struct r2r *r2r, const char *table)
	__attribute__((warn_unused_result));

/* Reads section 103 of one core header; its rids belong to `module`. */
struct sym_error *r2r_read_method_defs(struct r2r *r2r, const struct r2r_core_header *header,
				       uint32_t module, uint32_t max_rid);

#endif
