/* SPDX-License-Identifier: MIT */
#include "libsym/image/bundled_assembly.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libsym/format/dotnet/pe.h"
#include "libsym/image/bundle_manifest.h"
#include "libsym/limits.h"

struct bundled_assembly {
	uint8_t *bytes;
	struct pe pe;
	struct metadata *metadata;
};

DEFINE_GUARD(file_view, struct sparse_file *, sparse_file_deinit)
DEFINE_GUARD(manifest, struct bundle *, bundle_deinit)

/* The only assembly of that name; NULL when there is none, or more than one. */
static const struct bundle_file *find_file(const struct bundle *bundle, const char *file_name)
{
	const struct bundle_file *found = NULL;
	size_t name_bytes = strlen(file_name);

	for (size_t i = 0; i < bundle->file_count; i++) {
		const struct bundle_file *file = &bundle->files[i];
		const char *tail = file->path + file->path_bytes - name_bytes;

		if (file->type != BUNDLE_ASSEMBLY || file->path_bytes < name_bytes ||
		    memcmp(tail, file_name, name_bytes) != 0 ||
		    (file->path_bytes > name_bytes && tail[-1] != '/'))
			continue;
		if (found)
			return NULL;
		found = file;
	}
	return found;
}

/* Raw deflate (src/native/corehost and src/coreclr/vm/peimagelayout.cpp). */
static bool bundled_assembly_unpack(const uint8_t *packed, size_t packed_bytes, uint8_t *room,
				    size_t room_bytes)
{
	z_stream stream = {
		.next_in = (Bytef *)(uintptr_t)packed,
		.avail_in = (uInt)packed_bytes,
		.next_out = room,
		.avail_out = (uInt)room_bytes,
	};
	bool whole;

	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return false;
	whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_out;
	inflateEnd(&stream);
	return whole;
}

static struct sym_error *read_bytes(struct object_file *host, struct sparse_file *view,
				    const struct bundle_file *file, uint8_t **ret)
{
	uint64_t stored_bytes =
		file->compressed_size_bytes ? file->compressed_size_bytes : file->size_bytes;
	struct sym_error *error;
	uint8_t *room;

	if (file->size_bytes > LIMIT_BUNDLED_BYTES || stored_bytes > LIMIT_BUNDLED_BYTES)
		return sym_error_create_path(SYM_ERROR_LIMIT, host->path, file->offset,
					     "a file in the bundle is too big");
	if (!file->size_bytes || file->offset > view->size_bytes ||
	    stored_bytes > view->size_bytes - file->offset)
		return sym_error_create_path(SYM_ERROR_FORMAT, host->path, file->offset,
					     "a file in the bundle is empty or ends beyond it");
	error = sparse_file_need(view, host->path, file->offset, stored_bytes);
	if (error)
		return error;
	room = malloc((size_t)file->size_bytes);
	if (!room)
		return &sym_error_no_memory;
	if (!file->compressed_size_bytes) {
		memcpy(room, view->data + file->offset, (size_t)file->size_bytes);
	} else if (!bundled_assembly_unpack(view->data + file->offset, (size_t)stored_bytes, room,
					    (size_t)file->size_bytes)) {
		free(room);
		return sym_error_create_path(SYM_ERROR_FORMAT, host->path, file->offset,
					     "a file in the bundle cannot be unpacked");
	}
	*ret = room;
	return NULL;
}

static struct sym_error *open_bytes(struct bundled_assembly *assembly, size_t size_bytes)
{
	struct sym_error *error =
		pe_parse(&assembly->pe, assembly->bytes, size_bytes, PE_LAYOUT_FILE);
	const uint8_t *metadata;

	if (error)
		return error;
	metadata = assembly->pe.metadata.rva ? pe_bytes(&assembly->pe, assembly->pe.metadata.rva,
							assembly->pe.metadata.size_bytes)
					     : NULL;
	if (!metadata)
		return sym_error_create(SYM_ERROR_FORMAT, "no metadata in the sections");
	return metadata_open(metadata, assembly->pe.metadata.size_bytes, &assembly->metadata);
}

struct sym_error *bundled_assembly_open(struct object_file *host, const char *file_name,
					struct bundled_assembly **ret)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *assembly = NULL;
	struct sparse_file view = object_file_view(host);
	struct sparse_file *held GUARDED(file_view) = &view;
	struct bundle bundle = { 0 };
	struct bundle *manifest GUARDED(manifest) = &bundle;
	const struct bundle_file *file;
	bool is_bundle;
	struct sym_error *error;

	*ret = NULL;
	error = bundle_manifest_read(host, held, manifest, &is_bundle);
	file = error || !is_bundle ? NULL : find_file(manifest, file_name);
	if (!file)
		return error;
	assembly = calloc(1, sizeof(*assembly));
	if (!assembly)
		return &sym_error_no_memory;
	error = read_bytes(host, held, file, &assembly->bytes);
	if (!error)
		error = open_bytes(assembly, (size_t)file->size_bytes);
	if (error)
		return sym_error_with_path(error, host->path);
	*ret = STEAL(assembly);
	return NULL;
}

void bundled_assembly_close(struct bundled_assembly *assembly)
{
	if (!assembly)
		return;
	metadata_close(assembly->metadata);
	free(assembly->bytes);
	free(assembly);
}

const struct metadata *bundled_assembly_metadata(const struct bundled_assembly *assembly)
{
	return assembly->metadata;
}

const struct pe *bundled_assembly_pe(const struct bundled_assembly *assembly)
{
	return &assembly->pe;
}
