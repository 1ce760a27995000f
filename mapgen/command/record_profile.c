/* SPDX-License-Identifier: MIT */
#include "mapgen/command/record_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"
#include "mapgen/events/event_choice.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/view/view.h"

/* Returns the events that a view of flame needs. Groups of events have the names of views. */
static const char *events_of(int flame_view)
{
	enum view_kind kind = (enum view_kind)(VIEW_GC + flame_view - FLAME_VIEW_GC);

	if (flame_view < FLAME_VIEW_GC)
		return NULL;
	return kind == VIEW_EVENTS ? EVENT_CHOICE_DEFAULT : view_kind_name(kind);
}

static int record_to(const struct options *options, double seconds, bool has_off_cpu,
		     const char *path)
{
	struct options recording = *options;

	recording.output = path;
	recording.on_behalf = true;
	recording.for_seconds = seconds;
	recording.off_cpu_us = has_off_cpu ? 1 : 0;
	recording.events = events_of(options->view);
	return record_run(&recording);
}

int record_profile(const struct options *options, double seconds, bool has_off_cpu,
		   struct profile **ret)
{
	const struct profile_open_opts opts = { .options = options };
	const char *parent = getenv("TMPDIR");
	char *directory AUTO_FREE =
		message_format("%s/dotnet-mapgen-XXXXXX", parent && *parent ? parent : "/var/tmp");
	char *path AUTO_FREE = NULL;
	struct sym_error *error = NULL;
	int status;

	if (!mkdtemp(directory)) {
		message("%s: cannot make a directory: %s", directory, strerror(errno));
		return EXIT_FAILED;
	}
	path = message_format("%s/recording.trace.zip", directory);
	status = record_to(options, seconds, has_off_cpu, path);
	if (!status)
		error = profile_open(path, &opts, ret);
	unlink(path);
	rmdir(directory);
	if (!error)
		return status;
	message_error(error);
	return EXIT_FAILED;
}
