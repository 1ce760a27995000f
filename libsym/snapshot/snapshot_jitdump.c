/* SPDX-License-Identifier: MIT */
/*
 * Which jitdump belongs to the process.
 * A JIT maps the first page of its dump as a mark for perf. So the mapping is the proof, and the
 * header has the PID. The file name may have other numbers than jit-PID.dump (JavaScriptCore:
 * jit-TID-PID.dump).
 * The mapping survives fork(): the child continues its parent's dump (inherited_file.h).
 */
#include <stdio.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/format/perf/jitdump.h"
#include "libsym/perf/inherited_file.h"
#include "libsym/perf/unflushed_stdio.h"
#include "libsym/snapshot/snapshot.h"

static bool is_jitdump(const struct sym_mapping *mapping)
{
	static const char start[] = "jit-", end[] = ".dump";
	const char *file_name;
	size_t bytes;

	if (mapping->offset || !(mapping->protection & SYM_EXECUTE))
		return false;
	file_name = path_file_name(mapping->path);
	bytes = strlen(file_name);
	return bytes > sizeof(start) + sizeof(end) - 2 &&
	       !strncmp(file_name, start, sizeof(start) - 1) &&
	       !strcmp(file_name + bytes - (sizeof(end) - 1), end);
}

size_t snapshot_find_jitdump(const struct sym_snapshot *snapshot)
{
	const struct address_space *space = snapshot->space;
	size_t first = ADDRESS_SPACE_NONE;
	char own[32];

	snprintf(own, sizeof(own), "jit-%d.dump", (int)snapshot->process->namespace_pid);
	for (size_t i = 0; i < space->mapping_count; i++) {
		if (!is_jitdump(&space->mappings[i]))
			continue;
		if (!strcmp(path_file_name(space->mappings[i].path), own))
			return i;
		if (first == ADDRESS_SPACE_NONE)
			first = i;
	}
	return first;
}

/* The PID in the header, as that process counts; `otherwise` when it cannot be read. */
static uint32_t read_owner(int fd, uint32_t otherwise)
{
	uint8_t bytes[JITDUMP_HEADER_BYTES];
	struct jitdump_header header;

	if (path_read_at(fd, bytes, sizeof(bytes), 0) ||
	    jitdump_header_read(bytes, sizeof(bytes), &header))
		return otherwise;
	return header.pid;
}

/* True when an ancestor has the same dump mapped. */
static struct sym_error *has_mapped(const struct process *ancestor, const void *context, bool *ret)
{
	const struct sym_mapping *dump = context;
	struct address_space *space AUTO_ADDRESS_SPACE = NULL;
	struct sym_error *error = address_space_read(ancestor, &space);

	for (size_t i = 0; !error && !*ret && i < space->mapping_count; i++)
		*ret = is_jitdump(&space->mappings[i]) && space->mappings[i].inode == dump->inode &&
		       space->mappings[i].device_major == dump->device_major &&
		       space->mappings[i].device_minor == dump->device_minor;
	return error;
}

/* Opens a dump that another process began. */
static struct sym_error *open_forked(const struct sym_snapshot *snapshot, uint32_t owner, int fd,
				     const struct sym_mapping *dump, struct jitdump_source **ret)
{
	struct address_ranges shared = { 0 };
	struct sym_error *error = inherited_file_find_shared(snapshot->process, snapshot->space,
							     has_mapped, dump, &shared);

	if (!error)
		error = jitdump_source_open(budget_account_of_file(snapshot->process->budget, fd),
					    fd, dump->path, owner, &shared, (struct unflushed){ 0 },
					    ret);
	address_ranges_deinit(&shared);
	return error;
}

static struct sym_error *open_dump(const struct sym_snapshot *snapshot,
				   const struct sym_mapping *mapping, struct jitdump_source **ret)
{
	uint32_t pid = (uint32_t)snapshot->process->namespace_pid, owner;
	struct unflushed writer;
	int fd AUTO_CLOSE = -1;
	struct stat status;
	struct sym_error *error = process_open_mapped(snapshot->process, mapping, &fd, &status);

	if (error)
		return error;
	owner = read_owner(fd, pid);
	if (owner != pid)
		return open_forked(snapshot, owner, fd, mapping, ret);
	error = unflushed_stdio_find(snapshot->process, snapshot->space, fd, &writer);
	return error ? error
		     : jitdump_source_open(budget_account_of_file(snapshot->process->budget, fd),
					   fd, mapping->path, pid, NULL, writer, ret);
}

static struct sym_error *read_dump(const struct sym_snapshot *snapshot,
				   const struct sym_mapping *mapping, struct buf *why,
				   struct jitdump_source **ret)
{
	struct jitdump_source *source AUTO_JITDUMP_SOURCE = NULL;
	struct sym_error *error = open_dump(snapshot, mapping, &source);

	if (!error)
		error = process_check(snapshot->process);
	if (sym_error_is_no_memory(error))
		return error;
	if (error)
		buf_printf(why, "%s%s is not used: %s", buf_separator(why), mapping->path,
			   sym_error_message(error));
	else if (jitdump_source_is_cut(source))
		buf_printf(why,
			   "%s%s ends inside a record or has one that makes no sense: later ones "
			   "are missing",
			   buf_separator(why), mapping->path);
	if (!error)
		*ret = STEAL(source);
	sym_error_destroy(error);
	return NULL;
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
