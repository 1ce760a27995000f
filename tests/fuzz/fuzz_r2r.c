/* SPDX-License-Identifier: MIT */
/* A whole image: tables, ranges, names in both dialects; other assemblies are the image itself. */
#include "libsym/format/dotnet/r2r.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct metadata *find(void *context, const char *name, const uint8_t *mvid)
{
	return name && !mvid ? *(struct metadata **)context : NULL;
}

static void read_all(const struct r2r *r2r)
{
	const struct r2r_range *ranges;
	const char *why;
	struct buf name;
	size_t count;

	buf_init(&name, 1 << 18);
	ranges = r2r_ranges(r2r, &count);
	for (size_t i = 0; i < count && i < 1000; i++) {
		r2r_find(r2r, ranges[i].rva + ranges[i].size_bytes / 2);
		r2r_entry_assembly(r2r, ranges[i].entry);
		buf_clear(&name);
		r2r_name(r2r, ranges[i].entry, R2R_NAME_RUNTIME, &name, &why);
		buf_clear(&name);
		r2r_name(r2r, ranges[i].entry, R2R_NAME_CROSSGEN2, &name, &why);
	}
	buf_deinit(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_METADATA struct metadata *metadata = NULL;
	const struct r2r_assemblies assemblies = { &metadata, find };
	AUTO_R2R struct r2r *r2r = NULL;
	const uint8_t *bytes;
	struct pe pe;
	struct sym_error *error = pe_parse(&pe, data, size, PE_LAYOUT_FILE);

	bytes = error ? NULL : pe_bytes(&pe, pe.metadata.rva, pe.metadata.size_bytes);
	if (bytes)
		error = metadata_open(bytes, pe.metadata.size_bytes, &metadata);
	if (!error)
		error = r2r_open(&pe, metadata, &assemblies, &r2r);
	if (!error)
		read_all(r2r);
	sym_error_destroy(error);
	return 0;
}
