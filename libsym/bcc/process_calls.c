/* SPDX-License-Identifier: MIT */
/*
 * The functions of bcc_proc.h that symbolizers use: modules of a process, symbols of the kernel,
 * paths of libraries and programs.
 * The text of /proc is the kernel's, but the process chooses the names in it.
 */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/bcc/ld_cache.h"
#include "libsym/bcc/libsym-bcc.h"
#include "libsym/bcc/perfmap_calls.h"

int bcc_mapping_is_file_backed(const char *mapname)
{
	static const char *const others[] = { "//anon", "/dev/zero", "/anon_hugepage", "[stack",
					      "/SYSV",  "[heap]",    "[vsyscall]" };

	if (!mapname || !*mapname)
		return 0;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(mapname, others[i], strlen(others[i])))
			return 0;
	return 1;
}

/* Parses a line of maps in place; false for a line that is not listed. */
static bool read_module(char *line, mod_info *ret)
{
	char permissions[8];
	unsigned int major, minor;
	int name_at = -1;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %llx %x:%x %" SCNu64 " %n", &ret->start_addr,
		   &ret->end_addr, permissions, &ret->file_offset, &major, &minor, &ret->inode,
		   &name_at) < 7 ||
	    name_at < 0)
		return false;
	ret->dev_major = major;
	ret->dev_minor = minor;
	ret->name = line + name_at;
	return permissions[2] == 'x' && bcc_mapping_is_file_backed(ret->name);
}

static bool is_of_module(const struct stat *status, const mod_info *module)
{
	return status->st_ino == module->inode && major(status->st_dev) == module->dev_major &&
	       minor(status->st_dev) == module->dev_minor;
}

/* The path of the first descriptor of this file in a process; "" for none. */
static void find_descriptor(int pid, const mod_info *module, char *room, size_t room_bytes)
{
	const struct dirent *entry;
	char directory[32];
	DIR *list;

	room[0] = '\0';
	snprintf(directory, sizeof(directory), "/proc/%d/fd", pid);
	list = opendir(directory);
	while (list && !room[0] && (entry = readdir(list))) {
		struct stat status;

		if (!fstatat(dirfd(list), entry->d_name, &status, 0) &&
		    is_of_module(&status, module))
			snprintf(room, room_bytes, "%s/%s", directory, entry->d_name);
	}
	if (list)
		closedir(list);
}

/* A memory file has no path. libbcc uses a descriptor of the process. */
static int hand_out(mod_info *module, int pid, bcc_procutils_modulecb callback, void *payload)
{
	char path[64 + NAME_MAX];

	if (strstr(module->name, "/memfd:")) {
		find_descriptor(pid, module, path, sizeof(path));
		if (path[0]) {
			module->name = path;
			return callback(module, 0, payload);
		}
	}
	return callback(module, 1, payload);
}

int _procfs_maps_each_module(FILE *procmaps, int pid, bcc_procutils_modulecb callback,
			     void *payload)
{
	AUTO_FREE char *line = NULL;
	size_t room = 0;

	if (!procmaps || !callback)
		return -1;
	while (getline(&line, &room, procmaps) > 0) {
		mod_info module;

		if (read_module(line, &module) && hand_out(&module, pid, callback, payload) < 0)
			return 0;
	}
	return -1;
}

/* Lists the map below the process's own root first, then the machine's. */
static void each_perf_map(int pid, bcc_procutils_modulecb callback, void *payload)
{
	char path[PATH_MAX];
	mod_info module = { .name = path, .end_addr = UINT64_MAX };

	if (bcc_perf_map_path(path, sizeof(path), pid) && callback(&module, 1, payload) < 0)
		return;
	host_perf_map_path(path, sizeof(path), pid);
	callback(&module, 0, payload);
}

int bcc_procutils_each_module(int pid, bcc_procutils_modulecb callback, void *payload)
{
	FILE *maps GUARDED(file) = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = callback ? fopen(path, "re") : NULL;
	if (!maps)
		return -1;
	if (_procfs_maps_each_module(maps, pid, callback, payload) < 0)
		each_perf_map(pid, callback, payload);
	return 0;
}

/* "ADDRESS TYPE NAME" and, for a module, "\t[MODULE]". */
static void take_kernel_line(char *line, bcc_procutils_ksymcb callback, void *payload)
{
	const char *module = "kernel";
	char *text, *name;
	uint64_t address = strtoull(line, &text, 16);

	if (!address || address == UINT64_MAX || *text != ' ' || !text[1] || text[2] != ' ')
		return;
	if (strchr("bBdDrR", text[1]))
		return;
	name = text + 3;
	text = name + strcspn(name, " \t\n");
	if (*text)
		*text++ = '\0';
	text += strspn(text, " \t\n");
	if (*text == '[') {
		module = ++text;
		text[strcspn(text, "]")] = '\0';
	}
	callback(name, module, address, payload);
}

int bcc_procutils_each_ksym(bcc_procutils_ksymcb callback, void *payload)
{
	FILE *list GUARDED(file) = NULL;
	AUTO_FREE char *line = NULL;
	size_t room = 0;

	if (!callback || geteuid() != 0)
		return -1; /* other users see zeros */
	list = fopen("/proc/kallsyms", "re");
	if (!list)
		return -1;
	while (getline(&line, &room, list) > 0)
		take_kernel_line(line, callback, payload);
	return 0;
}

/* The input and the result of which_so_in(). */
struct library_search {
	char with_dot[NAME_MAX + 8];
	char with_dash[NAME_MAX + 8];
	char *found;
};

static int match_library(mod_info *module, int enter_ns, void *payload)
{
	struct library_search *search = payload;

	(void)enter_ns;
	if (!strstr(module->name, ".so") ||
	    (!strstr(module->name, search->with_dot) && !strstr(module->name, search->with_dash)))
		return 0;
	search->found = strdup(module->name);
	return -1;
}

char *bcc_procutils_which_so(const char *libname, int pid)
{
	struct library_search search = { .found = NULL };

	if (!libname)
		return NULL;
	if (strchr(libname, '/'))
		return strdup(libname);
	if (strlen(libname) > NAME_MAX)
		return NULL;
	snprintf(search.with_dot, sizeof(search.with_dot), "/lib%s.", libname);
	snprintf(search.with_dash, sizeof(search.with_dash), "/lib%s-", libname);
	if (pid > 0)
		bcc_procutils_each_module(pid, match_library, &search);
	return search.found ? search.found : ld_cache_find(libname);
}

char *bcc_procutils_which(const char *binpath)
{
	const char *part = getenv("PATH");
	char path[PATH_MAX];
	size_t length;

	if (!binpath || !*binpath)
		return NULL;
	if (strchr(binpath, '/'))
		return bcc_elf_is_exe(binpath) ? strdup(binpath) : NULL;
	for (; part && *part; part += length + (part[length] == ':')) {
		length = strcspn(part, ":");
		if (length &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)length, part, binpath) <
			    (int)sizeof(path) &&
		    bcc_elf_is_exe(path))
			return strdup(path);
	}
	return NULL;
}

void bcc_procutils_free(const char *ptr)
{
	free((char *)ptr);
}
