/* SPDX-License-Identifier: MIT */
/*
 * A file with code, whole or part of another file: its kind, where its parts lie, and its identity.
 * Reads only what that takes; the rest is read on demand. Other files know where it is mapped
 * (placement.h), whether it is the mapped file (mapped_file_check.h), and its symbols (source/).
 *
 * Several threads may use one object file. Its lock is never held while another lock is taken.
 */
#ifndef LIBSYM_FILE_OBJECT_FILE_H
#define LIBSYM_FILE_OBJECT_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/lazy.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "libsym/file/sparse_file.h"
#include "libsym/format/dotnet/metadata.h"
#include "libsym/format/dotnet/pe.h"
#include "libsym/format/dotnet/pe_debug.h"

enum {
	OBJECT_FILE_CONTENT_KEY_BYTES = 32
};

/* A part of the file and its position: a section of a PE file (or its headers), a PT_LOAD of an ELF
 * file. */
struct object_segment {
	uint64_t offset;     /* into the object file */
	uint64_t size_bytes; /* in the file */
	uint64_t position;   /* rva or vaddr */
	uint64_t position_size_bytes;
	bool executable;
};

/* The parsed tables of a file with managed code. Valid from object_file_use_managed() to
 * object_file_unuse_managed(). */
struct object_managed {
	struct pe pe;
	struct metadata *metadata; /* NULL if there is none */
};

struct object_file {
	char *path; /* for messages */
	enum sym_image_kind kind;
	/* why a known kind of file is not read although `kind` is UNKNOWN; static; NULL: the kind
	 * is not known */
	const char *unsupported;
	bool is_64bit;
	bool is_big_endian; /* ELF files only */
	/* of memory: it is what is mapped, whatever happened to the file */
	bool is_copy;
	/* false for an ELF file of type EXEC: its addresses are its vaddrs */
	bool position_independent;
	bool is_relocatable; /* ELF type REL: all sections start at vaddr 0 */
	struct object_segment *segments;
	size_t segment_count;
	uint16_t machine; /* EM_ of an ELF file */
	/* PT_GNU_EH_FRAME of an ELF file, which locates .eh_frame_hdr; size 0: none. */
	uint64_t unwind_vaddr;
	uint64_t unwind_bytes;
	uint64_t dynamic_vaddr; /* PT_DYNAMIC; size 0: none */
	uint64_t dynamic_bytes;
	/* private */
	_Atomic(unsigned int) users; /* in addition to the first one */
	pthread_mutex_t lock;
	int fd;
	_Atomic(char *) problem; /* object_file_problem() */
	_Atomic(char *) debug_problem;
	struct sparse_file file; /* a template for object_file_view(); nothing is read into it */
	struct sparse_file managed_file;
	struct object_managed *managed;
	unsigned int managed_users;
	bool identified;
	bool has_mvid;
	char mvid_text[37];
	uint8_t mvid[16];
	char *assembly_name;
	struct lazy_name {
		bool is_read;
		char *text; /* NULL: it has none */
	} composite_name, r2rmap_name;
	bool keyed;
	char content_key[2 * OBJECT_FILE_CONTENT_KEY_BYTES + 1]; /* "" if it could not be read */
	uint64_t memory_bytes;    /* charged for a file that lives in memory; released last */
	struct lazy functions;    /* struct function_bounds; function_bounds_of() */
	struct lazy go_functions; /* struct go_functions; go_functions_of() */
};

/* Adopts `fd`, on success only. Errors: IO, LIMIT, and FORMAT for a file that starts like a known
 * kind and then contradicts itself. Any other file has the kind UNKNOWN. Memory that the file needs
 * is charged to `account` (NULL: none), which must outlive it. */
struct sym_error *object_file_open(struct budget_account *account, int fd, const char *path,
				   uint64_t offset, uint64_t size_bytes, struct object_file **ret)
	__attribute__((warn_unused_result));
/* The account that is charged; NULL: none. */
static inline struct budget_account *object_file_account(const struct object_file *object)
{
	return object->file.account;
}
/* Removes a user; the last one closes it. Accepts NULL. */
void object_file_close(struct object_file *object);
/* The first reason why a part of the file, or a debug file, could not be read: there may be more
 * symbols than were found. NULL: no such failure. Valid as long as the file. */
