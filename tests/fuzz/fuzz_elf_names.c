/* SPDX-License-Identifier: MIT */
/* ELF files all the way: every table that names or bounds code, with a debuglink, what is packed
 * inside, and what a Go program says of itself. */
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/debugfile.h"
#include "libsym/libsym.h"
#include "libsym/module.h"
#include "libsym/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every segment's ends, and some steps between. */
static void resolve_all(struct sym_image *image, struct sym_result *result)
{
	for (size_t i = 0; i < image->image->segment_count; i++) {
		const struct image_segment *segment = &image->image->segments[i];
		uint64_t positions[16];

		for (size_t j = 0; j < 16; j++)
			positions[j] = segment->position + segment->position_size_bytes / 16 * j;
		sym_error_destroy(
			sym_image_resolve(image, SYM_POSITION_VADDR, positions, 16, result));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_image *module AUTO_MODULE = NULL;
	struct image *image AUTO_IMAGE = NULL;
	struct sym_symbols *symbols = NULL;
	struct sym_result *result = NULL;
	int fd AUTO_CLOSE = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	sym_error_destroy(image_open(fd, "fuzz", 0, SPARSE_FILE_TO_END, &image));
	if (!image)
		return 0;
	steal_fd(&fd);
	sym_error_destroy(module_create("fuzz", image, &module));
	if (!module)
		return 0;
	sym_error_destroy(sym_result_create(&result));
	sym_error_destroy(sym_image_symbols(
		module, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_UNNAMED, &symbols));
	sym_symbols_destroy(symbols);
	if (result) {
		sym_error_destroy(sym_result_want(result, SYM_WANT_LINES | SYM_WANT_INLINED));
		resolve_all(module, result);
	}
	sym_result_destroy(result);
	return 0;
}
