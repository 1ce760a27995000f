/* SPDX-License-Identifier: MIT */
#include "libsym/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/elf_functions.h"
#include "libsym/format/r2r.h"
#include "libsym/go_functions.h"
#include "libsym/limits.h"

enum {
	HEADER_BYTES = 4096, /* headers and section tables of all images seen are within it */
	NATIVE_HEADER_BYTES = 64,
	MAX_LOADS =
		128, /* of an ELF file; linkers make 4 to 6, and all are tried against all lines */
	HASH_STEP_BYTES = 1 << 18
};

static void guard_view(struct sparse_file *view)
{
	sparse_file_deinit(view);
}
#define AUTO_VIEW GUARDED(view)

struct sparse_file image_view(const struct image *image)
{
	return sparse_file_again(&image->file);
}

static struct sym_error *add_segment(struct image *image, size_t capacity,
				     struct image_segment segment)
{
	if (!image->segments)
		image->segments = calloc(capacity, sizeof(*image->segments));
	if (!image->segments)
		return &sym_error_no_memory;
	image->segments[image->segment_count++] = segment;
	return NULL;
}

static struct sym_error *take_sections(struct image *image, const struct pe *pe)
{
	uint64_t header_bytes = pe->size_of_headers_bytes;
	struct sym_error *error;

	if (header_bytes > image->file.size_bytes)
		header_bytes = image->file.size_bytes;
	error = add_segment(image, pe->section_count + 1,
			    (struct image_segment){ .size_bytes = header_bytes,
						    .position_size_bytes = header_bytes });
	for (uint32_t i = 0; !error && i < pe->section_count; i++) {
		const struct pe_section *section = &pe->sections[i];

		error = add_segment(
			image, pe->section_count + 1,
			(struct image_segment){
				.offset = section->raw_offset,
				.size_bytes = section->raw_size_bytes,
				.position = section->virtual_address,
				.position_size_bytes = section->virtual_size_bytes,
				.executable = section->characteristics & PE_SECTION_EXECUTE,
			});
	}
	return error;
}

/* Reads the bytes of a directory; what is in no section is left to whoever parses it. */
static struct sym_error *need_directory(struct image *image, struct sparse_file *view, uint32_t rva,
					uint64_t size_bytes)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (rva >= segment->position && rva - segment->position < segment->size_bytes)
			return sparse_file_need(view, image->path,
						segment->offset + (rva - segment->position),
						size_bytes);
	}
	return NULL;
}

static enum sym_image_kind kind_of_pe(const struct pe *pe)
{
	if (!pe->cli.rva && r2r_flavour(pe) == R2R_NONE)
		return SYM_IMAGE_NATIVE_PE;
	switch (r2r_flavour(pe)) {
	case R2R_NGEN:
		return SYM_IMAGE_NGEN;
	case R2R_PLAIN:
		return SYM_IMAGE_READYTORUN;
	case R2R_COMPONENT:
		return SYM_IMAGE_COMPONENT;
	case R2R_COMPOSITE:
		return SYM_IMAGE_COMPOSITE;
	case R2R_NONE:
		break;
	}
	return SYM_IMAGE_IL;
}

/*
 * The headers say where the CLI header is, the CLI header where the native
 * header is, and that one what the image is made of: three small reads.
 */
static struct sym_error *classify_pe(struct image *image, struct sparse_file *view)
{
	struct sym_error *error;
	struct pe pe;

	error = pe_parse(&pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error)
		error = take_sections(image, &pe);
	if (!error && pe.size_of_headers_bytes > HEADER_BYTES)
		error = sparse_file_need(view, image->path, 0, pe.size_of_headers_bytes);
	if (!error)
		error = need_directory(image, view, pe.cli.rva, pe.cli.size_bytes);
	/* A composite without a CLI header says by an export where its native header is. */
	if (!error && !pe.cli.rva && pe.export_table.rva)
		error = sparse_file_need(view, image->path, 0, view->size_bytes);
	if (!error)
		error = pe_parse(&pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error)
		error = need_directory(image, view, pe.managed_native_header.rva,
				       pe.managed_native_header.size_bytes + NATIVE_HEADER_BYTES);
	if (error)
		return sym_error_with_path(error, image->path);
	image->kind = kind_of_pe(&pe);
	image->is_64bit = pe.is_64bit;
	image->position_independent = true;
	return NULL;
}

