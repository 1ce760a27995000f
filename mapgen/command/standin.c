/* SPDX-License-Identifier: MIT */
/*
 * The command standin: writes symbol files where perf looks for the names of a file by its path, so
 * that live perf top shows precompiled code. It never overwrites a file that it did not create,
 * lists the other processes that perf will show these names for, and can remove all its files.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/foreign_file.h"
#include "libsym/libsym.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/target.h"
#include "mapgen/symfile/symfile_image.h"
#include "mapgen/symfile/symfile_place.h"
#include "mapgen/symfile/symfile_viewers.h"

static const char usual_root[] = "/usr/lib/debug";

enum {
	MOST_SYMFILE_BYTES = INT32_MAX,
	LONGEST_ORIGIN_BYTES = 4096,
	MOST_FILES = 65536
};

struct installing {
	const struct options *options;
	struct symfile_place place;
	struct mapped_identity *files; /* files that have a symbol file now */
	size_t file_count;
	size_t put, same;
	size_t symbols;
	struct failures failures;
	json_t *list;
};

/* ---- install --------------------------------------------------------------------------- */

/* The origin of a symbol file ends with the size and time of the file that it is for. */
static char *origin_of(const struct sym_image *image, const struct stat *status)
{
	const char *mvid = sym_image_mvid(image);

	return message_format("%s {%s} by offset, size %" PRIu64 ", time %" PRId64 ".%09ld",
			      sym_image_path(image), mvid ? mvid : "", (uint64_t)status->st_size,
			      (int64_t)status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
}

static void note_file(struct installing *installing, const char *path, const struct stat *status,
		      const char *outcome, size_t symbols)
{
	struct mapped_identity *files =
		reallocarray(installing->files, installing->file_count + 1, sizeof(*files));
	json_t *object = json_object();

	if (files) {
		installing->files = files;
		files[installing->file_count] = (struct mapped_identity){
			.path = strdup(path),
			.inode = status->st_ino,
			.device_major = major(status->st_dev),
			.device_minor = minor(status->st_dev),
		};
		installing->file_count += files[installing->file_count].path != NULL;
	}
	json_object_set_new(object, "path", json_output_text(path));
	json_object_set_new(object, "outcome", json_output_text(outcome));
	json_object_set_new(object, "symbols", json_integer((json_int_t)symbols));
	json_array_append_new(installing->list, object);
	installing->symbols += symbols;
}

static struct sym_error *standin_put(struct installing *installing, const char *path,
				     const struct stat *status, const struct buf *file,
				     size_t symbols)
{
	struct sym_error *failure = NULL;

	switch (symfile_place_put(&installing->place, path, file->data, file->size_bytes,
				  &failure)) {
	case SYMFILE_PUT:
		installing->put++;
		note_file(installing, path, status, "installed", symbols);
		return NULL;
	case SYMFILE_SAME:
		installing->same++;
		note_file(installing, path, status, "unchanged", symbols);
		return NULL;
	case SYMFILE_FOREIGN:
		return sym_error_create(
			SYM_ERROR_IO,
			"%s%s exists and was not created by dotnet-mapgen; left alone",
			installing->place.root, path);
	default:
		return failure ? failure : &sym_error_no_memory;
	}
}

static void install_image(struct installing *installing, struct sym_image *image)
{
	const char *path = sym_image_path(image);
	char *origin AUTO_FREE = NULL;
	struct sym_error *failure = NULL;
	size_t symbols = 0;
	struct stat status;
	struct buf file;

	if (foreign_file_examine(-1, path, 0, NULL, &status)) {
		failures_add(&installing->failures, path,
			     message_format("no file has that path here"));
		return;
	}
	origin = origin_of(image, &status);
	buf_init(&file, MOST_SYMFILE_BYTES);
	failure = origin ? symfile_image_render(image, installing->options, origin, &file, &symbols)
			 : &sym_error_no_memory;
	if (!failure && symbols)
		failure = standin_put(installing, path, &status, &file, symbols);
	buf_deinit(&file);
	if (failure)
		failures_add_error(&installing->failures, path, failure);
}

/* A path is useful only if it leads to the mapped file. */
static const char *why_not(const struct sym_snapshot *snapshot, const struct options *options,
			   uint32_t index)
{
	const struct sym_image *image = sym_snapshot_image_at(snapshot, index);
	size_t count = sym_snapshot_mapping_count(snapshot);
	struct rights rights;
	struct stat status;

	if (strchr(sym_image_path(image), '!'))
		return "lies inside another file: perf looks for that one by path";
	if (foreign_file_examine(-1, sym_image_path(image), 0,
				 target_rights(snapshot, options, &rights), &status))
		return "no file has that path here";
	for (size_t i = 0; i < count; i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (mapping->image_index != index)
			continue;
		if (mapping->inode != status.st_ino)
			return "the file that is mapped is another one";
	}
	return sym_image_problem(image);
}

static bool install_process(struct installing *installing, int32_t pid)
{
	struct options options = *installing->options;
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;

	options.pid = pid;
	options.jit = SYM_JIT_NONE;
	snapshot = target_open_dotnet(&options, NULL);
	if (!snapshot)
		return false;
	if (sym_snapshot_process(snapshot)->other_mount_namespace) {
		message("process %d is in a container: perf looks for its files there, not in %s; "
			"use perf-fix",
			pid, installing->place.root);
		return false;
	}
	for (uint32_t i = 0; i < sym_snapshot_image_count(snapshot); i++) {
		struct sym_image *image = sym_snapshot_image_at(snapshot, i);
		const char *reason;

		if (!target_is_precompiled(image))
			continue;
		reason = why_not(snapshot, &options, i);
		if (reason)
			failures_add(&installing->failures, sym_image_path(image),
				     message_format("%s", reason));
		else
			install_image(installing, image);
	}
	return true;
}

static bool install_file(struct installing *installing, const char *operand)
{
	struct sym_image *image GUARDED(object_file) = NULL;
	char *path AUTO_FREE = realpath(operand, NULL);
	const struct sym_image_opts opts = { .size = sizeof(opts),
					     .budget = installing->options->budget };
	struct sym_error *error;

	if (!path) {
		failures_add(&installing->failures, operand, message_format("no such file"));
		return true;
	}
	error = sym_image_open_with(path, &opts, &image);
	if (error) {
		failures_add(&installing->failures, path,
			     message_format("%s", sym_error_message(error)));
		sym_error_destroy(error);
	} else if (!target_is_precompiled(image)) {
		failures_add(&installing->failures, path,
			     message_format("has no precompiled code"));
	} else {
		install_image(installing, image);
	}
	return true;
}

static json_t *viewer_json(const struct symfile_viewer *viewer)
{
	json_t *object = json_object();

	json_object_set_new(object, "pid", json_integer(viewer->pid));
	json_object_set_new(object, "other_file", json_boolean(viewer->other_file));
	json_object_set_new(object, "other_namespace", json_boolean(viewer->other_namespace));
	return object;
}

/* perf uses the symbol file for every process that maps this path. */
static json_t *tell_viewers(const struct installing *installing)
{
	struct symfile_viewer *viewers AUTO_FREE = NULL;
	json_t *list = json_array();
	size_t count = 0, same = 0;

	if (!symfile_viewers_find(installing->files, installing->file_count,
				  installing->options->pid, &viewers, &count))
		message("out of memory: other processes that see these names were not listed");
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(list, viewer_json(&viewers[i]));
		if (viewers[i].other_namespace)
			continue;
		if (viewers[i].other_file)
			message("process %d maps another file as %s: perf shows wrong names for it",
				viewers[i].pid, viewers[i].path);
		else
			same++;
	}
	if (same && !installing->options->json) {
		printf("perf also shows these names for %zu other processes:", same);
		for (size_t i = 0; i < count; i++)
			if (!viewers[i].other_namespace && !viewers[i].other_file)
				printf(" %d", viewers[i].pid);
		putchar('\n');
	}
	return list;
}

