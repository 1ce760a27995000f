/* SPDX-License-Identifier: MIT */
#include "libsym/live_rundown.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/hash.h"
#include "libsym/base/path.h"
#include "libsym/bundled_assembly.h"
#include "libsym/clr/rundown_follow.h"
#include "libsym/live_stubs.h"
#include "libsym/perf_map_enable.h"
#include "libsym/snapshot.h"

/*
 * A runtime tells of no method whose compilation had begun before the session did, and lists none
 * whose compilation has not ended: what was under way all that time is in a later list only.
 */
static const int64_t first_list_ms = 5000;

/* All code of the runtime is read for stubs: so long after the last time, and no more than that
 * part of the time. */
static const int64_t stubs_after_ms = 1000, stubs_cost_share = 50;

/* ---- assemblies ---------------------------------------------------------------- */

/* One that was asked for. A rundown tells methods by address, and so comes back to each often. */
struct asked_assembly {
	UT_hash_handle hh;
	const struct metadata *metadata;  /* NULL: not to be had */
	struct bundled_assembly *bundled; /* NULL: it is a module */
	char path[];
};

/* Images whose metadata is in use for one rundown. */
struct assemblies {
	const struct sym_snapshot *snapshot;
	const struct image_managed **managed; /* one a module of the snapshot; NULL: not in use */
	struct asked_assembly *asked;
};

/*
 * A bundle's assemblies have paths that do not exist: then the name decides, if only one has it.
 * What was loaded from an array of bytes has no path, only a name, which other files may have.
 */
static size_t find_module(const struct sym_snapshot *snapshot, const char *path)
{
	const char *name = path_file_name(path);
	size_t stem_bytes = strlen(name), count = 0, found = SIZE_MAX;

	for (size_t i = 0; i < snapshot->module_count; i++)
		if (snapshot->modules[i]->image && !strcmp(snapshot->modules[i]->path, path))
			return i;
	if (name == path || stem_bytes <= 4)
		return SIZE_MAX;
	stem_bytes -= 4; /* .dll */
	for (size_t i = 0; i < snapshot->module_count; i++) {
		struct image *image = snapshot->modules[i]->image;
		const char *assembly =
			image && image->kind != SYM_IMAGE_ELF ? image_assembly_name(image) : NULL;

		if (!assembly || strncmp(assembly, name, stem_bytes) != 0 || assembly[stem_bytes])
			continue;
		found = i;
		count++;
	}
	return count == 1 ? found : SIZE_MAX;
}

/* One of a single-file application that has no code and is no module. */
static void find_bundled(const struct assemblies *assemblies, struct asked_assembly *asked)
{
	struct image *host = snapshot_executable(assemblies->snapshot);
	const char *name = path_file_name(asked->path);

	if (!host || name == asked->path)
		return;
	sym_error_destroy(bundled_assembly_open(host, name, &asked->bundled));
	if (asked->bundled)
		asked->metadata = bundled_assembly_metadata(asked->bundled);
}

static void find_managed(const struct assemblies *assemblies, size_t module_index,
			 struct asked_assembly *asked)
{
	struct sym_image *module = assemblies->snapshot->modules[module_index];
	const struct image_managed **managed = &assemblies->managed[module_index];
	struct sym_error *error = NULL;

	if (module_trouble(module))
		return;
	if (!*managed)
		error = image_use_managed(module->image, managed);
	if (error)
		*managed = NULL;
	else
		asked->metadata = (*managed)->metadata;
	sym_error_destroy(error);
}

/* Without it, or without memory, names are shorter, and that is all. */
static const struct metadata *find_metadata(void *context, const char *path)
{
	struct assemblies *assemblies = context;
	size_t path_bytes = strlen(path), found;
	struct asked_assembly *asked;

	HASH_FIND(hh, assemblies->asked, path, path_bytes, asked);
	if (asked)
		return asked->metadata;
	asked = calloc(1, sizeof(*asked) + path_bytes + 1);
	if (!asked)
		return NULL;
	memcpy(asked->path, path, path_bytes + 1);
	HASH_ADD_KEYPTR(hh, assemblies->asked, asked->path, path_bytes, asked);
	if (!hash_added(asked)) {
		free(asked);
		return NULL;
	}
	found = find_module(assemblies->snapshot, path);
	if (found == SIZE_MAX)
		find_bundled(assemblies, asked);
	else
		find_managed(assemblies, found, asked);
	return asked->metadata;
}

static void forget_asked(struct assemblies *assemblies)
{
	struct asked_assembly *asked, *next;

	HASH_ITER(hh, assemblies->asked, asked, next)
	{
		HASH_DEL(assemblies->asked, asked);
		bundled_assembly_close(asked->bundled);
		free(asked);
	}
}

