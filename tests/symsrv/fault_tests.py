# SPDX-License-Identifier: MIT
"""A node that is killed, a clock that is wrong and a store that is stopped, while clients ask: all hits are answered, and no body is wrong.

bucket_tests.py has the other faults of a bucket.
"""
import collections
import concurrent.futures
import os
import signal
import statistics
import subprocess
import threading
import time

import symsrv_harness as h
from bucket_tests import Line, is_counted, with_fault
from fleet_tests import fleet
from symsrv_harness import RUN, check, equal, need, symsrv, test, upstream
from tier_tests import real_store, tier

STORED = [h.build_id(number) for number in range(400, 410)]
FRESH = [h.build_id(number) for number in range(420, 450)]
REST_S = 0.02


def body_of(identity):
    return h.make_elf(identity, 60000)


def files_of(identities):
    return {"/buildid/%s/debuginfo" % identity: body_of(identity) for identity in identities}


class Hits:
    """Clients that ask for stored objects until the end of the block, and then for `least` of them at least."""

    def __init__(self, nodes, least=200, clients=4):
        self.nodes, self.least, self.clients = nodes, least, clients
        self.stop, self.times_ms, self.wrong = threading.Event(), collections.deque(), collections.deque()

    def ask(self):
        number = 0
        while not self.stop.is_set() or len(self.times_ms) < self.least:
            identity, node = STORED[number % len(STORED)], self.nodes[number % len(self.nodes)]
            number += 1
            begun = time.monotonic()
            try:
                status, _, body = node.debuginfo(identity)
            except OSError as error:
                self.wrong.append(repr(error))
                return
            self.times_ms.append(1000 * (time.monotonic() - begun))
            if status != 200 or body != body_of(identity):
                self.wrong.append("%d, %d bytes" % (status, len(body)))
            # The processors are also for the others.
            self.stop.wait(REST_S)

    def __enter__(self):
        self.threads = [threading.Thread(target=self.ask) for _ in range(self.clients)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def median_ms(self):
        equal(list(self.wrong), [], "hits that failed")
        return statistics.median(self.times_ms)


def print_medians(word, before, during):
    """Compared by people: a busy machine makes both slower, not always alike."""
    print("      %s: %d hits, median %.2f ms, before %.2f ms (%.2f times)" %
          (word, len(during.times_ms), during.median_ms(), before.median_ms(), during.median_ms() / before.median_ms()))


def lines_about(node, name):
    """Log lines that are about trouble with `name`."""
    with open(node.log.name) as file:
        return [line for line in file if name in line and "answers again" not in line]


@test
def a_killed_node_costs_the_others_no_answer():
    with upstream(h.serve_files(files_of(STORED + FRESH))) as server, \
            fleet(3, "--upstream", "debuginfod=" + server.url) as nodes, concurrent.futures.ThreadPoolExecutor(8) as pool:
        for node in nodes:
            for identity in STORED:
                equal(node.debuginfo(identity)[2], body_of(identity), "stored")
        dead, alive = nodes[0], nodes[1:]
        name = "127.0.0.1:%d" % dead.port
        with Hits(alive) as before:
            pass
        with Hits(alive) as during:
            # Some fetches go through the node that is killed.
            answers = [pool.submit(alive[number % 2].debuginfo, identity) for number, identity in enumerate(FRESH)]
            dead.kill()
            for identity, answer in zip(FRESH, answers):
                status, _, body = answer.result()
                equal((status, body == body_of(identity)), (200, True), "an object that no node has")
            for node in alive:
                for identity in FRESH:
                    equal(node.debuginfo(identity)[2], body_of(identity), "afterwards")
            # More objects of the dead node than a circuit breaker takes before it opens.
            for number in range(500, 560):
                equal(alive[number % 2].debuginfo(h.build_id(number))[0], 404, "a miss")
        print_medians("a node is killed", before, during)
        for node in alive:
            lines = lines_about(node, name)
            equal(len(lines), 1, "lines in the log: %s" % lines)
            equal(node.metric('symsrv_upstream_available{upstream="%s"}' % name), 0, "the metric")
        # An object may be asked for by the node that is killed, and once more.
        for path in files_of(FRESH):
            check(1 <= server.count(path) <= 2, "%d requests for %s" % (server.count(path), path))


@test
def a_fault_of_a_real_store_or_of_the_clock_costs_no_client_an_answer():
    with real_store() as store:
        with_a_skewed_clock(store)
        if store.has_quota:
            with_fault(Full(store), True, "full " + store.name, lambda node: node.metric("symsrv_tier_failed_total") >= 6, start=600)
            store.set_full(False)
        stop = threading.Event()
        with Line(store.port) as line:
            with_fault(line, stop, "slow " + store.name, is_counted, start=640)
            stop.set()
        with_a_stopped_store(store, 30 if RUN.long else 3)


class Full:
    """A real store as with_fault() needs it."""

    def __init__(self, store):
        self.store, self.url = store, store.url

    @property
    def fault(self):
        return None

    @fault.setter
    def fault(self, is_full):
        self.store.set_full(is_full)


LATER = """#include <stddef.h>
#include <time.h>

time_t time(time_t *ret)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += 3600;
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
"""


def with_a_skewed_clock(store):
    """libcurl signs with time(), which is an hour ahead."""
    need("gcc")
    source, library = os.path.join(RUN.scratch, "later.c"), os.path.join(RUN.scratch, "later.so")
    with open(source, "w") as file:
        file.write(LATER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    with upstream(h.serve_files(files_of(STORED + FRESH))) as server, \
            symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url), environment={"LD_PRELOAD": library}) as node:
        for identity in STORED:
            equal(node.debuginfo(identity)[2], body_of(identity), "from the upstream")
        with Hits([node]) as hits:
            for identity in FRESH:
                equal(node.debuginfo(identity)[2], body_of(identity), "from the upstream, while others hit")
        hits.median_ms()
        h.wait_until(lambda: node.metric("symsrv_tier_failed_total") == len(STORED + FRESH), "the metric: " + node.log_text())
        equal(node.metric("symsrv_tier_stored_total"), 0, "uploads")
        # On a busy machine the store may be silent for a second as well.
        lines = [line for line in lines_about(node, "bucket") if "no answer for a second" not in line]
        equal(len(lines), 1, "lines in the log: %s" % lines)
        check("HTTP status 403" in lines[0], lines[0])


