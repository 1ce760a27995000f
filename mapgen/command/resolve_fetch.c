/* SPDX-License-Identifier: MIT */
#include "mapgen/command/resolve_fetch.h"

#include <errno.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/message.h"
#include "mapgen/debuginfo/symbols_fetch.h"

int resolve_fetch_file(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	struct sym_identity identity = { .size = sizeof(identity), .kind = SYM_IDENTITY_ELF };
	size_t id_bytes = request->build_id_size_bytes;
	struct symbols_result result;
	int failure;

	if (request->kind == SYM_FETCH_PDB) {
		symbols_fetch(context, NULL, request->pdb, &result);
	} else if ((request->kind == SYM_FETCH_DEBUG_FILE ||
		    request->kind == SYM_FETCH_SHARED_FILE) &&
		   id_bytes >= 2 && id_bytes <= sizeof(identity.id)) {
		identity.id_size_bytes = request->build_id_size_bytes;
		memcpy(identity.id, request->build_id, id_bytes);
		symbols_fetch(context, &identity, NULL, &result);
	} else {
		return 0;
	}
	failure = result.outcome == SYMBOLS_FAILED ? EIO : 0;
	if (failure)
		message("%s: %s", request->image_path, result.reason ? result.reason : "");
	*path_ret = STEAL(result.path);
	symbols_result_deinit(&result);
	return failure;
}
