/* SPDX-License-Identifier: MIT */
#include "libsym/maps_near.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libsym/libsym.h"

/* As linux/fs.h has it since 6.11; older headers do not. */
struct procmap_query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t start_address; /* this and what follows is the answer */
	uint64_t end_address;
	uint64_t protection;
	uint64_t page_bytes;
	uint64_t offset;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t name_bytes; /* the room, then the length with the NUL */
	uint32_t build_id_bytes;
	uint64_t name;
	uint64_t build_id;
};

#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)

enum {
	PROTECTION_BITS = SYM_READ | SYM_WRITE | SYM_EXECUTE | SYM_SHARED,
	/* Which mappings are meant: those that may be executed by its bit in the answer. */
	ONLY_EXECUTABLE = SYM_EXECUTE,
	COVERING_OR_NEXT = 1 << 4,
	ONLY_OF_FILES = 1 << 5
};

_Static_assert(SYM_READ == 1 && SYM_WRITE == 2 && SYM_EXECUTE == 4 && SYM_SHARED == 8,
	       "the kernel's bits are ours");

/*
 * The line that covers an address or, with COVERING_OR_NEXT, the next one. Its path, as the
 * kernel has it, comes into `room` of PATH_MAX bytes; NULL: is not wanted. 0 or an errno; ENOENT:
 * there is none.
 */
static int ask_line(int fd, uint64_t address, uint64_t flags, char *room, struct maps_line *ret)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_bytes = sizeof(deleted) - 1;
	struct procmap_query query = {
		.size = sizeof(query),
		.flags = flags,
		.address = address,
		.name = (uintptr_t)room,
		.name_bytes = room ? PATH_MAX : 0,
	};

	if (ioctl(fd, PROCMAP_QUERY, &query))
		return errno;
	*ret = (struct maps_line){
		.start_address = query.start_address,
		.end_address = query.end_address,
		.offset = query.offset,
		.inode = query.inode,
		.device_major = query.device_major,
		.device_minor = query.device_minor,
		.protection = (uint32_t)query.protection & PROTECTION_BITS,
		.path = room ? room : "",
		.path_bytes = query.name_bytes ? query.name_bytes - 1 : 0,
	};
	if (ret->path_bytes > deleted_bytes &&
	    !memcmp(ret->path + ret->path_bytes - deleted_bytes, deleted, deleted_bytes)) {
		ret->path_bytes -= deleted_bytes;
		ret->deleted = true;
	}
	return 0;
}

/* The path moves into memory of `near`; NULL for want of that. */
static const char *keep_path(struct maps_near *near, const struct maps_line *line)
{
	char *path = strndup(line->path, line->path_bytes);

	if (path)
		near->paths[near->path_count++] = path;
	return path;
}

/* ---- around one address ------------------------------------------------------------ */

/* Code of a file that is where its path says, and no device or memory under a path. */
static bool is_code_of_file(const struct maps_line *line)
{
	return line->protection & SYM_EXECUTE && line->inode && !line->deleted &&
	       line->path_bytes > 1 && line->path[0] == '/' && line->path[1] != '/' &&
	       strncmp(line->path, "/dev/", 5) != 0;
}

struct window {
	int fd; /* maps */
	uint64_t address;
	struct maps_line asked; /* the line that covers it */
	struct maps_line *lines;
	size_t count;
};

static bool is_of_file(const struct window *window, const struct maps_line *line)
{
	const struct maps_line *asked = &window->asked;

	return line->inode == asked->inode && line->device_major == asked->device_major &&
	       line->device_minor == asked->device_minor && !line->deleted &&
	       line->path_bytes == asked->path_bytes &&
	       !memcmp(line->path, asked->path, line->path_bytes);
}

static bool goes_on(const struct window *window, const struct maps_line *line)
{
	return is_of_file(window, line) ||
	       (!line->path_bytes && !line->inode &&
		line->start_address == window->lines[window->count - 1].end_address);
}

/* From where the first byte of the file should be; what still lies before it is passed over. False
 * when the window is not whole. */
