/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/pe.h"
#include "libsym/libsym.h"
#include "libsym/symbols/symbols.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"

static const char sample[] = "fixtures/recorded/opt/sample/sample.dll";

static void guard_snapshot_here(struct sym_snapshot **snapshot)
{
	sym_snapshot_close(*snapshot);
}

/* A process that has the sample mapped, a directory for maps, and data of the sample. */
struct place {
	struct proc_tree tree;
	char *scratch;
	struct sym_image *image;
	struct sym_symbols *methods;
};

static const char own_signature[] = "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF";

static void write_u32(uint8_t *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

/*
 * Changes the only entry of the sample's debug directory into one for an r2rmap. Its content
 * overwrites unused code of a method.
 */
static void install_r2rmap_entry(char *bytes, size_t size_bytes, uint32_t content_rva)
{
	static const char content[] =
		"R2RM"
		"\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf"
		"\1\0\0\0"
		"sample.ni.r2rmap";
	uint8_t *entry, *room;
	struct pe pe;

	cr_assert_null(pe_parse(&pe, bytes, size_bytes, PE_LAYOUT_FILE));
	cr_assert_eq(pe.debug.size_bytes, 28);
	entry = (uint8_t *)pe_bytes(&pe, pe.debug.rva, 28);
	room = (uint8_t *)pe_bytes(&pe, content_rva, sizeof(content));
	cr_assert(entry && room);
	write_u32(entry + 12, 21);
	write_u32(entry + 16, sizeof(content));
	write_u32(entry + 20, content_rva);
	memcpy(room, content, sizeof(content));
}

static void create_place(struct place *place)
{
	static const char maps[] =
		"7f0000000000-7f0000001000 r--p 00000000 00:29 4 /opt/sample/sample.dll\n"
		"7f0000010000-7f0000019000 r-xp 00000000 00:29 4 /opt/sample/sample.dll\n";
	size_t size_bytes;
	char *bytes = scratch_read(sample, &size_bytes);

	*place = (struct place){ .scratch = scratch_create() };
	cr_assert_null(sym_image_open(sample, &place->image));
	cr_assert_null(sym_image_symbols(place->image, 0, &place->methods));
	install_r2rmap_entry(bytes, size_bytes, (uint32_t)sym_symbols_at(place->methods, 0)->start);
	proc_tree_create(&place->tree);
	proc_tree_write(&place->tree, "/opt/sample/sample.dll", bytes, size_bytes);
	proc_tree_add_process(&place->tree, &(struct proc_tree_process){ .pid = 7, .maps = maps });
	free(bytes);
}

static void destroy_place(struct place *place)
{
	sym_symbols_destroy(place->methods);
	sym_image_close(place->image);
	proc_tree_destroy(&place->tree);
	scratch_remove(place->scratch);
}

static void put_map(const struct place *place, const char *name, const char *text)
{
	char *path = scratch_path(place->scratch, name);

	scratch_write(path, text, strlen(text));
	free(path);
}

/*
 * Names the first method of the process with the current maps. Returns the rejection, to be freed,
 * or NULL.
 */
static char *ask(const struct place *place, const char *expected_name,
		 enum sym_source_kind expected_source)
{
	const char *const dirs[] = { place->scratch, NULL };
	const struct sym_snapshot_opts opts = { .size = sizeof(opts),
						.root = place->tree.root,
						.relative_map_dirs = dirs };
	__attribute__((cleanup(guard_snapshot_here))) struct sym_snapshot *snapshot = NULL;
	struct sym_symbols *symbols AUTO_SYMBOLS = NULL;
	const struct sym_symbol *first;
	const char *refusal;

	cr_assert_null(sym_snapshot_open(7, &opts, &snapshot));
	cr_assert_null(sym_snapshot_symbols(snapshot, SYM_SYMBOLS_PRECOMPILED, &symbols));
	first = sym_symbols_at(symbols, 0);
	cr_expect_str_eq(first->name, expected_name);
	cr_expect_eq(first->source, expected_source);
	for (size_t i = 0; i < sym_symbols_count(symbols); i++)
		cr_expect_lt(sym_symbols_at(symbols, i)->start, 0x7f0000019000,
			     "a header row became a symbol");
	refusal = sym_image_rejected_map(sym_snapshot_image_at(snapshot, 0));
	return refusal ? strdup(refusal) : NULL;
}

static void expect_used(const struct place *place)
{
	char *refusal = ask(place, "from the map", SYM_SOURCE_RELATIVE_MAP);

	cr_expect_null(refusal, "refused: %s", refusal);
	free(refusal);
}

/* The reason must contain both texts. */
static void expect_refused(const struct place *place, const char *text, const char *other_text)
{
	const char *own = sym_symbols_at(place->methods, 0)->name;
	char *refusal = ask(place, own, SYM_SOURCE_READYTORUN);

	cr_assert_not_null(refusal, "used, or refused without a word");
	cr_expect_not_null(strcasestr(refusal, text), "%s: no %s", refusal, text);
	cr_expect_not_null(strcasestr(refusal, other_text), "%s: no %s", refusal, other_text);
	free(refusal);
}

/* A map of crossgen2 with one row, `shift` bytes after the first method. */
static void write_crossgen2(const struct place *place, char *text, size_t room_bytes,
			    const char *signature, unsigned int version, unsigned int shift)
{
	const struct sym_symbol *first = sym_symbols_at(place->methods, 0);

	snprintf(text, room_bytes,
		 "FFFFFFFF 00 %s\nFFFFFFFE 00 %u\nFFFFFFFD 00 2\nFFFFFFFC 00 3\nFFFFFFFB 00 1\n"
		 "%08" PRIX64 " %02" PRIX64 " from the map\n",
		 signature, version, first->start + shift, first->size_bytes);
}

static void mvid_name(const struct place *place, char *name, size_t room_bytes)
{
	snprintf(name, room_bytes, "sample.ni.{%s}.map", sym_image_mvid(place->image));
}

Test(relmap_source, accepts_a_map_of_crossgen2_in_format_1)
{
	struct place place;
	char text[512];

	create_place(&place);
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 0);
	put_map(&place, "sample.ni.r2rmap", text);
	expect_used(&place);
	destroy_place(&place);
}

