# SPDX-License-Identifier: MIT
"""Threads that are made while `record` begins: each is recorded, and once. The oracle is perf script."""
import collections
import json
import zipfile

from native_record import Running, record, switches
from native_tools import Fail

# Threads that make threads, which run and wait for some time.
MAKING = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned long count;
static void *live(void *unused)
{
	for (int i = 0; i < 50; i++) {
		usleep(20000);
		for (int k = 0; k < 20000; k++)
			count++;
	}
	return unused;
}
static void *make(void *unused)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (;;) {
		pthread_create(&thread, &attributes, live, NULL);
		usleep(10000);
	}
	return unused;
}
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, make, NULL);
	printf("ready\n");
	fflush(stdout);
	make(NULL);
}
"""


def test_threads_that_begin_while_record_begins_are_there_once(tools):
    """Two switches away without one back: the thread has the events twice, its own and those of its maker."""
    checked, twice = 0, collections.Counter()
    for number in range(3):
        output = tools.path(f"made{number}.trace.zip")
        with Running(tools, "making", MAKING) as running:
            done = record(tools, running.pid, "-o", output, "-d", 1, "--off-cpu")
        if done.returncode:
            raise Fail(f"{done.returncode} {done.stderr}")
        with zipfile.ZipFile(output) as archive:
            lost = json.loads(archive.read("recording.json"))["losses"]["lost_records"]
            data = archive.extract("perf.data", tools.path(f"made{number}.parts"))
        for tid, events in switches(tools, data).items():
            kinds = [kind for _, kind in events if kind != "sample"]
            checked += 1
            if not lost:
                twice[tid] += sum(kind == after == "OUT" for kind, after in zip(kinds, kinds[1:]))
    if sum(twice.values()) or checked < 200:
        raise Fail(f"{checked} threads; switches that are there twice: {twice.most_common(5)}")
    tools.figure(f"{checked} threads")
