/* SPDX-License-Identifier: MIT */
/*
 * A directory of unfinished work beside the place of the result. There is one at a time. A signal
 * that ends the program removes it.
 */
#ifndef MAPGEN_CLI_WORK_DIRECTORY_H
#define MAPGEN_CLI_WORK_DIRECTORY_H

#include <signal.h>
#include <stdbool.h>

/* The signals that end this program: SIGINT, SIGTERM and SIGHUP. */
sigset_t work_directory_signals(void);

/* mkdtemp(3); `pattern` is borrowed until one of the next two is called. False, with errno. */
bool work_directory_make(char *pattern);

/* It has become what it was to be. */
void work_directory_keep(void);

/* Removes it, with what is in it and in directories there. */
void work_directory_remove(const char *path);

#endif
