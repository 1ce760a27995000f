/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mapgen/cli/message.h"

static void *read_code(void *snapshot)
{
	const struct sym_jit_info *jit;

	/* The snapshot keeps the reason; all later calls return it. */
	sym_error_destroy(sym_snapshot_jit(snapshot, &jit));
	return NULL;
}

void target_read_code(struct sym_snapshot *const *snapshots, size_t count)
{
	pthread_t *threads AUTO_FREE = calloc(count + 1, sizeof(*threads));
	size_t started = 0;

	/* If the thread cannot start, the code is read when it is first needed. */
	while (threads && started < count &&
	       !pthread_create(&threads[started], NULL, read_code, snapshots[started]))
		started++;
	while (started)
		pthread_join(threads[--started], NULL);
}

/* Was the runtime asked over its diagnostics socket? */
static bool was_asked(struct sym_snapshot *snapshot)
{
	const struct sym_jit_info *jit;
	struct sym_error *error = sym_snapshot_jit(snapshot, &jit);
	bool was_asked = !error && jit->method == SYM_JIT_RUNDOWN;

	sym_error_destroy(error);
	return was_asked;
}

void target_say_asked(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	if (was_asked(snapshot))
		message("process %d (%s) was asked over its diagnostics socket to list its methods "
			"(--jit=none prevents this)",
			process->pid, process->comm);
}

void target_say_followed(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	if (was_asked(snapshot))
		message("process %d (%s) reports each method that it compiles over the same socket "
			"until this command ends",
			process->pid, process->comm);
}

char *target_user_text(uint32_t uid)
{
	const struct passwd *user = getpwuid(uid);

	return user ? message_format("%s", user->pw_name) : message_format("%" PRIu32, uid);
}

/* A user who may not look at another user's process can become root; the error of the library says
 * what exactly is missing. */
static bool target_say_owner(const struct sym_error *error, const struct options *options)
{
	char *path AUTO_FREE = message_format("/proc/%" PRId32, options->pid);
	char *user AUTO_FREE = NULL;
	struct stat status;

	if (sym_error_code(error) != SYM_ERROR_PERMISSION || options->root || options->core ||
	    geteuid() == 0 || stat(path, &status) || status.st_uid == geteuid())
		return false;
	user = target_user_text(status.st_uid);
	message("process %" PRId32 " belongs to user %s: try sudo", options->pid, user);
	return true;
}

struct sym_snapshot *target_open(const struct options *options, const char *const *map_dirs)
{
	struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.root = options->root,
		.relative_map_dirs = map_dirs,
		.jit = (uint32_t)options->jit,
		.debug_dirs = options->debug_dirs.items,
		.budget = options->budget,
	};
	struct sym_snapshot *snapshot;
	struct sym_error *error = options->core
					  ? sym_snapshot_open_core(options->core, &opts, &snapshot)
					  : sym_snapshot_open(options->pid, &opts, &snapshot);

	if (!error)
		return snapshot;
	if (target_say_owner(error, options))
		sym_error_destroy(error);
	else
		message_error(error);
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

	return message_error(error);
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
		return true; /* a recorded tree does not end */
	error = sym_snapshot_check(snapshot);
	return message_error(error);
}

const struct rights *target_rights(const struct sym_snapshot *snapshot,
				   const struct options *options, struct rights *ret)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	*ret = (struct rights){
		.uid = process->file_uid,
		.gid = process->file_gid,
		.groups = (uint32_t *)process->groups,
		.group_count = process->group_count,
		.capabilities = process->capabilities,
	};
	return options->root || options->core ? NULL : ret;
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
		return 0; /* start times of another machine's clock */
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec - 1 +
	       (int64_t)sym_snapshot_process(snapshot)->start_time_ticks / sysconf(_SC_CLK_TCK);
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
	       image_index == process->runtime_image_index && sym_image_problem(image);
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

	/* A recorded process has one reason for both. */
	if (!strcmp(contract, rundown))
		return message_format("%s", contract);
	return message_format("%s; %s", contract, rundown);
}

const char *target_jit_word(uint32_t method)
{
	return method == SYM_JIT_CONTRACT ? "memory"
					  : sym_jit_method_text((enum sym_jit_method)method);
}

char *target_code_way(struct sym_snapshot *snapshot, bool *is_none_ret)
{
	const struct sym_perf_map_info *map;
	const struct sym_jit_info *jit;
	struct sym_error *error = sym_snapshot_jit(snapshot, &jit);

	*is_none_ret = false;
	if (!error && jit->method != SYM_JIT_NONE)
		return message_format("%s", sym_jit_method_text(jit->method));
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
