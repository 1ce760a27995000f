/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as a perf map: its frozen index is sorted and disjoint, and reads back the same
 * after it was written. */
#include "tests/support/perfmap_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	perfmap_check_round_trip((const char *)data, size);
	return 0;
}
