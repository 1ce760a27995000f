/* SPDX-License-Identifier: MIT */
/*
 * Modules that are given by the identity of their PDB. It names a build, not one image: a
 * precompiled assembly has one PDB for all processors. So an image is used only if it is the only
 * one that is known here.
 */
#ifndef SYMSRV_RESOLVE_IMAGE_OF_PDB_H
#define SYMSRV_RESOLVE_IMAGE_OF_PDB_H

#include "symsrv/lookup/lookup.h"
#include "symsrv/resolve/resolve_request.h"

/*
 * Gives the modules of kind KEY_IMAGE_OF_PDB the key of their image, and sets `is_of_pdb`. Without
 * one they get KEY_NONE; `is_ambiguous`: because of several.
 */
void image_of_pdb_find(const struct holdings *holdings, struct resolve_request *request);

#endif
