/* SPDX-License-Identifier: MIT */
/*
 * EnablePerfMap (.NET 8 on): command set 4, command 5, u32 kind: 1 map and jitdump, 2 jitdump, 3
 * map. The runtime writes what it has compiled so far before it answers (tried
 * on 8.0.33, 9.0.22, 10.0.12). Spec: dotnet/diagnostics documentation/design-docs/ipc-protocol.md.
 */
#include "libsym/perf_map_enable.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/limits.h"
#include "libsym/snapshot.h"

enum {
	SET_PROCESS = 4,
	COMMAND_ENABLE_PERF_MAP = 5,
	PERF_MAP_ALONE = 3,
};

static const int64_t answer_ms = 30000;

struct sym_error *process_socket_directory(const struct process *process, char **ret)
{
	static const char variable[] = "TMPDIR=";
	const char *found = "/tmp";
	struct sym_error *error;
	struct buf environment;

	buf_init(&environment, LIMIT_PROC_FILE_BYTES);
	error = process_read_file(process, "environ", &environment);
	sym_error_destroy(error);
	if (!error && buf_append_char(&environment, '\0'))
		for (size_t at = 0; at < environment.size_bytes;
		     at += strlen(environment.data + at) + 1)
			if (!strncmp(environment.data + at, variable, sizeof(variable) - 1) &&
			    environment.data[at + sizeof(variable) - 1] == '/')
				found = environment.data + at + sizeof(variable) - 1;
	*ret = strdup(found);
	buf_deinit(&environment);
	return *ret ? NULL : &sym_error_no_memory;
}

struct diagnostics_place process_diagnostics_place(const struct process *process,
						   const char *directory)
{
	return (struct diagnostics_place){
		.root_fd = process->root_fd,
		.directory = directory,
		.pid = process->pid,
		.namespace_pid = process->namespace_pid,
		.uid = process->uid,
		.start_time_ticks = process->start_time_ticks,
	};
}

static int major_version(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	return runtime ? runtime_info_major(runtime) : 0;
}

const char *sym_snapshot_perf_map_hazard(const struct sym_snapshot *snapshot)
{
	switch (major_version(snapshot)) {
	case 8:
	case 9:
		return "while it starts up the process can crash of this (dotnet/runtime issue "
		       "122472)";
	case 10:
		return "releases of .NET 10 from before July 2026 can hang for ever while they "
		       "write a "
		       "perf map (dotnet/runtime issue 128401), those from before March 2026 can "
		       "crash "
		       "of this while they start up (122472); 10.0.12 damages names that are not "
		       "ASCII";
	default:
		return NULL;
	}
}

static struct sym_error *check_version(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);
	int major = major_version(snapshot);

	if (!runtime)
		return &sym_error_no_memory;
	if (!runtime->shape || !strcmp(runtime->shape, "nativeaot"))
		return sym_error_create(SYM_ERROR_NOT_FOUND, "no .NET runtime in the process");
	if (snapshot->process->recorded)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a recorded process cannot be asked");
	if (major && major < 8)
		return sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			".NET %s cannot begin to write a perf map: .NET 8 is the first "
			"that can",
			runtime->version);
	return NULL;
}

/* The command cannot be taken back. */
static struct sym_error *asked_in_vain(struct sym_error *error)
{
	struct sym_error *said = sym_error_create(
		sym_error_code(error),
		"%s; the runtime was asked to write a perf map and may still begin to",
		sym_error_message(error));

	sym_error_destroy(error);
	return said;
}

static struct sym_error *ask(const struct diagnostics_place *place)
{
	int64_t deadline_ms = diagnostics_now_ms() + answer_ms;
	uint32_t kind = htole32(PERF_MAP_ALONE), result = 0;
	int fd AUTO_CLOSE = -1;
	struct buf answer;
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (!error)
		error = diagnostics_send(fd, SET_PROCESS, COMMAND_ENABLE_PERF_MAP, &kind,
					 sizeof(kind), deadline_ms);
	if (error)
		return error;
	buf_init(&answer, 65536);
	error = diagnostics_receive(place, fd, &answer, &result, deadline_ms);
	buf_deinit(&answer);
	if (error)
		return asked_in_vain(error);
	if (result == DIAGNOSTICS_UNKNOWN_COMMAND)
		error = sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"the runtime cannot begin to write a perf map: .NET 8 is the "
			"first that can");
	else if (result != DIAGNOSTICS_OK)
		error = sym_error_create(
			SYM_ERROR_IO, "the runtime refuses to write a perf map (0x%08x)", result);
	return error;
}

struct sym_error *sym_snapshot_enable_perf_map(struct sym_snapshot *snapshot)
{
	char *directory AUTO_FREE = NULL;
	struct diagnostics_place place;
	struct sym_error *error = check_version(snapshot);

	if (!error)
		error = process_socket_directory(snapshot->process, &directory);
	if (error)
		return error;
	place = process_diagnostics_place(snapshot->process, directory);
	return ask(&place);
}
