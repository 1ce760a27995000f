/* SPDX-License-Identifier: MIT */
#include "libsym/bcc/answer_counts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "libsym/libsym.h"

struct process_counts {
	int pid;
	struct answer_counts counts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct process_counts *processes;
static size_t process_count;

/* With the lock held; NULL when out of memory. */
static struct process_counts *counts_of(int pid)
{
	struct process_counts *more;

	for (size_t i = 0; i < process_count; i++)
		if (processes[i].pid == pid)
			return &processes[i];
	more = reallocarray(processes, process_count + 1, sizeof(*processes));
	if (!more)
		return NULL;
	processes = more;
	processes[process_count] = (struct process_counts){ .pid = pid };
	return &processes[process_count++];
}

void answer_counts_add(int pid, const struct answer_counts *counts)
{
	struct process_counts *process;

	pthread_mutex_lock(&lock);
	process = counts_of(pid);
	if (process) {
		process->counts.asked += counts->asked;
		process->counts.looks += counts->looks;
		for (int i = 0; i < ANSWER_SOURCES; i++)
			process->counts.by_source[i] += counts->by_source[i];
	}
	pthread_mutex_unlock(&lock);
}

static int by_pid(const void *left, const void *right)
{
	const struct process_counts *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void answer_counts_print(const struct process_counts *process)
{
	const struct answer_counts *counts = &process->counts;
	uint64_t answered = 0;

	for (int source = 0; source < ANSWER_SOURCES; source++)
		answered += counts->by_source[source];
	fprintf(stderr, "libsym-bcc: process %d: %" PRIu64 " of %" PRIu64 " look-ups named",
		process->pid, answered, counts->asked);
	for (int source = 0; source < ANSWER_SOURCES; source++)
		if (counts->by_source[source])
			fprintf(stderr, ", %s %" PRIu64, sym_source_text(source),
				counts->by_source[source]);
	fprintf(stderr, "; looked at %" PRIu64 " times\n", counts->looks);
}

void answer_counts_report(void)
{
	pthread_mutex_lock(&lock);
	if (process_count)
		qsort(processes, process_count, sizeof(*processes), by_pid);
	for (size_t i = 0; i < process_count; i++)
		answer_counts_print(&processes[i]);
	free(processes);
	processes = NULL;
	process_count = 0;
	pthread_mutex_unlock(&lock);
}
