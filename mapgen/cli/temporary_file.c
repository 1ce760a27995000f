/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

struct sym_error *temporary_file_stream(FILE **ret)
{
	const char *directory = getenv("TMPDIR");
	int fd = open(directory && *directory ? directory : "/var/tmp",
		      O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	*ret = fd < 0 ? tmpfile() : fdopen(fd, "w+");
	return *ret ? NULL
		    : sym_error_create(SYM_ERROR_IO, "cannot make a temporary file: %s",
				       strerror(errno));
}

struct sym_error *temporary_file_open(int *ret)
{
	FILE *file GUARDED(file) = NULL;
	struct sym_error *error = temporary_file_stream(&file);

	if (error)
		return error;
	*ret = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	return *ret >= 0 ? NULL
			 : sym_error_create(SYM_ERROR_IO, "cannot make a temporary file: %s",
					    strerror(errno));
}
