/* SPDX-License-Identifier: MIT */
/*
 * A file with code, whole or a part of another file: what kind it is, where its
 * parts lie, who it says it is. Reads no more of the file than that takes; the
 * rest comes when somebody needs it. Refuses to know where it is mapped
 * (placement.h), whether it is the mapped file (ident.h), and symbols (source/).
 *
 * An image may be used by several threads; it guards itself with a lock that is
 * never held while another one is taken.
 */
#ifndef LIBSYM_IMAGE_H
#define LIBSYM_IMAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/lazy.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "libsym/format/metadata.h"
#include "libsym/format/pe.h"
#include "libsym/sparse_file.h"

/* A piece of the file and where it belongs: a section of a PE file (its headers are one too), a
 * PT_LOAD of an ELF file. */
struct image_segment {
	uint64_t offset;     /* into the image */
	uint64_t size_bytes; /* in the file */
	uint64_t position;   /* rva or vaddr */
	uint64_t position_size_bytes;
	bool executable;
};

/* What is needed to read managed code; lives from image_use_managed() to image_unuse_managed(). */
struct image_managed {
	struct pe pe;
	struct metadata *metadata; /* NULL where there is none */
};

struct image {
	char *path; /* for messages */
	enum sym_image_kind kind;
	const char *unsupported; /* why a file of kind UNKNOWN is not read although it is known;
				    static; NULL: it is not known */
	bool is_64bit;
	bool is_big_endian;        /* an ELF file; of others never */
	bool is_copy;              /* of memory: what is mapped, whatever became of the file */
	bool position_independent; /* false for an ELF file of type EXEC: its addresses are its
				      vaddrs */
	bool is_relocatable;       /* an object file: its sections all begin at vaddr 0 */
	struct image_segment *segments;
	size_t segment_count;
	bool marks_thumb;     /* of 32-bit ARM: bit 0 of a function's vaddr in a symbol table says
				 that its code is Thumb, and is none of the vaddr */
	bool has_descriptors; /* of 64-bit PowerPC: where there is a section .opd, functions in a
				 symbol table are places in it, and their code is where it says */
	/* PT_GNU_EH_FRAME of an ELF file, where .eh_frame_hdr is; size 0: it has none. */
	uint64_t unwind_vaddr;
	uint64_t unwind_bytes;
	uint64_t dynamic_vaddr; /* PT_DYNAMIC, likewise */
	uint64_t dynamic_bytes;
	/* private */
	_Atomic(unsigned int) users; /* beyond the first one */
	pthread_mutex_t lock;
	int fd;
	_Atomic(char *) trouble; /* image_trouble() */
	struct sparse_file file; /* a pattern for image_view(); nothing is read into it */
	struct sparse_file managed_file;
	struct image_managed *managed;
	unsigned int managed_users;
	bool identified;
	bool has_mvid;
	char mvid_text[37];
	uint8_t mvid[16];
	char *assembly_name;
	bool composite_read;
	char *composite_name;
	bool r2rmap_read;
	char *r2rmap_name;
	bool keyed;
	char content_key[33];     /* "" when it could not be read */
	struct lazy functions;    /* struct elf_functions; elf_functions_of() */
	struct lazy go_functions; /* struct go_functions; go_functions_of() */
};

/*
 * Takes `fd` over, on success only. Errors: IO, LIMIT, and FORMAT for a file that
 * begins like one that is known and then contradicts itself; what begins like
 * nothing known is an image of kind UNKNOWN.
 */
struct sym_error *image_open(int fd, const char *path, uint64_t offset, uint64_t size_bytes,
			     struct image **ret) __attribute__((warn_unused_result));
/* For one user; the last one closes it. NULL is accepted. */
void image_close(struct image *image);
/*
 * Why some of what belongs to the image (its own bytes, a debug file) could not be read, the first
 * time that this happened: what is found in the image may be less than it has. NULL: it never
 * did. Lives as long as the image.
 */
const char *image_trouble(const struct image *image);
/* `error`, which stays the caller's, is noted if it says that something could not be read. */
void image_note_trouble(const struct image *image, const struct sym_error *error);
/* One user more, who has to close it too. */
struct image *image_share(struct image *image);

static inline bool image_is_precompiled(const struct image *image)
{
	return image->kind == SYM_IMAGE_READYTORUN || image->kind == SYM_IMAGE_COMPOSITE ||
	       image->kind == SYM_IMAGE_NGEN;
}

/* Simple name of the assembly, NULL when it is none. Reads metadata when first asked. */
const char *image_assembly_name(struct image *image);
/* Reads name and MVID, if nobody has; false where there is no memory for it: who asks next tries
 * again. */
bool image_identify(struct image *image);
/* 36 characters; NULL when there is none. */
const char *image_mvid_text(struct image *image);
/* 16 bytes; NULL when there is none. */
const uint8_t *image_mvid(struct image *image);
/* File name of the composite that a component belongs to; NULL when it is none. */
const char *image_composite_name(struct image *image);
/* File name that an image with precompiled code has for its r2rmap; NULL when it has none. */
const char *image_r2rmap_name(struct image *image);
/* 32 hex digits over the content; NULL when it could not be read. */
const char *image_content_key(struct image *image);

/* rva or vaddr of a byte of the file; false when it is loaded nowhere. */
bool image_offset_to_position(const struct image *image, uint64_t offset, uint64_t *ret);
/* The reverse, counted from the start of the file that the image is in; false for what has no bytes
 * there. *left_ret: how many bytes follow in the same piece. */
bool image_position_to_offset(const struct image *image, uint64_t position, uint64_t *ret,
			      uint64_t *left_ret);
/* The executable segment that holds a position, NULL when none does. */
const struct image_segment *image_find_segment(const struct image *image, uint64_t position);

/*
 * Reads the whole PE file and opens its metadata, once for all users.
 * Each success is to be answered with image_unuse_managed().
 */
struct sym_error *image_use_managed(struct image *image, const struct image_managed **ret)
	__attribute__((warn_unused_result));
void image_unuse_managed(struct image *image);

/* The same, counted as image_view() counts; false also for what lies beyond the end of the file. */
bool image_position_in_view(const struct image *image, uint64_t position, uint64_t *ret,
			    uint64_t *left_ret);

/* The bytes of the image, nothing read yet; to be ended with sparse_file_deinit() before the image
 * is closed. */
struct sparse_file image_view(const struct image *image);

/* Over bytes of the image, whose numbers are in its byte order. */
static inline struct reader image_reader(const struct image *image, const void *data,
					 size_t size_bytes)
{
	struct reader reader = reader_over(data, size_bytes);

	reader.is_big_endian = image->is_big_endian;
	return reader;
}

DEFINE_GUARD(image, struct image *, image_close)
#define AUTO_IMAGE GUARDED(image)

#endif
