/* SPDX-License-Identifier: MIT */
/* Which PDB an assembly names, where it is found, and which files are not used. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/error.h"
#include "libsym/libsym.h"
#include "tests/support/byte_writer.h"
#include "tests/support/metadata_builder.h"
#include "tests/support/pdb_builder.h"
#include "tests/support/pe_builder.h"

#define POINTS(text) text, sizeof(text) - 1

/* Positions in the only section. */
enum {
	RVA = 0x2000,
	DEBUG_ENTRIES = RVA + 0x80,
	CODEVIEW = RVA + 0x100,
	CHECKSUM = RVA + 0x200,
	EMBEDDED = RVA + 0x400,
	METADATA = RVA + 0x1000,
	SECTION_BYTES = 0x2000,
};

enum {
	WITH_CHECKSUM = 1 << 0,
	WITH_EMBEDDED = 1 << 1,
	OF_WINDOWS = 1 << 2,
};

static const struct pdb_recipe recipe = {
	.id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 },
	.type_row_counts = { 1, 1 },
	.documents = { "/src/a.cs", "/src/b.cs" },
	.methods = { { 1, POINTS("\x00\x00\x00\x04\x0a\x05") } },
	.method_count = 1,
	.move_next = 1,
	.kickoff = 1,
	.source_link = "{}",
};

struct place {
	char directory[64];
	char image[96], pdb[96];
	struct buf pdb_bytes;
	const char *recorded; /* the path in the image */
	unsigned int fetched; /* number of requests */
};

static void write_file(const char *path, const void *bytes, size_t size_bytes)
{
	FILE *file = fopen(path, "wb");

	cr_assert_not_null(file);
	cr_assert(eq(sz, fwrite(bytes, 1, size_bytes, file), size_bytes));
	cr_assert(eq(int, fclose(file), 0));
}

static void put_entry(struct buf *section, size_t number, uint16_t minor, uint32_t type,
		      uint32_t size_bytes, uint32_t rva)
{
	size_t at = DEBUG_ENTRIES - RVA + 28 * number;

	/* the stamp is bytes 16 to 19 of the id */
	patch_u32(section, at + 4, 0x14131211);
	patch_u32(section, at + 8, (uint32_t)minor << 16);
	patch_u32(section, at + 12, type);
	patch_u32(section, at + 16, size_bytes);
	patch_u32(section, at + 20, rva);
}

static size_t pack(const struct buf *pdb, void *room, size_t room_bytes)
{
	z_stream stream = { .next_in = (Bytef *)pdb->data,
			    .avail_in = (uInt)pdb->size_bytes,
			    .next_out = room,
			    .avail_out = (uInt)room_bytes };

	cr_assert(eq(int, deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, 0), Z_OK));
	cr_assert(eq(int, deflate(&stream, Z_FINISH), Z_STREAM_END));
	deflateEnd(&stream);
	return room_bytes - stream.avail_out;
}

static void put_debug_data(struct buf *section, const struct place *place, unsigned int flags)
{
	char *data = section->data;
	struct buf blank = { 0 };
	uint8_t packed[0x800];
	size_t packed_bytes;

	memcpy(data + CODEVIEW - RVA, "RSDS", 4);
	memcpy(data + CODEVIEW - RVA + 4, recipe.id, 16);
	data[CODEVIEW - RVA + 20] = 1;
	memcpy(data + CODEVIEW - RVA + 24, place->recorded, strlen(place->recorded) + 1);
	put_entry(section, 0, flags & OF_WINDOWS ? 0 : 0x504d, 2,
		  (uint32_t)(24 + strlen(place->recorded) + 1), CODEVIEW);
	if (flags & WITH_CHECKSUM) {
		struct pdb_recipe zeroed = recipe;

		memset(zeroed.id, 0, sizeof(zeroed.id));
		buf_init(&blank, 1 << 20);
		build_pdb(&zeroed, &blank);
		memcpy(data + CHECKSUM - RVA, "SHA256", 7);
		SHA256((const uint8_t *)blank.data, blank.size_bytes,
		       (uint8_t *)data + CHECKSUM - RVA + 7);
		buf_deinit(&blank);
		put_entry(section, 1, 0, 19, 7 + 32, CHECKSUM);
	}
	if (flags & WITH_EMBEDDED) {
		packed_bytes = pack(&place->pdb_bytes, packed, sizeof(packed));
		memcpy(data + EMBEDDED - RVA, "MPDB", 4);
		patch_u32(section, EMBEDDED - RVA + 4, (uint32_t)place->pdb_bytes.size_bytes);
		memcpy(data + EMBEDDED - RVA + 8, packed, packed_bytes);
		put_entry(section, 2, 0, 17, (uint32_t)packed_bytes + 8, EMBEDDED);
	}
}

