/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/stack_notes.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"

void stack_notes_deinit(struct stack_notes *notes)
{
	free(notes->items);
	free(notes->guessed);
	*notes = (struct stack_notes){ 0 };
}

/* The next number of a line, which ends with a newline. */
static bool next_number(const char **at, int base, uint64_t most, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, base);
	if (errno || *ret > most || (*end != '\t' && *end != '\n'))
		return false;
	*at = *end == '\t' ? end + 1 : end;
	return true;
}

/* False for want of memory. */
static bool read_guessed(struct stack_notes *notes, const char *at, struct stack_note *note,
			 bool *good_ret)
{
	uint64_t frame;

	note->first_guessed = notes->guessed_count;
	*good_ret = true;
	while (*at != '\n') {
		*good_ret = next_number(&at, 10, UINT16_MAX, &frame);
		if (!*good_ret)
			return true;
		if (!grow_items((void **)&notes->guessed, &notes->guessed_capacity,
				notes->guessed_count, sizeof(*notes->guessed)))
			return false;
		notes->guessed[notes->guessed_count++] = (uint32_t)frame;
	}
	note->guessed_count = notes->guessed_count - note->first_guessed;
	return true;
}

static bool read_line(struct stack_notes *notes, const char *line)
{
	struct stack_note note = { 0 };
	uint64_t tid, end, address;
	bool is_good = next_number(&line, 10, UINT64_MAX, &note.time_ns) &&
		       next_number(&line, 10, INT32_MAX, &tid) &&
		       next_number(&line, 10, SYM_UNWIND_FULL, &end) &&
		       next_number(&line, 16, UINT64_MAX, &address);

	if (is_good && !read_guessed(notes, line, &note, &is_good))
		return false;
	if (!is_good) {
		notes->bad_lines++;
		return true;
	}
	note.tid = (int32_t)tid;
	note.end = (uint32_t)end;
	if (!grow_items((void **)&notes->items, &notes->capacity, notes->count,
			sizeof(*notes->items)))
		return false;
	notes->items[notes->count++] = note;
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct stack_note *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

struct sym_error *stack_notes_read(struct stack_notes *notes, const char *text, size_t size_bytes)
{
	const char *end = text + size_bytes;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		if (!newline) {
			notes->bad_lines++;
			break;
		}
		if (!read_line(notes, text))
			return &sym_error_no_memory;
		text = newline + 1;
	}
	if (notes->count)
		qsort(notes->items, notes->count, sizeof(*notes->items), compare);
	return NULL;
}

const struct stack_note *stack_notes_find(const struct stack_notes *notes, uint64_t time_ns,
					  int32_t tid)
{
	const struct stack_note wanted = { .time_ns = time_ns, .tid = tid };

	return notes->count ? bsearch(&wanted, notes->items, notes->count, sizeof(*notes->items),
				      compare)
			    : NULL;
}
