/* SPDX-License-Identifier: MIT */
#include "libsym/dwarf/dwarf_cost.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"

enum {
	STEPS_A_LOOK = 16,
	/* Memory that libdw needs per byte: an abbreviation has at least 5 bytes and becomes a
	 * record of about 80; a line has at least one byte and becomes a record of about 100. */
	ABBREVIATION_TIMES = 16,
	LINE_TIMES = 100,
	/* what libdw and we allocate for a unit, which has at least 12 bytes in a file */
	UNIT_BYTES = 512,
	ALLOCATOR_BYTES = 64 << 20
};

struct dwarf_cost dwarf_cost_of(struct budget_account *account, const char *path)
{
	return (struct dwarf_cost){ .charge = { .account = account, .path = path },
				    .room_bytes = budget_left_bytes(account) };
}

/* Address space and resident memory of the process; zeros: unknown. */
static void measure_process(uint64_t *virtual_ret, uint64_t *resident_ret)
{
	int fd AUTO_CLOSE = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long whole, resident;
	char text[128];
	ssize_t size_bytes = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	*virtual_ret = *resident_ret = 0;
	if (size_bytes <= 0)
		return;
	text[size_bytes] = '\0';
	if (sscanf(text, "%llu %llu", &whole, &resident) != 2)
		return;
	*virtual_ret = whole * page_bytes;
	*resident_ret = resident * page_bytes;
}

/*
 * libdw reads a table of abbreviations again for each unit that uses it, so sizes alone do not
 * predict its memory. Called at each step; the process is measured at every STEPS_A_LOOK-th call.
 */
static bool growth_is_within_budget(struct dwarf_cost *cost)
{
	struct budget_account *account = cost->charge.account;
	uint64_t virtual_bytes, now_bytes;

	if (!account || cost->steps++ % STEPS_A_LOOK)
		return true;
	if (!budget_has_time(account, BUDGET_CPU, cost->charge.path))
		return false;
	measure_process(&virtual_bytes, &now_bytes);
	if (!cost->start_bytes)
		cost->start_bytes = now_bytes;
	if (cost->room_bytes == UINT64_MAX || now_bytes <= cost->start_bytes + cost->room_bytes)
		return true;
	budget_record_excess(account, BUDGET_EXCESS_MEMORY, cost->charge.path);
	return false;
}

bool dwarf_cost_charge_unit(struct dwarf_cost *cost)
{
	return dwarf_files_charge(&cost->charge, UNIT_BYTES) && growth_is_within_budget(cost);
}

/* Does the budget cover what libdw makes of `bytes`? */
static bool is_affordable(const struct dwarf_cost *cost, uint64_t bytes, uint64_t times)
{
	struct budget_account *account = cost->charge.account;

	if (!account || bytes <= budget_left_bytes(account) / times)
		return true;
	budget_record_excess(account, BUDGET_EXCESS_MEMORY, cost->charge.path);
	return false;
}

bool dwarf_cost_may_abbreviate(struct dwarf_cost *cost, Elf *elf)
{
	Elf_Data *section = cost->charge.account ? dwarf_files_section(elf, "abbrev") : NULL;

	return !section || is_affordable(cost, section->d_size, ABBREVIATION_TIMES);
}

bool dwarf_cost_may_read(struct dwarf_cost *cost, uint64_t unit_bytes, uint64_t times)
{
	return is_affordable(cost, unit_bytes, times) && growth_is_within_budget(cost);
}

/* Estimates by the size of the unit's line program, or of the whole section if that is unknown. */
bool dwarf_cost_may_line(const struct dwarf_cost *cost, uint64_t offset, struct reader section)
{
	uint64_t bytes = section.size_bytes;
	uint32_t length;

	reader_seek(&section, (size_t)offset);
	length = reader_u32(&section);
	if (reader_ok(&section) && length < bytes)
		bytes = length;
	return is_affordable(cost, bytes, LINE_TIMES);
}

/* ---- in a child ------------------------------------------------------------------- */

