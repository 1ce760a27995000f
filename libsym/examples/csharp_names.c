/* SPDX-License-Identifier: MIT */
/*
 * Reads full .NET names, one a line, and prints them as C# code names the methods.
 *
 *   csharp_names [FLAGS] < NAMES        FLAGS: enum sym_csharp_flags
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/libsym.h"

int main(int argc, char **argv)
{
	uint32_t flags = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 0;
	char *line = NULL, *room = NULL;
	size_t line_bytes = 0, room_bytes = 0;

	while (getline(&line, &line_bytes, stdin) > 0) {
		size_t length;

		line[strcspn(line, "\n")] = '\0';
		length = sym_name_csharp(line, flags, room, room_bytes);
		if (length >= room_bytes) {
			char *larger = realloc(room, length + 1);

			if (!larger)
				break;
			room = larger;
			room_bytes = length + 1;
			sym_name_csharp(line, flags, room, room_bytes);
		}
		puts(room);
	}
	free(line);
	free(room);
	return ferror(stdin) ? 1 : 0;
}
