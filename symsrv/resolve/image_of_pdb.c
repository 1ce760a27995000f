/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/image_of_pdb.h"

#include <stdlib.h>
#include <string.h>

#include "symsrv/lookup/known_image.h"

static void find_one(const struct holdings *holdings, struct resolve_asked *asked)
{
	char text[KEY_TEXT_BYTES];
	struct key pdb = asked->key;
	enum known_image known = known_image_of_pdb(holdings, &pdb, text);
	char *spelling = known == KNOWN_IMAGE_ONE ? strdup(text) : NULL;

	asked->is_of_pdb = true;
	asked->is_ambiguous = known == KNOWN_IMAGE_SEVERAL;
	free(asked->spelling);
	asked->spelling = spelling;
	if (!spelling || !key_from_text(&asked->key, spelling))
		asked->key.kind = KEY_NONE;
}

void image_of_pdb_find(const struct holdings *holdings, struct resolve_request *request)
{
	for (size_t i = 0; i < request->module_count; i++)
		if (request->modules[i].key.kind == KEY_IMAGE_OF_PDB)
			find_one(holdings, &request->modules[i]);
}
