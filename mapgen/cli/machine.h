/* SPDX-License-Identifier: MIT */
/* Which ways to record and to name this machine has, and what would open the others. */
#ifndef MAPGEN_CLI_MACHINE_H
#define MAPGEN_CLI_MACHINE_H

#include <jansson.h>
#include <stdio.h>

/* A heading, and a line for each way. */
void machine_print(FILE *to);

/* A list of objects: way, state, help. */
json_t *machine_json(void);

#endif