static void write_image(const struct place *place, unsigned int flags)
{
	static const uint8_t mvid[16] = { 9 };
	struct metadata_builder builder;
	struct buf metadata, section, file;
	struct pe_recipe pe = { .machine = 0x8664,
				.cli_rva = RVA,
				.debug_rva = DEBUG_ENTRIES,
				.debug_size_bytes = 3 * 28,
				.section_count = 1 };

	buf_init(&metadata, 1 << 16);
	buf_init(&section, 1 << 16);
	buf_init(&file, 1 << 20);
	metadata_builder_init(&builder);
	add_module(&builder, "App.dll", mvid);
	add_assembly(&builder, "App");
	build_metadata(&builder, &metadata);
	metadata_builder_deinit(&builder);
	put_zeros(&section, SECTION_BYTES);
	patch_u32(&section, 0, 72);
	patch_u32(&section, 8, METADATA);
	patch_u32(&section, 12, (uint32_t)metadata.size_bytes);
	memcpy(section.data + METADATA - RVA, metadata.data, metadata.size_bytes);
	put_debug_data(&section, place, flags);
	pe.sections[0] = (struct pe_recipe_section){
		RVA, 0x60000020, section.data, section.size_bytes, 0, 0
	};
	build_pe(&file, &pe);
	write_file(place->image, file.data, file.size_bytes);
	buf_deinit(&metadata);
	buf_deinit(&section);
	buf_deinit(&file);
}

static void begin(struct place *place)
{
	*place = (struct place){ .directory = "/tmp/pdb-search-XXXXXX",
				 .recorded = "C:\\b\\App.pdb" };
	cr_assert_not_null(mkdtemp(place->directory));
	snprintf(place->image, sizeof(place->image), "%s/App.dll", place->directory);
	snprintf(place->pdb, sizeof(place->pdb), "%s/App.pdb", place->directory);
	buf_init(&place->pdb_bytes, 1 << 20);
	build_pdb(&recipe, &place->pdb_bytes);
}

static void end(struct place *place)
{
	unlink(place->image);
	unlink(place->pdb);
	cr_expect(eq(int, rmdir(place->directory), 0));
	buf_deinit(&place->pdb_bytes);
}

static void write_pdb(const struct place *place, const char *path)
{
	write_file(path, place->pdb_bytes.data, place->pdb_bytes.size_bytes);
}

static void expect_line(const struct sym_pdb *pdb)
{
	struct sym_source_line line;

	cr_assert(eq(int, sym_pdb_find_line(pdb, 0x06000001, 3, &line), 1));
	cr_expect_str_eq(line.file, "/src/a.cs");
	cr_expect(eq(u32, line.line, 10));
	cr_expect(eq(u32, line.column, 5));
	cr_expect(eq(int, sym_pdb_find_line(pdb, 0x02000001, 3, &line), 0));
	cr_expect(eq(int, sym_pdb_find_line(pdb, 0x06000002, 3, &line), 0));
}

static struct sym_image *open_image(const struct place *place)
{
	struct sym_image *image;

	cr_assert_null(sym_image_open(place->image, &image));
	return image;
}

static void expect_found(const struct place *place)
{
	struct sym_image *image = open_image(place);
	const struct sym_pdb *pdb = sym_image_pdb(image, NULL);

	cr_assert_not_null(pdb);
	expect_line(pdb);
	sym_image_close(image);
}

static void expect_none(const struct place *place, const char *why)
{
	struct sym_image *image = open_image(place);
	const char *reason = NULL;

	cr_assert_null(sym_image_pdb(image, &reason));
	cr_assert_not_null(reason);
	cr_expect_not_null(strstr(reason, why), "%s", reason);
	sym_image_close(image);
}

