/* SPDX-License-Identifier: MIT */
/* The path of a source file, as a compiler wrote it: on this machine, another one, or Windows. */
#ifndef MAPGEN_CLI_SOURCE_FILE_H
#define MAPGEN_CLI_SOURCE_FILE_H

/* Its last part, after the last '/' or '\\'; inside of `path`. */
const char *source_file_name(const char *path);

#endif
