/* SPDX-License-Identifier: MIT */
/* --names of the commands that print names: full, short, or as in C#. */
#ifndef MAPGEN_CLI_NAME_FORM_H
#define MAPGEN_CLI_NAME_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "mapgen/cli/options.h"

/* Writes a managed name in the form to `room`, like sym_name_shorten(). */
size_t name_form_write(int form, const char *name, char *room, size_t room_bytes);

/* enum sym_write_flags for the names and tiers that were asked for. */
uint32_t name_form_write_flags(const struct options *options);

#endif
