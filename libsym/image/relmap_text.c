/* SPDX-License-Identifier: MIT */
/*
 * The relative map of one image, as its compiler would have written it.
 * This file makes the header rows of crossgen2's maps; format/dotnet/relmap.h writes rows.
 */
#include <md5.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/file/relmap_name.h"
#include "libsym/format/dotnet/relmap.h"
#include "libsym/image/image.h"
#include "libsym/limits.h"

enum {
	MVID_BYTES = 16
};

static uint32_t os_of(const struct pe *pe)
{
	static const uint32_t systems[] = {
		[PE_SYSTEM_WINDOWS] = RELMAP_OS_WINDOWS, [PE_SYSTEM_LINUX] = RELMAP_OS_LINUX,
		[PE_SYSTEM_APPLE] = RELMAP_OS_OSX,       [PE_SYSTEM_FREEBSD] = RELMAP_OS_FREEBSD,
		[PE_SYSTEM_NETBSD] = RELMAP_OS_NETBSD,   [PE_SYSTEM_SUNOS] = RELMAP_OS_SUNOS,
		[PE_SYSTEM_UNKNOWN] = RELMAP_OS_UNKNOWN,
	};

	return systems[pe->system];
}

static uint32_t architecture_of(const struct pe *pe)
{
	switch (pe->machine) {
	case PE_MACHINE_AMD64:
		return RELMAP_ARCHITECTURE_X64;
	case PE_MACHINE_ARM64:
		return RELMAP_ARCHITECTURE_ARM64;
	case PE_MACHINE_ARM:
		return RELMAP_ARCHITECTURE_ARM;
	case PE_MACHINE_I386:
		return RELMAP_ARCHITECTURE_X86;
	case PE_MACHINE_RISCV64:
		return RELMAP_ARCHITECTURE_RISCV64;
	case PE_MACHINE_LOONGARCH64:
		return RELMAP_ARCHITECTURE_LOONGARCH64;
	default:
		return RELMAP_ARCHITECTURE_UNKNOWN;
	}
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

/*
 * The signature as crossgen2 computes it for one input; for several it uses all MVIDs. The format
 * requires MD5, which proves nothing: a map with another signature is rejected, one with this
 * signature is checked row by row.
 */
static void make_signature(const uint8_t *mvid, const struct relmap_header *header,
			   uint8_t signature_ret[MD5_DIGEST_LENGTH])
{
	uint8_t input[MVID_BYTES + 12];
	MD5_CTX digest;

	memcpy(input, mvid, MVID_BYTES);
	put_u32(input + MVID_BYTES, header->os);
	put_u32(input + MVID_BYTES + 4, header->architecture);
	put_u32(input + MVID_BYTES + 8, header->abi);
	MD5Init(&digest);
	MD5Update(&digest, input, sizeof(input));
	MD5Final(signature_ret, &digest);
}

/*
 * An image does not contain its ABI. Only ARM has two. The signature includes the ABI, so with one
 * input the ABI that reproduces the signature is the right one.
 */
static void take_abi(struct relmap_header *header, const struct pe *pe, const uint8_t *mvid)
{
	uint8_t signature[MD5_DIGEST_LENGTH];

	header->abi = RELMAP_ABI_DEFAULT;
	if (pe->machine != PE_MACHINE_ARM || !pe->has_r2rmap_entry || !mvid)
		return;
	header->abi = RELMAP_ABI_ARMEL;
	make_signature(mvid, header, signature);
	if (memcmp(signature, pe->r2rmap_signature, sizeof(signature)))
		header->abi = RELMAP_ABI_DEFAULT;
}

/*
 * Uses the signature in the debug directory of the image. Before .NET 6 there is none; then the one
 * that crossgen2 would compute for its only input.
 */
static struct sym_error *fill_header(struct relmap_header *header, const struct pe *pe,
				     struct object_file *object)
{
	const uint8_t *mvid = object->kind == SYM_IMAGE_COMPOSITE ? NULL : object_file_mvid(object);

	*header = (struct relmap_header){
		.has_signature = true,
		.os = os_of(pe),
		.architecture = architecture_of(pe),
	};
	take_abi(header, pe, mvid);
	if (pe->has_r2rmap_entry)
		memcpy(header->signature, pe->r2rmap_signature, sizeof(header->signature));
	else if (mvid)
		make_signature(mvid, header, header->signature);
	else
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, object->path,
					     SYM_OFFSET_UNKNOWN,
					     "neither signature nor MVID for the header of a map");
	return NULL;
}

struct map_writing {
	struct object_file *object;
	struct buf text;
};

static void write_row(struct map_writing *writing, const struct r2r *r2r,
		      const struct r2r_range *range, struct buf *name)
{
	const char *why;

	buf_clear(name);
	if (range->kind == R2R_METHOD &&
	    r2r_name(r2r, range->entry, R2R_NAME_CROSSGEN2, name, &why))
		relmap_write_crossgen2_row(&writing->text, range->rva, range->size_bytes,
					   name->data, name->size_bytes);
}

static struct sym_error *no_precompiled_code(const struct object_file *object)
{
	return sym_error_create_path(SYM_ERROR_UNSUPPORTED, object->path, SYM_OFFSET_UNKNOWN,
				     "it has no precompiled code");
}

static struct sym_error *write_r2rmap(const struct precompiled *precompiled, void *context)
{
	struct map_writing *writing = context;
	const struct r2r_range *ranges;
	struct relmap_header header;
	struct sym_error *error;
	struct buf name;
	bool no_memory;
	size_t count;

