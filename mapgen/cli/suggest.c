/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/suggest.h"

#include <string.h>

enum {
	LONGEST_WORD = 31,    /* longer words get no suggestion */
	SHORTEST_PART = 4,    /* "symbols" is part of "fetch-symbols" */
	PART_EDITS = 2,       /* what such a part counts as */
	LETTERS_PER_EDIT = 3, /* one slip for each three letters that were typed */
};

static size_t suggest_min(size_t left, size_t right)
{
	return left < right ? left : right;
}

/*
 * Insertions, deletions, replacements and swaps of neighbours that make one word of the other
 * (optimal string alignment). Three rows of the table suffice, because a swap looks back two.
 */
static size_t suggest_edits(const char *from, size_t from_length, const char *to, size_t to_length)
{
	size_t rows[3][LONGEST_WORD + 1];

	for (size_t j = 0; j <= to_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= from_length; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= to_length; j++) {
			size_t differs = from[i - 1] != to[j - 1];

			row[j] = suggest_min(suggest_min(above[j], row[j - 1]) + 1,
					     above[j - 1] + differs);
			if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
				row[j] = suggest_min(row[j], second[j - 2] + 1);
		}
	}
	return rows[from_length % 3][to_length];
}

struct suggestion suggestion_of(const char *typed, size_t length)
{
	return (struct suggestion){ .typed = typed, .typed_length = length };
}

void suggestion_offer(struct suggestion *suggestion, const char *word)
{
	size_t length = strlen(word), most = suggestion->typed_length / LETTERS_PER_EDIT, edits;

	if (length > LONGEST_WORD || suggestion->typed_length > LONGEST_WORD)
		return;
	edits = suggest_edits(suggestion->typed, suggestion->typed_length, word, length);
	if (edits > PART_EDITS && suggestion->typed_length >= SHORTEST_PART &&
	    memmem(word, length, suggestion->typed, suggestion->typed_length))
		edits = most = PART_EDITS;
	if (edits > most || (suggestion->best && edits >= suggestion->best_edits))
		return;
	suggestion->best = word;
	suggestion->best_edits = edits;
}
