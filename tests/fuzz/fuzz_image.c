/* SPDX-License-Identifier: MIT */
/* Files of any kind: their kind, their identity, and the symbols of ELF files. */
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/elf/elf_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_symbols symbols = { 0 };

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(object_file_open(NULL, fd, "fuzz", 0, SPARSE_FILE_TO_END, &object));
	if (!object)
		return 0;
	steal_fd(&fd);
	object_file_assembly_name(object);
	if (object->kind == SYM_IMAGE_ELF)
		sym_error_destroy(elf_symbols_read(object, &symbols));
	elf_symbols_deinit(&symbols);
	return 0;
}
