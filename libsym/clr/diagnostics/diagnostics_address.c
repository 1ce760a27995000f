/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics/diagnostics_address.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"

struct sym_error *diagnostics_address_directory(const struct process *process, char **ret)
{
	static const char variable[] = "TMPDIR=";
	const char *found = "/tmp";
	struct sym_error *error;
	struct buf environment;

	buf_init(&environment, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(process, "environ", &environment);
	sym_error_destroy(error);
	if (!error && buf_append_char(&environment, '\0'))
		for (size_t at = 0; at < environment.size_bytes;
		     at += strlen(environment.data + at) + 1)
			if (!strncmp(environment.data + at, variable, sizeof(variable) - 1) &&
			    environment.data[at + sizeof(variable) - 1] == '/')
				found = environment.data + at + sizeof(variable) - 1;
	*ret = strdup(found);
	buf_deinit(&environment);
	return *ret ? NULL : &sym_error_no_memory;
}

struct diagnostics_place diagnostics_address_of(const struct process *process,
						const char *directory)
{
	return (struct diagnostics_place){
		.root_fd = process->root_fd,
		.directory = directory,
		.pid = process->pid,
		.namespace_pid = process->namespace_pid,
		.uid = process->uid,
		.rights = process_rights(process),
		.start_time_ticks = process->start_time_ticks,
		.account = process_account(process),
	};
}