def with_a_stopped_store(store, stopped_s):
    with upstream(h.serve_files(files_of(STORED + FRESH))) as server:
        with symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url)) as node:
            for identity in STORED:
                equal(node.debuginfo(identity)[2], body_of(identity), "stored")
            h.wait_until(lambda: node.metric("symsrv_tier_stored_total") == len(STORED), "uploads: " + node.log_text())
            with Hits([node]) as before:
                pass
            for name in store.processes:
                store.signal(name, signal.SIGSTOP)
            begun = time.monotonic()
            try:
                with Hits([node]) as during:
                    number, cold_ms = 0, []
                    while time.monotonic() - begun < stopped_s or number < 10:
                        identity = FRESH[number % len(FRESH)]
                        number += 1
                        asked = time.monotonic()
                        equal(node.debuginfo(identity)[2], body_of(identity), "while the store is stopped")
                        cold_ms.append(1000 * (time.monotonic() - asked))
                        equal(node.get("/readyz")[0], 200, "ready")
                h.wait_until(lambda: not node.metric('symsrv_upstream_available{upstream="bucket"}'), "left out: " + node.log_text())
                check(node.metric("symsrv_tier_waiting") > 0, "uploads wait")
                lines = lines_about(node, "bucket")
                equal(len(lines), 1, "lines in the log: %s" % lines)
            finally:
                for name in store.processes:
                    store.signal(name, signal.SIGCONT)
            print_medians("the store is stopped for %.0f s" % (time.monotonic() - begun), before, during)
            print("      objects that were not here: the first %.0f ms, the median %.0f ms" % (cold_ms[0], statistics.median(cold_ms)))
