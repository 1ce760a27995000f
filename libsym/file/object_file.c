/* SPDX-License-Identifier: MIT */
/*
 * Opening reads one header and classifies the file:
 *
 *   ELF magic   classify_elf(): class, byte order, PT_LOADs as segments, PT_DYNAMIC,
 * PT_GNU_EH_FRAME PE magic    classify_pe(): sections as segments; headers decide between IL,
 * ReadyToRun, composite, component and NGEN other       kind UNKNOWN
 *
 * Everything else is read on first use and kept: identity (read_identity()), names of composite and
 * r2rmap, the content key. The metadata of managed code is shared by all users at one time, between
 * object_file_use_managed() and object_file_unuse_managed(). The lock protects these fields.
 */
#include "libsym/file/object_file.h"

#include <elf.h>
#include <errno.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/format/dotnet/r2r.h"
#include "libsym/limits.h"

enum {
	HEADER_BYTES = 4096, /* headers and section tables of all files seen are within it */
	NATIVE_HEADER_BYTES = 64,
	MAX_LOADS =
		/*
		 * of an ELF file; linkers make 4 to 6, and all are compared with all lines of maps
		 */
		128,
	HASH_STEP_BYTES = 1 << 18
};

static void guard_view(struct sparse_file *view)
{
	sparse_file_deinit(view);
}
#define AUTO_VIEW GUARDED(view)

struct sparse_file object_file_view(const struct object_file *object)
{
	return sparse_file_duplicate(&object->file);
}

static struct sym_error *add_segment(struct object_file *object, size_t capacity,
				     struct object_segment segment)
{
	if (!object->segments)
		object->segments = calloc(capacity, sizeof(*object->segments));
	if (!object->segments)
		return &sym_error_no_memory;
	object->segments[object->segment_count++] = segment;
	return NULL;
}

static struct sym_error *record_sections(struct object_file *object, const struct pe *pe)
{
	uint64_t header_bytes = pe->size_of_headers_bytes;
	struct sym_error *error;

	if (header_bytes > object->file.size_bytes)
		header_bytes = object->file.size_bytes;
	error = add_segment(object, pe->section_count + 1,
			    (struct object_segment){ .size_bytes = header_bytes,
						     .position_size_bytes = header_bytes });
	for (uint32_t i = 0; !error && i < pe->section_count; i++) {
		const struct pe_section *section = &pe->sections[i];

		error = add_segment(
			object, pe->section_count + 1,
			(struct object_segment){
				.offset = section->raw_offset,
				.size_bytes = section->raw_size_bytes,
				.position = section->virtual_address,
				.position_size_bytes = section->virtual_size_bytes,
				.executable = section->characteristics & PE_SECTION_EXECUTE,
			});
	}
	return error;
}

