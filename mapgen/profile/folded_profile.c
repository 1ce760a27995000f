/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/folded_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	MOST_LINE_BYTES = 16 << 20,
	MOST_FRAMES = 1 << 16,
};

struct folded {
	struct profile *profile;
	uint32_t event;
	uint64_t good_lines;
	uint32_t frames[MOST_FRAMES];
};

/* The count behind the last space; the line ends before that. */
static bool take_count(char *line, size_t *size_bytes, uint64_t *ret)
{
	char *space, *end;

	while (*size_bytes && (line[*size_bytes - 1] == '\n' || line[*size_bytes - 1] == '\r'))
		line[--*size_bytes] = '\0';
	space = memrchr(line, ' ', *size_bytes);
	if (!space || space == line || space[1] < '0' || space[1] > '9')
		return false;
	errno = 0;
	*ret = strtoull(space + 1, &end, 10);
	if (*end || errno || !*ret)
		return false;
	*space = '\0';
	*size_bytes = (size_t)(space - line);
	return true;
}

/* Removes a "_[x]" from the end of a name. */
static enum frame_kind take_kind(char *name)
{
	size_t length = strlen(name);
	char letter;

	if (length < 5 || name[length - 4] != '_' || name[length - 3] != '[' ||
	    name[length - 1] != ']')
		return FRAME_KIND_UNKNOWN;
	letter = name[length - 2];
	if (letter != 'k' && letter != 'j')
		return FRAME_KIND_UNKNOWN;
	name[length - 4] = '\0';
	return letter == 'k' ? FRAME_KIND_KERNEL : FRAME_KIND_JITTED;
}

static struct sym_error *add_frame(struct folded *folded, char *name, uint32_t *ret)
{
	struct profile_frame frame = { .image = "", .tier = "", .reason = "" };

	frame.kind = take_kind(name);
	frame.name = name;
	frame.is_named = *name && *name != '[' && strcmp(name, "unknown");
	if (!frame.is_named)
		frame.reason = "the text has no name";
	return frame_table_add(folded->profile->frames, &frame, ret);
}

static struct sym_error *find_thread(struct folded *folded, const char *process, uint32_t *ret)
{
	const struct thread_table *threads = &folded->profile->threads;

	/* Lines are sorted, mostly: the last one will do. */
	for (size_t i = threads->thread_count; i > 0; i--)
		if (!strcmp(threads->processes[i - 1].name, process)) {
			*ret = (uint32_t)(i - 1);
			return NULL;
		}
	return thread_table_add(&folded->profile->threads, 0, 0, process, "", ret);
}

static struct sym_error *add_line(struct folded *folded, char *line, size_t size_bytes)
{
	struct sym_error *error = NULL;
	uint32_t thread, stack;
	uint64_t samples;
	size_t count = 0;
	char *next = NULL;

	if (memchr(line, '\0', size_bytes) || !take_count(line, &size_bytes, &samples)) {
		folded->profile->losses.bad_records++;
		return NULL;
	}
	folded->good_lines++;
	error = find_thread(folded, strsep(&line, ";"), &thread);
	while (!error && (next = strsep(&line, ";")) && count < MOST_FRAMES)
		error = add_frame(folded, next, &folded->frames[count++]);
	if (!error)
		error = frame_table_add_stack(folded->profile->frames, folded->frames, count,
					      STACK_END_WHOLE, &stack);
	return error ? error
		     : profile_add(folded->profile, folded->event, thread, stack, samples, samples);
}

static struct sym_error *read_lines(struct folded *folded, FILE *file)
{
	struct sym_error *error = NULL;
	char *line AUTO_FREE = NULL;
	size_t capacity = 0;
	ssize_t count;

	errno = 0;
	while (!error && (count = getline(&line, &capacity, file)) > 0) {
		if (count > MOST_LINE_BYTES)
			return sym_error_create(SYM_ERROR_LIMIT, "a line of more than %d bytes",
						MOST_LINE_BYTES);
		error = add_line(folded, line, (size_t)count);
	}
	if (!error && ferror(file))
		error = sym_error_create(SYM_ERROR_IO, "cannot be read: %s", strerror(errno));
	return error;
}

struct sym_error *folded_profile_read(struct profile *profile, FILE *file)
{
	struct folded *folded AUTO_FREE = calloc(1, sizeof(*folded));
	struct sym_error *error;

	if (!folded)
		return &sym_error_no_memory;
	folded->profile = profile;
	error = profile_add_event(profile, "samples", PROFILE_CPU, PROFILE_UNIT_COUNT,
				  &folded->event);
	if (!error)
		error = read_lines(folded, file);
	if (!error && !folded->good_lines)
		error = sym_error_create(SYM_ERROR_FORMAT,
					 "neither a recording, nor a perf.data, nor folded text");
	return error;
}
