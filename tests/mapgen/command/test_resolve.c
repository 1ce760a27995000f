/* SPDX-License-Identifier: MIT */
/* resolve on the recorded process and on files: one line for each question, in order. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/program.h"
#include "tests/support/recorded.h"

static const char root[] = RECORDED_ROOT;
static const char image[] = "fixtures/recorded/opt/sample/sample.dll";
static char *scratch, *pid;

static void set_up(void)
{
	scratch = scratch_create();
	pid = recorded_pid();
}

static void tear_down(void)
{
	free(pid);
	scratch_remove(scratch);
}

TestSuite(resolve, .init = set_up, .fini = tear_down);

static struct program_run ask(const char *questions, const char *const *arguments)
{
	return program_run(scratch, questions, arguments);
}

#define ASK(questions, ...) ask(questions, (const char *const[]){ __VA_ARGS__, NULL })

static const char *line_of(const char *text, size_t number)
{
	while (number-- && text)
		text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
	return text ? text : "";
}

static void expect_line(const struct program_run *done, size_t number, const char *start,
			const char *words)
{
	const char *line = line_of(done->out, number);
	char *copy = strndup(line, strcspn(line, "\n"));

	cr_expect(!strncmp(copy, start, strlen(start)), "'%s' does not begin with '%s'", copy,
		  start);
	cr_expect(strstr(copy, words), "'%s' is not in '%s'", words, copy);
	free(copy);
}

Test(resolve, names_a_jitted_method_with_its_offset)
{
	char *name, *question, *answer;
	uint64_t address = recorded_method(pid, &name);
	struct program_run done;

	cr_assert(asprintf(&question, "0x%" PRIx64, address + 4) > 0);
	cr_assert(asprintf(&answer, "%s %s+0x4 (", question, name) > 0);
	done = ASK(NULL, "resolve", pid, question, "--root", root);
	expect_line(&done, 0, answer, ")");
	cr_expect_eq(done.exit_code, 0);
	cr_expect_eq(count_lines(done.out), 1);
	program_run_deinit(&done);
	free(answer);
	free(question);
	free(name);
}

Test(resolve, names_jitted_code_as_perf_shows_it)
{
	char *name, *file, *question;
	uint64_t address = recorded_method(pid, &name);
	uint64_t offset = recorded_file_offset(pid, address + 4, &file);
	struct program_run done;

	cr_assert_str_eq(file, "/memfd:doublemapper (deleted)");
	cr_assert(asprintf(&question, "%s+0x%" PRIx64, file, offset) > 0);
	done = ASK(question, "resolve", pid, "--root", root);
	expect_line(&done, 0, question, name);
	expect_line(&done, 0, question, "+0x4 (");
	cr_expect_eq(done.exit_code, 0);
	program_run_deinit(&done);
	free(question);
	free(file);
	free(name);
}

Test(resolve, answers_in_the_order_asked)
{
	struct program_run done = ASK("0x10\nsample.dll+0x300\n\n  20\t\r\nzz\n30", "resolve", "-p",
				      pid, "--root", root);

	cr_expect_eq(count_lines(done.out), 5, "%s", done.out);
	expect_line(&done, 0, "0x10 [", "]");
	expect_line(&done, 1, "sample.dll+0x300 ", "sample.dll)");
	expect_line(&done, 2, "20 [", "]");
	expect_line(&done, 3, "zz [not an address", "]");
	expect_line(&done, 4, "30 [", "]");
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
}

Test(resolve, an_address_without_a_name_is_an_answer)
{
	struct program_run done =
		ASK(NULL, "resolve", pid, "0", "ffffffffffffffff", "--root", root);

	expect_line(&done, 0, "0 [", "]");
	expect_line(&done, 1, "ffffffffffffffff [", "]");
	cr_expect_eq(done.exit_code, 0);
	program_run_deinit(&done);
}

Test(resolve, malformed_questions_cost_their_line)
{
	static const char *const bad[] = {
		"0x",    "x10",         "0x1g",          "-10",          "0x11112222333344445",
		"+0x10", "sample.dll+", "sample.dll+zz", "not/there+0x1"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct program_run done = ASK(bad[i], "resolve", pid, "--root", root);

		cr_expect_eq(done.exit_code, 1, "%s: exit code %d", bad[i], done.exit_code);
		expect_line(&done, 0, bad[i], "]");
		cr_expect_eq(count_lines(done.out), 1, "%s", done.out);
		program_run_deinit(&done);
	}
}

Test(resolve, a_line_without_end_costs_one_line)
{
	size_t length = 3000000;
	char *questions = malloc(length + 8);
	struct program_run done;

	cr_assert(questions);
	memset(questions, '7', length);
	memcpy(questions + length, "\n0x10\n", 7);
	done = ASK(questions, "resolve", pid, "--root", root);
	cr_expect_eq(count_lines(done.out), 2, "%.200s", done.out);
	expect_line(&done, 0, "(a line that is too long) [", "]");
	expect_line(&done, 1, "0x10 [", "]");
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
	free(questions);
}

Test(resolve, many_lines_are_all_answered)
{
	enum {
		LINES = 5000,
		LINE_BYTES = 8
	};
	char *questions = malloc(LINES * LINE_BYTES + 1);
	struct program_run done;

	cr_assert(questions);
	for (int i = 0; i < LINES; i++)
		snprintf(questions + i * LINE_BYTES, LINE_BYTES + 1, "%07x\n", i);
	done = ASK(questions, "resolve", pid, "--root", root);
	cr_expect_eq(count_lines(done.out), LINES);
	expect_line(&done, LINES - 1, "0001387 [", "]");
	program_run_deinit(&done);
	free(questions);
}

Test(resolve, no_questions_are_no_answers)
{
	struct program_run done = ASK("", "resolve", pid, "--root", root);

	cr_expect_eq(done.exit_code, 0);
	cr_expect_eq(done.out_bytes, 0);
	program_run_deinit(&done);
	done = ASK("", "resolve", pid, "--root", root, "--json");
	cr_expect_str_eq(done.out, "[]\n");
	program_run_deinit(&done);
}

/* The first method of the image by its own map: the same place as rva and as file offset. */
static uint64_t first_method(char **name_ret)
{
	char *output = scratch_path(scratch, "maps"), *path, *text;
	struct program_run done = ASK(NULL, "generate", image, "-o", output);
	uint64_t rva, size_bytes;
	int name;

	program_run_deinit(&done);
	path = scratch_only_file(output, ".map");
	text = scratch_read(path, NULL);
	cr_assert(text);
	cr_assert_eq(sscanf(text, "%" SCNx64 " %" SCNx64 " %n", &rva, &size_bytes, &name), 2);
	*name_ret = strndup(text + name, strcspn(text + name, "\n"));
	free(text);
	free(path);
	free(output);
	return rva;
}

