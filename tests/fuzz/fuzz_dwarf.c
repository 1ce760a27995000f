/* SPDX-License-Identifier: MIT */
/* ELF files with DWARF: functions, what was inlined into them, and lines, asked for at the ends
 * of every range that the file speaks of. libdw reads; how far it is led is ours. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/dwarf_info.h"
#include "libsym/image.h"
#include "libsym/libsym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_INLINED = 8,
	QUESTIONS = 64,
	FIRST_VADDR = 0x400
};

/* Every string is looked at, so that one that does not live as long as promised is noticed. */
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
	struct image *image AUTO_IMAGE = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(image_open(fd, "fuzz", 0, SPARSE_FILE_TO_END, &image));
	if (!image)
		return 0;
	steal_fd(&fd);
	sym_error_destroy(dwarf_info_open(image, &(struct dwarf_fetch){ 0 }, &info));
	for (uint64_t i = 0; info && i < QUESTIONS; i++)
		ask(info, FIRST_VADDR + 8 * i);
	return 0;
}
