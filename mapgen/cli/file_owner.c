/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/file_owner.h"

#include <sys/stat.h>

#include "mapgen/cli/message.h"

char *file_owner_text(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return message_format("an unknown user");
	/* The process may have users of its own, and a server may define user names. */
	return status.st_uid ? message_format("uid %u", status.st_uid)
			     : message_format("root (uid 0)");
}
