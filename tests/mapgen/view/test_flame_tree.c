/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "mapgen/view/flame_page.h"
#include "mapgen/view/flame_tree.h"

static struct profile *profile, *older;
static struct frame_table *frames;
static struct flame_tree tree;

static void setup(void)
{
	cr_assert_null(profile_create(&profile));
	cr_assert_null(profile_create(&older));
	cr_assert_null(frame_table_create(&frames));
}

static void teardown(void)
{
	flame_tree_deinit(&tree);
	profile_destroy(profile);
	profile_destroy(older);
	frame_table_destroy(frames);
}

TestSuite(flame_tree, .init = setup, .fini = teardown);
TestSuite(flame_page, .init = setup, .fini = teardown);

static uint32_t event_of(struct profile *of)
{
	uint32_t event = profile_find_event(of, PROFILE_CPU);

	if (event == UINT32_MAX)
		cr_assert_null(
			profile_add_event(of, "cpu-clock", PROFILE_CPU, PROFILE_UNIT_NS, &event));
	return event;
}

/* A stack of functions, "a;b;c", that was seen `count` times. */
static void add(struct profile *of, int32_t pid, const char *functions, uint64_t count)
{
	char *text = strdup(functions), *rest = text, *name;
	uint32_t numbers[16], stack, thread;
	size_t depth = 0;

	cr_assert_null(thread_table_find(&of->threads, pid, pid, &thread));
	while ((name = strsep(&rest, ";"))) {
		const struct profile_frame frame = { .name = name,
						     .image = "/lib/x.so",
						     .tier = "",
						     .reason = "",
						     .kind = FRAME_KIND_NATIVE,
						     .is_named = true };

		cr_assert_null(frame_table_add(of->frames, &frame, &numbers[depth++]));
	}
	cr_assert_null(frame_table_add_stack(of->frames, numbers, depth, STACK_END_WHOLE, &stack));
	cr_assert_null(profile_add(of, event_of(of), thread, stack, count, count * 10));
	free(text);
}

static struct view view_of(const struct profile *of)
{
	return (struct view){ .profile = of,
			      .input = "x",
			      .kind = VIEW_CPU,
			      .event = view_find_event(of, VIEW_CPU) };
}

static void make(bool joins_small, bool is_diff)
{
	const struct view now = view_of(profile), old = view_of(older);

	cr_assert_null(flame_tree_make(frames, &now, is_diff ? &old : NULL, joins_small, &tree));
}

/* "depth name self total\n" of each node. */
static char *shown(void)
{
	char *text;
	size_t size_bytes;
	FILE *to = open_memstream(&text, &size_bytes);

	for (size_t i = 0; i < tree.count; i++) {
		const struct flame_node *node = &tree.nodes[i];

		fprintf(to, "%u %s %lu %lu", node->depth, frame_table_at(frames, node->frame)->name,
			(unsigned long)node->self, (unsigned long)node->total);
		if (node->old_total)
			fprintf(to, " was %lu", (unsigned long)node->old_total);
		fputc('\n', to);
	}
	fclose(to);
	return text;
}

static void expect_nodes(const char *expected)
{
	char *text = shown();

	cr_expect_str_eq(text, expected);
	free(text);
}

Test(flame_tree, has_each_call_path_once_in_the_order_of_names)
{
	add(profile, 1, "main;b;c", 2);
	add(profile, 1, "main;a", 3);
	add(profile, 1, "main;b", 5);
	add(profile, 1, "main;b;c", 4);
	make(false, false);
	expect_nodes("0 all 0 14\n1 main 0 14\n2 a 3 3\n2 b 5 11\n3 c 6 6\n");
	cr_expect_eq(tree.deepest, 3);
}

Test(flame_tree, keeps_recursion_as_levels)
{
	add(profile, 1, "f;f;f", 1);
	add(profile, 1, "f", 1);
	make(true, false);
	expect_nodes("0 all 0 2\n1 f 1 2\n2 f 0 1\n3 f 1 1\n");
}

Test(flame_tree, begins_with_the_process_where_there_are_several)
{
	add(profile, 1, "main", 1);
	add(profile, 2, "main", 1);
	make(true, false);
	/* Neither has a name. */
	expect_nodes("0 all 0 2\n1 [process] 0 2\n2 main 2 2\n");
}

Test(flame_tree, joins_small_nodes_without_losing_weight)
{
	add(profile, 1, "main;big", 50000);
	add(profile, 1, "main;big;x;y", 1);
	add(profile, 1, "main;big;z", 2);
	add(profile, 1, "main;tiny", 1);
	make(true, false);
	expect_nodes("0 all 0 50004\n1 main 0 50004\n2 big 50000 50003\n3 (smaller ones) 3 3\n"
		     "2 (smaller ones) 1 1\n");
	flame_tree_deinit(&tree);
	make(false, false);
	cr_expect_eq(tree.count, 7);
	cr_expect_eq(tree.nodes[0].total, 50004);
}

Test(flame_tree, has_old_weights_beside_new_ones)
{
	add(profile, 1, "main;a", 3);
	add(older, 7, "main;a", 1);
	add(older, 7, "main;gone", 4);
	make(true, true);
	expect_nodes("0 all 0 3 was 5\n1 main 0 3 was 5\n2 a 3 3 was 1\n2 gone 0 0 was 4\n");
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

static char *written(struct sym_error *(*write)(const struct flame_page *page, FILE *to))
{
	const struct flame_tab tab = { .name = "CPU", .view = view_of(profile) };
	const struct flame_page page = { .tabs = &tab, .tab_count = 1 };
	char *text;
	size_t size_bytes;
	FILE *to = open_memstream(&text, &size_bytes);

	cr_assert_null(write(&page, to));
	fclose(to);
	cr_assert_eq(strlen(text), size_bytes);
	return text;
}

Test(flame_page, has_names_as_text_only)
{
	char *plain, *text, *svg, *long_name = malloc(60001);

	memset(long_name, 'n', 60000);
	long_name[60000] = '\0';
	add(profile, 1, "main", 1);
	plain = written(flame_page_write);
	add(profile, 1, "</script><img src=x onerror=alert(1)>", 1);
	add(profile, 1, "\"quote'\\ and\nnewline\x01\x7f\xff", 1);
	add(profile, 1, "\xe2\x80\xa8line\xe2\x80\xaeright", 1);
	add(profile, 1, long_name, 1);
	text = written(flame_page_write);
	svg = written(flame_svg_write);
	cr_expect_eq(count_of(text, "</script>"), count_of(plain, "</script>"));
	cr_expect_eq(count_of(text, "<img"), 0);
	cr_expect_eq(count_of(text, "\xe2\x80\xa8"), 0);
	cr_expect_eq(count_of(text, "\x01"), 0);
	cr_expect(strstr(text, "\\u003c/script\\u003e\\u003cimg"));
	cr_expect(strlen(text) < strlen(plain) + 6000);
	cr_expect_eq(count_of(svg, "<img"), 0);
	cr_expect_eq(count_of(svg, "\xff"), 0);
	cr_expect(strlen(svg) < 20000);
	free(plain);
	free(text);
	free(svg);
	free(long_name);
}

Test(flame_page, loads_nothing)
{
	char *text;

	add(profile, 1, "main", 1);
	text = written(flame_page_write);
	cr_expect(strstr(text, "default-src 'none'"));
	cr_expect_eq(count_of(text, "http"), 1, "only http-equiv");
	cr_expect_eq(count_of(text, "@DATA@"), 0);
	free(text);
}
