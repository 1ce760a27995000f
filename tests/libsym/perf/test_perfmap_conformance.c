/* SPDX-License-Identifier: MIT */
/*
 * Input on which readers of perf maps differ (BCC, perf, blazesym, one-collect, samply, parca), one
 * row each, with the result of libsym. Also the kinds of memory for which a map is used. Through
 * the public interface.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/elf_builder.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"

struct row {
	const char *input; /* what is odd about it */
	const char *text;
	size_t text_bytes;    /* 0: its string length */
	const char *expected; /* "START SIZE NAME" of each symbol, a line each */
	uint64_t bad_lines;
};

static const struct row rows[] = {
	{ "0x before the address", "0x1000 10 a\n", 0, "1000 10 a\n", 0 },
	{ "0x before address and size (JDK 25)", "0x1000 0x10 a\n", 0, "1000 10 a\n", 0 },
	{ "upper case and padding", "000000000000ABC0 0010 a\n", 0, "abc0 10 a\n", 0 },
	{ "start 0", "0 10 a\n", 0, "0 10 a\n", 0 },
	{ "a malformed line", "what\n1000 10 a\n", 0, "1000 10 a\n", 1 },
	{ "no name", "1000 10\n1000 10 \n2000 10 a\n", 0, "2000 10 a\n", 2 },
	{ "a torn last line", "1000 10 a\n2000 10 tor", 0, "1000 10 a\n", 0 },
	{ "CRLF", "1000 10 a b\r\n", 0, "1000 10 a b\n", 0 },
	{ "a NUL in the name", "1000 10 a\0b\n", 13, "1000 10 a\n", 0 },
	{ "a name that is not UTF-8", "1000 10 a\xff\xfe\n", 0, "1000 10 a\xff\xfe\n", 0 },
	{ "size 0: its own address alone", "1000 0 a\n", 0, "1000 1 a\n", 0 },
	{ "an end beyond the last address", "ffffffffffffffff 2 a\n1000 10 b\n", 0, "1000 10 b\n",
	  1 },
	{ "the same start twice: the later one", "1000 10 a\n1000 10 b\n", 0, "1000 10 b\n", 0 },
	{ "the same start, the later one smaller", "1000 20 a\n1000 10 b\n", 0,
	  "1000 10 b\n1010 10 a\n", 0 },
	{ "overlap: the later one, the older one clipped", "1000 20 a\n1010 20 b\n", 0,
	  "1000 10 a\n1010 20 b\n", 0 },
	{ "overlap in front", "1010 20 a\n1000 20 b\n", 0, "1000 20 b\n1020 10 a\n", 0 },
	{ "nested: the inner one, else the outer one", "1000 100 outer\n1010 10 in\n1030 10 ner\n",
	  0, "1000 10 outer\n1010 10 in\n1020 10 outer\n1030 10 ner\n1040 c0 outer\n", 0 },
	{ "nested, the outer one later", "1010 10 inner\n1000 100 outer\n", 0, "1000 100 outer\n",
	  0 },
};

Test(perf_map_conformance, agrees_with_every_row_of_the_table)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];
		int fd = elf_builder_file(row->text,
					  row->text_bytes ? row->text_bytes : strlen(row->text));
		struct sym_symbols *symbols;
		uint64_t bad_lines;
		char found[512] = "";
		size_t used = 0;

		cr_assert_null(sym_perf_map_read(fd, &symbols, &bad_lines));
		for (size_t at = 0; at < sym_symbols_count(symbols); at++) {
			const struct sym_symbol *symbol = sym_symbols_at(symbols, at);

			used += (size_t)snprintf(
				found + used, sizeof(found) - used, "%llx %llx %s\n",
				(unsigned long long)symbol->start,
				(unsigned long long)symbol->size_bytes, symbol->name);
		}
		cr_expect_str_eq(found, row->expected, "%s: %s", row->input, found);
		cr_expect_eq(bad_lines, row->bad_lines, "%s", row->input);
		sym_symbols_destroy(symbols);
		close(fd);
	}
}

Test(perf_map_conformance, skips_and_counts_a_name_above_the_limit)
{
	size_t bytes = ((size_t)1 << 20) + 64;
	char *text = malloc(bytes);
	struct sym_symbols *symbols;
	uint64_t bad_lines;
	int fd;

	memset(text, 'x', bytes);
	memcpy(text, "1000 10 ", 8);
	memcpy(text + bytes - 13, "\n2000 10 last\n", 13);
	text[bytes - 1] = '\n';
	fd = elf_builder_file(text, bytes);
	cr_assert_null(sym_perf_map_read(fd, &symbols, &bad_lines));
	cr_assert_eq(sym_symbols_count(symbols), 1);
	cr_expect_eq(sym_symbols_at(symbols, 0)->start, 0x2000);
	cr_expect_eq(bad_lines, 1);
	sym_symbols_destroy(symbols);
	close(fd);
	free(text);
}

