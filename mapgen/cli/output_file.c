/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "libsym/base/path.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"

enum {
	OUTPUT_MODE = 0644
};

static struct sym_error *fill(const struct path_output *output, output_file_fn *write,
			      const void *context, int *failure_ret)
{
	int copy = fcntl(output->fd, F_DUPFD_CLOEXEC, 3);
	FILE *file = copy >= 0 ? fdopen(copy, "w") : NULL;
	struct sym_error *error;

	*failure_ret = file ? 0 : -errno;
	if (!file)
		return NULL;
	error = write(context, file);
	*failure_ret = ferror(file) ? -EIO : 0;
	if (fclose(file))
		*failure_ret = -errno;
	return error;
}

int output_file_write(const char *path, output_file_fn *write, const void *context)
{
	struct path_output output = { .fd = -1, .directory_fd = -1 };
	int failure = path_output_open(&output, path);
	struct sym_error *error = NULL;

	if (!failure)
		error = fill(&output, write, context, &failure);
	if (!error && !failure)
		failure = path_output_commit(&output, OUTPUT_MODE, false);
	else
		path_output_abandon(&output);
	if (!message_error_of(path, error))
		return EXIT_FAILED;
	if (!failure)
		return EXIT_DONE;
	message("%s: cannot write: %s", path, strerror(-failure));
	return EXIT_FAILED;
}
