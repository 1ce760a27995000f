# SPDX-License-Identifier: MIT
"""Figures of symsrv beside nginx and debuginfod, measured in turns in one run.

One line a figure, as bench.sh describes. Peers and load generator share the
processors with us, so only the ratios mean something.
"""
import argparse
import asyncio
import contextlib
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "symsrv"))
import crash_tests  # noqa: E402
import crowd_tests  # noqa: E402
import symsrv_harness as h  # noqa: E402

ROUNDS = 5
SECONDS = 2


def versus(name, ours, peer, goal, unit="/s"):
    ratio = ours / peer
    print(f"{name} ours={ours:.0f}{unit} peer={peer:.0f}{unit} ratio={ratio:.2f} goal={goal:g} "
          f"{'ok' if ratio >= goal else 'short'}", flush=True)


def limit(name, ours, goal, unit, most=True, note=""):
    good = ours <= goal if most else ours >= goal
    print(f"{name} ours={ours:.1f}{unit} peer=none ratio=none goal={goal:g}{unit} {note}{'ok' if good else 'short'}", flush=True)


def wrk(url, connections=32, seconds=SECONDS, latency=False):
    """Requests a second, and the 99th percentile in ms."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url],
                          capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([0-9.]+)", done).group(1))
    value, unit = re.search(r"99%\s+([0-9.]+)(us|ms|s)", done).groups()
    return rate, float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def in_turns(*urls):
    rates = [[] for _ in urls]
    for _ in range(ROUNDS):
        for i, url in enumerate(urls):
            rates[i].append(wrk(url)[0])
    return [statistics.median(row) for row in rates]


NGINX = """
worker_processes 2; daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 8192; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; types {{ }} default_type application/octet-stream;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  proxy_cache_path {directory}/cache keys_zone=zone:10m max_size=1g;
  server {{ listen 127.0.0.1:{port}; root {root};
    location /buildid/ {{ proxy_pass http://127.0.0.1:{upstream}; proxy_cache zone; proxy_cache_valid 200 1h; }} }}
}}
"""


@contextlib.contextmanager
def nginx(directory, root, upstream):
    port = h.free_port()
    os.makedirs(os.path.join(directory, "nginx"))
    config = os.path.join(directory, "nginx.conf")
    with open(config, "w") as file:
        file.write(NGINX.format(directory=os.path.join(directory, "nginx"), root=root, port=port, upstream=upstream))
    process = subprocess.Popen(["nginx", "-c", config], stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def debuginfod(directory, files):
    port = h.free_port()
    process = subprocess.Popen(["debuginfod", "-p", str(port), "-d", os.path.join(directory, "d.sqlite"), "-t", "0", "-F", files],
                               env={k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def wait_for(port, path):
    probe = h.Symsrv(None, "/tmp", port=port, store="/tmp")
    for _ in range(400):
        with contextlib.suppress(OSError):
            if probe.get(path)[0] == 200:
                return
        time.sleep(0.05)
    raise RuntimeError(f"port {port} does not serve {path}")


def make_library(path, size):
    """A shared library of about `size` bytes, as debuginfod wants it; its build-id."""
    identity = h.build_id(size)
    source = f"const char filling[{size - 3000}] = {{1}};\n"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-s", "-Wl,-z,max-page-size=16", f"-Wl,--build-id=0x{identity}", "-o", path,
                    "-x", "c", "-"], input=source.encode(), check=True)
    return identity


def hit_figures(program, directory):
    files = os.path.join(directory, "files")
    os.makedirs(files)
    small = make_library(os.path.join(files, "small.so"), 16384)
    large = make_library(os.path.join(files, "large.so"), 800000)
    unknown = h.build_id(3)
    path = "/buildid/%s/executable"
    with debuginfod(directory, files) as d, h.Symsrv(program, directory, "--upstream", f"debuginfod=http://127.0.0.1:{d}") as ours:
        for identity in (small, large):
            wait_for(d, path % identity)
            ours.get("/readyz")
            wait_for(ours.port, path % identity)
        with nginx(directory, files, d) as n:
            wait_for(n, path % small)
            base = "http://127.0.0.1:%d"
            a, b = in_turns(ours.url + path % small, base % n + path % small)
            versus("symsrv_hit_16kb_vs_nginx_proxy_cache", a, b, 0.8)
            a, b, c = in_turns(ours.url + path % large, base % n + "/large.so", base % d + path % large)
            versus("symsrv_hit_800kb_vs_nginx_static", a, b, 0.6)
            versus("symsrv_hit_800kb_vs_debuginfod", a, c, 1)
            ours.get(path % unknown)
            a, c = in_turns(ours.url + path % unknown, base % d + path % unknown)
            versus("symsrv_known_miss_vs_debuginfod", a, c, 2)
            limit("symsrv_known_miss_rate", a, 40000, "/s", most=False)


def cold_figure(program, directory):
    """1,000 at once for one object that is not here, half over each protocol."""
    debuginfod_path, ssqp_path = h.debug_paths(crowd_tests.TARGET)
    asked = ["/buildid/%s/debuginfo" % crowd_tests.TARGET, "/symbols" + ssqp_path] * 500
    server = h.Upstream(h.serve_files({ssqp_path: crowd_tests.GOOD}, delay_s=1))
    with h.Symsrv(program, directory, "--upstream", "ssqp=" + server.url) as ours:
        answers = asyncio.run(crowd_tests.fetch_all(ours.port, asked))
    server.close()
    good = sum(status == 200 and body == crowd_tests.GOOD for status, body in answers)
    limit("symsrv_upstream_gets_for_1000_cold_requests", len(server.requests), 1, "", note=f"good_bodies={good} ")
    limit("symsrv_good_bodies_of_1000_cold_requests", good, 1000, "", most=False)


def crash_figures(program, directory):
    """Bodies that were not the whole object, over kill -9 at 200 moments and a disk of 2 MB that is full."""
    h.RUN.program, h.RUN.scratch = program, directory
    rounds = 200
    crash_tests.kill_at_random_moments(rounds)
    limit("symsrv_partial_bodies_over_kill_9", len(crash_tests.WRONG), 0, "", note=f"kills={rounds} ")
    try:
        crash_tests.a_full_disk_costs_the_fetch_and_nothing_else()
        limit("symsrv_partial_bodies_on_a_full_disk", 0, 0, "")
    except AssertionError as error:
        limit("symsrv_partial_bodies_on_a_full_disk", 1, 0, "", note=f"({error}) ")


async def connect_all(port, paths):
    """Open connections on which a request was sent and no answer has come."""
    pairs = []
    for path in paths:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        pairs.append((reader, writer))
    return pairs


def hung_figures(program, directory):
    stop = threading.Event()
    server = h.Upstream(lambda handler: stop.wait(120))
    files = os.path.join(directory, "hung")
    os.makedirs(files)
    identity = h.build_id(4)
    with open(os.path.join(files, "f"), "wb") as file:
        file.write(h.make_elf(identity, 15800))
    with h.Symsrv(program, directory, "--upstream", "debuginfod=" + server.url, "--index", files, "--drain-timeout", "1") as ours:
        wait_for(ours.port, "/buildid/%s/debuginfo" % identity)
        alone = statistics.median(wrk(ours.url + "/buildid/%s/debuginfo" % identity, 4, 2)[1] for _ in range(3))

        async def park():
            pairs = await connect_all(ours.port, ["/buildid/%s/debuginfo" % h.build_id(10000 + i) for i in range(3000)])
            await asyncio.sleep(1)
            loop = asyncio.get_running_loop()
            results = []
            for _ in range(3):
                results.append((await loop.run_in_executor(None, wrk, ours.url + "/buildid/%s/debuginfo" % identity, 4, 2))[1])
            waiting = ours.metric("symsrv_waiters")
            status = open(f"/proc/{ours.process.pid}/status").read()
            rss = int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024
            for _, writer in pairs:
                writer.close()
            return statistics.median(results), waiting, rss

        p99, waiting, rss = asyncio.run(park())
        limit("symsrv_hit_p99_with_3000_parked", p99, 10, "ms", note=f"parked={waiting:.0f} without_them={alone:.1f}ms ")
        limit("symsrv_rss_with_3000_parked", rss, 64, "MB")
        stop.set()
    server.close()


def slow_client_figure(program, directory, seconds):
    if not shutil.which("slowhttptest"):
        print("slow clients: slowhttptest is not installed")
        return
    files = os.path.join(directory, "slow")
    os.makedirs(files)
    identity = h.build_id(5)
    with open(os.path.join(files, "f"), "wb") as file:
        file.write(h.make_elf(identity, 8 << 20))
    for name, flags in (("headers", ["-H"]), ("bodies", ["-B"]), ("reads", ["-X"])):
        with h.Symsrv(program, directory, "--index", files) as ours:
            wait_for(ours.port, "/buildid/%s/debuginfo" % identity)
            attack = subprocess.Popen(["slowhttptest", *flags, "-c", "1000", "-r", "500", "-i", "5", "-l", str(seconds), "-u",
                                       ours.url + "/buildid/%s/debuginfo" % identity],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            slowest, refused = 0, 0
            while attack.poll() is None:
                started = time.monotonic()
                try:
                    ours.get("/healthz", timeout=5)
                except OSError:
                    refused += 1
                slowest = max(slowest, time.monotonic() - started)
                time.sleep(0.1)
            limit(f"symsrv_fresh_client_beside_1000_slow_{name}", slowest * 1000, 100, "ms",
                  note=f"refused={refused} seconds={seconds} ")


def has_peers(word):
    """Are the other servers and the load generator here? Prints what is missing; permits as many open files as may be."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [tool for tool in ("wrk", "nginx", "debuginfod", "gcc") if not shutil.which(tool)]
    if missing:
        print(f"figures of {word}: not installed:", ", ".join(missing))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    return not missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, default=60, help="of each attack with slow clients")
    parser.add_argument("--only")
    options = parser.parse_args()
    if not has_peers("symsrv"):
        return
    directory = tempfile.mkdtemp(prefix="bench-symsrv-")
    os.chmod(directory, 0o755)
    try:
        parts = {"hits": hit_figures, "hung": hung_figures, "cold": cold_figure, "crash": crash_figures,
                 "slow": lambda p, d: slow_client_figure(p, d, options.seconds)}
        for name, part in parts.items():
            if options.only in (None, name):
                part(os.path.abspath(options.program), directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
