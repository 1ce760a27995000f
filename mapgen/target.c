/* SPDX-License-Identifier: MIT */
#include "mapgen/target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "mapgen/message.h"

void target_say_asked(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	const struct sym_jit_info *jit;
	struct sym_error *error = sym_snapshot_jit(snapshot, &jit);

	if (!error && jit->way == SYM_JIT_RUNDOWN)
		message("process %d (%s) was asked over its diagnostics socket to list its "
			"methods; --jit=none does without",
			process->pid, process->comm);
	sym_error_destroy(error);
}

bool target_say_followed(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	const struct sym_jit_info *jit;
	struct sym_error *error = sym_snapshot_jit(snapshot, &jit);
	bool is_followed = !error && jit->way == SYM_JIT_RUNDOWN;

	if (is_followed)
		message("process %d (%s) tells of each method that it compiles until this ends, "
			"over the same socket",
			process->pid, process->comm);
	sym_error_destroy(error);
	return is_followed;
}

void target_say(struct sym_error *error)
{
	message("%s", sym_error_message(error));
	sym_error_destroy(error);
}

struct sym_snapshot *target_open(const struct options *options, const char *const *map_dirs)
{
	struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.root = options->root,
		.relative_map_dirs = map_dirs,
		.jit = (uint32_t)options->jit,
		.debug_dirs = options->debug_dirs.items,
	};
	struct sym_snapshot *snapshot;
	struct sym_error *error = options->core
					  ? sym_snapshot_open_core(options->core, &opts, &snapshot)
					  : sym_snapshot_open(options->pid, &opts, &snapshot);

	if (!error)
		return snapshot;
	target_say(error);
	return NULL;
}

bool target_is_dotnet(const struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	if (process->runtime_version)
		return true;
	message("process %d (%s) hosts no .NET runtime", process->pid, process->comm);
	return false;
}

bool target_open_images(struct sym_snapshot *snapshot)
{
	struct sym_error *error = sym_snapshot_open_images(snapshot);

	if (error)
		target_say(error);
	return !error;
}

struct sym_snapshot *target_open_dotnet(const struct options *options, const char *const *map_dirs)
{
	struct sym_snapshot *snapshot = target_open(options, map_dirs);

	if (!snapshot || (target_is_dotnet(snapshot) && target_open_images(snapshot)))
		return snapshot;
	sym_snapshot_close(snapshot);
	return NULL;
}

bool target_lives(const struct sym_snapshot *snapshot, const struct options *options)
{
	struct sym_error *error;

	if (options->root)
		return true; /* a recording does not end */
	error = sym_snapshot_check(snapshot);
	if (error)
		target_say(error);
	return !error;
}

int32_t target_of_thread(int32_t tid, const char *root)
{
	char *path AUTO_FREE = message_format("%s/proc/%" PRId32 "/status", root ? root : "", tid);
	char text[4096], *line;
	int fd AUTO_CLOSE = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int32_t pid = 0;

	if (count <= 0)
		return 0;
	text[count] = '\0';
	line = strstr(text, "\nTgid:");
	return line && sscanf(line + 6, "%" SCNd32, &pid) == 1 && pid > 0 ? pid : 0;
}

int64_t target_started_s(const struct sym_snapshot *snapshot, const struct options *options)
{
	struct timespec now, up;

	if (options->root)
		return 0; /* by another machine's clock */
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec - 1 +
	       (int64_t)sym_snapshot_process(snapshot)->start_time_ticks / sysconf(_SC_CLK_TCK);
}

bool target_is_same(const struct sym_snapshot *left, const struct sym_snapshot *right)
{
	return sym_snapshot_process(left)->start_time_ticks ==
	       sym_snapshot_process(right)->start_time_ticks;
}

bool target_is_precompiled(const struct sym_image *image)
{
	enum sym_image_kind kind = sym_image_kind(image);

	return kind == SYM_IMAGE_READYTORUN || kind == SYM_IMAGE_COMPOSITE ||
	       kind == SYM_IMAGE_NGEN;
}

bool target_is_assembly(const struct sym_image *image)
{
	const char *path = sym_image_path(image);
	size_t length = strlen(path);

	switch (sym_image_kind(image)) {
	case SYM_IMAGE_ELF:
		return false;
	case SYM_IMAGE_UNKNOWN:
		return length > 4 && !strcasecmp(path + length - 4, ".dll");
	default:
		return true;
	}
}

bool target_is_of_interest(struct sym_snapshot *snapshot, size_t image_index)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	const struct sym_image *image = sym_snapshot_image_at(snapshot, image_index);

	if (target_is_assembly(image))
		return true;
	return process->runtime_shape && !strcmp(process->runtime_shape, "single-file") &&
	       image_index == process->runtime_image_index && sym_image_trouble(image);
}

struct sym_image *target_aot_program(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	if (!process->runtime_shape || strcmp(process->runtime_shape, "nativeaot") != 0 ||
	    process->runtime_image_index >= sym_snapshot_image_count(snapshot))
		return NULL;
	return sym_snapshot_image_at(snapshot, process->runtime_image_index);
}

char *target_aot_naming(struct sym_image *program)
{
	const char *file = sym_image_symbol_file(program);

	if (!file)
		return message_format("without names: neither it nor a .dbg file of the same build "
				      "has a symbol table");
	if (!strcmp(file, sym_image_path(program)))
		return message_format("named by its own symbol table");
	return message_format("named by %s", file);
}

char *target_code_reasons(const struct sym_jit_info *jit)
{
	const char *contract = jit->contract_reason ?: "its memory was not read";
	const char *rundown = jit->rundown_reason ?: "it was not asked for a rundown";

	/* A recorded process has one for both. */
	if (!strcmp(contract, rundown))
		return message_format("%s", contract);
	return message_format("%s; %s", contract, rundown);
}

char *target_code_way(struct sym_snapshot *snapshot, bool *is_none_ret)
{
	const struct sym_perf_map_info *map;
	const struct sym_jit_info *jit;
	struct sym_error *error = sym_snapshot_jit(snapshot, &jit);

	*is_none_ret = false;
	if (!error && jit->way != SYM_JIT_NONE)
		return message_format("%s", sym_jit_way_text(jit->way));
	if (!error)
		error = sym_snapshot_perf_map(snapshot, &map);
	if (!error && map->path)
		return message_format("perf map %s", map->path);
	*is_none_ret = true;
	if (!error)
		return target_code_reasons(jit);
	sym_error_destroy(error);
	return NULL;
}

bool target_tells_code(struct sym_snapshot *snapshot)
{
	const struct sym_jit_info *jit;
	struct sym_error *error;

	if (!snapshot || !sym_snapshot_process(snapshot)->runtime_version)
		return false;
	error = sym_snapshot_jit(snapshot, &jit);
	if (!error)
		return jit->way != SYM_JIT_NONE;
	sym_error_destroy(error);
	return false;
}