static struct sym_error *take_program_headers(struct image *image, struct sparse_file *view,
					      uint64_t offset, unsigned int count,
					      size_t entry_bytes)
{
	struct sym_error *error;
	struct reader reader;

	error = sparse_file_need(view, image->path, offset, (uint64_t)count * entry_bytes);
	reader = image_reader(image, view->data, view->size_bytes);
	for (unsigned int i = 0; !error && i < count; i++) {
		struct image_segment segment;
		uint32_t type, flags;

		reader_seek(&reader, (size_t)offset + i * entry_bytes);
		type = reader_u32(&reader);
		if (image->is_64bit) {
			flags = reader_u32(&reader);
			segment.offset = reader_u64(&reader);
			segment.position = reader_u64(&reader);
			reader_u64(&reader);
			segment.size_bytes = reader_u64(&reader);
			segment.position_size_bytes = reader_u64(&reader);
		} else {
			segment.offset = reader_u32(&reader);
			segment.position = reader_u32(&reader);
			reader_u32(&reader);
			segment.size_bytes = reader_u32(&reader);
			segment.position_size_bytes = reader_u32(&reader);
			flags = reader_u32(&reader);
		}
		segment.executable = flags & PF_X;
		if (!reader_ok(&reader))
			return sym_error_from_reader(&reader, image->path, image->file.offset,
						     "ELF program headers");
		if (type == PT_GNU_EH_FRAME) {
			image->unwind_vaddr = segment.position;
			image->unwind_bytes = segment.size_bytes;
		}
		if (type == PT_DYNAMIC) {
			image->dynamic_vaddr = segment.position;
			image->dynamic_bytes = segment.size_bytes;
		}
		if (type == PT_LOAD && image->segment_count == MAX_LOADS)
			return sym_error_create_path(SYM_ERROR_FORMAT, image->path, offset,
						     "more than %d loaded segments", MAX_LOADS);
		if (type == PT_LOAD)
			error = add_segment(image, MAX_LOADS, segment);
	}
	return error;
}

static struct sym_error *classify_elf(struct image *image, struct sparse_file *view)
{
	struct reader reader = reader_over(view->data, view->size_bytes);
	unsigned int order, type, machine, count, entry_bytes;
	uint64_t offset;