static int tell_installed(struct installing *installing)
{
	json_t *viewers = tell_viewers(installing);
	json_t *object = json_object();

	json_object_set(object, "files", installing->list);
	json_object_set_new(object, "other_processes", viewers);
	json_object_set_new(object, "failures", json_output_failures(&installing->failures));
	if (!installing->options->json) {
		printf("standin: %zu installed in %s, %zu unchanged, %zu failed; %zu names\n",
		       installing->put, installing->place.root, installing->same,
		       installing->failures.count, installing->symbols);
		json_decref(object);
	} else if (!json_output_print(object)) {
		return EXIT_FAILED;
	}
	failures_print(&installing->failures);
	if (!installing->failures.count)
		return EXIT_DONE;
	return installing->put || installing->same ? EXIT_PARTLY : EXIT_FAILED;
}

static int standin_install(struct installing *installing, char **operands, size_t count)
{
	struct sym_error *failure =
		symfile_place_open(&installing->place, installing->place.root, true);
	bool worked = true;

	if (!message_error(failure))
		return EXIT_FAILED;
	if (installing->options->pid)
		worked = install_process(installing, installing->options->pid);
	for (size_t i = 0; i < count && worked && i < MOST_FILES; i++)
		worked = install_file(installing, operands[i]);
	failure = symfile_place_save(&installing->place);
	if (!message_error(failure))
		return EXIT_FAILED;
	return worked ? tell_installed(installing) : EXIT_FAILED;
}

/* ---- list and remove ---------------------------------------------------------------------- */

