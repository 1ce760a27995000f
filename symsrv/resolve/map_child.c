/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/map_child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/resolve/symbol_message.h"

/* The framework in one composite image has 150 MB. */
static const uint64_t most_image_memory_bytes = (uint64_t)512 << 20;

static void send_reason(int fd, const char *why, bool no_memory)
{
	symbol_message_send(fd, SYMBOL_MESSAGE_UNREADABLE, no_memory ? ENOMEM : 0, why, strlen(why),
			    -1);
}

/* The text of the map, heap; NULL: the reason was sent. */
static char *make_text(int fd, struct sym_image *image, enum sym_map_format format,
		       size_t *size_bytes_ret)
{
	const char *why = NULL;
	char *text = NULL;
	uint64_t unnamed;
	struct sym_error *error = sym_image_unnamed_methods(image, format, &unnamed, &why);

	if (!error && unnamed) {
		send_reason(fd, why ?: "some methods have no row", false);
		return NULL;
	}
	if (!error)
		error = sym_image_map(image, format, &text, size_bytes_ret);
	if (!error)
		return text;
	send_reason(fd, sym_error_message(error), sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return NULL;
}

int map_child_run(int fd, int image_fd, enum sym_map_format format)
{
	const struct sym_budget_opts limits = {
		.size = sizeof(limits),
		.memory_bytes = most_image_memory_bytes,
		.own_memory_bytes = most_image_memory_bytes,
	};
	struct sym_image_opts opts = { .size = sizeof(opts) };
	struct sym_image *image = NULL;
	char *text AUTO_FREE = NULL;
	struct sym_error *error;
	size_t size_bytes = 0;
	bool is_sent = false;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image_fd);
	error = sym_budget_create(&limits, &opts.budget);
	if (!error)
		error = sym_image_open_with(path, &opts, &image);
	if (error)
		send_reason(fd, sym_error_message(error),
			    sym_error_code(error) == SYM_ERROR_NO_MEMORY);
	else
		text = make_text(fd, image, format, &size_bytes);
	if (text)
		is_sent = symbol_message_send(fd, SYMBOL_MESSAGE_MAP_TEXT, 0, text, size_bytes, -1);
	sym_error_destroy(error);
	sym_image_close(image);
	sym_budget_destroy(opts.budget);
	return !is_sent;
}
