# SPDX-License-Identifier: MIT
"""The cost of one deploy for a fleet, simulated (fleet_simulation.py) from what a symsrv serves and costs in this run.

    fleet_figures.py --program build/symsrv-bin/symsrv [--hosts 10000] [--servers 10]

A deploy brings the largest debug files of libc6-dbg to every host, as many files that no server has, and three assemblies of the
shared framework. Measured: the size of each as a debug file, as names and as a map, one request to /v1/resolve with its answer, and
the processor time of a hit, of a miss, of making names and maps, and of making the maps on a host.
"""
import argparse
import glob
import os
import resource
import shutil
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "symsrv"))
import symsrv_harness as h  # noqa: E402
from fleet_simulation import Simulation  # noqa: E402
from map_tests import ASSEMBLIES, framework, generated, pe_key  # noqa: E402
from names_tests import functions  # noqa: E402
from resolve_figures import server_cpu_ns  # noqa: E402
from resolve_tests import post  # noqa: E402

MODULES = 20
# A host's profile: this many different addresses in all modules.
ADDRESSES = 2000
REPEATS = 200
NEGATIVE_S = 3600
ALL = {"names": 1, "tier": 2, "peers": 3, "resolve": 4, "maps": 5, "prefetch": 5}


def cpu_s(program):
    """CPU time of the server, its processes, and those that have ended."""
    with open("/proc/%d/stat" % program.process.pid) as file:
        ended = sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[13:15])
    return server_cpu_ns(program.process.pid) / 1e9 + ended / os.sysconf("SC_CLK_TCK")


def cost_s(program, call, times=1):
    before = cpu_s(program)
    for _ in range(times):
        found = call()
    return (cpu_s(program) - before) / times, found


