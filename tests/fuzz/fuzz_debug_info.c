/* SPDX-License-Identifier: MIT */
/* Debug information of jitted and precompiled code in all forms, and the IL maps in it. */
#include "libsym/format/dotnet/debug_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	volatile size_t sum = 0;

	for (int form = DEBUG_INFO_R2R_NIBBLE; form <= DEBUG_INFO_JIT_FAT; form++) {
		struct debug_info info = debug_info_read(data, size, (enum debug_info_form)form);
		struct buf rows;
		uint32_t il = 0;

		for (uint32_t native = 0; native < 200; native += 7) {
			il_map_find(il_map_begin(info.bounds, info.bounds_bytes, info.form), native,
				    &il);
			sum = sum + il;
		}
		buf_init(&rows, 1 << 20);
		il_map_append_rows(il_map_begin(info.bounds, info.bounds_bytes, info.form),
				   (struct il_code){ size, 200 }, &rows);
		sum = sum + rows.size_bytes;
		buf_deinit(&rows);
		for (size_t i = 0; i < info.rich_bytes; i++)
			sum = sum + info.rich[i];
	}
	return 0;
}