/* Runs `use` with the assemblies of the snapshot at hand. */
static struct sym_error *with_assemblies(
	struct live_rundown *reader, const struct sym_snapshot *snapshot, void *context,
	struct sym_error *(*use)(struct live_rundown *, const struct runtime_assemblies *, void *))
{
	struct assemblies assemblies = { .snapshot = snapshot };
	const struct runtime_assemblies access = { .context = &assemblies, .find = find_metadata };
	struct sym_error *error = snapshot_open_all(snapshot);

	if (error)
		return error;
	assemblies.managed = calloc(snapshot->module_count + 1, sizeof(*assemblies.managed));
	if (!assemblies.managed)
		return &sym_error_no_memory;
	error = use(reader, &access, context);
	for (size_t i = 0; i < snapshot->module_count; i++)
		if (assemblies.managed[i])
			image_unuse_managed(snapshot->modules[i]->image);
	free(assemblies.managed);
	forget_asked(&assemblies);
	return error;
}

/* ---- its life ------------------------------------------------------------------- */

void live_rundown_init(struct live_rundown *reader, const struct process *process, bool follows)
{
	*reader = (struct live_rundown){ .process = process, .follows = follows, .root_fd = -1 };
	told_methods_init(&reader->told);
}

/* A session is one of the program that it was begun with: after exec() there is another one. */
static void end_session(struct live_rundown *reader)
{
	struct sym_error *gone = reader->follow ? process_check(reader->process) : NULL;

	if (gone)
		rundown_follow_abandon(reader->follow);
	else
		rundown_follow_close(reader->follow);
	reader->follow = NULL;
	sym_error_destroy(gone);
}

void live_rundown_reset(struct live_rundown *reader)
{
	end_session(reader);
	told_methods_deinit(&reader->told);
	told_methods_init(&reader->told);
}

void live_rundown_deinit(struct live_rundown *reader)
{
	end_session(reader);
	told_methods_deinit(&reader->told);
	free(reader->socket_directory);
	if (reader->root_fd >= 0)
		close(reader->root_fd);
}

/* ---- asking ---------------------------------------------------------------------- */

/* Descriptor and directory of `ret` are the reader's. */
static struct sym_error *find_place(struct live_rundown *reader, struct diagnostics_place *ret)
{
	const struct process *process = reader->process;
	struct sym_error *error = NULL;

	if (!reader->socket_directory)
		error = process_socket_directory(process, &reader->socket_directory);
	if (!error && reader->root_fd < 0 && process->root_fd >= 0)
		reader->root_fd = fcntl(process->root_fd, F_DUPFD_CLOEXEC, 0);
	*ret = process_diagnostics_place(process, reader->socket_directory);
	ret->root_fd = reader->root_fd;
	return error;
}

struct sym_error *live_rundown_is_running(struct live_rundown *reader, bool *ret)
{
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place), *stopped;

	if (error)
		return error;
	stopped = diagnostics_check_running(&place);
	*ret = !stopped;
	sym_error_destroy(stopped);
	return NULL;
}

static void plan_list(struct live_rundown *reader, int64_t after_ms)
{
	reader->list_after_ms = after_ms;
	reader->list_due_ms = diagnostics_now_ms() + after_ms;
}

struct listing {
	struct rundown rundown;
	bool keeps; /* what was told before, as the runtime has told what was unloaded since */
};

static struct sym_error *tell_all(struct live_rundown *reader,
				  const struct runtime_assemblies *assemblies, void *context)
{
	const struct listing *listing = context;
	struct told_methods told;
	struct sym_error *error;

	told_methods_init(&told);
	error = told_methods_begin(&told, &listing->rundown, assemblies);
	if (!error && listing->keeps)
		error = told_methods_keep(&told, &reader->told);
	if (error) {
		told_methods_deinit(&told);
		return error;
	}
	told_methods_deinit(&reader->told);
	reader->told = told;
	return NULL;
}

static bool are_same(const struct address_ranges *a, const struct address_ranges *b)
{
	return a->count == b->count &&
	       (!a->count || !memcmp(a->items, b->items, a->count * sizeof(*a->items)));
}

/* What the runtime does not tell. */
static struct sym_error *find_stubs(struct live_rundown *reader,
				    const struct sym_snapshot *snapshot, bool *changed)
{
	struct address_ranges found = { 0 };
	int64_t begin = diagnostics_now_ms(), pause;
	struct sym_error *error = live_stubs_find(snapshot->process, snapshot->space, &found);

	pause = stubs_after_ms + stubs_cost_share * (diagnostics_now_ms() - begin);
	reader->stubs_due_ms = begin + pause;
	reader->stubs_last_ms = begin + 5 * pause;
	if (error || are_same(&found, &reader->told.stubs)) {
		address_ranges_deinit(&found);
		return error;
	}
	address_ranges_deinit(&reader->told.stubs);
	reader->told.stubs = found;
	*changed = true;
	return NULL;
}

/* It makes them when methods are called, long after it has told of these. */
static struct sym_error *find_more_stubs(struct live_rundown *reader,
					 const struct sym_snapshot *snapshot, bool *changed)
{
	int64_t now = diagnostics_now_ms();

	return now < (*changed ? reader->stubs_due_ms : reader->stubs_last_ms)
		       ? NULL
		       : find_stubs(reader, snapshot, changed);
}

