/* SPDX-License-Identifier: MIT */
/*
 * Each reader works on the whole text of one file. struct words is a cursor over blank-separated
 * words; find_line() finds the line of a name. A value that is missing or malformed fails the whole
 * text or is left at its default, as the header states for each function.
 */
#include "libsym/format/linux/proc_text.h"

#include <string.h>

#include "libsym/base/hex.h"

/* A cursor over one text. Words are separated by blanks and tabs. */
struct words {
	const char *next;
	const char *end;
};

static void skip_blanks(struct words *words)
{
	while (words->next < words->end && (*words->next == ' ' || *words->next == '\t'))
		words->next++;
}

/* Reads a word of digits of `base`. Returns false if it has other characters or does not fit. */
static bool read_number(struct words *words, unsigned int base, uint64_t *ret)
{
	const char *start;
	uint64_t value = 0;

	skip_blanks(words);
	start = words->next;
	while (words->next < words->end && *words->next >= '0' && *words->next < '0' + (char)base) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*words->next - '0'), &value))
			return false;
		words->next++;
	}
	if (words->next == start || (words->next < words->end && !memchr(" \t\n", *words->next, 3)))
		return false;
	*ret = value;
	return true;
}

static bool skip_word(struct words *words)
{
	const char *start;

	skip_blanks(words);
	start = words->next;
	while (words->next < words->end && *words->next != ' ' && *words->next != '\n')
		words->next++;
	return words->next > start;
}

static bool skip_words(struct words *words, unsigned int count)
{
	while (count-- > 0)
		if (!skip_word(words))
			return false;
	return true;
}

bool proc_text_parse_stat(const char *text, size_t size_bytes, struct proc_stat *ret)
{
	struct proc_stat stat = { 0 };
	const char *open, *close;
	struct words words;

	open = size_bytes ? memchr(text, '(', size_bytes) : NULL;
	close = open ? memrchr(open, ')', size_bytes - (size_t)(open - text)) : NULL;
	if (!close)
		return false;
	stat.comm = open + 1;
	stat.comm_bytes = (size_t)(close - stat.comm);
	words = (struct words){ close + 1, text + size_bytes };
	skip_blanks(&words);
	if (words.next == words.end)
		return false;
	stat.state = *words.next;
	/* Fields 3 to 21 come before the start time, 23 to 25 and 27 between the others. */
	if (!skip_words(&words, 19) || !read_number(&words, 10, &stat.start_time_ticks))
		return false;
	if (skip_words(&words, 3) && read_number(&words, 10, &stat.code_start) &&
	    skip_words(&words, 1))
		read_number(&words, 10, &stat.stack_start);
	*ret = stat;
	return true;
}

/* The rest of the line that starts with `name`. Returns false if there is none. */
static bool find_line(const char *text, size_t size_bytes, const char *name, struct words *ret)
{
	size_t name_bytes = strlen(name);
	const char *end = text + size_bytes;

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));

		if (!line_end)
			line_end = end;
		if ((size_t)(line_end - text) >= name_bytes && !memcmp(text, name, name_bytes)) {
			*ret = (struct words){ text + name_bytes, line_end };
			return true;
		}
		text = line_end < end ? line_end + 1 : end;
	}
	return false;
}

