/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as texts of /proc: pointers in results point into the text. */
#include <stdlib.h>

#include "libsym/format/linux/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *value;
	struct proc_status status;
	struct proc_stat stat;
	uint64_t flags;
	int64_t boot;

	if (proc_text_parse_stat(text, size, &stat) && stat.comm + stat.comm_bytes >= text + size)
		abort();
	value = proc_text_find_environ(text, size, "TMPDIR");
	if (value && (!*value || value >= text + size))
		abort();
	if (proc_text_boot_time(text, size, &boot) && boot < 0)
		abort();
	return proc_text_parse_status(text, size, &status) +
		       proc_text_fdinfo_flags(text, size, &flags) <
	       0;
}