/* In the place of what was told before, unless there is an error. */
static struct sym_error *list_all(struct live_rundown *reader, const struct sym_snapshot *snapshot,
				  bool keeps)
{
	struct listing listing = { .keeps = keeps };
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place);
	bool any;

	if (!error)
		error = rundown_ask(&place, &listing.rundown);
	if (!error)
		error = with_assemblies(reader, snapshot, &listing, tell_all);
	if (!error) {
		live_stubs_find_barrier(snapshot->process, snapshot->space, &reader->told.barrier);
		error = find_stubs(reader, snapshot, &any);
	}
	rundown_deinit(&listing.rundown);
	return error;
}

struct sym_error *live_rundown_begin(struct live_rundown *reader,
				     const struct sym_snapshot *snapshot,
				     struct index_name_set *names, struct runtime_source **ret)
{
	struct diagnostics_place place;
	struct sym_error *error = find_place(reader, &place);

	/* Before the list, so that nothing is lost between the two. */
	if (!error && reader->follows)
		error = rundown_follow_open(&place, &reader->follow);
	if (!error)
		error = list_all(reader, snapshot, false);
	if (!error)
		error = runtime_source_open_told(&reader->told, names, ret);
	plan_list(reader, first_list_ms);
	return error;
}

struct telling {
	struct rundown changes;
	bool changed;
};

static struct sym_error *tell_changes(struct live_rundown *reader,
				      const struct runtime_assemblies *assemblies, void *context)
{
	struct telling *telling = context;

	return told_methods_apply(&reader->told, &telling->changes, assemblies, &telling->changed);
}

/* When the runtime does not tell now, there is another time. */
static struct sym_error *list_later(struct live_rundown *reader,
				    const struct sym_snapshot *snapshot, bool *changed)
{
	struct sym_error *error = list_all(reader, snapshot, true);

	plan_list(reader, 10 * reader->list_after_ms);
	*changed |= !error;
	if (error && sym_error_code(error) != SYM_ERROR_NO_MEMORY) {
		sym_error_destroy(error);
		return NULL;
	}
	return error;
}

/* What has come and gone, in `telling`. */
static struct sym_error *apply_changes(struct live_rundown *reader,
				       const struct sym_snapshot *snapshot, struct telling *telling)
{
	if (!telling->changes.method_count && !telling->changes.module_count)
		return NULL;
	return with_assemblies(reader, snapshot, telling, tell_changes);
}

struct sym_error *live_rundown_go_on(struct live_rundown *reader,
				     const struct sym_snapshot *snapshot,
				     struct index_name_set *names, struct runtime_source **ret)
{
	struct telling telling = { 0 };
	struct sym_error *error = rundown_follow_take(reader->follow, &telling.changes);
	bool has_gap = telling.changes.has_gap;

	if (!error && has_gap) {
		error = list_all(reader, snapshot, false);
		telling.changed = true;
	} else if (!error) {
		error = apply_changes(reader, snapshot, &telling);
	}
	rundown_deinit(&telling.changes);
	if (!error && !has_gap && diagnostics_now_ms() >= reader->list_due_ms)
		error = list_later(reader, snapshot, &telling.changed);
	if (!error)
		error = find_more_stubs(reader, snapshot, &telling.changed);
	if (!error && telling.changed)
		error = runtime_source_open_told(&reader->told, names, ret);
	return error;
}

/* A runtime that ends unloads all it has, which was there as long as it ran. */
static void drop_unloads(struct rundown *changes)
{
	size_t kept = 0;

	for (size_t i = 0; i < changes->method_count; i++)
		if (!changes->methods[i].is_gone)
			changes->methods[kept++] = changes->methods[i];
	changes->method_count = kept;
}

struct sym_error *live_rundown_end(struct live_rundown *reader, const struct sym_snapshot *snapshot,
				   struct index_name_set *names, struct runtime_source **ret)
{
	struct telling telling = { 0 };
	struct sym_error *error =
		reader->follow ? rundown_follow_take(reader->follow, &telling.changes) : NULL;

	drop_unloads(&telling.changes);
	if (!error)
		error = apply_changes(reader, snapshot, &telling);
	rundown_deinit(&telling.changes);
	if (!error && telling.changed)
		error = runtime_source_open_told(&reader->told, names, ret);
	return error;
}

struct sym_error *live_rundown_stubs_alone(const struct sym_snapshot *snapshot,
					   struct runtime_source **ret)
{
	struct told_methods none;
	struct sym_error *error;

	told_methods_init(&none);
	live_stubs_find_barrier(snapshot->process, snapshot->space, &none.barrier);
	error = live_stubs_find(snapshot->process, snapshot->space, &none.stubs);
	if (!error)
		error = runtime_source_open_told(&none, NULL, ret);
	told_methods_deinit(&none);
	return error;
}
