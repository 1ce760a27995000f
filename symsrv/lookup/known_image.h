/* SPDX-License-Identifier: MIT */
/* PE images by the identity of what belongs to them, among those that are indexed or noted. */
#ifndef SYMSRV_LOOKUP_KNOWN_IMAGE_H
#define SYMSRV_LOOKUP_KNOWN_IMAGE_H

#include "symsrv/lookup/lookup.h"

/* The text of the key of the image that has an r2rmap (key of kind KEY_MAP), heap. NULL: none is
 * known. */
char *known_image_of_map(const struct holdings *holdings, const struct key *map);

enum known_image {
	KNOWN_IMAGE_NONE,
	KNOWN_IMAGE_ONE,
	KNOWN_IMAGE_SEVERAL /* which have different identities */
};

/* Finds the image that has a PDB; key of kind KEY_IMAGE_OF_PDB. */
enum known_image known_image_of_pdb(const struct holdings *holdings, const struct key *pdb,
				    char text_ret[KEY_TEXT_BYTES]);

#endif