struct dwarf_room dwarf_cost_room(const struct dwarf_cost *cost)
{
	return (struct dwarf_room){ budget_left_bytes(cost->charge.account),
				    budget_left_ns(cost->charge.account, BUDGET_CPU) };
}

static uint64_t growth_of(const struct dwarf_cost *cost)
{
	uint64_t whole_bytes, now_bytes;

	measure_process(&whole_bytes, &now_bytes);
	return now_bytes > cost->start_bytes ? now_bytes - cost->start_bytes : 0;
}

static void limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit both;

	if (getrlimit(resource, &both))
		return;
	both.rlim_cur = value < both.rlim_max ? value : both.rlim_max;
	setrlimit(resource, &both);
}

/* The kernel's limits also hold inside libdw: a child that reaches one is killed or gets no
 * memory. Only the soft limits change, because more may be left for the next piece of work. */
void dwarf_cost_limit_child(struct dwarf_cost *cost, struct dwarf_room room)
{
	struct budget_account *account = cost->charge.account;
	uint64_t whole_bytes, resident_bytes;
	struct timespec spent;

	budget_set_left(account, room.left_bytes, room.left_ns);
	measure_process(&whole_bytes, &resident_bytes);
	cost->room_bytes = room.left_bytes;
	if (room.left_bytes != UINT64_MAX && whole_bytes) {
		cost->room_bytes += growth_of(cost);
		/* Declared sizes are charged already, but not yet allocated. */
		limit(RLIMIT_AS,
		      whole_bytes + cost->charge.bytes + room.left_bytes + ALLOCATOR_BYTES);
	}
	if (room.left_ns != INT64_MAX && !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent))
		limit(RLIMIT_CPU,
		      (uint64_t)(spent.tv_sec + (spent.tv_nsec + room.left_ns) / 1000000000 + 1));
}

void dwarf_cost_enter_child(struct dwarf_cost *cost)
{
	uint64_t whole_bytes;

	measure_process(&whole_bytes, &cost->start_bytes);
	budget_enter_child(cost->charge.account);
	budget_begin(cost->charge.account, BUDGET_CPU);
	dwarf_cost_limit_child(cost, dwarf_cost_room(cost));
}

/* CPU time of a child so far; 0: unknown. */
static int64_t spent_by(pid_t pid)
{
	struct timespec spent;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &spent))
		return 0;
	return (int64_t)spent.tv_sec * 1000000000 + spent.tv_nsec;
}

static void charge_time(struct dwarf_cost *cost, int64_t spent_ns)
{
	if (spent_ns <= cost->child_ns)
		return;
	budget_spend(cost->charge.account, BUDGET_CPU, spent_ns - cost->child_ns);
	cost->child_ns = spent_ns;
}

struct dwarf_bill dwarf_cost_bill(const struct dwarf_cost *cost)
{
	return (struct dwarf_bill){ growth_of(cost), dwarf_cost_excess(cost) };
}

bool dwarf_cost_charge_child(struct dwarf_cost *cost, pid_t pid, const struct dwarf_bill *bill)
{
	struct budget_account *account = cost->charge.account;

	if (bill->excess)
		budget_record_excess(account, (enum budget_excess)bill->excess, cost->charge.path);
	charge_time(cost, spent_by(pid));
	if (bill->growth_bytes <= cost->child_bytes)
		return true;
	if (!budget_reserve(account, bill->growth_bytes - cost->child_bytes, cost->charge.path))
		return false;
	cost->child_bytes = bill->growth_bytes;
	return true;
}

void dwarf_cost_end_child(struct dwarf_cost *cost, int64_t spent_ns)
{
	charge_time(cost, spent_ns);
	budget_release(cost->charge.account, cost->child_bytes);
	cost->child_bytes = 0;
	cost->child_ns = 0;
}

unsigned int dwarf_cost_excess(const struct dwarf_cost *cost)
{
	const struct budget_account *account = cost->charge.account;

	return account ? atomic_load(&((struct budget_account *)account)->excess) : 0;
}
