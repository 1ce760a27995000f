/* SPDX-License-Identifier: MIT */
/* The list of all symbols of this process, compared with its look-ups. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/libsym.h"
#include "tests/support/own_perf_map.h"

enum {
#ifdef __aarch64__
	OUTER_BYTES = 4 * 4,
#else
	OUTER_BYTES = 4 * 1,
#endif
};

/* A function with a label inside, as assembly code writes loops. */
int snapshot_symbols_test_outer(int x);
__asm__(".text\n"
	".globl snapshot_symbols_test_outer\n"
	".type snapshot_symbols_test_outer, @function\n"
	"snapshot_symbols_test_outer:\n"
	"nop\n"
	"snapshot_symbols_test_label:\n"
	"nop\n"
	"nop\n"
	"ret\n"
	".size snapshot_symbols_test_outer, .-snapshot_symbols_test_outer\n");

static struct sym_symbols *list_own(struct sym_snapshot *snapshot)
{
	struct sym_symbols *symbols = NULL;

	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_ELF, &symbols));
	return symbols;
}

static const struct sym_mapping *mapping_at(const struct sym_snapshot *snapshot, uint64_t address)
{
	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *line = sym_snapshot_mapping_at(snapshot, i);

		if (address >= line->start_address && address < line->end_address)
			return line;
	}
	return NULL;
}

/* Maps a page of this program's code once more. Returns the distance to the original. */
static uint64_t map_again(uint64_t address)
{
	struct sym_snapshot *snapshot = NULL;
	int fd AUTO_CLOSE = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), page = address & -page_bytes;
	const struct sym_mapping *line;
	char *again;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	line = mapping_at(snapshot, address);
	cr_assert_not_null(line);
	again = mmap(NULL, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		     (off_t)(line->offset + (page - line->start_address)));
	cr_assert_neq(again, MAP_FAILED);
	sym_snapshot_close(snapshot);
	return (uint64_t)(uintptr_t)again - page;
}

Test(snapshot_symbols, are_listed_only_in_mapped_parts_of_a_file)
{
	uint64_t place = (uint64_t)(uintptr_t)snapshot_symbols_test_outer;
	uint64_t second = place + map_again(place);
	struct sym_snapshot *snapshot = NULL;
	struct sym_symbols *symbols;
	size_t seen = 0;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	symbols = list_own(snapshot);
	for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);
		const struct sym_mapping *line = mapping_at(snapshot, symbol->start);

		cr_assert(line && line->protection & SYM_EXECUTE &&
				  line->image_index == symbol->image_index,
			  "%s at 0x%" PRIx64, symbol->name, symbol->start);
		if (!strcmp(symbol->name, "snapshot_symbols_test_outer"))
			seen += symbol->start == place || symbol->start == second;
	}
	cr_expect_eq(seen, 2);
	sym_symbols_destroy(symbols);
	sym_snapshot_close(snapshot);
}

Test(snapshot_symbols, lack_labels_inside_functions)
{
	struct sym_snapshot *snapshot = NULL;
	struct sym_symbols *symbols;
	size_t found;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	symbols = list_own(snapshot);
	found = sym_symbols_find(symbols, "snapshot_symbols_test_outer", SYM_NONE);
	cr_assert_neq(found, SYM_NONE);
	cr_expect_eq(sym_symbols_at(symbols, found)->size_bytes, OUTER_BYTES);
	cr_expect_geq(sym_symbols_at(symbols, found + 1)->start,
		      sym_symbols_at(symbols, found)->start + OUTER_BYTES);
	sym_symbols_destroy(symbols);
	sym_snapshot_close(snapshot);
}

/*
 * As `merge` writes them: the bounds of a function, and a linkage stub, which is demangled there.
 */
Test(snapshot_symbols, lack_map_lines_that_repeat_an_image)
{
	static const uint32_t flags[] = { 0, SYM_SYMBOLS_PERF_MAP,
					  SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_UNNAMED,
					  SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_UNNAMED |
						  SYM_SYMBOLS_LINKAGE_NAMES };
	struct own_perf_map map = own_perf_map_create();
	struct sym_snapshot *snapshot = NULL;
	struct sym_symbols *symbols;
	const struct sym_mapping *line;
	uint64_t code, stub = 0;
	const char *file;

	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	line = mapping_at(snapshot, (uint64_t)(uintptr_t)snapshot_symbols_test_outer);
	file = strrchr(line->path, '/') + 1;
	code = (uint64_t)(uintptr_t)snapshot_symbols_test_outer;
	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_UNNAMED, &symbols));
	for (size_t i = 0; i < sym_symbols_count(symbols) && !stub; i++)
		if (sym_symbols_at(symbols, i)->kind == SYM_SYMBOL_STUB)
			stub = sym_symbols_at(symbols, i)->start;
	sym_symbols_destroy(symbols);
	cr_assert_neq(stub, 0);
	fprintf(map.file, "%" PRIx64 " 4 %s!0x1234\n%" PRIx64 " 10 demangled()@plt\n", code, file,
		stub);
	fclose(map.file);
	for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
		cr_assert_null(sym_snapshot_symbols(snapshot, flags[k], &symbols));
		for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
			const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

			cr_expect(symbol->source != SYM_SOURCE_PERF_MAP, "flags %x: %s", flags[k],
				  symbol->name);
		}
		sym_symbols_destroy(symbols);
	}
	unlink(map.path);
	sym_snapshot_close(snapshot);
}