/* Whether the file that a symbol file is for has changed. */
static const char *state_of(const struct symfile_place *place, const char *path)
{
	char origin[LONGEST_ORIGIN_BYTES], now[128];
	struct stat status;

	if (!symfile_place_origin(place, path, origin, sizeof(origin)))
		return "not ours any more";
	if (stat(path, &status))
		return "its file is gone";
	snprintf(now, sizeof(now), ", size %" PRIu64 ", time %" PRId64 ".%09ld",
		 (uint64_t)status.st_size, (int64_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
	return strstr(origin, now) ? "in use" : "its file is another now: install again";
}

static int standin_list(const struct installing *installing)
{
	const struct symfile_place *place = &installing->place;
	json_t *rows = json_array();

	for (size_t i = 0; i < place->file_count; i++) {
		const char *state = state_of(place, place->files[i]);
		char *shown AUTO_FREE = message_printable(place->files[i]);
		json_t *row = json_object();

		json_object_set_new(row, "path", json_output_text(place->files[i]));
		json_object_set_new(row, "state", json_output_text(state));
		json_array_append_new(rows, row);
		if (!installing->options->json)
			printf("%s (%s)\n", shown ? shown : "", state);
	}
	if (installing->options->json)
		return json_output_print(rows) ? EXIT_DONE : EXIT_FAILED;
	json_decref(rows);
	return EXIT_DONE;
}

static bool is_chosen(const char *path, char **operands, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *full AUTO_FREE = realpath(operands[i], NULL);

		if (!strcmp(full ? full : operands[i], path))
			return true;
	}
	return !count;
}

static int tell_removed(const struct installing *installing, size_t removed)
{
	const struct symfile_place *place = &installing->place;

	if (!installing->options->json)
		printf("standin: %zu removed from %s, %zu left\n", removed, place->root,
		       place->file_count);
	else if (!json_output_print(json_pack("{s:I, s:I, s:o}", "removed", (json_int_t)removed,
					      "left", (json_int_t)place->file_count, "failures",
					      json_output_failures(&installing->failures))))
		return EXIT_FAILED;
	failures_print(&installing->failures);
	if (!installing->failures.count)
		return EXIT_DONE;
	return removed ? EXIT_PARTLY : EXIT_FAILED;
}

static void complain_of_strangers(struct installing *installing, char **operands, size_t count)
{
	const struct symfile_place *place = &installing->place;

	for (size_t i = 0; i < count; i++) {
		size_t at = 0;

		while (at < place->file_count && !is_chosen(place->files[at], &operands[i], 1))
			at++;
		if (at == place->file_count)
			failures_add(&installing->failures, operands[i],
				     message_format("it has no symbol file here"));
	}
}

static int remove_some(struct installing *installing, char **operands, size_t count)
{
	struct symfile_place *place = &installing->place;
	size_t removed = 0;
	struct sym_error *failure;

	complain_of_strangers(installing, operands, count);
	for (size_t i = 0; i < place->file_count;) {
		size_t before = place->file_count;

		if (!is_chosen(place->files[i], operands, count)) {
			i++;
			continue;
		}
		failure = symfile_place_remove(place, place->files[i]);
		if (failure)
			failures_add_error(&installing->failures, place->files[i], failure);
		removed += place->file_count < before;
		i += place->file_count == before;
	}
	failure = symfile_place_save(place);
	if (!message_error(failure))
		return EXIT_FAILED;
	return tell_removed(installing, removed);
}

/* ---- the command ---------------------------------------------------------------------------- */

static int standin_act(struct installing *installing, const char *action, char **operands,
		       size_t count)
{
	struct sym_error *failure;

	if (!strcmp(action, "install"))
		return standin_install(installing, operands, count);
	failure = symfile_place_open(&installing->place, installing->place.root, false);
	if (!message_error(failure))
		return EXIT_FAILED;
	return !strcmp(action, "list") ? standin_list(installing)
				       : remove_some(installing, operands, count);
}

int standin_run(const struct options *given)
{
	struct options options = *given;
	const char *action = options.operand_count ? options.operands[0] : "";
	char **operands = options.operands + 1;
	size_t count = options.operand_count ? options.operand_count - 1 : 0;
	struct installing installing = { .options = &options };
	int exit_code;

	if (strcmp(action, "install") && strcmp(action, "list") && strcmp(action, "remove")) {
		message("standin needs install, list or remove; see dotnet-mapgen standin --help");
		return EXIT_USAGE;
	}
	if (!strcmp(action, "list") && count) {
		message("standin list takes no operands");
		return EXIT_USAGE;
	}
	if (strcmp(action, "install") != 0 && options.pid) {
		message("standin %s takes files, not a process", action);
		return EXIT_USAGE;
	}
	if (!strcmp(action, "install") && !options.pid && count &&
	    options_read_pid(operands[0], &options.pid)) {
		operands++;
		count--;
	}
	if (!strcmp(action, "install") && !options.pid && !count) {
		message("standin install needs a PID or a file");
		return EXIT_USAGE;
	}
	installing.place = (struct symfile_place){ .root = options.debug_tree ? options.debug_tree
									      : usual_root,
						   .lock_fd = -1 };
	installing.list = json_array();
	exit_code = standin_act(&installing, action, operands, count);
	for (size_t i = 0; i < installing.file_count; i++)
		free((char *)installing.files[i].path);
	free(installing.files);
	json_decref(installing.list);
	failures_deinit(&installing.failures);
	symfile_place_close(&installing.place);
	return exit_code;
}