Test(relmap_source, accepts_a_map_of_crossgen2_in_format_0)
{
	struct place place;
	char text[512], name[128];

	create_place(&place);
	mvid_name(&place, name, sizeof(name));
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 0);
	put_map(&place, name, text);
	expect_used(&place);
	destroy_place(&place);
}

Test(relmap_source, uses_the_second_map_when_the_first_does_not_fit)
{
	struct place place;
	char text[512], name[128];

	create_place(&place);
	mvid_name(&place, name, sizeof(name));
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 1);
	put_map(&place, name, text);
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 0);
	put_map(&place, "sample.ni.r2rmap", text);
	free(ask(&place, "from the map", SYM_SOURCE_RELATIVE_MAP));
	destroy_place(&place);
}

/* Rows in any order; of aliases the first in the file names an address. */
Test(relmap_source, finds_addresses_in_rows_of_any_order)
{
	struct place place;
	char text[512];
	const char *dirs[2] = { NULL, NULL };
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .relative_map_dirs = dirs };
	__attribute__((cleanup(guard_snapshot_here))) struct sym_snapshot *snapshot = NULL;
	struct sym_resolver *resolver = NULL;
	struct sym_result *result = NULL;
	const struct sym_symbol *first, *second;
	uint64_t addresses[3];

	create_place(&place);
	first = sym_symbols_at(place.methods, 0);
	second = sym_symbols_at(place.methods, 1);
	snprintf(text, sizeof(text),
		 "FFFFFFFF 00 %s\nFFFFFFFE 00 1\n%08" PRIX64 " %02" PRIX64 " second\n%08" PRIX64
		 " %02" PRIX64 " first\n%08" PRIX64 " %02" PRIX64 " alias\n",
		 own_signature, second->start, second->size_bytes, first->start, first->size_bytes,
		 first->start, first->size_bytes);
	put_map(&place, "sample.ni.r2rmap", text);
	dirs[0] = place.scratch;
	opts.root = place.tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &snapshot));
	cr_assert_null(sym_resolver_create(snapshot, &resolver));
	cr_assert_null(sym_result_create(&result));
	addresses[0] = sym_image_load_base(sym_snapshot_image_at(snapshot, 0)) + first->start;
	addresses[1] = addresses[0] - first->start + second->start + second->size_bytes - 1;
	addresses[2] = addresses[0] - first->start + sym_symbols_at(place.methods, 2)->start;
	cr_assert_null(sym_resolver_resolve(resolver, addresses, 3, result));
	cr_expect_str_eq(sym_result_at(result, 0)->name, "first");
	cr_expect_str_eq(sym_result_at(result, 1)->name, "second");
	cr_expect_eq(sym_result_at(result, 1)->offset_bytes, second->size_bytes - 1);
	cr_expect_eq(sym_result_at(result, 2)->source, SYM_SOURCE_READYTORUN);
	sym_result_destroy(result);
	sym_resolver_destroy(resolver);
	destroy_place(&place);
}

