# SPDX-License-Identifier: MIT
"""Frames of processes that were started with no variable set: a web application under load, and the C# compiler.

Whether a name is right is the business of live_contract and live_frames; here it is counted how many
frames in managed ranges have one.
"""
import os
import socket
import subprocess
import sys
import threading
import time

import perf_samples
from harness import ROOT, Memory, Runtime, Sample, Skip, build_project, built, expect, remove_leftovers
from live_contract import csc_command
from live_frames import GOAL, looked_up, percent

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from free_port import free_port  # noqa: E402
from waiting import wait_until, wait_until_warm  # noqa: E402


def clean_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("DOTNET_", "COMPlus_"))}


def record(context, pid, seconds):
    data = os.path.join(context.scratch, "nothing.data")
    why = perf_samples.record(pid, seconds, data, 1999)
    if why:
        raise Skip(why)
    chains = perf_samples.nameless_samples(data)
    expect(len(chains) > 100, f"only {len(chains)} samples")
    return chains


def count(context, title, pid, chains):
    memory = Memory(pid)
    frames = [address for chain in chains for address in looked_up(chain)
              if memory.kind_of(address) in ("r2r", "jit")]
    answers = context.mapgen.resolve(pid, sorted(set(frames)))
    unnamed = [answers[address] for address in frames if answers[address]["name"] is None]
    named = len(frames) - len(unnamed)
    context.figure(f"{title}: {named} of {len(frames)} frames in managed ranges named ({percent(named, len(frames))}, "
                   f"goal 99.5 %)")
    expect(len(frames) > 500, f"only {len(frames)} frames in managed ranges")
    expect(named >= GOAL * len(frames), f"unnamed, first: {unnamed[:2]}")


def test_frames_of_the_compiler_started_with_nothing_set(context):
    scratch = context.directory("csc-frames")
    process = subprocess.Popen(csc_command(context, scratch), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=clean_environment())
    try:
        wait_until_warm(process, 2)
        chains = record(context, process.pid, 1)
        expect(process.poll() is None, "the compiler ended too early")
        process.send_signal(19)
        count(context, "csc", process.pid, chains)
    finally:
        process.kill()
        process.wait()
        remove_leftovers(process.pid)


def web_runtime(context):
    def make():
        runtime = context.sdk()
        if runtime.framework != "net10.0":
            return None, f"the SDK makes {runtime.framework}"
        artifacts = built("web")
        why = build_project("fixtures/src/web", artifacts)
        if why:
            return None, f"the web application does not build: {why}"
        program = os.path.join(artifacts, "bin", "web", "release", "web.dll")
        return Runtime(runtime.dotnet, program, runtime.framework, "web"), None
    return context.once("web", make)


ECHOED = b'{"id": 1, "customer": "a", "total": 2.5}'
REQUESTS = (b"GET /orders/200 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"GET /words?text=one+two+three+two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(ECHOED), ECHOED))


def answer_to(port, request):
    """All that a server sends until it closes the connection. http.client takes more CPU time than the server."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        parts = []
        while (part := connection.recv(1 << 16)):
            parts.append(part)
    return b"".join(parts)


class Load:
    """Threads that ask a web application, and rest for `rest` times as long as it takes to answer."""

    def __init__(self, port, threads=2, rest=3):
        self.port, self.rest = port, rest
        self.stop = threading.Event()
        self.answers = self.failures = 0
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.stop.is_set():
            begin = time.monotonic()
            for request in REQUESTS:
                try:
                    if answer_to(self.port, request).startswith(b"HTTP/1.1 200 "):
                        self.answers += 1
                    else:
                        self.failures += 1
                except OSError:
                    self.failures += 1
            self.stop.wait(min(self.rest * (time.monotonic() - begin), 0.1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)


def test_frames_of_a_web_application_started_with_nothing_set(context):
    port = free_port()
    with Sample(web_runtime(context), argument=port) as sample:
        with Load(port) as load:
            wait_until_warm(sample.process, 1.5)
            chains = record(context, sample.pid, 1)
            expect(load.answers > 50, f"{load.answers} answers, {load.failures} failures")
        sample.stand_still()
        count(context, f"web application, {load.answers} requests", sample.pid, chains)


def requests_in(load, seconds):
    before = load.answers
    time.sleep(seconds)
    return load.answers - before


def test_a_target_answers_while_it_is_read(context):
    """A/B, interleaved: requests answered while the map is merged again and again, and while it is not."""
    port = free_port()
    alone, read = [], []
    with Sample(web_runtime(context), argument=port) as sample, Load(port) as load:
        wait_until_warm(sample.process, 1.5)
        watch, path = None, os.path.join(context.scratch, "throughput.map")
        for _ in range(2):
            alone.append(requests_in(load, 2))
            watch = subprocess.Popen([context.mapgen.program, "watch", str(sample.pid), "--interval=1", "-o", path],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env=context.mapgen.environment)
            wait_until(lambda: os.path.exists(path), "no map was written")
            read.append(requests_in(load, 2))
            watch.terminate()
            watch.wait()
            os.unlink(path)
    context.figure(f"requests in 2 s: alone {alone}, while it is watched {read}: "
                   f"{100 * sum(read) / max(sum(alone), 1):.0f} % of the throughput alone")
    expect(all(read) and not load.failures, f"it was watched and answered {read} requests, {load.failures} failed")
