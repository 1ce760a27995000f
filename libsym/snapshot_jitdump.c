/* SPDX-License-Identifier: MIT */
/*
 * Which jitdump is the process's own. A jit maps the first page of its dump so
 * that perf sees where it is; so the mapping is the proof, not the path. It stays
 * mapped over a fork(): then the child goes on with its parent's (forked.h).
 */
#include "libsym/base/path.h"
#include "libsym/forked.h"
#include "libsym/format/proc_text.h"
#include "libsym/snapshot.h"

/* PID of jit-PID.dump, as the process counts itself; 0: it is no dump. */
static int32_t owner_of(const struct sym_mapping *mapping)
{
	int32_t owner;

	if (mapping->offset || !(mapping->protection & SYM_EXECUTE) ||
	    !proc_parse_file_name(path_file_name(mapping->path), "jit-", ".dump", &owner))
		return 0;
	return owner;
}

/* The dump of a process that this one was forked from. */
static struct sym_error *open_forked(const struct sym_snapshot *snapshot, int32_t owner, int fd,
				     const char *path, struct jitdump_source **ret)
{
	struct process *origin AUTO_PROCESS = NULL;
	struct address_ranges shared = { 0 };
	struct sym_error *error =
		forked_find_shared(snapshot->process, snapshot->space, owner, &origin, &shared);

	if (!error)
		error = jitdump_source_open(fd, path, (uint32_t)owner, &shared, ret);
	address_ranges_deinit(&shared);
	return error;
}

static struct sym_error *open_dump(const struct sym_snapshot *snapshot,
				   const struct sym_mapping *mapping, struct jitdump_source **ret)
{
	int32_t owner = owner_of(mapping), pid = snapshot->process->namespace_pid;
	int fd AUTO_CLOSE = -1;
	struct stat status;
	struct sym_error *error = process_open_mapped(snapshot->process, mapping, &fd, &status);

	if (!error && owner == pid)
		error = jitdump_source_open(fd, mapping->path, (uint32_t)pid, NULL, ret);
	else if (!error)
		error = open_forked(snapshot, owner, fd, mapping->path, ret);
	return error;
}

static struct sym_error *read_dump(const struct sym_snapshot *snapshot,
				   const struct sym_mapping *mapping, struct buf *why,
				   struct jitdump_source **ret)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct sym_error *error = open_dump(snapshot, mapping, &source);

	if (!error)
		error = process_check(snapshot->process);
	if (error && sym_error_code(error) == SYM_ERROR_NO_MEMORY)
		return error;
	if (error)
		buf_printf(why, "%s is not used: %s", mapping->path, sym_error_message(error));
	else if (jitdump_source_is_cut(source))
		buf_printf(why, "%s ends inside a record: later ones are missing", mapping->path);
	if (!error)
		*ret = STEAL(source);
	sym_error_destroy(error);
	return NULL;
}

size_t snapshot_find_jitdump(const struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	size_t others = ADDRESS_SPACE_NONE;

	for (size_t i = 0; i < space->mapping_count; i++) {
		int32_t owner = owner_of(&space->mappings[i]);

		if (owner == snapshot->process->namespace_pid)
			return i;
		if (owner && others == ADDRESS_SPACE_NONE)
			others = i;
	}
	return snapshot->process->recorded ? ADDRESS_SPACE_NONE : others;
}

struct sym_error *snapshot_read_jitdump(const struct sym_snapshot *snapshot, struct buf *why,
					struct jitdump_source **ret)
{
	size_t line = snapshot_find_jitdump(snapshot);

	*ret = NULL;
	if (line == ADDRESS_SPACE_NONE)
		return NULL;
	return read_dump(snapshot, &snapshot->space->mappings[line], why, ret);
}
