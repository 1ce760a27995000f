# SPDX-License-Identifier: MIT
"""The cost of one deploy for a fleet: bytes and requests, from sizes that a symsrv serves in this run.

    fleet_figures.py --program build/symsrv-bin/symsrv [--hosts 10000] [--servers 10]

A deploy brings the largest debug files of libc6-dbg to every host, and as many files that no server has. Each host asks for
all of them once within the time that a miss is remembered. Sizes are measured; the rest is counted:

    alone      every host asks the upstream itself
    servers    the hosts share independent servers
    peers      these are peers: each object and each miss is asked for once
    tier       the same with empty disks, when a bucket has the objects of the last deploy
    names      hosts take names only, with peers
    resolve    hosts send addresses and keep no symbols, with peers
"""
import argparse
import glob
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "symsrv"))
import symsrv_harness as h  # noqa: E402
from names_tests import functions  # noqa: E402
from resolve_tests import post  # noqa: E402

MODULES = 20
# A host's profile: this many different addresses in all modules.
ADDRESSES = 2000


def measure(program):
    """Bytes of each module as a debug file and as names, and of one request to /v1/resolve with its answer."""
    whole, names, request = [], [], {"modules": []}
    files = sorted(glob.glob("/usr/lib/debug/.build-id/*/*.debug"), key=os.path.getsize)[-MODULES:]
    for path in files:
        identity = os.path.basename(os.path.dirname(path)) + os.path.basename(path)[:-len(".debug")]
        status, headers, _ = program.get("/buildid/%s/symtab" % identity, headers={"Accept-Encoding": "zstd"})
        if status != 200:
            continue
        whole.append(int(program.debuginfo(identity, method="HEAD")[1]["content-length"]))
        names.append(int(headers["content-length"]))
        rows = functions(path)
        step = max(1, len(rows) * MODULES // ADDRESSES)
        request["modules"].append({"build_id": identity, "addresses": [row[0] for row in rows[::step]]})
    status, headers, _ = post(program, request)
    if status != 200 or not whole:
        sys.exit("no debug files: install libc6-dbg")
    return whole, names, len(str(request)) + int(headers["Content-Length"])


def rows_of(whole, names, resolve_bytes, hosts, servers):
    """Name, upstream requests, upstream bytes, bytes from bucket or peers, requests of hosts, bytes to hosts."""
    count, misses = len(whole), len(whole)
    all_bytes, name_bytes = sum(whole), sum(names)
    asked = hosts * (count + misses)
    return [
        ("alone", asked, hosts * all_bytes, 0, 0, hosts * all_bytes),
        ("servers", servers * (count + misses), servers * all_bytes, 0, asked, hosts * all_bytes),
        ("peers", count + misses, all_bytes, (servers - 1) * all_bytes, asked, hosts * all_bytes),
        ("tier", misses, 0, servers * all_bytes, asked, hosts * all_bytes),
        ("names", count + misses, all_bytes, (servers - 1) * name_bytes, asked, hosts * name_bytes),
        ("resolve", count + misses, all_bytes, (servers - 1) * name_bytes, hosts, hosts * resolve_bytes),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/symsrv-bin/symsrv")
    parser.add_argument("--hosts", type=int, default=10000)
    parser.add_argument("--servers", type=int, default=10)
    options = parser.parse_args()
    h.RUN.program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as scratch:
        h.RUN.scratch = scratch
        with h.symsrv("--index", "/usr/lib/debug") as program:
            whole, names, resolve_bytes = measure(program)
    print("%d modules, %.1f MB, as names %.2f MB (%.1f %%); /v1/resolve with its answer %.1f KB; %d hosts, %d servers"
          % (len(whole), sum(whole) / 1e6, sum(names) / 1e6, 100 * sum(names) / sum(whole), resolve_bytes / 1e3, options.hosts,
             options.servers))
    print("%-8s %12s %12s %14s %12s %12s" % ("", "upstream req", "upstream MB", "between MB", "host req", "host GB"))
    for name, requests, upstream, between, asked, to_hosts in rows_of(whole, names, resolve_bytes, options.hosts, options.servers):
        print("%-8s %12d %12.1f %14.1f %12d %12.2f" % (name, requests, upstream / 1e6, between / 1e6, asked, to_hosts / 1e9))


if __name__ == "__main__":
    main()
