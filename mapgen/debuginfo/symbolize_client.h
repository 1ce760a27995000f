/* SPDX-License-Identifier: MIT */
/*
 * Names from a symsrv for a machine that has no symbols: positions in images that are given by
 * their build-id or PE key go to its /v1/resolve in batches. All requests of a run together may
 * wait for a limited time. After a failure nothing more is asked.
 */
#ifndef MAPGEN_DEBUGINFO_SYMBOLIZE_CLIENT_H
#define MAPGEN_DEBUGINFO_SYMBOLIZE_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct symbolize_client;

/* Whether it is a URL of http or https. */
bool symbolize_client_takes(const char *url);

/* `url`: borrowed. NULL, with a message, on failure. */
struct symbolize_client *symbolize_client_create(const char *url, bool wants_lines);
void symbolize_client_destroy(struct symbolize_client *client);

/* Notes that a position is to be asked for; nothing when the identity is none that servers know.
 * `name`: file name of the image. */
void symbolize_client_add(struct symbolize_client *client, const struct sym_identity *identity,
			  const char *name, uint64_t position);

/* Asks for everything that was added since the last call. */
void symbolize_client_ask(struct symbolize_client *client);

/* The answer to a position (symsrv.8, RESOLVING); NULL: none. It lives as long as the client. */
const json_t *symbolize_client_answer(struct symbolize_client *client,
				      const struct sym_identity *identity, const char *name,
				      uint64_t position);

/* A name for code of which only the bounds are known, from its unwind table. One entry of a table
 * may span several functions of assembly code; such code gets no name. `size_bytes`: 0: unknown. */
void symbolize_client_add_code(struct symbolize_client *client, const struct sym_identity *identity,
			       uint64_t start, uint64_t size_bytes);
const char *symbolize_client_name_of_code(struct symbolize_client *client,
					  const struct sym_identity *identity, uint64_t start,
					  uint64_t size_bytes);

/* Why some positions have no answer; NULL: the server answered all. */
const char *symbolize_client_problem(const struct symbolize_client *client);
/* The URL without user and password. */
const char *symbolize_client_url(const struct symbolize_client *client);

#endif
