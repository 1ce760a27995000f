/* SPDX-License-Identifier: MIT */
/*
 * EnablePerfMap (.NET 8 on): command set 4, command 5, u32 kind: 1 map and jitdump, 2 jitdump, 3
 * map.
 * The runtime writes all code compiled so far before it answers (tried on 8.0.33, 9.0.22, 10.0.12).
 * Spec: dotnet/diagnostics documentation/design-docs/ipc-protocol.md.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/diagnostics/diagnostics_address.h"
#include "libsym/snapshot/snapshot.h"

enum {
	SET_PROCESS = 4,
	COMMAND_ENABLE_PERF_MAP = 5,
	PERF_MAP_ALONE = 3,
};

static const int64_t answer_ms = 30000;

static int major_version(const struct sym_snapshot *snapshot)
{
	const struct runtime_info *runtime = snapshot_runtime(snapshot);

	return runtime ? runtime_info_major(runtime) : 0;
}

const char *sym_snapshot_perf_map_known_issue(const struct sym_snapshot *snapshot)
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

/* The command cannot be undone. */
static struct sym_error *perfmap_enable_error(struct sym_error *error)
{
	struct sym_error *said = sym_error_create(
		sym_error_code(error), "%s; the runtime may still start to write a perf map",
		sym_error_message(error));

	sym_error_destroy(error);
	return said;
}

static struct sym_error *perfmap_enable_send(const struct diagnostics_place *place)
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
		return perfmap_enable_error(error);
	if (result == DIAGNOSTICS_UNKNOWN_COMMAND)
		error = sym_error_create(
			SYM_ERROR_UNSUPPORTED,
			"the runtime cannot begin to write a perf map: .NET 8 is the "
			"first that can");
	else if (result != DIAGNOSTICS_OK)
		error = sym_error_create(
			SYM_ERROR_IO,
			"the runtime rejected the command to write a perf map (0x%08x)", result);
	return error;
}

struct sym_error *sym_snapshot_enable_perf_map(struct sym_snapshot *snapshot)
{
	char *directory AUTO_FREE = NULL;
	struct diagnostics_place place;
	struct sym_error *error = check_version(snapshot);

	if (!error)
		error = diagnostics_address_directory(snapshot->process, &directory);
	if (error)
		return error;
	place = diagnostics_address_of(snapshot->process, directory);
	return perfmap_enable_send(&place);
}
