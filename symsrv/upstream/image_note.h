/* SPDX-License-Identifier: MIT */
/*
 * Which PE image an r2rmap or a PDB belongs to. Only the image contains their identities. So the
 * store gets small objects for each image that arrives, under these identities: the key of the
 * image. A PDB may belong to several images: those of one assembly for several processors.
 */
#ifndef SYMSRV_UPSTREAM_IMAGE_NOTE_H
#define SYMSRV_UPSTREAM_IMAGE_NOTE_H

#include "symsrv/key/key.h"
#include "symsrv/store/store.h"

#define IMAGE_NOTE_NAME_BYTES 256
/* Most images with one PDB that are noted. */
#define IMAGE_NOTE_MOST 4

/*
 * The key of kind KEY_IMAGE_OF_MAP of a PE image; its name is written to `name`, in lower case.
 * False: the image names no r2rmap, or by a name that no request can have.
 */
bool image_note_read_map(int fd, uint64_t size_bytes, char name[IMAGE_NOTE_NAME_BYTES],
			 struct key *ret);
/* The key of kind KEY_IMAGE_OF_PDB of a PE image. False: the image names no PDB. */
bool image_note_read_pdb(int fd, uint64_t size_bytes, struct key *ret);

/* Whether a PE image names a PDB, and it is a Windows PDB. */
bool image_note_has_windows_pdb(int fd, uint64_t size_bytes);

/* Call it for an image that arrives: `text` is its key. What is known already stays. Failure means
 * that the image is not found by its r2rmap or PDB. */
void image_note_add(struct store *store, int fd, uint64_t size_bytes, const char *text);

/* Finds the texts of the keys of images for a key of these kinds: heap, one a line. NULL: none, or
 * out of memory. */
char *image_note_find(struct store *store, const struct key *key);

#endif
