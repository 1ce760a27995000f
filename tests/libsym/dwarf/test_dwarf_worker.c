/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf/dwarf_worker.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void answer_twice(void *context, int fd)
{
	int number;

	while (dwarf_worker_receive(fd, &number, sizeof(number))) {
		number *= 2;
		if (number == *(int *)context)
			abort();
		dwarf_worker_send(fd, &number, sizeof(number));
	}
}

Test(dwarf_worker, answers_until_it_is_stopped)
{
	struct dwarf_worker worker = { 0 };
	int never = 0, number = 21;

	cr_assert(dwarf_worker_start(&worker, answer_twice, &never, NULL, 0));
	for (int i = 0; i < 2; i++) {
		cr_assert(dwarf_worker_send(worker.fd, &number, sizeof(number)));
		cr_assert(dwarf_worker_receive(worker.fd, &number, sizeof(number)));
	}
	cr_expect_eq(number, 84);
	dwarf_worker_stop(&worker);
	cr_expect_eq(worker.pid, 0);
	dwarf_worker_stop(&worker);
}

Test(dwarf_worker, loses_one_answer_when_it_crashes)
{
	struct dwarf_worker worker = { 0 };
	int deadly = 42, number = 21;

	cr_assert(dwarf_worker_start(&worker, answer_twice, &deadly, NULL, 0));
	cr_assert(dwarf_worker_send(worker.fd, &number, sizeof(number)));
	cr_expect_not(dwarf_worker_receive(worker.fd, &number, sizeof(number)));
	dwarf_worker_stop(&worker);
}

static void tell_open_files(void *context, int fd)
{
	char open = 0;

	for (int i = 0; i < 256; i++)
		open += i > STDERR_FILENO && i != fd && fcntl(i, F_GETFD) >= 0;
	open += fcntl(*(int *)context, F_GETFD) >= 0 ? 100 : 0;
	dwarf_worker_send(fd, &open, sizeof(open));
}

Test(dwarf_worker, closes_all_other_files)
{
	struct dwarf_worker worker = { 0 };
	int ends[2], none = -1;
	char open;

	cr_assert_eq(pipe(ends), 0);
	cr_assert(dwarf_worker_start(&worker, tell_open_files, ends, ends, 1));
	cr_assert(dwarf_worker_receive(worker.fd, &open, sizeof(open)));
	cr_expect_eq(open, 101, "one that is kept: %d", open);
	dwarf_worker_stop(&worker);
	cr_assert(dwarf_worker_start(&worker, tell_open_files, ends, &none, 1));
	cr_assert(dwarf_worker_receive(worker.fd, &open, sizeof(open)));
	cr_expect_eq(open, 0, "none is kept: %d", open);
	dwarf_worker_stop(&worker);
	close(ends[0]);
	close(ends[1]);
}

Test(dwarf_worker, rejects_a_truncated_answer)
{
	const struct sym_inlined inlined = { .name = "inner", .call_file = "a.c", .call_line = 7 };
	const struct dwarf_place place = { .line.file = "a.c", .name = "outer" };
	struct text_set texts = { 0 };
	struct sym_inlined found;
	struct dwarf_place got;
	struct buf text;

	buf_init(&text, 4096);
	cr_assert(dwarf_reply_write(&place, &inlined, 1, &text));
	cr_assert(dwarf_reply_read(&text, &texts, &got, &found, 1));
	cr_expect_str_eq(got.line.file, "a.c");
	cr_expect_str_eq(got.name, "outer");
	cr_expect_null(got.linkage_name);
	cr_expect_str_eq(found.name, "inner");
	cr_expect_eq(found.call_file, got.line.file, "each text is kept once");
	cr_expect_eq(found.call_line, 7);
	while (text.size_bytes--)
		cr_expect_not(dwarf_reply_read(&text, &texts, &got, &found, 1));
	text_set_deinit(&texts);
	buf_deinit(&text);
}

/* ---- what a child may cost ------------------------------------------------------- */

enum {
	STEP_BYTES = 1 << 20
};

/* Allocates memory, one step for each byte that is sent, and reports the cost. */
static void take_memory(void *context, int fd)
{
	struct dwarf_cost *cost = context;
	struct dwarf_question question;

	dwarf_cost_enter_child(cost);
	while (dwarf_worker_receive(fd, &question, sizeof(question))) {
		struct dwarf_reply reply = { .is_found = 1 };

		dwarf_cost_limit_child(cost, question.room);
		for (uint64_t i = 0; reply.is_found && i < question.inlined_max; i++) {
			void *step = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			reply.is_found = step != MAP_FAILED;
			if (reply.is_found)
				memset(step, 1, STEP_BYTES);
		}
		reply.bill = dwarf_cost_bill(cost);
		dwarf_worker_send(fd, &reply, sizeof(reply));
	}
}

