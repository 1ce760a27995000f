/* SPDX-License-Identifier: MIT */
/* ELF files with DWARF: functions, inlined functions and lines, queried at the ends of every range
 * in the file. libdw reads it; our code limits how far. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/dwarf/dwarf_info.h"
#include "libsym/file/object_file.h"
#include "libsym/libsym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_INLINED = 8,
	QUESTIONS = 64,
	FIRST_VADDR = 0x400
};

/* Reads every byte of a string, so that a string that is freed too early is detected. */
static size_t use(const char *text)
{
	size_t bytes = 0;

	while (text && text[bytes])
		bytes++;
	return bytes;
}

static void ask(struct dwarf_info *info, uint64_t vaddr)
{
	struct sym_inlined inlined[MAX_INLINED];
	struct dwarf_place place;
	size_t count;

	if (!dwarf_info_find(info, vaddr, &place, inlined, MAX_INLINED, &count))
		return;
	if (count > MAX_INLINED)
		abort();
	use(place.name);
	use(place.linkage_name);
	use(place.line.file);
	for (size_t i = 0; i < count; i++) {
		use(inlined[i].name);
		use(inlined[i].linkage_name);
		use(inlined[i].call_file);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_info *info AUTO_DWARF_INFO = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(object_file_open(NULL, fd, "fuzz", 0, SPARSE_FILE_TO_END, &object));
	if (!object)
		return 0;
	steal_fd(&fd);
	sym_error_destroy(dwarf_info_open(object, &(struct dwarf_fetch){ 0 }, false, &info));
	for (uint64_t i = 0; info && i < QUESTIONS; i++)
		ask(info, FIRST_VADDR + 8 * i);
	return 0;
}