/* Kinds of memory as the kernel writes them, all with jitted code. */
static const char maps[] = "10000000-10001000 r-xp 00000000 00:00 0 \n"
			   "10010000-10011000 r-xs 00000000 00:01 9 /memfd:doublemapper (deleted)\n"
			   "10020000-10021000 r-xp 00000000 00:00 0 [anon:jit]\n"
			   "10030000-10031000 r-xs 00000000 00:01 10 /dev/zero (deleted)\n"
			   "10040000-10041000 r-xp 00000000 00:00 0 //anon\n"
			   "10050000-10051000 r-xp 00000000 00:00 0 [heap]\n"
			   "10060000-10061000 r-xp 00000000 00:29 4 /opt/stripped/image\n"
			   "10070000-10071000 r-xs 00000000 00:0f 11 /anon_hugepage (deleted)\n"
			   "10080000-10081000 r-xs 00000000 00:01 12 /SYSV00000000 (deleted)\n";

/* The process that has these, and its perf map. */
struct world {
	struct proc_tree tree;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void open_world(struct world *world, const char *map)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };

	proc_tree_create(&world->tree);
	proc_tree_write_text(&world->tree, "/opt/stripped/image", "a file of no known kind");
	proc_tree_add_process(&world->tree, &(struct proc_tree_process){
						    .pid = 7, .uid = geteuid(), .maps = maps });
	proc_tree_write_text(&world->tree, "/tmp/perf-7.map", map);
	opts.root = world->tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &world->snapshot));
	cr_assert_null(sym_resolver_create(world->snapshot, &world->resolver));
	cr_assert_null(sym_result_create(&world->result));
}

static void close_world(struct world *world)
{
	sym_result_destroy(world->result);
	sym_resolver_destroy(world->resolver);
	sym_snapshot_close(world->snapshot);
	proc_tree_destroy(&world->tree);
}

Test(perf_map_conformance, is_used_for_every_kind_of_memory_with_code)
{
	static const uint64_t starts[] = { 0x10000000, 0x10010000, 0x10020000,
					   0x10030000, 0x10040000, 0x10050000,
					   0x10060000, 0x10070000, 0x10080000 };
	struct world world;
	char text[2048] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%llx 100 kind %zu\n",
					 (unsigned long long)starts[i], i);
	open_world(&world, text);
	cr_assert_null(sym_resolver_resolve(world.resolver, starts,
					    sizeof(starts) / sizeof(*starts), world.result));
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		const struct sym_answer *answer = sym_result_at(world.result, i);
		char name[16];

		snprintf(name, sizeof(name), "kind %zu", i);
		cr_assert_eq(answer->status, SYM_RESOLVED, "%s: %s %s", answer->image_path,
			     sym_status_text(answer->status), answer->reason ? answer->reason : "");
		cr_expect_str_eq(answer->name, name);
		cr_expect_eq(answer->source, SYM_SOURCE_PERF_MAP);
	}
	close_world(&world);
}

/* With W^X, .NET writes stubs at addresses of a view that it unmaps. A file may be there since. */
Test(perf_map_conformance, uses_no_stub_where_a_file_is_mapped)
{
	static const uint64_t starts[] = { 0x10010000, 0x10060000 };
	static const char map[] = "10010000 20 stub CreateHelper<DynamicHelper>\n"
				  "10060000 20 stub CreateHelper<DynamicHelper>\n"
				  "10060040 20 method\n";
	struct sym_symbols *symbols = NULL;
	struct world world;

	open_world(&world, map);
	cr_assert_null(sym_resolver_resolve(world.resolver, starts, 2, world.result));
	cr_expect_eq(sym_result_at(world.result, 0)->status, SYM_RESOLVED);
	cr_expect_eq(sym_result_at(world.result, 0)->kind, SYM_SYMBOL_STUB);
	cr_expect_neq(sym_result_at(world.result, 1)->status, SYM_RESOLVED);
	cr_expect_null(sym_result_at(world.result, 1)->name);
	cr_assert_null(sym_snapshot_symbols(world.snapshot, SYM_SYMBOLS_PERF_MAP, &symbols));
	cr_assert_eq(sym_symbols_count(symbols), 2);
	cr_expect_eq(sym_symbols_at(symbols, 0)->start, starts[0]);
	cr_expect_eq(sym_symbols_at(symbols, 1)->start, 0x10060040);
	sym_symbols_destroy(symbols);
	close_world(&world);
}

Test(perf_map_conformance, lists_stubs_of_a_map_without_a_process)
{
	static const char map[] = "10060000 20 stub CreateHelper<DynamicHelper>\n";
	int fd = elf_builder_file(map, sizeof(map) - 1);
	struct sym_symbols *symbols = NULL;

	cr_assert_null(sym_perf_map_read(fd, &symbols, NULL));
	cr_assert_eq(sym_symbols_count(symbols), 1);
	cr_expect_eq(sym_symbols_at(symbols, 0)->kind, SYM_SYMBOL_STUB);
	sym_symbols_destroy(symbols);
	close(fd);
}