static struct dwarf_reply ask_for_memory(struct dwarf_worker *worker, const struct dwarf_cost *cost,
					 uint64_t steps)
{
	const struct dwarf_question question = { .room = dwarf_cost_room(cost),
						 .inlined_max = steps };
	struct dwarf_reply reply = { .is_found = 0 };

	cr_assert(dwarf_worker_send(worker->fd, &question, sizeof(question)));
	cr_assert(dwarf_worker_receive(worker->fd, &reply, sizeof(reply)));
	return reply;
}

Test(dwarf_worker, is_charged_for_the_memory_and_the_time_of_its_child)
{
	struct dwarf_worker worker = { 0 };
	struct dwarf_cost cost;
	struct dwarf_reply reply;
	struct budget budget;

	budget_init(&budget);
	budget.others.most_bytes = (uint64_t)512 << 20;
	budget.others.timers[BUDGET_CPU].most_ns = INT64_C(3600) * 1000000000;
	cost = dwarf_cost_of(&budget.others, "a.so");
	cr_assert(dwarf_worker_start(&worker, take_memory, &cost, NULL, 0));
	reply = ask_for_memory(&worker, &cost, 20);
	cr_expect(reply.is_found);
	cr_expect(dwarf_cost_charge_child(&cost, worker.pid, &reply.bill));
	cr_expect_geq(budget.others.held_bytes, (uint64_t)20 << 20);
	cr_expect_lt(budget.others.held_bytes, (uint64_t)40 << 20);
	cr_expect_gt(budget.others.timers[BUDGET_CPU].spent_ns, 0);
	reply = ask_for_memory(&worker, &cost, 20);
	cr_expect(dwarf_cost_charge_child(&cost, worker.pid, &reply.bill));
	cr_expect_geq(budget.others.held_bytes, (uint64_t)40 << 20);
	dwarf_cost_end_child(&cost, dwarf_worker_stop(&worker));
	cr_expect_eq(budget.others.held_bytes, 0);
	budget_deinit(&budget);
}

/* Memory that another child holds is not available. The allocator has 64 MB beside the budget. */
Test(dwarf_worker, gets_no_more_memory_than_the_account_has_left)
{
	struct dwarf_worker worker = { 0 };
	struct dwarf_cost cost;
	struct budget budget;

	budget_init(&budget);
	budget.others.most_bytes = (uint64_t)512 << 20;
	cost = dwarf_cost_of(&budget.others, "a.so");
	cr_assert(dwarf_worker_start(&worker, take_memory, &cost, NULL, 0));
	cr_expect(ask_for_memory(&worker, &cost, 20).is_found);
	cr_assert(budget_reserve(&budget.others, (uint64_t)500 << 20, "another"));
	cr_expect_not(ask_for_memory(&worker, &cost, 200).is_found);
	budget_release(&budget.others, (uint64_t)500 << 20);
	cr_expect(ask_for_memory(&worker, &cost, 20).is_found);
	dwarf_cost_end_child(&cost, dwarf_worker_stop(&worker));
	budget_deinit(&budget);
}

/* It would go on for ever. The kernel ends it within two seconds of CPU time. */
static void spin(void *context, int fd)
{
	volatile bool ends = false;

	(void)fd;
	dwarf_cost_enter_child(context);
	while (!ends)
		continue;
}

Test(dwarf_worker, is_ended_when_the_time_of_the_account_is_used_up)
{
	struct dwarf_worker worker = { 0 };
	struct dwarf_cost cost;
	struct budget budget;
	char any;

	budget_init(&budget);
	budget.others.timers[BUDGET_CPU].most_ns = 1000000;
	cost = dwarf_cost_of(&budget.others, "a.so");
	cr_assert(dwarf_worker_start(&worker, spin, &cost, NULL, 0));
	cr_expect_not(dwarf_worker_receive(worker.fd, &any, sizeof(any)));
	dwarf_cost_end_child(&cost, dwarf_worker_stop(&worker));
	cr_expect_eq(budget_left_ns(&budget.others, BUDGET_CPU), 0);
	budget_deinit(&budget);
}
