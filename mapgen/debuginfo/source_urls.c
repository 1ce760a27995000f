/* SPDX-License-Identifier: MIT */
/*
 * A Source Link is known by its text, not by its PDB: a PDB may be closed while a process runs, and
 * another one may lie at the same address.
 */
#include "mapgen/debuginfo/source_urls.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "mapgen/debuginfo/source_link.h"

enum {
	URL_LIMIT = 1 << 20
};

struct known_link {
	struct known_link *next;
	struct source_link *link; /* NULL: `failure` says why */
	struct sym_error *failure;
	size_t text_bytes;
	char text[];
};

struct source_urls {
	struct known_link *links;
	struct buf url;
};

struct sym_error *source_urls_create(struct source_urls **ret)
{
	struct source_urls *urls = calloc(1, sizeof(*urls));

	if (!urls)
		return &sym_error_no_memory;
	buf_init(&urls->url, URL_LIMIT);
	*ret = urls;
	return NULL;
}

void source_urls_destroy(struct source_urls *urls)
{
	if (!urls)
		return;
	while (urls->links) {
		struct known_link *next = urls->links->next;

		source_link_destroy(urls->links->link);
		sym_error_destroy(urls->links->failure);
		free(urls->links);
		urls->links = next;
	}
	buf_deinit(&urls->url);
	free(urls);
}

/* NULL: out of memory. */
static const struct known_link *get_link(struct source_urls *urls, const char *text,
					 size_t text_bytes)
{
	struct known_link *known = urls->links;

	while (known && (known->text_bytes != text_bytes || memcmp(known->text, text, text_bytes)))
		known = known->next;
	if (known)
		return known;
	known = calloc(1, sizeof(*known) + text_bytes);
	if (!known)
		return NULL;
	memcpy(known->text, text, text_bytes);
	known->text_bytes = text_bytes;
	known->failure = source_link_parse(text, text_bytes, &known->link);
	known->next = urls->links;
	urls->links = known;
	return known;
}

const char *source_urls_find(struct source_urls *urls, const struct sym_pdb *pdb, const char *file,
			     const char **reason_ret)
{
	const struct known_link *known;
	const char *text = NULL;
	size_t text_bytes;

	*reason_ret = "native code has no Source Link";
	if (!pdb)
		return NULL;
	text = sym_pdb_source_link(pdb, &text_bytes);
	*reason_ret = "the PDB has no Source Link";
	if (!text)
		return NULL;
	known = get_link(urls, text, text_bytes);
	*reason_ret = "out of memory";
	if (!known)
		return NULL;
	if (known->failure) {
		*reason_ret = sym_error_message(known->failure);
		return NULL;
	}
	buf_clear(&urls->url);
	*reason_ret = "the Source Link of the PDB does not have the file";
	if (!source_link_write_url(known->link, file, &urls->url))
		return NULL;
	buf_append_char(&urls->url, '\0');
	*reason_ret = urls->url.failure ? "out of memory, or a very long URL" : NULL;
	return *reason_ret ? NULL : urls->url.data;
}
