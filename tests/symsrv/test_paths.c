/* SPDX-License-Identifier: MIT */
/* Paths of both protocols to keys and back: key, ssqp, debuginfod, route, percent. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "libsym/base/hex.h"
#include "symsrv/key/debuginfod.h"
#include "symsrv/key/percent.h"
#include "symsrv/key/route.h"
#include "symsrv/key/ssqp.h"

static char room[20000];
static struct route route;

/* Text of the key that a path leads to, or the word for the kind of route. */
static const char *key_of(const char *path)
{
	static char text[KEY_TEXT_BYTES];

	route_parse(path, room, &route);
	if (route.kind != ROUTE_SSQP && route.kind != ROUTE_DEBUGINFOD && route.kind != ROUTE_MAPS)
		return route_kind_text(route.kind);
	key_text(&route.key, text);
	return text;
}

/* The keys are those of the protocol sheet; their identities are those of real files. */
static const struct {
	const char *path, *text;
} examples[] = {
	{ "libcoreclr.so/elf-buildid-ef8f58a0b402d11c68f78342ef4fcc7d23798d4c/libcoreclr.so",
	  "executable/ef8f58a0b402d11c68f78342ef4fcc7d23798d4c" },
	{ "_.debug/elf-buildid-sym-ce4ce0558d878a05754dff246ccea2a70a1db3a8/_.debug",
	  "debuginfo/ce4ce0558d878a05754dff246ccea2a70a1db3a8" },
	{ "md5_build_id/elf-buildid-001ba81f23966cf77e40bcbb0701cd3400000000/md5_build_id",
	  "executable/001ba81f23966cf77e40bcbb0701cd34" },
	{ "libmscordaccore.so/elf-buildid-coreclr-ef8f58a0b402d11c68f78342ef4fcc7d23798d4c/"
	  "libmscordaccore.so",
	  "clr/ef8f58a0b402d11c68f78342ef4fcc7d23798d4c/libmscordaccore.so" },
	{ "system.componentmodel.eventbasedasync.dll/9757F3A636c00/"
	  "system.componentmodel.eventbasedasync.dll",
	  "pe/9757f3a6-36c00/system.componentmodel.eventbasedasync.dll" },
	{ "helloworld.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/helloworld.pdb",
	  "pdb/99891b3ed7ae4c3babff8a2b4a9b0c43-1/helloworld.pdb" },
	{ "helloworld.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/msfz0/helloworld.pdb",
	  "msfz/99891b3ed7ae4c3babff8a2b4a9b0c43-1/helloworld.pdb" },
	{ "system.threading.thread.pdb/a43b38726e6a4b3cb1691f35f0d6cc48FFFFFFFF/"
	  "system.threading.thread.pdb",
	  "portable-pdb/a43b38726e6a4b3cb1691f35f0d6cc48/system.threading.thread.pdb" },
	{ "x.ni.r2rmap/r2rmap-v1-734d59d6de0e96aa3c77b3e2ed498097/x.ni.r2rmap",
	  "r2rmap/734d59d6de0e96aa3c77b3e2ed498097-1/x.ni.r2rmap" },
	{ "f.dylib/mach-uuid-497b72f6390a44fc878e5a2d63b6cc4b/f.dylib",
	  "macho/497b72f6390a44fc878e5a2d63b6cc4b" },
	{ "_.dwarf/mach-uuid-sym-497b72f6390a44fc878e5a2d63b6cc4b/_.dwarf",
	  "dwarf/497b72f6390a44fc878e5a2d63b6cc4b" },
	{ "libmscordaccore.dylib/mach-uuid-coreclr-497b72f6390a44fc878e5a2d63b6cc4b/"
	  "libmscordaccore.dylib",
	  "macho-clr/497b72f6390a44fc878e5a2d63b6cc4b/libmscordaccore.dylib" },
	{ "foo.cs/sha1-497b72f6390a44fc878e5a2d63b6cc4b0c2d9984/foo.cs",
	  "sha1/497b72f6390a44fc878e5a2d63b6cc4b0c2d9984/foo.cs" },
	{ "a.js.map/497b72f6390a44fc878e5a2d63b6cc4b0c2d9984497b72f6390a44fc878e5a2d/a.js.map",
	  "sha256/497b72f6390a44fc878e5a2d63b6cc4b0c2d9984497b72f6390a44fc878e5a2d/a.js.map" },
	{ "dotnet.wasm/deadbeef/dotnet.wasm", "wasm/deadbeef" },
};