def measure_native(program, figures):
    request = {"modules": []}
    files = sorted(glob.glob("/usr/lib/debug/.build-id/*/*.debug"), key=os.path.getsize)[-MODULES:]
    for path in files:
        identity = os.path.basename(os.path.dirname(path)) + os.path.basename(path)[:-len(".debug")]
        zstd = {"Accept-Encoding": "zstd"}
        made_s, (status, headers, _) = cost_s(program, lambda: program.get("/buildid/%s/symtab" % identity, headers=zstd))
        if status != 200:
            continue
        figures["debug"].append(int(program.debuginfo(identity, method="HEAD")[1]["content-length"]))
        figures["names"].append(int(headers["content-length"]))
        figures["names_cpu_s"].append(made_s)
        rows = functions(path)
        request["modules"].append({"build_id": identity, "addresses": [row[0] for row in rows[::max(1, len(rows) * MODULES // ADDRESSES)]]})
    if not figures["debug"]:
        sys.exit("no debug files: install libc6-dbg")
    figures["hit_cpu_s"] = cost_s(program, lambda: program.get("/buildid/%s/symtab" % identity, headers=zstd), REPEATS)[0]
    figures["byte_cpu_s"] = max(0, cost_s(program, lambda: program.debuginfo(identity), 20)[0] - figures["hit_cpu_s"]) / figures["debug"][-1]
    figures["missing"] = len(figures["debug"])
    figures["miss_cpu_s"] = cost_s(program, lambda: program.debuginfo(h.build_id(1)), REPEATS)[0]
    post(program, request)
    figures["resolve_cpu_s"], (_, headers, _) = cost_s(program, lambda: post(program, request), 20)
    figures["resolve_bytes"] = len(str(request)) + int(headers["Content-Length"])


def measure_maps(program, directory, figures):
    for name in ASSEMBLIES:
        path = os.path.join(directory, name + ".dll")
        with open(path, "rb") as file:
            body = file.read()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        generated(path, "r2rmap", tempfile.mkdtemp(dir=h.RUN.scratch))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        figures["own_maps_cpu_s"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        url = "/pe/%s/%s/r2rmap" % (name + ".dll", pe_key(body))
        made_s, (status, headers, _) = cost_s(program, lambda url=url: program.get(url, headers={"Accept-Encoding": "zstd"}))
        h.equal(status, 200, url)
        figures["image"].append(len(body))
        figures["map"].append(int(headers["content-length"]))
        figures["map_cpu_s"].append(made_s)


def measure(scratch):
    figures = {name: [] for name in ("debug", "names", "names_cpu_s", "image", "map", "map_cpu_s")}
    figures.update(own_maps_cpu_s=0, negative_s=NEGATIVE_S)
    try:
        directory = framework()
    except h.Skipped:
        directory = None
    index = os.path.join(scratch, "index")
    os.mkdir(index)
    for name in ASSEMBLIES if directory else ():
        shutil.copy(os.path.join(directory, name + ".dll"), index)
    with h.symsrv("--index", "/usr/lib/debug", "--index", index) as program:
        measure_native(program, figures)
        if directory:
            measure_maps(program, index, figures)
    return figures


def rows():
    """Name and features: nothing, servers, each of 1 to 5 alone, a bucket that has all objects, all, all without each."""
    everything = set(ALL) | {"servers"}
    yield "alone", set()
    yield "servers", {"servers"}
    titles = {1: "names", 2: "--tier", 3: "--peer", 4: "/v1/resolve", 5: "maps, prefetch"}
    for number, title in titles.items():
        yield title, {"servers"} | {name for name, own in ALL.items() if own == number}
    yield "--tier, filled", {"servers", "tier", "filled"}
    yield "all of these", everything
    for number, title in titles.items():
        yield "all but " + title, everything - {name for name, own in ALL.items() if own == number}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/symsrv-bin/symsrv")
    parser.add_argument("--hosts", type=int, default=10000)
    parser.add_argument("--servers", type=int, default=10)
    options = parser.parse_args()
    h.RUN.program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as scratch:
        h.RUN.scratch = scratch
        figures = measure(scratch)
    print("%d hosts, %d servers; %d modules: %.1f MB, as names %.2f MB; %d assemblies: %.1f MB, as maps %.2f MB; /v1/resolve with its "
          "answer %.1f KB" % (options.hosts, options.servers, len(figures["debug"]), sum(figures["debug"]) / 1e6,
                              sum(figures["names"]) / 1e6, len(figures["image"]), sum(figures["image"]) / 1e6, sum(figures["map"]) / 1e6,
                              figures["resolve_bytes"] / 1e3))
    print("CPU: hit %.0f us and %.2f ns a byte, miss %.0f us, /v1/resolve %.1f ms, names of all modules %.0f ms, maps %.0f ms, on a host %.0f ms"
          % (figures["hit_cpu_s"] * 1e6, figures["byte_cpu_s"] * 1e9, figures["miss_cpu_s"] * 1e6, figures["resolve_cpu_s"] * 1e3,
             sum(figures["names_cpu_s"]) * 1e3, sum(figures["map_cpu_s"]) * 1e3, figures["own_maps_cpu_s"] * 1e3))
    print("upstream: requests, most in a second, MB; MB between servers and to the bucket; of hosts: requests, GB; CPU time in s of the\n"
          "servers and, for maps, of the hosts; how long a host waits in ms: median, longest")
    for name, features in rows():
        run = Simulation(figures, features, options.hosts, options.servers).run()
        print("%-22s %7d %5d %6.0f %7.1f %8d %7.2f %7.1f %6.0f %6.0f %6.0f" % (
            name, run.upstream_requests, max(run.by_second.values()), run.upstream_bytes / 1e6, run.inner_bytes / 1e6, run.host_requests,
            run.host_bytes / 1e9, sum(server.cpu_s for server in run.servers), run.host_cpu_s, 1e3 * statistics.median(run.waits_s),
            1e3 * max(run.waits_s)), flush=True)


if __name__ == "__main__":
    main()