	if (!precompiled)
		return no_precompiled_code(writing->object);
	error = fill_header(&header, precompiled_pe(precompiled), writing->object);
	if (error)
		return error;
	relmap_write_crossgen2_header(&writing->text, &header);
	ranges = r2r_ranges(precompiled_r2r(precompiled), &count);
	buf_init(&name, LIMIT_NAME_BYTES);
	for (size_t i = 0; i < count && name.failure != BUF_NO_MEMORY; i++)
		write_row(writing, precompiled_r2r(precompiled), &ranges[i], &name);
	no_memory = name.failure == BUF_NO_MEMORY;
	buf_deinit(&name);
	return no_memory ? &sym_error_no_memory : NULL;
}

static struct sym_error *make_r2rmap(struct sym_image *image, char **text_ret,
				     size_t *size_bytes_ret)
{
	struct map_writing writing = { .object = image->object };
	struct sym_error *error;
	char *text = NULL;

	buf_init(&writing.text, LIMIT_PERF_MAP_BYTES);
	error = image_use_precompiled(image, write_r2rmap, &writing);
	if (!error) {
		text = buf_steal(&writing.text, size_bytes_ret);
		if (!text)
			error = sym_error_from_buf(&writing.text, "map");
	}
	buf_deinit(&writing.text);
	if (!error)
		*text_ret = text;
	return error;
}

static struct sym_error *make_relative_map(struct sym_image *image, char **text_ret,
					   size_t *size_bytes_ret)
{
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	struct sym_error *error = NULL;

	if (!object_file_is_precompiled(image->object))
		error = no_precompiled_code(image->object);
	if (!error)
		error = sym_image_symbols(image, 0, &symbols);
	return error ? error
		     : sym_symbols_format(symbols, 0, sym_symbols_count(symbols), SYM_MAP_RELATIVE,
					  0, text_ret, size_bytes_ret);
}

static struct sym_error *check_format(enum sym_map_format format)
{
	if (format == SYM_MAP_RELATIVE || format == SYM_MAP_R2RMAP)
		return NULL;
	return sym_error_create(SYM_ERROR_ARGUMENT, "no form of a relative map: %d", (int)format);
}

struct sym_error *sym_image_map(struct sym_image *image, enum sym_map_format format,
				char **text_ret, size_t *size_bytes_ret)
{
	struct sym_error *error = check_format(format);

	if (error)
		return error;
	if (format == SYM_MAP_R2RMAP)
		return make_r2rmap(image, text_ret, size_bytes_ret);
	return make_relative_map(image, text_ret, size_bytes_ret);
}

struct unnamed_count {
	const struct object_file *object;
	enum r2r_dialect dialect;
	uint64_t count;
	const char *why;
};

static struct sym_error *count_unnamed(const struct precompiled *precompiled, void *context)
{
	struct unnamed_count *unnamed = context;
	const struct r2r_range *ranges;
	const struct r2r *r2r;
	struct buf name;
	bool no_memory;
	size_t count;

	if (!precompiled)
		return no_precompiled_code(unnamed->object);
	r2r = precompiled_r2r(precompiled);
	ranges = r2r_ranges(r2r, &count);
	buf_init(&name, LIMIT_NAME_BYTES);
	for (size_t i = 0; i < count && name.failure != BUF_NO_MEMORY; i++) {
		const char *why = NULL;

		buf_clear(&name);
		if (ranges[i].kind != R2R_METHOD ||
		    r2r_name(r2r, ranges[i].entry, unnamed->dialect, &name, &why))
			continue;
		unnamed->count++;
		unnamed->why = unnamed->why ?: why;
	}
	no_memory = name.failure == BUF_NO_MEMORY;
	buf_deinit(&name);
	if (r2r_undecodable_count(r2r)) {
		unnamed->count += r2r_undecodable_count(r2r);
		unnamed->why = unnamed->why ?: "its entry in the image cannot be read";
	}
	return no_memory ? &sym_error_no_memory : NULL;
}

struct sym_error *sym_image_unnamed_methods(struct sym_image *image, enum sym_map_format format,
					    uint64_t *count_ret, const char **why_ret)
{
	struct unnamed_count unnamed = {
		.object = image->object,
		.dialect = format == SYM_MAP_R2RMAP ? R2R_NAME_CROSSGEN2 : R2R_NAME_RUNTIME,
	};
	struct sym_error *error = check_format(format);

	if (!error)
		error = image_use_precompiled(image, count_unnamed, &unnamed);
	if (error)
		return error;
	*count_ret = unnamed.count;
	*why_ret = unnamed.why;
	return NULL;
}

struct sym_error *sym_image_map_name(struct sym_image *image, enum sym_map_format format,
				     char **name_ret)
{
	struct sym_error *error = check_format(format);
	struct buf name;
	char *text;

	if (error)
		return error;
	if (!image->object)
		return sym_error_create_path(SYM_ERROR_IO, image->path, SYM_OFFSET_UNKNOWN,
					     "not open");
	buf_init(&name, LIMIT_NAME_BYTES);
	if (format == SYM_MAP_R2RMAP)
		relmap_name_r2rmap(image->object, image->path, &name);
	else
		relmap_name_relative(image->object, image->path, &name);
	text = buf_steal(&name, NULL);
	if (!text)
		error = sym_error_from_buf(&name, "name of a map");
	buf_deinit(&name);
	if (!error)
		*name_ret = text;
	return error;
}