static bool read_id(struct words *words, int32_t *ret)
{
	uint64_t value;

	if (!read_number(words, 10, &value) || value == 0 || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

/*
 * "Uid: REAL EFFECTIVE SAVED FILESYSTEM". The kernel writes all four; a recording may have fewer.
 */
static bool read_ids(const char *text, size_t size_bytes, const char *name, uint32_t *effective_ret,
		     uint32_t *file_ret)
{
	struct words line;
	uint64_t value;

	if (!find_line(text, size_bytes, name, &line) || !read_number(&line, 10, &value) ||
	    !read_number(&line, 10, &value) || value > UINT32_MAX)
		return false;
	*effective_ret = *file_ret = (uint32_t)value;
	if (read_number(&line, 10, &value) && read_number(&line, 10, &value) && value < UINT32_MAX)
		*file_ret = (uint32_t)value;
	return true;
}

/* "CapEff:\t000001ffffffffff" */
static uint64_t read_capabilities(const char *text, size_t size_bytes)
{
	struct words line;
	uint64_t value;

	if (!find_line(text, size_bytes, "CapEff:", &line))
		return 0;
	skip_blanks(&line);
	return hex_read_u64(line.next, (size_t)(line.end - line.next), &value) ? value : 0;
}

bool proc_text_parse_status(const char *text, size_t size_bytes, struct proc_status *ret)
{
	struct proc_status status = { 0 };
	struct words line;

	if (!find_line(text, size_bytes, "Tgid:", &line) || !read_id(&line, &status.process_id))
		return false;
	if (!read_ids(text, size_bytes, "Uid:", &status.uid, &status.file_uid) ||
	    !read_ids(text, size_bytes, "Gid:", &status.gid, &status.file_gid))
		return false;
	status.capabilities = read_capabilities(text, size_bytes);
	if (!find_line(text, size_bytes, "PPid:", &line) ||
	    !read_id(&line, &status.parent_process_id))
		status.parent_process_id = 0;
	status.namespace_process_id = status.process_id;
	if (find_line(text, size_bytes, "NStgid:", &line))
		while (read_id(&line, &status.namespace_process_id))
			status.namespace_depth++;
	status.has_memory = find_line(text, size_bytes, "VmSize:", &line);
	*ret = status;
	return true;
}

size_t proc_text_parse_groups(const char *text, size_t size_bytes, uint32_t *room,
			      size_t room_count)
{
	struct words line;
	size_t count = 0;
	uint64_t value;

	if (!find_line(text, size_bytes, "Groups:", &line))
		return 0;
	for (; read_number(&line, 10, &value) && value < UINT32_MAX; count++)
		if (count < room_count)
			room[count] = (uint32_t)value;
	return count;
}

const char *proc_text_find_environ(const char *text, size_t size_bytes, const char *name)
{
	size_t name_bytes = strlen(name);
	const char *end = text + size_bytes;

	while (text < end) {
		const char *entry_end = memchr(text, '\0', (size_t)(end - text));

		/* A last entry without its NUL was cut. Half a path must not be used. */
		if (!entry_end)
			return NULL;
		if ((size_t)(entry_end - text) > name_bytes + 1 && text[name_bytes] == '=' &&
		    !memcmp(text, name, name_bytes))
			return text + name_bytes + 1;
		text = entry_end + 1;
	}
	return NULL;
}

bool proc_text_fdinfo_flags(const char *text, size_t size_bytes, uint64_t *ret)
{
	struct words line;

	return find_line(text, size_bytes, "flags:", &line) && read_number(&line, 8, ret);
}

bool proc_text_boot_time(const char *text, size_t size_bytes, int64_t *ret)
{
	struct words line;
	uint64_t seconds;

	/* The bound keeps seconds * 10^9 within 64 bits. */
	if (!find_line(text, size_bytes, "btime ", &line) || !read_number(&line, 10, &seconds) ||
	    seconds > INT64_MAX / 2000000000)
		return false;
	*ret = (int64_t)seconds;
	return true;
}

bool proc_text_parse_id(const char *name, int32_t *ret)
{
	struct words words = { name, name + strlen(name) };

	if (*name < '1' || *name > '9')
		return false;
	return read_id(&words, ret) && words.next == words.end;
}

bool proc_text_parse_file_name(const char *name, const char *start, const char *end, int32_t *ret)
{
	size_t start_bytes = strlen(start), end_bytes = strlen(end), id_bytes;
	size_t name_bytes = strlen(name);
	char id[sizeof("2147483647")];

	if (name_bytes <= start_bytes + end_bytes || memcmp(name, start, start_bytes) ||
	    memcmp(name + name_bytes - end_bytes, end, end_bytes))
		return false;
	id_bytes = name_bytes - start_bytes - end_bytes;
	if (id_bytes >= sizeof(id))
		return false;
	memcpy(id, name + start_bytes, id_bytes);
	id[id_bytes] = '\0';
	return proc_text_parse_id(id, ret);
}