Test(paths, every_kind_of_key_leads_to_its_object_and_back)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		char path[512];
		struct buf back;

		snprintf(path, sizeof(path), "/symbols/%s", examples[i].path);
		cr_expect_str_eq(key_of(path), examples[i].text);
		buf_init(&back, 4096);
		cr_expect(ssqp_format(&back, &route.key, false));
		cr_expect_str_eq(buf_string(&back), examples[i].path);
		buf_deinit(&back);
	}
}

Test(paths, text_of_a_key_reads_back_as_the_key)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		char text[KEY_TEXT_BYTES];
		struct key key;

		cr_expect(key_from_text(&key, examples[i].text));
		key_text(&key, text);
		cr_expect_str_eq(text, examples[i].text);
	}
}

/* An age of 32 bits, and ids of KEY_MAX_ID bytes. */
Test(paths, maps_are_found_by_the_identity_of_their_image)
{
	static const struct {
		const char *path, *text;
	} cases[] = {
		{ "/pe/A.dll/9757F3A636c00/r2rmap", "pe-r2rmap/9757f3a6-36c00/a.dll" },
		{ "/pe/a%20b.dll/9757F3A636c00/map", "pe-map/9757f3a6-36c00/a b.dll" },
		{ "/pe/a.dll/9757F3A636c00", "other" },
		{ "/pe/a.dll/9757F3A636c00/", "other" },
		{ "/pe/a.dll/map", "other" },
		{ "/pe//9757F3A636c00/map", "other" },
		{ "/pe/../9757F3A636c00/map", "other" },
		{ "/pe/a.dll/9757F3A636c00/b/map", "other" },
		{ "/pe/a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/map", "other" },
		{ "/pe/map", "other" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_expect_str_eq(key_of(cases[i].path), cases[i].text);
		if (route.kind == ROUTE_MAPS)
			cr_expect_neq(route.key.spelling, NULL);
	}
}

Test(paths, text_of_no_key_is_refused)
{
	char text[2 * KEY_MAX_ID + 32];
	struct key key;

	cr_expect(key_from_text(&key, "pdb/99891b3ed7ae4c3babff8a2b4a9b0c43-ffffffff/a"));
	cr_expect_eq(key.number, UINT32_MAX);
	cr_expect_not(key_from_text(&key, "pdb/99891b3ed7ae4c3babff8a2b4a9b0c43-100000000/a"));
	snprintf(text, sizeof(text), "executable/%0*d", 2 * KEY_MAX_ID, 1);
	cr_expect(key_from_text(&key, text));
	cr_expect_eq(key.id_bytes, (size_t)KEY_MAX_ID);
	snprintf(text, sizeof(text), "executable/%0*d", 2 * KEY_MAX_ID + 2, 1);
	cr_expect_not(key_from_text(&key, text));
}

/* Bytes behind the text do not belong to it. */
Test(paths, an_escape_ends_with_the_text)
{
	char decoded[8];
	size_t length;

	cr_expect_not(percent_decode("%41", 2, decoded, &length));
	cr_expect_not(percent_decode("%41", 1, decoded, &length));
	cr_assert(percent_decode("%41", 3, decoded, &length));
	cr_expect_str_eq(decoded, "A");
}

Test(paths, both_protocols_lead_to_one_object)
{
	char text[KEY_TEXT_BYTES];

	key_of("/symbols/_.debug/elf-buildid-sym-ce4ce0558d878a05754dff246ccea2a70a1db3a8/_.debug");
	key_text(&route.key, text);
	cr_assert_str_eq(key_of("/buildid/ce4ce0558d878a05754dff246ccea2a70a1db3a8/debuginfo"),
			 text);
}

Test(paths, padded_and_exact_build_ids_are_one_object)
{
	cr_expect_str_eq(
		key_of("/symbols/a/elf-buildid-001ba81f23966cf77e40bcbb0701cd3400000000/a"),
		"executable/001ba81f23966cf77e40bcbb0701cd34");
	cr_expect_str_eq(key_of("/buildid/001ba81f23966cf77e40bcbb0701cd34/executable"),
			 "executable/001ba81f23966cf77e40bcbb0701cd34");
	cr_expect_str_eq(
		key_of("/symbols/a/elf-buildid-001ba81f23966cf7000000000000000000000000/a"),
		"executable/001ba81f23966cf7");
}

Test(paths, letters_of_either_case_are_the_same_key)
{
	cr_expect_str_eq(
		key_of("/symbols/HelloWorld.PDB/99891B3ED7AE4C3BABFF8A2B4A9B0C431/HELLOworld.pdb"),
		"pdb/99891b3ed7ae4c3babff8a2b4a9b0c43-1/helloworld.pdb");
	cr_expect_str_eq(route.key.spelling, "HelloWorld.PDB");
	cr_expect_str_eq(key_of("/symbols/a.pdb/A43B38726E6A4B3CB1691F35F0D6CC48ffffffff/A.pdb"),
			 "portable-pdb/a43b38726e6a4b3cb1691f35f0d6cc48/a.pdb");
	cr_expect_str_eq(key_of("/symbols/_.DEBUG/"
				"ELF-BUILDID-SYM-CE4CE0558D878A05754DFF246CCEA2A70A1DB3A8/_.debug"),
			 "debuginfo/ce4ce0558d878a05754dff246ccea2a70a1db3a8");
}

Test(paths, old_clients_escape_the_slashes)
{
	cr_expect_str_eq(key_of("/symbols/"
				"_.debug%2Felf-buildid-sym-"
				"ce4ce0558d878a05754dff246ccea2a70a1db3a8%2f_.debug"),
			 "debuginfo/ce4ce0558d878a05754dff246ccea2a70a1db3a8");
}

Test(paths, perfview_doubles_a_slash)
{
	cr_expect_str_eq(key_of("/symbols//x.ni.r2rmap/r2rmap-v1-734d59d6de0e96aa3c77b3e2ed498097/"
				"x.ni.r2rmap"),
			 "r2rmap/734d59d6de0e96aa3c77b3e2ed498097-1/x.ni.r2rmap");
}

Test(paths, names_may_hold_what_must_be_escaped)
{
	struct buf back;

	cr_expect_str_eq(key_of("/symbols/a%20b%2Bc%23.dll/9757F3A636c00/a%20b+c%23.dll"),
			 "pe/9757f3a6-36c00/a b+c#.dll");
	buf_init(&back, 4096);
	cr_assert(ssqp_format(&back, &route.key, false));
	cr_expect_str_eq(buf_string(&back), "a%20b%2Bc%23.dll/9757F3A636c00/a%20b%2Bc%23.dll");
	buf_deinit(&back);
}

Test(paths, malformed_ssqp_keys_are_not_found)
{
	static const char *const paths[] = {
		"",
		"a",
		"a/b",
		"a/9757F3A636c00/b",
		"a/9757F3A6/a",
		"a/9757F3A6123456789/a",
		"a/9757F3AX36c00/a",
		"a/9757F3A636c00/x/a",
		"./9757F3A636c00/.",
		"../9757F3A636c00/..",
		"a/elf-buildid-/a",
		"a/elf-buildid-ef8f/a",
		"a/elf-buildid-ef8f58a0b402d11c68f78342ef4fcc7d23798d4/a",
		"a/elf-buildid-ef8f58a0b402d11c68f78342ef4fcc7d23798d4cc/a",
		"a/elf-buildid-0000000000000000000000000000000000000000/a",
		"a/elf-buildid-sym-gg8f58a0b402d11c68f78342ef4fcc7d23798d4c/a",
		"a/elf-other-ef8f58a0b402d11c68f78342ef4fcc7d23798d4c/a",
		"a/r2rmap-v-734d59d6de0e96aa3c77b3e2ed498097/a",
		"a/r2rmap-v1x-734d59d6de0e96aa3c77b3e2ed498097/a",
		"a/r2rmap-v99999999-734d59d6de0e96aa3c77b3e2ed498097/a",
		"a/r2rmap-v1-734d/a",
		"a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c43/a.pdb",
		"a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c43123456789/a.pdb",
		"a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c43x/a.pdb",
		"a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/msfz1/a.pdb",
		"a.dll/9757F3A636c00/msfz0/a.dll",
		"a/sha1-497b/a",
		"a.wasm/abc/a.wasm",
		"a/b/c/d/e/f",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char path[256];

		snprintf(path, sizeof(path), "/symbols/%s", paths[i]);
		cr_expect_str_eq(key_of(path), "other", "%s", paths[i]);
	}
}

Test(paths, probes_of_windows_clients_are_known)
{
	cr_expect_str_eq(key_of("/symbols/a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/file.ptr"),
			 "probe");
	cr_expect_str_eq(key_of("/symbols/a.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/a.pd_"), "probe");
	cr_expect_str_eq(key_of("/symbols/index2.txt"), "probe");
	cr_expect_str_eq(key_of("/download/symbols/pingme.txt"), "probe");
}

Test(paths, malformed_debuginfod_paths_are_bad)
{
	static const char *const paths[] = {
		"",
		"/",
		"a/debuginfo",
		"abc/debuginfo",
		"ABCD/debuginfo",
		"abcd",
		"abcd/",
		"abcd/debuginfo/",
		"abcd/debuginf",
		"abcd/section",
		"abcd/section/",
		"abcd/section/a/b",
		"abcd/source",
		"abcd/source/",
		"abcd//debuginfo",
		"../abcd/debuginfo",
		"abcg/debuginfo",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char path[256];

		snprintf(path, sizeof(path), "/buildid/%s", paths[i]);
		cr_expect_str_eq(key_of(path), "bad", "%s", paths[i]);
	}
}

Test(paths, build_ids_have_2_to_128_digits)
{
	char path[300] = "/buildid/";

	memset(path + 9, 'a', 128);
	snprintf(path + 9 + 128, 20, "/debuginfo");
	cr_expect_str_neq(key_of(path), "bad");
	memset(path + 9, 'a', 130);
	snprintf(path + 9 + 130, 20, "/debuginfo");
	cr_expect_str_eq(key_of(path), "bad");
	cr_expect_str_eq(key_of("/buildid/ab/executable"), "executable/ab");
}

Test(paths, source_paths_stay_as_they_are)
{
	struct buf back;

	cr_expect_str_eq(key_of("/buildid/abcd/source/zoo//../bar/a%2Bb%20c.c"),
			 "source/abcd//zoo//../bar/a+b c.c");
	buf_init(&back, 4096);
	cr_assert(debuginfod_format(&back, &route.key));
	cr_expect_str_eq(buf_string(&back), "buildid/abcd/source/zoo//../bar/a%2Bb%20c.c");
	buf_deinit(&back);
}

Test(paths, names_of_sections_have_255_letters_at_most)
{
	char path[300];

	snprintf(path, sizeof(path), "/buildid/abcd/section/%0255d", 1);
	cr_expect_str_eq(key_of(path), "debuginfo/abcd");
	snprintf(path, sizeof(path), "/buildid/abcd/section/%0256d", 1);
	cr_expect_str_neq(key_of(path), "debuginfo/abcd");
}

Test(paths, sections_have_a_name)
{
	cr_expect_str_eq(key_of("/buildid/abcd/section/.gdb_index"), "debuginfo/abcd");
	cr_expect_str_eq(route.section, ".gdb_index");
}

Test(paths, bytes_that_no_path_has_are_refused)
{
	cr_expect_str_eq(key_of("/symbols/a%00b/9757F3A636c00/a%00b"), "other");
	cr_expect_str_eq(key_of("/symbols/a%0d%0ab/9757F3A636c00/a"), "other");
	cr_expect_str_eq(key_of("/symbols/a%"), "other");
	cr_expect_str_eq(key_of("/symbols/a%4"), "other");
	cr_expect_str_eq(key_of("/symbols/a%gg"), "other");
	cr_expect_str_eq(key_of("/buildid/abcd/source/a%00b"), "bad");
	cr_expect_str_eq(key_of("/buildid/abcd/source/a%"), "bad");
	cr_expect_str_eq(key_of("/%gg"), "bad");
}

Test(paths, fixed_paths_are_exact)
{
	cr_expect_str_eq(key_of("/"), "page");
	cr_expect_str_eq(key_of("/metrics"), "metrics");
	cr_expect_str_eq(key_of("/metrics/"), "other");
	cr_expect_str_eq(key_of("/healthz"), "healthz");
	cr_expect_str_eq(key_of(""), "other");
	cr_expect_str_eq(key_of("/etc/passwd"), "other");
}

/* -------- what a file must be to answer a key -------- */

static struct sym_identity elf(const char *id, uint32_t contents)
{
	struct sym_identity identity = { .size = sizeof(identity),
					 .kind = SYM_IDENTITY_ELF,
					 .contents = contents,
					 .id_size_bytes = (uint32_t)strlen(id) / 2 };

	hex_read_bytes(id, identity.id, identity.id_size_bytes);
	return identity;
}

Test(paths, a_file_must_have_the_id_and_the_content_asked_for)
{
	struct sym_identity stripped = elf("abcdef", SYM_CONTENT_CODE);
	struct sym_identity debug = elf("abcdef", SYM_CONTENT_DEBUG_INFO);
	struct sym_identity other = elf("abcd", SYM_CONTENT_CODE | SYM_CONTENT_DEBUG_INFO);
	const char *reason;

	key_of("/buildid/abcdef/debuginfo");
	cr_expect(key_matches(&route.key, &debug, &reason));
	cr_expect_not(key_matches(&route.key, &stripped, &reason));
	cr_expect_str_eq(reason, "without the content asked for");
	cr_expect_not(key_matches(&route.key, &other, &reason));
	cr_expect_str_eq(reason, "another build-id");
	key_of("/buildid/abcdef/executable");
	cr_expect(key_matches(&route.key, &stripped, &reason));
	cr_expect_not(key_matches(&route.key, &debug, &reason));
}

Test(paths, an_id_of_zeros_is_the_id_of_no_file)
{
	struct sym_identity file = elf("0000000000000000000000000000000000000000",
				       SYM_CONTENT_CODE | SYM_CONTENT_DEBUG_INFO);
	struct key keys[2];
	const char *reason;

	cr_expect_eq(keys_of_identity(&file, "x", keys), 0u);
	key_of("/buildid/0000000000000000000000000000000000000000/debuginfo");
	cr_expect_not(key_matches(&route.key, &file, &reason));
	cr_expect_str_eq(reason, "another build-id");
}

Test(paths, a_padded_id_matches_the_file_with_the_short_one)
{
	struct sym_identity file = elf("001ba81f23966cf77e40bcbb0701cd34", SYM_CONTENT_CODE);
	const char *reason;

	key_of("/symbols/a/elf-buildid-001ba81f23966cf77e40bcbb0701cd3400000000/a");
	cr_expect(key_matches(&route.key, &file, &reason));
}

Test(paths, a_pdb_may_be_younger_but_not_older)
{
	struct sym_identity file = { .kind = SYM_IDENTITY_PDB, .age = 2, .id_size_bytes = 16 };
	const char *reason;

	hex_read_bytes("99891b3ed7ae4c3babff8a2b4a9b0c43", file.id, 16);
	key_of("/symbols/h.pdb/99891b3ed7ae4c3babff8a2b4a9b0c431/h.pdb");
	cr_expect(key_matches(&route.key, &file, &reason));
	key_of("/symbols/h.pdb/99891b3ed7ae4c3babff8a2b4a9b0c433/h.pdb");
	cr_expect_not(key_matches(&route.key, &file, &reason));
	key_of("/symbols/h.pdb/99891b3ed7ae4c3babff8a2b4a9b0c43FFFFFFFF/h.pdb");
	cr_expect_not(key_matches(&route.key, &file, &reason));
}

Test(paths, an_image_needs_stamp_and_size)
{
	struct sym_identity file = { .kind = SYM_IDENTITY_PE,
				     .timestamp = 0x9757f3a6,
				     .image_size_bytes = 0x36c00 };
	const char *reason;

	key_of("/symbols/a.dll/9757F3A636c00/a.dll");
	cr_expect(key_matches(&route.key, &file, &reason));
	file.image_size_bytes++;
	cr_expect_not(key_matches(&route.key, &file, &reason));
}