Test(pdb_search, reports_what_the_image_names)
{
	const struct sym_pdb_reference *reference;
	struct sym_image *image;
	struct place place;

	begin(&place);
	write_image(&place, WITH_CHECKSUM);
	image = open_image(&place);
	reference = sym_image_pdb_reference(image);
	cr_assert_not_null(reference);
	cr_expect_str_eq(reference->path, "C:\\b\\App.pdb");
	cr_expect_str_eq(reference->name, "App.pdb");
	cr_expect_str_eq(reference->checksum_algorithm, "SHA256");
	cr_expect(eq(u32, reference->checksum_size_bytes, 32));
	cr_expect(eq(int, reference->is_portable, 1));
	cr_expect(eq(int, reference->is_embedded, 0));
	/* in the order of the text: 04030201-0605-... */
	cr_expect(eq(int, memcmp(reference->guid, "\4\3\2\1\6\5\10\7\11\12", 10), 0));
	sym_image_close(image);
	end(&place);
}

Test(pdb_search, finds_it_beside_the_image_and_inside)
{
	struct place place;

	begin(&place);
	write_image(&place, 0);
	expect_none(&place, "App.pdb is not on this machine");
	write_pdb(&place, place.pdb);
	expect_found(&place);
	write_image(&place, WITH_CHECKSUM);
	expect_found(&place);
	unlink(place.pdb);
	write_image(&place, WITH_EMBEDDED | WITH_CHECKSUM);
	expect_found(&place);
	end(&place);
}

static void expect_in_tree(const char *key)
{
	struct place place;
	char parts[3][400];
	const char *dirs[] = { NULL, NULL };

	begin(&place);
	write_image(&place, 0);
	snprintf(parts[0], sizeof(parts[0]), "%.63s/App.pdb", place.directory);
	snprintf(parts[1], sizeof(parts[1]), "%.100s/%.40s", parts[0], key);
	snprintf(parts[2], sizeof(parts[2]), "%.200s/App.pdb", parts[1]);
	mkdir(parts[0], 0700);
	mkdir(parts[1], 0700);
	write_pdb(&place, parts[2]);
	for (int i = 0; i < 2; i++) {
		struct sym_image *image = open_image(&place);

		dirs[0] = i ? place.directory : NULL;
		cr_assert_null(sym_image_set_debug_dirs(image, dirs));
		cr_expect(eq(int, sym_image_pdb(image, NULL) != NULL, i), "%s", key);
		sym_image_close(image);
	}
	unlink(parts[2]);
	rmdir(parts[1]);
	rmdir(parts[0]);
	end(&place);
}

Test(pdb_search, finds_it_in_trees_of_symbol_servers)
{
	expect_in_tree("0403020106050807090a0b0c0d0e0f10FFFFFFFF");
	expect_in_tree("0403020106050807090a0b0c0d0e0f10ffffffff");
	expect_in_tree("0403020106050807090A0B0C0D0E0F10FFFFFFFF");
}

Test(pdb_search, uses_no_pdb_of_another_build)
{
	struct place place;

	begin(&place);
	write_image(&place, WITH_CHECKSUM);
	place.pdb_bytes.data[place.pdb_bytes.size_bytes - 1] ^= 1;
	write_pdb(&place, place.pdb);
	expect_none(&place, "checksum");
	place.pdb_bytes.size_bytes = 100;
	write_pdb(&place, place.pdb);
	expect_none(&place, "portable PDB");
	write_file(place.pdb, "Microsoft C/C++ MSF 7.00\r\n", 26);
	expect_none(&place, "Windows PDB");
	write_image(&place, OF_WINDOWS);
	expect_none(&place, "Windows PDB");
	end(&place);
}

Test(pdb_search, uses_no_pdb_with_another_id)
{
	struct pdb_recipe other = recipe;
	struct place place;

	begin(&place);
	write_image(&place, 0);
	for (size_t i = 0; i < 20; i += 19) {
		other.id[i] ^= 1;
		buf_clear(&place.pdb_bytes);
		build_pdb(&other, &place.pdb_bytes);
		write_pdb(&place, place.pdb);
		expect_none(&place, "another build");
		other.id[i] ^= 1;
	}
	end(&place);
}

static int fetch(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	struct place *place = context;

	cr_expect(eq(int, (int)request->kind, SYM_FETCH_PDB));
	cr_assert_not_null(request->pdb);
	cr_expect_str_eq(request->pdb->name, "App.pdb");
	if (place->fetched++ == 1)
		return EIO;
	*path_ret = strdup(place->pdb);
	return 0;
}

