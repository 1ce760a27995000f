/* SPDX-License-Identifier: MIT */
/*
 * The request of resolve_batch.h: from JSON to keys and addresses. Pure; bounded by the size of the
 * text.
 */
#ifndef SYMSRV_RESOLVE_RESOLVE_REQUEST_H
#define SYMSRV_RESOLVE_RESOLVE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symsrv/key/key.h"

#define RESOLVE_MAX_MODULES 1024
/* In all modules together. */
#define RESOLVE_MAX_ADDRESSES 100000

struct resolve_asked {
	/* KEY_NAMES, KEY_PE or KEY_IMAGE_OF_PDB; its strings lie in `name` and `spelling` */
	struct key key;
	char *name, *spelling; /* heap, or NULL */
	uint64_t *addresses;   /* heap */
	size_t address_count;
	bool is_relative;  /* to the first loaded byte, not vaddrs */
	bool is_ambiguous; /* several files have the part of the id that is known */
	bool is_of_pdb;    /* its image was looked for by its PDB */
};

struct resolve_request {
	struct resolve_asked *modules; /* heap */
	size_t module_count;
	int64_t deadline_ms; /* from now; 0: none given */
	bool wants_lines;
};

extern const char resolve_request_too_many[];
extern const char resolve_request_no_memory[];
/* Why a text is no JSON object; static. The error is zero when the text is JSON. */
const char *resolve_request_no_object(const json_error_t *error);

/* NULL, or why it is malformed (static), or resolve_request_no_memory. resolve_request_deinit() in
 * any case.
 */
const char *resolve_request_parse(const char *text, size_t size_bytes, struct resolve_request *ret);
void resolve_request_deinit(struct resolve_request *request);

/* The key of a file that belongs to an image: {"build_id": HEX} or {"pdb": NAME, "key": GUID AGE}.
 * NULL, or why it is malformed. resolve_asked_deinit() in any case. */
const char *resolve_request_parse_file(const json_t *wanted, struct resolve_asked *ret);
void resolve_asked_deinit(struct resolve_asked *asked);

#endif