Test(resolve, positions_in_files_need_no_process)
{
	char *name, *by_rva, *by_offset;
	uint64_t rva = first_method(&name);
	struct program_run done;

	/* The executable section of the sample: rva 0x10200 is offset 0x200. */
	cr_assert(asprintf(&by_rva, "%s+0x%" PRIx64, image, rva) > 0);
	cr_assert(asprintf(&by_offset, "%s+0x%" PRIx64, image, rva - 0x10000) > 0);
	done = ASK(NULL, "resolve", "--rva", by_rva, "--tiers=strip");
	expect_line(&done, 0, by_rva, name);
	cr_expect_eq(done.exit_code, 0, "%s%s", done.out, done.err);
	program_run_deinit(&done);
	done = ASK(NULL, "resolve", by_offset, "/nonexistent+0x1", "0x1000");
	expect_line(&done, 0, by_offset, name);
	expect_line(&done, 1, "/nonexistent+0x1 [", "]");
	expect_line(&done, 2, "0x1000 [", "needs a PID");
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
	free(by_offset);
	free(by_rva);
	free(name);
}

Test(resolve, short_names_are_type_and_method)
{
	char *name, *question, *parameters;
	uint64_t address = recorded_method(pid, &name);
	struct program_run done;

	/* "instance int32 [System.Linq] N.T::M()[Tier]" becomes "N.T::M". */
	cr_assert(asprintf(&question, "%" PRIx64, address) > 0);
	done = ASK(NULL, "resolve", pid, question, "--root", root, "--names=short",
		   "--tiers=strip");
	cr_expect(strstr(done.out, "+0x0 ("), "%s", done.out);
	parameters = strchr(name, '(');
	cr_assert(parameters);
	cr_expect(!strstr(done.out, parameters), "%s", done.out);
	cr_expect(!strstr(done.out, "instance"), "%s", done.out);
	program_run_deinit(&done);
	free(question);
	free(name);
}

Test(resolve, json_is_one_array_with_every_answer)
{
	struct program_run done = ASK("10\nzz\n", "resolve", pid, "--root", root, "--json");

	cr_expect_eq(done.out[0], '[');
	cr_expect_str_eq(done.out + done.out_bytes - 3, "}]\n");
	cr_expect_eq(count_lines(done.out), 2);
	cr_expect(strstr(done.out, "\"position\":\"0x10\""), "%s", done.out);
	cr_expect(strstr(done.out, "\"input\":\"zz\""), "%s", done.out);
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
}