Test(relmap_source, rejects_another_signature_and_reports_both)
{
	static const char other[] = "00112233445566778899AABBCCDDEEFF";
	struct place place;
	char text[512];

	create_place(&place);
	write_crossgen2(&place, text, sizeof(text), other, 1, 0);
	put_map(&place, "sample.ni.r2rmap", text);
	expect_refused(&place, other, own_signature);
	destroy_place(&place);
}

Test(relmap_source, rejects_another_signature_after_the_rows)
{
	static const char other[] = "00112233445566778899AABBCCDDEEFF";
	const struct sym_symbol *first;
	struct place place;
	char text[512];

	create_place(&place);
	first = sym_symbols_at(place.methods, 0);
	snprintf(text, sizeof(text), "%08" PRIX64 " %02" PRIX64 " from the map\nFFFFFFFF 00 %s\n",
		 first->start, first->size_bytes, other);
	put_map(&place, "sample.ni.r2rmap", text);
	expect_refused(&place, other, own_signature);
	destroy_place(&place);
}

Test(relmap_source, rejects_another_mvid_and_reports_both)
{
	static const char other[] = "00112233-4455-6677-8899-aabbccddeeff";
	struct place place;
	char text[512], name[128];

	create_place(&place);
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 0);
	snprintf(name, sizeof(name), "sample.ni.{%s}.map", other);
	put_map(&place, name, text);
	expect_refused(&place, other, sym_image_mvid(place.image));
	destroy_place(&place);
}

/* Another compilation of the same IL by crossgen2: MVID and signature are equal. */
Test(relmap_source, rejects_another_compilation_of_the_same_assembly)
{
	struct place place;
	char text[512], rva[32];

	create_place(&place);
	write_crossgen2(&place, text, sizeof(text), own_signature, 1, 1);
	put_map(&place, "sample.ni.r2rmap", text);
	snprintf(rva, sizeof(rva), "0x%" PRIx64, sym_symbols_at(place.methods, 0)->start + 1);
	expect_refused(&place, "another compilation", rva);
	expect_refused(&place, "sample.ni.r2rmap", sym_image_mvid(place.image));
	destroy_place(&place);
}

Test(relmap_source, rejects_a_newer_format_number)
{
	struct place place;
	char text[512];

	create_place(&place);
	write_crossgen2(&place, text, sizeof(text), own_signature, 7, 0);
	put_map(&place, "sample.ni.r2rmap", text);
	expect_refused(&place, "version 7", "up to 1");
	destroy_place(&place);
}

Test(relmap_source, rejects_more_rows_than_methods)
{
	const struct sym_symbol *first;
	struct place place;
	size_t count, used = 0;
	char *text;

	create_place(&place);
	first = sym_symbols_at(place.methods, 0);
	count = sym_symbols_count(place.methods) + 1000;
	text = calloc(count, 64);
	cr_assert_not_null(text);
	for (size_t i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, 64, "%08" PRIx64 " %" PRIx64 " x\n",
					 first->start, first->size_bytes);
	put_map(&place, "sample.ni.r2rmap", text);
	expect_refused(&place, "more rows", "methods");
	free(text);
	destroy_place(&place);
}
