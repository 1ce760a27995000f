/* SPDX-License-Identifier: MIT */
#include "libsym/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sym_error {
	enum sym_error_code code;
	char *message;
	char *path; /* NULL when the error is not about a file */
	uint64_t offset;
	bool is_shortage;
};

static const size_t longest_message_bytes = 16384;

static char no_memory_text[] = "out of memory";
struct sym_error sym_error_no_memory = {
	.code = SYM_ERROR_NO_MEMORY,
	.message = no_memory_text,
	.offset = SYM_OFFSET_UNKNOWN,
};

enum sym_error_code sym_error_code(const struct sym_error *error)
{
	return error ? error->code : (enum sym_error_code)0;
}

const char *sym_error_message(const struct sym_error *error)
{
	return error ? error->message : "no error";
}

const char *sym_error_path(const struct sym_error *error)
{
	return error ? error->path : NULL;
}

uint64_t sym_error_offset(const struct sym_error *error)
{
	return error ? error->offset : SYM_OFFSET_UNKNOWN;
}

void sym_error_destroy(struct sym_error *error)
{
	if (!error || error == &sym_error_no_memory)
		return;
	free(error->message);
	free(error->path);
	free(error);
}

/* Makes one printable line: foreign bytes in a message must not control a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static struct sym_error *create(enum sym_error_code code, const char *path, uint64_t offset,
				const char *format, va_list arguments)
{
	struct sym_error *error = calloc(1, sizeof(*error));
	struct buf message;

	if (!error)
		return &sym_error_no_memory;
	buf_init(&message, longest_message_bytes);
	if (path)
		buf_printf(&message, "%s: ", path);
	if (path && offset != SYM_OFFSET_UNKNOWN)
		buf_printf(&message, "offset 0x%llx: ", (unsigned long long)offset);
	buf_vprintf(&message, format, arguments);
	error->code = code;
	error->offset = offset;
	error->message = buf_steal(&message, NULL);
	error->path = path ? strdup(path) : NULL;
	buf_deinit(&message);
	if (!error->message || (path && !error->path)) {
		sym_error_destroy(error);
		return &sym_error_no_memory;
	}
	make_printable(error->message);
	return error;
}

struct sym_error *sym_error_create(enum sym_error_code code, const char *format, ...)
{
	struct sym_error *error;
	va_list arguments;

	va_start(arguments, format);
	error = create(code, NULL, SYM_OFFSET_UNKNOWN, format, arguments);
	va_end(arguments);
	return error;
}

struct sym_error *sym_error_create_path(enum sym_error_code code, const char *path, uint64_t offset,
					const char *format, ...)
{
	struct sym_error *error;
	va_list arguments;

	va_start(arguments, format);
	error = create(code, path, offset, format, arguments);
	va_end(arguments);
	return error;
}

static enum sym_error_code code_of_errno(int errno_value)
{
	switch (errno_value) {
	case ENOENT:
	case ESRCH:
	case ENOTDIR:
		return SYM_ERROR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return SYM_ERROR_PERMISSION;
	case ENOMEM:
		return SYM_ERROR_NO_MEMORY;
	case EFBIG:
		return SYM_ERROR_LIMIT;
	default:
		return SYM_ERROR_IO;
	}
}

struct sym_error *sym_error_from_errno(int errno_value, const char *path, const char *what)
{
	struct sym_error *error;

	if (errno_value == ENOMEM)
		return &sym_error_no_memory;
	error = sym_error_create_path(code_of_errno(errno_value), path, SYM_OFFSET_UNKNOWN,
				      "%s: %s", what, strerror(errno_value));
	if (error != &sym_error_no_memory)
		error->is_shortage = errno_value == EMFILE || errno_value == ENFILE;
	return error;
}

bool sym_error_is_shortage(const struct sym_error *error)
{
	return error && error->is_shortage;
}

struct sym_error *sym_error_from_reader(const struct reader *reader, const char *path,
					uint64_t base_offset, const char *what)
{
	const char *failure = reader->failure ? reader->failure : "malformed";

	if (!path)
		return sym_error_create(SYM_ERROR_FORMAT, "%s: %s at 0x%llx", what, failure,
					(unsigned long long)(base_offset + reader->failed_at));
	return sym_error_create_path(SYM_ERROR_FORMAT, path, base_offset + reader->failed_at,
				     "%s: %s", what, failure);
}

struct sym_error *sym_error_from_buf(const struct buf *buf, const char *what)
{
	if (buf->failure == BUF_NO_MEMORY)
		return &sym_error_no_memory;
	/* Below its maximum, a buffer is only limited by the budget. */
	if (buf->account && buf->capacity_bytes < buf->max_bytes / 2)
		return sym_error_create(SYM_ERROR_LIMIT, "%s: more than the budget has", what);
	return sym_error_create(SYM_ERROR_LIMIT, "%s: more than %zu bytes", what, buf->max_bytes);
}

struct sym_error *sym_error_with_path(struct sym_error *error, const char *path)
{
	struct sym_error *named;

	if (!error || error == &sym_error_no_memory || error->path)
		return error;
	named = sym_error_create_path(error->code, path, error->offset, "%s", error->message);
	sym_error_destroy(error);
	return named;
}

struct sym_error *sym_error_read_opts(const void *opts, const char *name, void *ret,
				      size_t size_bytes)
{
	size_t given_bytes;

	memset(ret, 0, size_bytes);
	if (!opts)
		return NULL;
	memcpy(&given_bytes, opts, sizeof(given_bytes));
	if (given_bytes < sizeof(given_bytes))
		return sym_error_create(SYM_ERROR_ARGUMENT,
					"%s.size is not set to the size of the struct", name);
	for (size_t i = size_bytes; i < given_bytes; i++)
		if (((const uint8_t *)opts)[i])
			return sym_error_create(SYM_ERROR_ARGUMENT,
						"%s asks for something that this version of libsym "
						"does not have",
						name);
	memcpy(ret, opts, given_bytes < size_bytes ? given_bytes : size_bytes);
	return NULL;
}