static bool fill(struct window *window)
{
	uint64_t next = window->asked.start_address - window->asked.offset;
	struct maps_line line;
	char room[PATH_MAX];
	int failure;

	for (size_t steps = 0; steps < MAPS_NEAR_LINES; steps++) {
		failure = ask_line(window->fd, next, COVERING_OR_NEXT, room, &line);
		if (failure && failure != ENOENT)
			return false;
		if (failure || (window->count && !goes_on(window, &line)))
			return window->count &&
			       window->lines[window->count - 1].end_address > window->address;
		next = line.end_address;
		if (!window->count && !is_of_file(window, &line))
			continue;
		if (!window->count && line.offset)
			return false;
		line.path = line.path_bytes ? window->asked.path : "";
		window->lines[window->count++] = line;
	}
	return false;
}

static const struct maps_line *line_at(const struct maps_near *near, uint64_t address)
{
	for (size_t i = 0; i < near->count; i++)
		if (near->lines[i].start_address <= address && address < near->lines[i].end_address)
			return &near->lines[i];
	return NULL;
}

static bool add_window(struct maps_near *near, int fd, uint64_t address)
{
	struct window window = { fd, address, .lines = near->lines + near->count };
	char room[PATH_MAX];

	if (ask_line(fd, address, 0, room, &window.asked) || !is_code_of_file(&window.asked) ||
	    window.asked.offset > window.asked.start_address)
		return false;
	window.asked.path = keep_path(near, &window.asked);
	if (!window.asked.path || !fill(&window))
		return false;
	near->count += window.count;
	return true;
}

/* ---- the rest of the process ------------------------------------------------------- */

static bool add_first_pages(struct maps_near *near, int fd)
{
	const uint64_t code = COVERING_OR_NEXT | ONLY_OF_FILES | ONLY_EXECUTABLE;
	struct maps_line line;
	char room[PATH_MAX];
	size_t count = 0;
	int failure;

	for (uint64_t next = 0; !(failure = ask_line(fd, next, code, NULL, &line));
	     next = line.end_address) {
		if (line.offset || line_at(near, line.start_address))
			continue;
		if (count++ == MAPS_NEAR_FIRST_PAGES ||
		    ask_line(fd, line.start_address, 0, room, &line))
			return false;
		line.path = keep_path(near, &line);
		if (!line.path)
			return false;
		near->lines[near->count++] = line;
	}
	return failure == ENOENT;
}

static int compare_lines(const void *left, const void *right)
{
	const struct maps_line *a = left, *b = right;

	return (a->start_address > b->start_address) - (a->start_address < b->start_address);
}

static bool add_lines(struct maps_near *near, int fd, const uint64_t *addresses, size_t count)
{
	near->lines = calloc(count * MAPS_NEAR_LINES + MAPS_NEAR_FIRST_PAGES, sizeof(*near->lines));
	near->paths = calloc(count + MAPS_NEAR_FIRST_PAGES, sizeof(*near->paths));
	if (!near->lines || !near->paths)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct maps_line *line = line_at(near, addresses[i]);

		if (line ? !is_code_of_file(line) : !add_window(near, fd, addresses[i]))
			return false;
	}
	if (!add_first_pages(near, fd))
		return false;
	qsort(near->lines, near->count, sizeof(*near->lines), compare_lines);
	/* What changed while it was asked for may be there twice. */
	for (size_t i = 1; i < near->count; i++)
		if (near->lines[i].start_address < near->lines[i - 1].end_address)
			return false;
	return true;
}

bool maps_near_read(const struct process *process, const uint64_t *addresses, size_t count,
		    struct maps_near *ret)
{
	struct maps_near near = { 0 };
	int fd AUTO_CLOSE = -1;

	if (process->recorded || !count || count > MAPS_NEAR_ADDRESSES)
		return false;
	fd = openat(process->proc_fd, "maps", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || !add_lines(&near, fd, addresses, count)) {
		maps_near_deinit(&near);
		return false;
	}
	*ret = near;
	return true;
}

void maps_near_deinit(struct maps_near *near)
{
	for (size_t i = 0; i < near->path_count; i++)
		free(near->paths[i]);
	free(near->paths);
	free(near->lines);
	*near = (struct maps_near){ 0 };
}
