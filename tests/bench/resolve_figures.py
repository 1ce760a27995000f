# SPDX-License-Identifier: MIT
"""POST /v1/resolve beside eu-addr2line: CPU time and elapsed time of the same addresses, asked in turns.

One line a figure, as bench.sh describes. The module is the C library's debug file, in the store. Each round has addresses that were
not asked for before. CPU time is that of the server with its processes, and of eu-addr2line.
"""
import argparse
import glob
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "symsrv"))
import symsrv_harness as h  # noqa: E402
from names_tests import functions, libc_debug_file  # noqa: E402
from resolve_tests import post  # noqa: E402

ROUNDS = 5
ADDRESSES = 10000


def cpu_ns_of(pid):
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path) as file:
            total += int(file.read().split()[0])
    return total


def server_cpu_ns(pid):
    """CPU time of the server and its processes."""
    pids = [pid]
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path) as file:
            pids += [int(word) for word in file.read().split()]
    return sum(cpu_ns_of(one) for one in pids)


def ask_server(program, identity, addresses, lines):
    """CPU time and elapsed time in ms."""
    body = json.dumps({"modules": [{"build_id": identity, "addresses": addresses}], "lines": lines})
    cpu, begun = server_cpu_ns(program.process.pid), time.monotonic()
    status, _, answer = post(program, body)
    elapsed = time.monotonic() - begun
    cpu = server_cpu_ns(program.process.pid) - cpu
    if status != 200 or not answer["complete"]:
        sys.exit("/v1/resolve: %r" % (answer,))
    return cpu / 1e6, elapsed * 1e3


def ask_addr2line(path, addresses, *options):
    text = "\n".join("0x%x" % address for address in addresses)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["eu-addr2line", *options, "-e", path], input=text, capture_output=True, text=True, check=True)
    elapsed, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3, elapsed * 1e3


def print_figure(name, ours, theirs):
    for at, what in enumerate(("cpu", "elapsed")):
        own, other = (statistics.median(row[at] for row in rows) for rows in (ours, theirs))
        ratio = other / own
        print("resolve_%s_%s ours=%.1fms peer=%.1fms ratio=%.1f goal=20 %s" % (name, what, own, other, ratio,
                                                                          "ok" if ratio >= 20 else "short"), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if not shutil.which("eu-addr2line") or not shutil.which("readelf"):
        print("figures of /v1/resolve: eu-addr2line or readelf is not installed")
        return
    h.RUN.program = os.path.abspath(options.program)
    debug, identity = libc_debug_file()
    rows = [(row[0], int(row[1], 0)) for row in functions(debug)]
    chosen = random.Random(48)
    new, again, names, their_lines, their_names = [], [], [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        h.RUN.scratch = scratch
        with h.symsrv("--index", "/usr/lib/debug") as program:
            for at in range(options.rounds + 1):
                addresses = [start + chosen.randrange(max(1, size)) for start, size in chosen.choices(rows, k=ADDRESSES)]
                if at == 0:  # The file becomes cached.
                    ask_server(program, identity, addresses, True)
                    ask_server(program, identity, addresses, False)
                    continue
                new.append(ask_server(program, identity, addresses, True))
                their_lines.append(ask_addr2line(debug, addresses, "-f", "-i", "-a"))
                again.append(ask_server(program, identity, addresses, True))
                names.append(ask_server(program, identity, addresses, False))
                their_names.append(ask_addr2line(debug, addresses, "-S"))
    print_figure("new_lines", new, their_lines)
    print_figure("known_lines", again, their_lines)
    print_figure("names", names, their_names)


if __name__ == "__main__":
    main()
