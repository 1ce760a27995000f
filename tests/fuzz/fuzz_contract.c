/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "libsym/clr/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t pointers[24];
	struct layout_precodes precodes;
	struct contract *contract;
	struct layout_tiers tiers;
	struct layout layout;
	struct sym_error *error = contract_parse(data, size, pointers, 24, &contract);

	if (!error) {
		sym_error_destroy(layout_load(contract, &layout));
		sym_error_destroy(layout_load_tiers(contract, &tiers));
		error = layout_load_precodes(contract, &precodes);
		contract_close(contract);
	}
	sym_error_destroy(error);
	return 0;
}
