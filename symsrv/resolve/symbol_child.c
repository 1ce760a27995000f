/* SPDX-License-Identifier: MIT */
/*
 * The steps of the process.
 *
 *   symbol_child_run()   receives the image, gives up its rights (symbol_sandbox.h), opens it
 *   answer_questions()   each question is a list of positions; libsym finds names and lines
 *   want_file()          libsym needs another file: a PDB, or what several debug files share
 *
 * The image stays open between questions, with what libsym has read of it. A process that makes a
 * map (map_child.h) ends with it.
 */
#include "symsrv/resolve/symbol_child.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/libsym.h"
#include "symsrv/resolve/map_child.h"
#include "symsrv/resolve/symbol_answer.h"
#include "symsrv/resolve/symbol_message.h"
#include "symsrv/resolve/symbol_sandbox.h"

/* More than a build-id, or the name of a PDB. */
static const size_t most_bytes = SYMBOL_CHILD_MOST_ADDRESSES * sizeof(uint64_t);

struct symbol_child {
	int fd;
	enum sym_position_kind kind;
	struct sym_image *image;
	struct sym_result *result;
	struct symbol_message message;
	struct buf answers;
};

/* ---- files that belong to the image ----------------------------------------------- */

static json_t *pdb_json(const struct sym_pdb_reference *pdb)
{
	char id[2 * 16 + 1], key[sizeof(id) + 9];

	hex_write_bytes(id, pdb->guid, 16);
	snprintf(key, sizeof(key), "%s%s", id, "ffffffff");
	return pdb->is_portable ? json_pack("{s:s, s:s}", "pdb", pdb->name, "key", key) : NULL;
}

static json_t *build_id_json(const struct sym_fetch_request *request)
{
	char id[2 * 64 + 1];

	if (!request->build_id_size_bytes || request->build_id_size_bytes > 64)
		return NULL;
	hex_write_bytes(id, request->build_id, request->build_id_size_bytes);
	return json_pack("{s:s}", "build_id", id);
}

/* A sym_fetch_fn: the server has the file, or none. */
static int want_file(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	struct symbol_child *child = context;
	struct symbol_message *reply = &child->message;
	json_t *wanted = NULL;
	char *text AUTO_FREE = NULL;

	if (request->kind == SYM_FETCH_PDB)
		wanted = pdb_json(request->pdb);
	else if (request->kind == SYM_FETCH_SHARED_FILE)
		wanted = build_id_json(request);
	text = wanted ? json_dumps(wanted, JSON_COMPACT) : NULL;
	json_decref(wanted);
	if (!text)
		return 0;
	if (!symbol_message_send(child->fd, SYMBOL_MESSAGE_WANT, 0, text, strlen(text), -1) ||
	    symbol_message_receive(child->fd, -1, reply) != SYMBOL_RECEIVED ||
	    reply->kind != SYMBOL_MESSAGE_FILE)
		_exit(1);
	/* libsym opens the path; the descriptor stays open for it. */
	if (reply->fd >= 0 && asprintf(path_ret, "/proc/self/fd/%d", reply->fd) < 0)
		*path_ret = NULL;
	reply->fd = -1;
	return 0;
}

/* ---- questions -------------------------------------------------------------------- */

static bool answer_part(struct symbol_child *child, const uint64_t *positions, size_t count)
{
	struct sym_error *error =
		sym_image_resolve(child->image, child->kind, positions, count, child->result);

	buf_clear(&child->answers);
	for (size_t i = 0; i < count; i++)
		symbol_answer_write(&child->answers,
				    error ? NULL : sym_result_at(child->result, i));
	sym_error_destroy(error);
	return child->answers.failure == BUF_OK &&
	       symbol_message_send(child->fd, SYMBOL_MESSAGE_ANSWERS, (uint32_t)count,
				   child->answers.data, child->answers.size_bytes, -1);
}

/* A question is copied, because a want_file() reuses the message. */
static bool answer_question(struct symbol_child *child)
{
	size_t count = child->message.bytes.size_bytes / sizeof(uint64_t);
	uint64_t *positions AUTO_FREE = calloc(count + 1, sizeof(*positions));
	struct sym_error *error = sym_result_set_fields(child->result, child->message.number);
	bool is_good = positions && !error && symbol_sandbox_allow_request();

	sym_error_destroy(error);
	if (is_good && count)
		memcpy(positions, child->message.bytes.data, count * sizeof(*positions));
	for (size_t i = 0; is_good && i < count; i += SYMBOL_CHILD_PART)
		is_good =
			answer_part(child, positions + i,
				    count - i < SYMBOL_CHILD_PART ? count - i : SYMBOL_CHILD_PART);
	return is_good;
}

static void answer_questions(struct symbol_child *child)
{
	while (symbol_message_receive(child->fd, -1, &child->message) == SYMBOL_RECEIVED &&
	       child->message.kind == SYMBOL_MESSAGE_ASK)
		if (!answer_question(child))
			return;
}

/* ---- the process ------------------------------------------------------------------ */

static struct sym_error *open_image(struct symbol_child *child, int image_fd)
{
	char path[64];
	struct sym_error *error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", image_fd);
	error = sym_image_open(path, &child->image);
	if (!error)
		error = sym_image_set_fetch(child->image, want_file, child);
	if (!error)
		error = sym_result_create(&child->result);
	return error;
}

static int symbol_child_fail(const struct symbol_child *child, const char *why)
{
	symbol_message_send(child->fd, SYMBOL_MESSAGE_UNREADABLE, 0, why, strlen(why), -1);
	return 1;
}

int symbol_child_run(int fd)
{
	struct symbol_child child = { .fd = fd };
	struct symbol_message first AUTO_SYMBOL_MESSAGE;
	struct sym_error *error;

	/* A server that is killed takes its processes along. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	symbol_message_init(&first, 0);
	symbol_message_init(&child.message, most_bytes);
	buf_init(&child.answers, SYMBOL_CHILD_PART_BYTES);
	if (symbol_message_receive(fd, -1, &first) != SYMBOL_RECEIVED ||
	    (first.kind != SYMBOL_MESSAGE_IMAGE && first.kind != SYMBOL_MESSAGE_MAP) ||
	    first.fd < 0)
		return 1;
	child.kind = (enum sym_position_kind)first.number;
	if (!symbol_sandbox_enter(first.fd))
		return symbol_child_fail(&child, "its process could not give up its rights");
	if (first.kind == SYMBOL_MESSAGE_MAP)
		return map_child_run(fd, first.fd, (enum sym_map_format)first.number);
	error = open_image(&child, first.fd);
	if (!error)
		answer_questions(&child);
	else
		symbol_child_fail(&child, sym_error_message(error));
	sym_error_destroy(error);
	sym_result_destroy(child.result);
	sym_image_close(child.image);
	symbol_message_deinit(&child.message);
	buf_deinit(&child.answers);
	return 0;
}
