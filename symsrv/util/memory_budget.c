/* SPDX-License-Identifier: MIT */
#include "symsrv/util/memory_budget.h"

bool memory_share_take(struct memory_share *share, size_t bytes)
{
	struct memory_budget *budget = share->budget;
	size_t before = atomic_fetch_add(&budget->used_bytes, bytes);

	if (bytes <= budget->most_bytes && before <= budget->most_bytes - bytes) {
		share->bytes += bytes;
		return true;
	}
	atomic_fetch_sub(&budget->used_bytes, bytes);
	budget->refused++;
	return false;
}

void memory_share_end(struct memory_share *share)
{
	if (share->bytes)
		atomic_fetch_sub(&share->budget->used_bytes, share->bytes);
	share->bytes = 0;
}
