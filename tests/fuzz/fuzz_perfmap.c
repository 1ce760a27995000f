/* SPDX-License-Identifier: MIT */
/* A perf map of any bytes: its frozen index is sorted and disjoint, and written out it reads back
 * the same. */
#include "tests/support/perfmap_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	perfmap_check_round_trip((const char *)data, size);
	return 0;
}
