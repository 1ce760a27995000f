/* SPDX-License-Identifier: MIT */
/* Files of any kind: what they are, who they say they are, and the symbols of ELF files. */
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/elf_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *image AUTO_IMAGE = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_symbols symbols = { 0 };

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(image_open(fd, "fuzz", 0, SPARSE_FILE_TO_END, &image));
	if (!image)
		return 0;
	steal_fd(&fd);
	image_assembly_name(image);
	if (image->kind == SYM_IMAGE_ELF)
		sym_error_destroy(elf_symbols_read(image, &symbols));
	elf_symbols_deinit(&symbols);
	return 0;
}
