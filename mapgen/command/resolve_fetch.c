/* SPDX-License-Identifier: MIT */
#include "mapgen/command/resolve_fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/cli/message.h"
#include "mapgen/debuginfo/symbol_servers.h"
#include "mapgen/debuginfo/symbols_fetch.h"

struct resolve_fetch {
	struct symbols_choice choice;
	struct symbols_fetcher *fetcher;
};

static void no_progress(void *context, uint64_t bytes, uint64_t total_bytes)
{
	(void)context;
	(void)bytes;
	(void)total_bytes;
}

static void no_preparation(void *context)
{
	(void)context;
}

void resolve_fetch_destroy(struct resolve_fetch *fetch)
{
	if (!fetch)
		return;
	symbols_fetcher_destroy(fetch->fetcher);
	symbols_choice_deinit(&fetch->choice);
	free(fetch);
}

struct resolve_fetch *resolve_fetch_create(const struct options *options)
{
	static const struct symbols_watch watch = { no_progress, no_preparation, NULL };
	struct resolve_fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch) {
		message("out of memory");
		return NULL;
	}
	if (symbols_choice_make(options, &fetch->choice) && symbols_choice_can_keep(&fetch->choice))
		fetch->fetcher =
			symbols_fetcher_create(fetch->choice.servers, fetch->choice.tree, &watch);
	if (fetch->fetcher && (options->lines || options->inlines))
		symbols_fetcher_prefer_dwarf(fetch->fetcher);
	if (fetch->fetcher)
		return fetch;
	resolve_fetch_destroy(fetch);
	return NULL;
}

/* Takes the path out of the result. */
static int finish(const struct sym_fetch_request *request, struct symbols_result *result,
		  char **path_ret)
{
	int failure = result->outcome == SYMBOLS_FAILED ? EIO : 0;

	if (failure)
		message("%s: %s", request->image_path, result->reason ? result->reason : "");
	*path_ret = result->path;
	result->path = NULL;
	symbols_result_deinit(result);
	return failure;
}

static int fetch_pdb(struct resolve_fetch *fetch, const struct sym_fetch_request *request,
		     char **path_ret)
{
	struct symbols_result result;

	symbols_fetch_pdb(fetch->fetcher, request->pdb, &result);
	return finish(request, &result, path_ret);
}

int resolve_fetch_file(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	struct resolve_fetch *fetch = context;
	struct sym_identity identity = { .size = sizeof(identity), .kind = SYM_IDENTITY_ELF };
	struct symbols_result result;

	if (request->kind == SYM_FETCH_PDB)
		return fetch_pdb(fetch, request, path_ret);
	if ((request->kind != SYM_FETCH_DEBUG_FILE && request->kind != SYM_FETCH_SHARED_FILE) ||
	    request->build_id_size_bytes < 2 || request->build_id_size_bytes > sizeof(identity.id))
		return 0;
	identity.id_size_bytes = request->build_id_size_bytes;
	memcpy(identity.id, request->build_id, request->build_id_size_bytes);
	symbols_fetch(fetch->fetcher, &identity, &result);
	return finish(request, &result, path_ret);
}
