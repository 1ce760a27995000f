/* SPDX-License-Identifier: MIT */
/*
 * Which jitdump is the process's own. A jit maps the first page of its dump so
 * that perf sees where it is; so the mapping is the proof, not the path.
 */
#include <stdio.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/snapshot.h"

/* jit-PID.dump, PID as the process counts itself. */
static bool is_jitdump(const struct sym_snapshot *snapshot, const struct sym_mapping *mapping)
{
	char name[32];

	if (mapping->offset || !(mapping->protection & SYM_EXECUTE))
		return false;
	snprintf(name, sizeof(name), "jit-%d.dump", (int)snapshot->process->namespace_pid);
	return !strcmp(path_file_name(mapping->path), name);
}

static struct sym_error *read_dump(const struct sym_snapshot *snapshot,
				   const struct sym_mapping *mapping, struct buf *why,
				   struct jitdump_source **ret)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	int fd AUTO_CLOSE = -1;
	struct stat status;
	struct sym_error *error = process_open_mapped(snapshot->process, mapping, &fd, &status);

	if (!error)
		error = jitdump_source_open(fd, mapping->path,
					    (uint32_t)snapshot->process->namespace_pid, &source);
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

	for (size_t i = 0; i < space->mapping_count; i++)
		if (is_jitdump(snapshot, &space->mappings[i]))
			return i;
	return ADDRESS_SPACE_NONE;
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