	reader_seek(&reader, EI_CLASS);
	image->is_64bit = reader_u8(&reader) == ELFCLASS64;
	image->kind = SYM_IMAGE_ELF;
	order = reader_u8(&reader);
	if (order != ELFDATA2LSB && order != ELFDATA2MSB) {
		image->kind = SYM_IMAGE_UNKNOWN;
		image->unsupported = "an ELF file of an unknown byte order";
		return NULL;
	}
	image->is_big_endian = reader.is_big_endian = order == ELFDATA2MSB;
	reader_seek(&reader, 16);
	type = reader_u16(&reader);
	image->position_independent = type != ET_EXEC;
	image->is_relocatable = type == ET_REL;
	machine = reader_u16(&reader);
	image->marks_thumb = machine == EM_ARM;
	image->has_descriptors = machine == EM_PPC64;
	reader_seek(&reader, image->is_64bit ? 32 : 28);
	offset = image->is_64bit ? reader_u64(&reader) : reader_u32(&reader);
	reader_seek(&reader, image->is_64bit ? 54 : 42);
	entry_bytes = reader_u16(&reader);
	count = reader_u16(&reader);
	if (!reader_ok(&reader))
		return sym_error_from_reader(&reader, image->path, image->file.offset,
					     "ELF header");
	if (!count)
		return NULL;
	if (entry_bytes < (image->is_64bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return sym_error_create_path(SYM_ERROR_FORMAT, image->path, image->file.offset,
					     "ELF program headers of %u bytes", entry_bytes);
	return take_program_headers(image, view, offset, count, entry_bytes);
}

/* Of an assembly all is read. */
static struct sym_error *refuse_large(const struct image *image)
{
	return sym_error_create_path(SYM_ERROR_LIMIT, image->path, SYM_OFFSET_UNKNOWN,
				     "larger than %llu bytes (LIMIT_IMAGE_BYTES)",
				     (unsigned long long)LIMIT_IMAGE_BYTES);
}

static struct sym_error *classify(struct image *image)
{
	struct sparse_file view AUTO_VIEW = image_view(image);
	struct sym_error *error;

	if (!view.size_bytes)
		return NULL;
	error = sparse_file_need(&view, image->path, 0, HEADER_BYTES);
	if (error)
		return error;
	if (pe_recognise(view.data, view.size_bytes))
		return view.size_bytes > LIMIT_IMAGE_BYTES ? refuse_large(image)
							   : classify_pe(image, &view);
	if (view.size_bytes >= SELFMAG && !memcmp(view.data, ELFMAG, SELFMAG))
		return classify_elf(image, &view);
	return NULL;
}

struct sym_error *image_open(int fd, const char *path, uint64_t offset, uint64_t size_bytes,
			     struct image **ret)
{
	struct image *image AUTO_IMAGE = calloc(1, sizeof(*image));
	struct sym_error *error;

	if (!image)
		return &sym_error_no_memory;
	pthread_mutex_init(&image->lock, NULL);
	lazy_init(&image->functions);
	lazy_init(&image->go_functions);
	image->fd = -1;
	image->path = strdup(path);
	if (!image->path)
		return &sym_error_no_memory;
	error = sparse_file_init(&image->file, fd, path, offset, size_bytes);
	image->file.trouble = &image->trouble;
	if (!error)
		error = classify(image);
	if (error)
		return error;
	image->fd = fd;
	*ret = STEAL(image);
	return NULL;
}

static void drop_managed(struct image *image)
{
	if (image->managed)
		metadata_close(image->managed->metadata);
	free(image->managed);
	image->managed = NULL;
	sparse_file_deinit(&image->managed_file);
}

struct image *image_share(struct image *image)
{
	atomic_fetch_add_explicit(&image->users, 1, memory_order_relaxed);
	return image;
}

void image_close(struct image *image)
{
	if (!image || atomic_fetch_sub_explicit(&image->users, 1, memory_order_acq_rel))
		return;
	drop_managed(image);
	if (image->fd >= 0)
		close(image->fd);
	pthread_mutex_destroy(&image->lock);
	elf_functions_destroy(lazy_deinit(&image->functions));
	go_functions_destroy(lazy_deinit(&image->go_functions));
	free(image->segments);
	free(image->assembly_name);
	free(image->composite_name);
	free(image->r2rmap_name);
	free(image->path);
	free(atomic_load(&image->trouble));
	free(image);
}

const char *image_trouble(const struct image *image)
{
	return atomic_load_explicit(&((struct image *)image)->trouble, memory_order_acquire);
}

void image_note_trouble(const struct image *image, const struct sym_error *error)
{
	sparse_file_note_trouble(&image->file, error);
}

static bool is_managed(const struct image *image)
{
	return image->kind >= SYM_IMAGE_IL && image->kind <= SYM_IMAGE_NGEN;
}

/* `view` has the header; brings in what the metadata directory says, or all of the file. */
static struct sym_error *open_managed(struct image *image, struct sparse_file *view, bool whole,
				      struct image_managed *ret)
{
	const uint8_t *bytes;
	struct sym_error *error;

	error = sparse_file_need(view, image->path, 0, whole ? view->size_bytes : HEADER_BYTES);
	if (!error)
		error = pe_parse(&ret->pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error && !whole) {
		error = need_directory(image, view, ret->pe.cli.rva, ret->pe.cli.size_bytes);
		if (!error)
			error = pe_parse(&ret->pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
		if (!error)
			error = need_directory(image, view, ret->pe.metadata.rva,
					       ret->pe.metadata.size_bytes);
	}
	ret->metadata = NULL;
	if (error || !ret->pe.metadata.rva)
		return error;
	bytes = pe_bytes(&ret->pe, ret->pe.metadata.rva, ret->pe.metadata.size_bytes);
	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT, "metadata lies outside the sections");
	return metadata_open(bytes, ret->pe.metadata.size_bytes, &ret->metadata);
}

struct sym_error *image_use_managed(struct image *image, const struct image_managed **ret)
{
	struct sym_error *error = NULL;

	if (!is_managed(image))
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, image->path, SYM_OFFSET_UNKNOWN,
					     "no .NET assembly");
	pthread_mutex_lock(&image->lock);
	if (!image->managed) {
		image->managed_file = image_view(image);
		image->managed = calloc(1, sizeof(*image->managed));
		error = image->managed
				? open_managed(image, &image->managed_file, true, image->managed)
				: &sym_error_no_memory;
		if (error)
			drop_managed(image);
	}
	if (!error) {
		image->managed_users++;
		*ret = image->managed;
	}
	pthread_mutex_unlock(&image->lock);
	return sym_error_with_path(error, image->path);
}

void image_unuse_managed(struct image *image)
{
	pthread_mutex_lock(&image->lock);
	if (!--image->managed_users)
		drop_managed(image);
	pthread_mutex_unlock(&image->lock);
}

/* False for want of memory. */
static bool take_identity(struct image *image, const struct metadata *metadata)
{
	static const uint8_t zero[16];
	const char *name = metadata_assembly_name(metadata);

	/* A composite's own metadata has a zero MVID: that says nothing. */
	if (metadata_mvid(metadata, image->mvid) && memcmp(image->mvid, zero, sizeof(zero))) {
		metadata_format_guid(image->mvid, image->mvid_text);
		image->has_mvid = true;
	}
	if (name && *name)
		image->assembly_name = strdup(name);
	return !name || !*name || image->assembly_name;
}

/* Reads no more than the metadata, and keeps none of it. */
static void identify(struct image *image)
{
	struct sparse_file view AUTO_VIEW = image_view(image);
	struct image_managed managed = { 0 };
	const struct metadata *metadata;
	struct sym_error *error = NULL;

	if (image->identified)
		return;
	if (is_managed(image) && !image->managed)
		error = open_managed(image, &view, false, &managed);
	metadata = image->managed ? image->managed->metadata : managed.metadata;
	/* Who asks next tries again where there was no memory. */
	image->identified = (!error || sym_error_code(error) != SYM_ERROR_NO_MEMORY) &&
			    (!metadata || take_identity(image, metadata));
	sym_error_destroy(error);
	metadata_close(managed.metadata);
}

static void identify_locked(struct image *image)
{
	pthread_mutex_lock(&image->lock);
	identify(image);
	pthread_mutex_unlock(&image->lock);
}

const char *image_assembly_name(struct image *image)
{
	identify_locked(image);
	return image->assembly_name;
}

bool image_identify(struct image *image)
{
	bool identified;

	pthread_mutex_lock(&image->lock);
	identify(image);
	identified = image->identified;
	pthread_mutex_unlock(&image->lock);
	return identified;
}

const char *image_mvid_text(struct image *image)
{
	identify_locked(image);
	return image->has_mvid ? image->mvid_text : NULL;
}

const uint8_t *image_mvid(struct image *image)
{
	identify_locked(image);
	return image->has_mvid ? image->mvid : NULL;
}

/* The name lies in a section of its own: the whole file is read, and components hold no code. */
const char *image_composite_name(struct image *image)
{
	const struct image_managed *managed;
	struct sym_error *error;
	const char *name;

	if (image->kind != SYM_IMAGE_COMPONENT)
		return NULL;
	error = image_use_managed(image, &managed);
	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	pthread_mutex_lock(&image->lock);
	name = image->composite_read ? NULL : r2r_owner_composite(&managed->pe);
	if (name)
		image->composite_name = strdup(name);
	image->composite_read = true;
	pthread_mutex_unlock(&image->lock);
	image_unuse_managed(image);
	return image->composite_name;
}

/* Reads the whole file: only code makes somebody ask, and then it is read anyway. */
const char *image_r2rmap_name(struct image *image)
{
	const struct image_managed *managed;
	struct sym_error *error;

	if (image->kind != SYM_IMAGE_READYTORUN && image->kind != SYM_IMAGE_COMPOSITE)
		return NULL;
	error = image_use_managed(image, &managed);
	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	pthread_mutex_lock(&image->lock);
	if (!image->r2rmap_read && managed->pe.r2rmap_name)
		image->r2rmap_name = strdup(managed->pe.r2rmap_name);
	image->r2rmap_read = true;
	pthread_mutex_unlock(&image->lock);
	image_unuse_managed(image);
	return image->r2rmap_name;
}

static bool hash_content(const struct image *image, XXH3_state_t *state, char *room)
{
	const struct sparse_file *file = &image->file;

	XXH3_128bits_reset(state);
	for (uint64_t at = 0; at < file->size_bytes;) {
		size_t step = HASH_STEP_BYTES;

		if (step > file->size_bytes - at)
			step = (size_t)(file->size_bytes - at);
		if (path_read_at(file->fd, room, step, file->offset + at))
			return false;
		XXH3_128bits_update(state, room, step);
		at += step;
	}
	return true;
}

static void make_content_key(struct image *image)
{
	char *room AUTO_FREE = malloc(HASH_STEP_BYTES);
	XXH3_state_t *state = XXH3_createState();
	struct sym_error *changed = NULL;
	XXH128_canonical_t canonical;

	if (room && state && hash_content(image, state, room)) {
		changed = sparse_file_check(&image->file, image->path);
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
		if (!changed)
			hex_write_bytes(image->content_key, canonical.digest,
					sizeof(canonical.digest));
	}
	sym_error_destroy(changed);
	XXH3_freeState(state);
}

const char *image_content_key(struct image *image)
{
	pthread_mutex_lock(&image->lock);
	if (!image->keyed) {
		make_content_key(image);
		image->keyed = true;
	}
	pthread_mutex_unlock(&image->lock);
	return *image->content_key ? image->content_key : NULL;
}

bool image_offset_to_position(const struct image *image, uint64_t offset, uint64_t *ret)
{
	for (size_t i = image->segment_count; i-- > 0;) {
		const struct image_segment *segment = &image->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->size_bytes)
			continue;
		*ret = segment->position + (offset - segment->offset);
		return true;
	}
	return false;
}

bool image_position_to_offset(const struct image *image, uint64_t position, uint64_t *ret,
			      uint64_t *left_ret)
{
	for (size_t i = image->segment_count; i-- > 0;) {
		const struct image_segment *segment = &image->segments[i];

		if (position < segment->position ||
		    position - segment->position >= segment->size_bytes)
			continue;
		*ret = image->file.offset + segment->offset + (position - segment->position);
		*left_ret = segment->size_bytes - (position - segment->position);
		return true;
	}
	return false;
}

bool image_position_in_view(const struct image *image, uint64_t position, uint64_t *ret,
			    uint64_t *left_ret)
{
	if (!image_position_to_offset(image, position, ret, left_ret))
		return false;
	*ret -= image->file.offset;
	if (*ret >= image->file.size_bytes)
		return false;
	if (*left_ret > image->file.size_bytes - *ret)
		*left_ret = image->file.size_bytes - *ret;
	return true;
}

const struct image_segment *image_find_segment(const struct image *image, uint64_t position)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (segment->executable && position >= segment->position &&
		    position - segment->position < segment->position_size_bytes)
			return segment;
	}
	return NULL;
}