Test(pdb_search, asks_the_fetch_function_once)
{
	struct sym_image *image;
	const char *reason;
	struct place place;

	begin(&place);
	write_image(&place, 0);
	snprintf(place.pdb, sizeof(place.pdb), "%s/fetched", place.directory);
	write_pdb(&place, place.pdb);
	image = open_image(&place);
	cr_assert_null(sym_image_set_fetch(image, fetch, &place));
	cr_expect_not_null(sym_image_pdb_reference(image));
	cr_expect(eq(u32, place.fetched, 0));
	cr_expect_not_null(sym_image_pdb(image, NULL));
	cr_expect_not_null(sym_image_pdb(image, NULL));
	cr_expect(eq(u32, place.fetched, 1));
	sym_image_close(image);
	image = open_image(&place);
	cr_assert_null(sym_image_set_fetch(image, fetch, &place));
	cr_expect_null(sym_image_pdb(image, &reason));
	cr_expect_not_null(strstr(reason, "could not be fetched"), "%s", reason);
	sym_image_close(image);
	end(&place);
}

Test(pdb_search, opens_a_pdb_alone)
{
	struct sym_pdb_reference reference = { .is_portable = 1, .stamp = 0x14131211 };
	static const uint8_t text_order[16] = { 4, 3,  2,  1,  6,  5,  8,  7,
						9, 10, 11, 12, 13, 14, 15, 16 };
	struct sym_error *error;
	struct sym_pdb *pdb;
	struct place place;
	size_t size;

	begin(&place);
	error = sym_pdb_open(place.pdb, &pdb);
	cr_assert_not_null(error);
	cr_expect(eq(int, sym_error_code(error), SYM_ERROR_NOT_FOUND));
	sym_error_destroy(error);
	write_pdb(&place, place.pdb);
	cr_assert_null(sym_pdb_open(place.pdb, &pdb));
	expect_line(pdb);
	cr_expect(eq(u32, sym_pdb_kickoff(pdb, 0x06000001), 0x06000001));
	cr_expect(eq(u32, sym_pdb_kickoff(pdb, 0x06000002), 0));
	cr_expect(eq(sz, sym_pdb_document_count(pdb), 2));
	cr_expect_str_eq(sym_pdb_document_at(pdb, 1), "/src/b.cs");
	cr_expect_null(sym_pdb_document_at(pdb, 2));
	cr_expect(eq(int, strncmp(sym_pdb_source_link(pdb, &size), "{}", 2), 0));
	cr_expect(eq(sz, size, 2));
	memcpy(reference.guid, text_order, 16);
	cr_expect(eq(int, sym_pdb_matches(pdb, &reference), 1));
	reference.stamp++;
	cr_expect(eq(int, sym_pdb_matches(pdb, &reference), 0));
	sym_pdb_close(pdb);
	sym_pdb_close(NULL);
	end(&place);
}

Test(pdb_search, reads_a_pdb_from_an_open_file)
{
	struct sym_error *error;
	struct sym_pdb *pdb;
	struct place place;
	int fd;

	begin(&place);
	write_pdb(&place, place.pdb);
	fd = open(place.pdb, O_RDONLY | O_CLOEXEC);
	cr_assert_null(sym_pdb_read(fd, &pdb));
	expect_line(pdb);
	sym_pdb_close(pdb);
	close(fd);
	fd = open(place.directory, O_RDONLY | O_CLOEXEC);
	error = sym_pdb_read(fd, &pdb);
	cr_expect(eq(int, sym_error_code(error), SYM_ERROR_ARGUMENT));
	sym_error_destroy(error);
	close(fd);
	error = sym_pdb_read(-1, &pdb);
	cr_assert_not_null(error);
	sym_error_destroy(error);
	end(&place);
}

Test(pdb_search, words_of_qualities_are_distinct)
{
	cr_expect_str_eq(sym_line_quality_text(SYM_LINE_EXACT), "exact");
	cr_expect_str_eq(sym_line_quality_text(SYM_LINE_NEAREST), "nearest");
	cr_expect_str_eq(sym_line_quality_text(SYM_LINE_PROLOG), "prolog");
	cr_expect_str_eq(sym_line_quality_text((enum sym_line_quality)99), "none");
}
