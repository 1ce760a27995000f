/* SPDX-License-Identifier: MIT */
/* The owner of a file, for a message. */
#ifndef MAPGEN_CLI_FILE_OWNER_H
#define MAPGEN_CLI_FILE_OWNER_H

/* "root (uid 0)", or "uid 1234"; heap. */
char *file_owner_text(int fd);

#endif