const char *object_file_problem(const struct object_file *object);
/* Records `error` if it means that something could not be read. The caller keeps `error`. */
void object_file_record_problem(const struct object_file *object, const struct sym_error *error);
/* The first reason why the debug file that was found is not used. NULL: none was found, or it is
 * used. Valid as long as the file. */
const char *object_file_debug_problem(const struct object_file *object);
/* Copies `text`. */
void object_file_record_debug_problem(const struct object_file *object, const char *text);
/* Adds a user, which must close it, too. */
struct object_file *object_file_share(struct object_file *object);

static inline bool object_file_is_precompiled(const struct object_file *object)
{
	return object->kind == SYM_IMAGE_READYTORUN || object->kind == SYM_IMAGE_COMPOSITE ||
	       object->kind == SYM_IMAGE_NGEN;
}

/* Simple name of the assembly; NULL if it is not an assembly. Reads metadata on first use. */
const char *object_file_assembly_name(struct object_file *object);
/* Reads name and MVID if that has not been done. Returns false if out of memory; the next call then
 * tries again. */
bool object_file_identify(struct object_file *object);
/* 36 characters; NULL if there is none. */
const char *object_file_mvid_text(struct object_file *object);
/* 16 bytes; NULL if there is none. */
const uint8_t *object_file_mvid(struct object_file *object);
/* File name of the composite that a component belongs to; NULL if it is not a component. */
const char *object_file_composite_name(struct object_file *object);
/* File name of the r2rmap that an image with precompiled code refers to; NULL if there is none. */
const char *object_file_r2rmap_name(struct object_file *object);
/* 32 hex digits over the content; NULL if it could not be read. */
const char *object_file_content_key(struct object_file *object);

/* Rva or vaddr of a byte of the file. Returns false if the byte is not loaded. */
bool object_file_offset_to_position(const struct object_file *object, uint64_t offset,
				    uint64_t *ret);
/* Offset of a position, counted from the start of the containing file. Returns false if the file
 * has no bytes there. *left_ret is the number of bytes that follow in the same part. */
bool object_file_position_to_offset(const struct object_file *object, uint64_t position,
				    uint64_t *ret, uint64_t *left_ret);
/* The executable segment that contains a position; NULL if none does. */
const struct object_segment *object_file_find_segment(const struct object_file *object,
						      uint64_t position);

/* Reads the whole PE file and opens its metadata, once for all users. Each success requires a call
 * of object_file_unuse_managed(). */
struct sym_error *object_file_use_managed(struct object_file *object,
					  const struct object_managed **ret)
	__attribute__((warn_unused_result));
void object_file_unuse_managed(struct object_file *object);

/*
 * Calls `use` with the debug directory of a PE file, and returns its result. Reads only what the
 * directory refers to. What `debug` points to is valid during the call.
 */
struct sym_error *object_file_use_debug(struct object_file *object,
					struct sym_error *(*use)(void *context,
								 const struct pe_debug *debug),
					void *context) __attribute__((warn_unused_result));

/* Like object_file_position_to_offset(), counted as in object_file_view(). Also returns false past
 * the end of the file. */
bool object_file_position_in_view(const struct object_file *object, uint64_t position,
				  uint64_t *ret, uint64_t *left_ret);

/* Bytes of the file at a position, through `view`: at most `size_bytes`, fewer if the segment ends;
 * none if the file has none there. Errors: IO, NO_MEMORY. */
struct sym_error *object_file_read_in_view(const struct object_file *object,
					   struct sparse_file *view, uint64_t position,
					   uint64_t size_bytes, struct reader *ret)
	__attribute__((warn_unused_result));

/*
 * The bytes of the file, none read yet. End it with sparse_file_deinit() before the file is closed.
 */
struct sparse_file object_file_view(const struct object_file *object);

/* A reader over bytes of the file, in its byte order. */
static inline struct reader object_file_reader(const struct object_file *object, const void *data,
					       size_t size_bytes)
{
	struct reader reader = reader_over(data, size_bytes);

	reader.is_big_endian = object->is_big_endian;
	return reader;
}

DEFINE_GUARD(object_file, struct object_file *, object_file_close)
#define AUTO_OBJECT_FILE GUARDED(object_file)

#endif
