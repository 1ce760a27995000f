/* SPDX-License-Identifier: MIT */
/*
 * Which PE image an r2rmap belongs to. A client asks for an r2rmap by its signature, which only the
 * image contains. So the store gets a small object for each image that arrives, under the identity
 * of its r2rmap: the key of the image.
 */
#ifndef SYMSRV_UPSTREAM_MAP_IMAGE_H
#define SYMSRV_UPSTREAM_MAP_IMAGE_H

#include "symsrv/key/key.h"
#include "symsrv/store/store.h"

#define MAP_NAME_BYTES 256

/*
 * The key of kind KEY_IMAGE_OF_MAP of a PE image; its name is written to `name`, in lower case.
 * False: the image names no r2rmap, or by a name that no request can have.
 */
bool map_image_read(int fd, uint64_t size_bytes, char name[MAP_NAME_BYTES], struct key *ret);

/* Call it for an image that arrives: `text` is its key. What is known already stays. Failure means
 * that the r2rmap of the image cannot be asked for by its signature. */
void map_image_note(struct store *store, int fd, uint64_t size_bytes, const char *text);

/* Finds the text of the key of the image for a key of kind KEY_IMAGE_OF_MAP. */
bool map_image_find(struct store *store, const struct key *key, char text_ret[KEY_TEXT_BYTES]);

#endif
