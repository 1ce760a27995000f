/* SPDX-License-Identifier: MIT */
/*
 * Mozilla's symbolication API, version 5 (POST /symbolicate/v5), as a request of resolve_request.h
 * and back. Specification: mozilla-services/eliot, docs/symbolication.rst.
 *
 *   {"jobs": [{"memoryMap": [[NAME, DEBUG_ID], ...], "stacks": [[[MODULE, OFFSET], ...], ...]}]}
 *
 * The debug id of an ELF file has only the first 16 bytes of its build-id, in the byte order of a
 * GUID, and an age of 0. So it is looked for among what is here, and several files with these bytes
 * count as none. A PDB has another age, or a name with .pdb; its image is looked for likewise
 * (image_of_pdb.h), and "module" of its frames is the name of the image.
 */
#ifndef SYMSRV_RESOLVE_SYMBOLICATE_H
#define SYMSRV_RESOLVE_SYMBOLICATE_H

#include <jansson.h>

#include "symsrv/lookup/lookup.h"
#include "symsrv/resolve/resolve_request.h"

/*
 * Parses the text. *ret has one module for each module of each job, in their order. NULL, or why it
 * is malformed (static).
 */
const char *symbolicate_parse(const char *text, size_t size_bytes, struct resolve_request *ret);

/* Completes the build-ids of the modules from what is stored and indexed. A module that is not
 * found keeps the kind KEY_NONE. */
void symbolicate_find(const struct holdings *holdings, struct resolve_request *request);

/*
 * The answer. `text`: the request, which is parsed again: it would need up to 80 times its size
 * while look-ups wait. `modules`: {"found", "results"} of each module of the request. NULL: out of
 * memory.
 */
json_t *symbolicate_answer(const char *text, size_t size_bytes, const json_t *modules);

#endif
