/* SPDX-License-Identifier: MIT */
/* ELF files through the whole library: every table with names or bounds of code, with a debug link,
 * compressed sections, and the tables of a Go program. */
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/elf/debugfile.h"
#include "libsym/image/image.h"
#include "libsym/libsym.h"
#include "libsym/symbols/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both ends of every segment, and some addresses between. */
static void resolve_all(struct sym_image *image, struct sym_result *result)
{
	for (size_t i = 0; i < image->object->segment_count; i++) {
		const struct object_segment *segment = &image->object->segments[i];
		uint64_t positions[16];

		for (size_t j = 0; j < 16; j++)
			positions[j] = segment->position + segment->position_size_bytes / 16 * j;
		sym_error_destroy(
			sym_image_resolve(image, SYM_POSITION_VADDR, positions, 16, result));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_image *image AUTO_IMAGE = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_symbols *symbols = NULL;
	struct sym_result *result = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(object_file_open(NULL, fd, "fuzz", 0, SPARSE_FILE_TO_END, &object));
	if (!object)
		return 0;
	steal_fd(&fd);
	sym_error_destroy(image_create("fuzz", object, &image));
	if (!image)
		return 0;
	sym_error_destroy(sym_result_create(&result));
	sym_error_destroy(sym_image_symbols(
		image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_UNNAMED, &symbols));
	sym_symbols_destroy(symbols);
	if (result) {
		sym_error_destroy(
			sym_result_set_fields(result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
		resolve_all(image, result);
	}
	sym_result_destroy(result);
	return 0;
}
