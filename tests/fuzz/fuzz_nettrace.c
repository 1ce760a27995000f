/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "libsym/clr/diagnostics/rundown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rundown rundown;
	struct sym_error *error = rundown_parse(data, size, &rundown);

	if (error)
		sym_error_destroy(error);
	else
		rundown_deinit(&rundown);
	return 0;
}
