/* SPDX-License-Identifier: MIT */
/* Functions of sym_events.h about sessions. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/clr/diagnostics/diagnostics_address.h"
#include "libsym/clr/diagnostics/tracing_session.h"
#include "libsym/snapshot/snapshot.h"

enum {
	DEFAULT_BUFFER_MB = 64,
};

static const int64_t begin_ms = 10000, stop_ms = 1000;

struct sym_event_session {
	struct diagnostics_place place; /* what it points to is owned by this object */
	struct rights rights;
	char *directory;
	struct tracing_session session;
	int stop_fd;    /* -1: it was not asked to end */
	bool has_ended; /* the stream has */
};

void sym_event_session_close(struct sym_event_session *session)
{
	if (!session)
		return;
	if (session->session.fd >= 0 && session->stop_fd < 0 && !session->has_ended)
		sym_error_destroy(sym_event_session_stop(session));
	if (session->session.fd >= 0)
		close(session->session.fd);
	if (session->stop_fd >= 0)
		close(session->stop_fd);
	if (session->place.root_fd >= 0)
		close(session->place.root_fd);
	free(session->rights.groups);
	free(session->directory);
	free(session);
}

DEFINE_GUARD(event_session, struct sym_event_session *, sym_event_session_close)

/* The process of the snapshot may be closed before the session. */
static struct sym_error *copy_place(struct sym_event_session *session,
				    const struct process *process)
{
	const struct rights *rights;
	struct sym_error *error = diagnostics_address_directory(process, &session->directory);

	if (error)
		return error;
	session->place = diagnostics_address_of(process, session->directory);
	session->place.root_fd = -1;
	session->place.account = NULL;
	rights = session->place.rights;
	session->place.rights = NULL;
	if (process->root_fd >= 0) {
		session->place.root_fd = fcntl(process->root_fd, F_DUPFD_CLOEXEC, 3);
		if (session->place.root_fd < 0)
			return sym_error_from_errno(errno, NULL, "cannot keep a descriptor");
	}
	if (!rights)
		return NULL;
	session->rights = *rights;
	session->rights.groups = NULL;
	if (rights->group_count) {
		size_t bytes = rights->group_count * sizeof(*rights->groups);

		session->rights.groups = malloc(bytes);
		if (!session->rights.groups)
			return &sym_error_no_memory;
		memcpy(session->rights.groups, rights->groups, bytes);
	}
	session->place.rights = &session->rights;
	return NULL;
}

static struct sym_error *check_session_opts(const struct sym_event_session_opts *opts,
					    const struct process *process)
{
	if (!opts || opts->size < sizeof(*opts) || !opts->provider_count)
		return sym_error_create(SYM_ERROR_ARGUMENT, "an event session needs providers");
	if (process->recorded)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a recorded process cannot be asked for events");
	return NULL;
}

struct sym_error *sym_event_session_open(struct sym_snapshot *snapshot,
					 const struct sym_event_session_opts *opts,
					 struct sym_event_session **ret)
{
	struct sym_event_session *session GUARDED(event_session) = NULL;
	struct tracing_request request;
	struct sym_error *error = check_session_opts(opts, snapshot->process);

	if (error)
		return error;
	session = calloc(1, sizeof(*session));
	if (!session)
		return &sym_error_no_memory;
	session->session.fd = session->stop_fd = session->place.root_fd = -1;
	request = (struct tracing_request){ .providers = opts->providers,
					    .provider_count = opts->provider_count,
					    .buffer_mb = opts->buffer_mb ?: DEFAULT_BUFFER_MB,
					    .has_stacks = opts->flags & SYM_EVENT_STACKS };
	error = copy_place(session, snapshot->process);
	if (error)
		return error;
	/* Waiting for this answer is charged like all waiting; what comes later is not waited for.
	 */
	session->place.account = process_account(snapshot->process);
	error = tracing_session_begin(&session->place, &request, diagnostics_now_ms() + begin_ms,
				      &session->session);
	session->place.account = NULL;
	if (!error)
		*ret = STEAL(session);
	return error;
}

int sym_event_session_fd(const struct sym_event_session *session)
{
	return session->session.fd;
}

int sym_event_session_has_stacks(const struct sym_event_session *session)
{
	return session->session.has_stacks;
}

struct sym_error *sym_event_session_read(struct sym_event_session *session, void *room,
					 size_t size_bytes, size_t *count_ret, int *ended_ret)
{
	ssize_t count;

	*count_ret = 0;
	*ended_ret = 0;
	do
		count = recv(session->session.fd, room, size_bytes, MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	if (count > 0)
		*count_ret = (size_t)count;
	/* A process that is killed resets the connection. */
	session->has_ended = !count || (count < 0 && errno == ECONNRESET);
	*ended_ret = session->has_ended;
	if (count < 0 && errno != EAGAIN && errno != ECONNRESET)
		return sym_error_from_errno(errno, NULL, "diagnostics socket: cannot read");
	return NULL;
}

struct sym_error *sym_event_session_stop(struct sym_event_session *session)
{
	if (session->stop_fd >= 0)
		return NULL;
	return tracing_session_stop(&session->place, session->session.number,
				    diagnostics_now_ms() + stop_ms, &session->stop_fd);
}
