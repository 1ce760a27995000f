/* SPDX-License-Identifier: MIT */
/* The texts of /proc made of any bytes: what is pointed to lies inside the text. */
#include <stdlib.h>

#include "libsym/format/proc_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *value;
	struct proc_status status;
	struct proc_stat stat;
	uint64_t flags;
	int64_t boot;

	if (proc_stat_parse(text, size, &stat) && stat.comm + stat.comm_bytes >= text + size)
		abort();
	value = proc_environ_find(text, size, "TMPDIR");
	if (value && (!*value || value >= text + size))
		abort();
	if (proc_boot_time(text, size, &boot) && boot < 0)
		abort();
	return proc_status_parse(text, size, &status) + proc_fdinfo_flags(text, size, &flags) < 0;
}