/* Reads the bytes of a directory. What lies in no section is left to the parser. */
static struct sym_error *read_directory(struct object_file *object, struct sparse_file *view,
					uint32_t rva, uint64_t size_bytes)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		if (rva >= segment->position && rva - segment->position < segment->size_bytes)
			return sparse_file_need(view, object->path,
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

/* The headers contain the position of the CLI header, which contains that of the native header,
 * which contains the kind of the image: three small reads. */
static struct sym_error *classify_pe(struct object_file *object, struct sparse_file *view)
{
	struct sym_error *error;
	struct pe pe;

	error = pe_parse(&pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error)
		error = record_sections(object, &pe);
	if (!error && pe.size_of_headers_bytes > HEADER_BYTES)
		error = sparse_file_need(view, object->path, 0, pe.size_of_headers_bytes);
	if (!error)
		error = read_directory(object, view, pe.cli.rva, pe.cli.size_bytes);
	/* A composite without a CLI header exports the position of its native header. */
	if (!error && !pe.cli.rva && pe.export_table.rva)
		error = sparse_file_need(view, object->path, 0, view->size_bytes);
	if (!error)
		error = pe_parse(&pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error)
		error = read_directory(object, view, pe.managed_native_header.rva,
				       pe.managed_native_header.size_bytes + NATIVE_HEADER_BYTES);
	if (error)
		return sym_error_with_path(error, object->path);
	object->kind = kind_of_pe(&pe);
	object->is_64bit = pe.is_64bit;
	object->position_independent = true;
	return NULL;
}

static struct sym_error *record_program_headers(struct object_file *object,
						struct sparse_file *view, uint64_t offset,
						unsigned int count, size_t entry_bytes)
{
	struct sym_error *error;
	struct reader reader;

	error = sparse_file_need(view, object->path, offset, (uint64_t)count * entry_bytes);
	reader = object_file_reader(object, view->data, view->size_bytes);
	for (unsigned int i = 0; !error && i < count; i++) {
		struct object_segment segment;
		uint32_t type, flags;

		reader_seek(&reader, (size_t)offset + i * entry_bytes);
		type = reader_u32(&reader);
		if (object->is_64bit) {
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
			return sym_error_from_reader(&reader, object->path, object->file.offset,
						     "ELF program headers");
		if (type == PT_GNU_EH_FRAME) {
			object->unwind_vaddr = segment.position;
			object->unwind_bytes = segment.size_bytes;
		}
		if (type == PT_DYNAMIC) {
			object->dynamic_vaddr = segment.position;
			object->dynamic_bytes = segment.size_bytes;
		}
		if (type == PT_LOAD && object->segment_count == MAX_LOADS)
			return sym_error_create_path(SYM_ERROR_FORMAT, object->path, offset,
						     "more than %d loaded segments", MAX_LOADS);
		if (type == PT_LOAD)
			error = add_segment(object, MAX_LOADS, segment);
	}
	return error;
}

static struct sym_error *classify_elf(struct object_file *object, struct sparse_file *view)
{
	struct reader reader = reader_over(view->data, view->size_bytes);
	unsigned int order, type, count, entry_bytes;
	uint64_t offset;

	reader_seek(&reader, EI_CLASS);
	object->is_64bit = reader_u8(&reader) == ELFCLASS64;
	object->kind = SYM_IMAGE_ELF;
	order = reader_u8(&reader);
	if (order != ELFDATA2LSB && order != ELFDATA2MSB) {
		object->kind = SYM_IMAGE_UNKNOWN;
		object->unsupported = "an ELF file of an unknown byte order";
		return NULL;
	}
	object->is_big_endian = reader.is_big_endian = order == ELFDATA2MSB;
	reader_seek(&reader, 16);
	type = reader_u16(&reader);
	object->position_independent = type != ET_EXEC;
	object->is_relocatable = type == ET_REL;
	object->machine = reader_u16(&reader);
	reader_seek(&reader, object->is_64bit ? 32 : 28);
	offset = object->is_64bit ? reader_u64(&reader) : reader_u32(&reader);
	reader_seek(&reader, object->is_64bit ? 54 : 42);
	entry_bytes = reader_u16(&reader);
	count = reader_u16(&reader);
	if (!reader_ok(&reader))
		return sym_error_from_reader(&reader, object->path, object->file.offset,
					     "ELF header");
	if (!count)
		return NULL;
	if (entry_bytes < (object->is_64bit ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return sym_error_create_path(SYM_ERROR_FORMAT, object->path, object->file.offset,
					     "ELF program headers of %u bytes", entry_bytes);
	return record_program_headers(object, view, offset, count, entry_bytes);
}

/* An assembly is read as a whole. */
static struct sym_error *large_file_error(const struct object_file *object)
{
	return sym_error_create_path(SYM_ERROR_LIMIT, object->path, SYM_OFFSET_UNKNOWN,
				     "larger than %llu bytes (LIMIT_IMAGE_BYTES)",
				     (unsigned long long)LIMIT_IMAGE_BYTES);
}

static struct sym_error *classify_file(struct object_file *object)
{
	struct sparse_file view AUTO_VIEW = object_file_view(object);
	struct sym_error *error;

	if (!view.size_bytes)
		return NULL;
	error = sparse_file_need(&view, object->path, 0, HEADER_BYTES);
	if (error)
		return error;
	if (pe_recognise(view.data, view.size_bytes))
		return view.size_bytes > LIMIT_IMAGE_BYTES ? large_file_error(object)
							   : classify_pe(object, &view);
	if (view.size_bytes >= SELFMAG && !memcmp(view.data, ELFMAG, SELFMAG))
		return classify_elf(object, &view);
	return NULL;
}

struct sym_error *object_file_open(struct budget_account *account, int fd, const char *path,
				   uint64_t offset, uint64_t size_bytes, struct object_file **ret)
{
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(account);
	struct object_file *object AUTO_OBJECT_FILE = calloc(1, sizeof(*object));
	struct sym_error *error;

	if (!object)
		return &sym_error_no_memory;
	pthread_mutex_init(&object->lock, NULL);
	lazy_init(&object->functions);
	lazy_init(&object->go_functions);
	object->fd = -1;
	object->path = strdup(path);
	if (!object->path)
		return &sym_error_no_memory;
	error = sparse_file_init(&object->file, fd, path, offset, size_bytes);
	object->file.problem = &object->problem;
	object->file.account = account;
	if (!error)
		error = budget_check_time(account, path);
	if (!error)
		error = classify_file(object);
	if (error)
		return error;
	object->fd = fd;
	*ret = STEAL(object);
	return NULL;
}

static void release_managed(struct object_file *object)
{
	if (object->managed)
		metadata_close(object->managed->metadata);
	free(object->managed);
	object->managed = NULL;
	sparse_file_deinit(&object->managed_file);
}

struct object_file *object_file_share(struct object_file *object)
{
	atomic_fetch_add_explicit(&object->users, 1, memory_order_relaxed);
	return object;
}

void object_file_close(struct object_file *object)
{
	if (!object || atomic_fetch_sub_explicit(&object->users, 1, memory_order_acq_rel))
		return;
	release_managed(object);
	if (object->fd >= 0)
		close(object->fd);
	budget_release(object->file.account, object->memory_bytes);
	pthread_mutex_destroy(&object->lock);
	lazy_deinit(&object->functions);
	lazy_deinit(&object->go_functions);
	free(object->segments);
	free(object->assembly_name);
	free(object->composite_name.text);
	free(object->r2rmap_name.text);
	free(object->path);
	free(atomic_load(&object->problem));
	free(atomic_load(&object->debug_problem));
	free(object);
}

const char *object_file_problem(const struct object_file *object)
{
	return atomic_load_explicit(&((struct object_file *)object)->problem, memory_order_acquire);
}

void object_file_record_problem(const struct object_file *object, const struct sym_error *error)
{
	sparse_file_record_problem(&object->file, error);
}

const char *object_file_debug_problem(const struct object_file *object)
{
	return atomic_load_explicit(&((struct object_file *)object)->debug_problem,
				    memory_order_acquire);
}

void object_file_record_debug_problem(const struct object_file *object, const char *text)
{
	char *copy = strdup(text), *none = NULL;

	if (copy && !atomic_compare_exchange_strong(&((struct object_file *)object)->debug_problem,
						    &none, copy))
		free(copy);
}

static bool is_managed(const struct object_file *object)
{
	return object->kind >= SYM_IMAGE_IL && object->kind <= SYM_IMAGE_NGEN;
}

/* `view` has the header. Reads the metadata directory, or the whole file. */
static struct sym_error *open_managed(struct object_file *object, struct sparse_file *view,
				      bool whole, struct object_managed *ret)
{
	const uint8_t *bytes;
	struct sym_error *error;

	error = sparse_file_need(view, object->path, 0, whole ? view->size_bytes : HEADER_BYTES);
	if (!error)
		error = pe_parse(&ret->pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
	if (!error && !whole) {
		error = read_directory(object, view, ret->pe.cli.rva, ret->pe.cli.size_bytes);
		if (!error)
			error = pe_parse(&ret->pe, view->data, view->size_bytes, PE_LAYOUT_FILE);
		if (!error)
			error = read_directory(object, view, ret->pe.metadata.rva,
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

struct sym_error *object_file_use_managed(struct object_file *object,
					  const struct object_managed **ret)
{
	struct sym_error *error = NULL;

	if (!is_managed(object))
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, object->path,
					     SYM_OFFSET_UNKNOWN, "no .NET assembly");
	pthread_mutex_lock(&object->lock);
	if (!object->managed) {
		object->managed_file = object_file_view(object);
		object->managed = calloc(1, sizeof(*object->managed));
		error = object->managed
				? open_managed(object, &object->managed_file, true, object->managed)
				: &sym_error_no_memory;
		if (error)
			release_managed(object);
	}
	if (!error) {
		object->managed_users++;
		*ret = object->managed;
	}
	pthread_mutex_unlock(&object->lock);
	return sym_error_with_path(error, object->path);
}

void object_file_unuse_managed(struct object_file *object)
{
	pthread_mutex_lock(&object->lock);
	if (!--object->managed_users)
		release_managed(object);
	pthread_mutex_unlock(&object->lock);
}

/* Makes the data that the entries of the debug directory point to readable. */
static struct sym_error *read_debug_data(struct object_file *object, struct sparse_file *view,
					 const struct pe *pe)
{
	struct sym_error *error = read_directory(object, view, pe->debug.rva, pe->debug.size_bytes);
	struct pe_debug_entry entry;

	for (unsigned int i = 0; !error && pe_debug_entry(pe, i, &entry); i++)
		error = read_directory(object, view, entry.content.rva, entry.content.size_bytes);
	return error;
}

struct sym_error *object_file_use_debug(struct object_file *object,
					struct sym_error *(*use)(void *context,
								 const struct pe_debug *debug),
					void *context)
{
	struct sparse_file view AUTO_VIEW = object_file_view(object);
	struct pe_debug debug;
	struct sym_error *error;
	struct pe pe;

	if (!is_managed(object))
		return sym_error_create_path(SYM_ERROR_UNSUPPORTED, object->path,
					     SYM_OFFSET_UNKNOWN, "no .NET assembly");
	error = sparse_file_need(&view, object->path, 0, HEADER_BYTES);
	if (!error)
		error = pe_parse(&pe, view.data, view.size_bytes, PE_LAYOUT_FILE);
	/* The CLI header is not needed, and not read. */
	if (!error)
		error = read_debug_data(object, &view, &pe);
	if (error)
		return sym_error_with_path(error, object->path);
	pe_debug_read(&pe, &debug);
	return use(context, &debug);
}

/* Returns false if out of memory. */
static bool record_identity(struct object_file *object, const struct metadata *metadata)
{
	static const uint8_t zero[16];
	const char *name = metadata_assembly_name(metadata);

	/* The MVID of a composite's own metadata is zero and identifies nothing. */
	if (metadata_mvid(metadata, object->mvid) && memcmp(object->mvid, zero, sizeof(zero))) {
		metadata_format_guid(object->mvid, object->mvid_text);
		object->has_mvid = true;
	}
	if (name && *name)
		object->assembly_name = strdup(name);
	return !name || !*name || object->assembly_name;
}

/* Reads only the metadata, and keeps none of it. */
static void read_identity(struct object_file *object)
{
	struct sparse_file view AUTO_VIEW = object_file_view(object);
	struct object_managed managed = { 0 };
	const struct metadata *metadata;
	struct sym_error *error = NULL;

	if (object->identified)
		return;
	if (is_managed(object) && !object->managed)
		error = open_managed(object, &view, false, &managed);
	metadata = object->managed ? object->managed->metadata : managed.metadata;
	/* If memory ran out, the next call tries again. */
	object->identified = (!error || sym_error_code(error) != SYM_ERROR_NO_MEMORY) &&
			     (!metadata || record_identity(object, metadata));
	sym_error_destroy(error);
	metadata_close(managed.metadata);
}

bool object_file_identify(struct object_file *object)
{
	bool identified;

	pthread_mutex_lock(&object->lock);
	read_identity(object);
	identified = object->identified;
	pthread_mutex_unlock(&object->lock);
	return identified;
}

const char *object_file_assembly_name(struct object_file *object)
{
	object_file_identify(object);
	return object->assembly_name;
}

const char *object_file_mvid_text(struct object_file *object)
{
	object_file_identify(object);
	return object->has_mvid ? object->mvid_text : NULL;
}

const uint8_t *object_file_mvid(struct object_file *object)
{
	object_file_identify(object);
	return object->has_mvid ? object->mvid : NULL;
}

/* Keeps a name from the headers. Reads the whole file the first time. */
static const char *keep_name(struct object_file *object, const char *(*find)(const struct pe *pe),
			     struct lazy_name *kept)
{
	const struct object_managed *managed;
	struct sym_error *error = object_file_use_managed(object, &managed);
	const char *name;

	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	pthread_mutex_lock(&object->lock);
	name = kept->is_read ? NULL : find(&managed->pe);
	if (name)
		kept->text = strdup(name);
	kept->is_read = true;
	pthread_mutex_unlock(&object->lock);
	object_file_unuse_managed(object);
	return kept->text;
}

/* Components are small: they hold no code. */
const char *object_file_composite_name(struct object_file *object)
{
	return object->kind == SYM_IMAGE_COMPONENT
		       ? keep_name(object, r2r_owner_composite, &object->composite_name)
		       : NULL;
}

static const char *r2rmap_name(const struct pe *pe)
{
	return pe->r2rmap_name;
}

/* Requested only for an image whose code is in use, which is read anyway. */
const char *object_file_r2rmap_name(struct object_file *object)
{
	return object->kind == SYM_IMAGE_READYTORUN || object->kind == SYM_IMAGE_COMPOSITE
		       ? keep_name(object, r2rmap_name, &object->r2rmap_name)
		       : NULL;
}

/*
 * A cache identifies files of all users by this key, so a second file with the same key must be
 * infeasible. The first half of SHA-512: on 64-bit machines libmd computes it in two thirds of the
 * time of SHA-256.
 */
static bool hash_content(const struct object_file *object, SHA2_CTX *state, char *room)
{
	const struct sparse_file *file = &object->file;
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(file->account);

	SHA512Init(state);
	for (uint64_t at = 0; at < file->size_bytes;) {
		size_t step = HASH_STEP_BYTES;

		if (step > file->size_bytes - at)
			step = (size_t)(file->size_bytes - at);
		if (!budget_has_time(file->account, BUDGET_CPU, object->path) ||
		    path_read_at(file->fd, room, step, file->offset + at))
			return false;
		SHA512Update(state, (const uint8_t *)room, step);
		at += step;
	}
	return true;
}

static void make_content_key(struct object_file *object)
{
	char *room AUTO_FREE = malloc(HASH_STEP_BYTES);
	uint8_t digest[SHA512_DIGEST_LENGTH];
	struct sym_error *changed;
	SHA2_CTX state;

	if (!room || !hash_content(object, &state, room))
		return;
	SHA512Final(digest, &state);
	changed = sparse_file_check(&object->file, object->path);
	if (!changed)
		hex_write_bytes(object->content_key, digest, OBJECT_FILE_CONTENT_KEY_BYTES);
	sym_error_destroy(changed);
}

const char *object_file_content_key(struct object_file *object)
{
	pthread_mutex_lock(&object->lock);
	if (!object->keyed) {
		make_content_key(object);
		object->keyed = true;
	}
	pthread_mutex_unlock(&object->lock);
	return *object->content_key ? object->content_key : NULL;
}

bool object_file_offset_to_position(const struct object_file *object, uint64_t offset,
				    uint64_t *ret)
{
	for (size_t i = object->segment_count; i-- > 0;) {
		const struct object_segment *segment = &object->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->size_bytes)
			continue;
		*ret = segment->position + (offset - segment->offset);
		return true;
	}
	return false;
}

bool object_file_position_to_offset(const struct object_file *object, uint64_t position,
				    uint64_t *ret, uint64_t *left_ret)
{
	for (size_t i = object->segment_count; i-- > 0;) {
		const struct object_segment *segment = &object->segments[i];

		if (position < segment->position ||
		    position - segment->position >= segment->size_bytes)
			continue;
		*ret = object->file.offset + segment->offset + (position - segment->position);
		*left_ret = segment->size_bytes - (position - segment->position);
		return true;
	}
	return false;
}

bool object_file_position_in_view(const struct object_file *object, uint64_t position,
				  uint64_t *ret, uint64_t *left_ret)
{
	if (!object_file_position_to_offset(object, position, ret, left_ret))
		return false;
	*ret -= object->file.offset;
	if (*ret >= object->file.size_bytes)
		return false;
	if (*left_ret > object->file.size_bytes - *ret)
		*left_ret = object->file.size_bytes - *ret;
	return true;
}

struct sym_error *object_file_read_in_view(const struct object_file *object,
					   struct sparse_file *view, uint64_t position,
					   uint64_t size_bytes, struct reader *ret)
{
	struct sym_error *error;
	struct reader whole;
	uint64_t offset, left;

	*ret = reader_over(NULL, 0);
	if (!object_file_position_in_view(object, position, &offset, &left))
		return NULL;
	if (size_bytes > left)
		size_bytes = left;
	error = sparse_file_need(view, object->path, offset, size_bytes);
	if (error)
		return error;
	whole = object_file_reader(object, view->data, view->size_bytes);
	*ret = reader_part(&whole, (size_t)offset, (size_t)size_bytes);
	return NULL;
}

const struct object_segment *object_file_find_segment(const struct object_file *object,
						      uint64_t position)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		if (segment->executable && position >= segment->position &&
		    position - segment->position < segment->position_size_bytes)
			return segment;
	}
	return NULL;
}
