/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/map_processes.h"

#include <errno.h>

#include "symsrv/resolve/map_child.h"
#include "symsrv/resolve/symbol_message.h"
#include "symsrv/resolve/symbol_process.h"
#include "symsrv/resolve/symbol_sandbox.h"
#include "symsrv/util/clock.h"
#include "symsrv/util/log.h"

/* A process that takes longer, although its CPU time is limited, hangs. */
static const int64_t hanging_ms = 1000 * (SYMBOL_SANDBOX_CPU_S + 10);
static const size_t most_reason_bytes = 300;

/* A map that is made, and what messages about it need. */
struct making {
	struct map_processes *processes;
	const struct object *image;
	struct symbol_process process;
};

static int log_failure(struct making *making, const char *why, size_t size_bytes, int failure)
{
	struct map_processes *processes = making->processes;
	struct log_limit *limit =
		failure == -EBADMSG ? &processes->unmade_lines : &processes->failed_lines;

	if (log_limit_allows(limit, clock_now_ms()))
		log_message(LOG_LEVEL_WARNING, "%s: no map: %.*s" LOG_LIMIT_NOTE,
			    making->image->text,
			    (int)(size_bytes < most_reason_bytes ? size_bytes : most_reason_bytes),
			    why);
	return failure;
}

static int log_text(struct making *making, const char *why, int failure)
{
	return log_failure(making, why, strlen(why), failure);
}

/* Takes the map into an empty buffer. 0, or a negative errno. */
static int receive_map(struct making *making, int64_t deadline_ms, struct buf *ret)
{
	struct symbol_message message AUTO_SYMBOL_MESSAGE;

	symbol_message_init(&message, ret->max_bytes);
	switch (symbol_message_receive(making->process.fd, deadline_ms, &message)) {
	case SYMBOL_LATE:
		return log_text(making, "its process was late", -ETIME);
	case SYMBOL_ENDED:
		return log_text(making, "its process ended", -ECHILD);
	default:
		break;
	}
	if (message.kind == SYMBOL_MESSAGE_UNREADABLE)
		return log_failure(making, message.bytes.data ?: "", message.bytes.size_bytes,
				   message.number == ENOMEM ? -ENOMEM : -EBADMSG);
	if (message.kind != SYMBOL_MESSAGE_MAP_TEXT)
		return log_text(making, "its process sent no map", -ECHILD);
	buf_swap(ret, &message.bytes);
	return 0;
}

static int make_map(struct map_maker *maker, const struct object *image, enum sym_map_format format,
		    int64_t deadline_ms, struct buf *ret)
{
	struct map_processes *processes = (struct map_processes *)maker;
	int64_t end_ms = clock_now_ms() + hanging_ms;
	struct making making = { .processes = processes, .image = image };
	int failure = -EAGAIN;

	if (symbol_process_start(processes->program, SYMBOL_MESSAGE_MAP, format, image->fd,
				 &making.process))
		failure = receive_map(&making, deadline_ms < end_ms ? deadline_ms : end_ms, ret);
	symbol_process_end(&making.process);
	processes->counts.made += !failure;
	processes->counts.unmade += failure == -EBADMSG;
	processes->counts.failed += failure && failure != -EBADMSG;
	/* The image ends its process each time. */
	return failure == -ECHILD ? -EBADMSG : failure;
}

void map_processes_init(struct map_processes *processes, const char *program)
{
	*processes = (struct map_processes){ .maker.make = make_map, .program = program };
}
