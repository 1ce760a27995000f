/* SPDX-License-Identifier: MIT */
/* ECMA-335 metadata: all accessors over existing rows and one past the end. */
#include <string.h>

#include "libsym/format/dotnet/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metadata *metadata;
	struct sym_error *error = metadata_open(data, size, &metadata);
	volatile size_t sum = 0;
	enum metadata_table table;
	uint8_t mvid[16];

	sym_error_destroy(error);
	for (uint32_t rid = 0; !error && rid < 300; rid++) {
		sum = sum + strlen(metadata_type_def_name(metadata, rid));
		sum = sum + strlen(metadata_type_ref_namespace(metadata, rid));
		sum = sum + strlen(metadata_assembly_ref_name(metadata, rid));
		sum = sum + strlen(metadata_method_name(metadata, rid));
		sum = sum + metadata_method_signature(metadata, rid).size_bytes;
		sum = sum + metadata_type_spec_signature(metadata, rid).size_bytes;
		sum = sum + metadata_type_ref_scope(metadata, rid, &table);
		sum = sum + metadata_member_ref_parent(metadata, rid, &table);
		sum = sum +
		      metadata_type_def_encloser(metadata, metadata_method_owner(metadata, rid));
	}
	if (!error)
		sum = sum + metadata_mvid(metadata, mvid) +
		      metadata_find_assembly_ref(metadata, metadata_assembly_name(metadata));
	metadata_close(error ? NULL : metadata);
	return 0;
}
