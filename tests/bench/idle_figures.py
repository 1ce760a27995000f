# SPDX-License-Identifier: MIT
"""Idle keep-alive connections and misses: symsrv beside nginx, debuginfod and an older symsrv, in turns.

    idle_figures.py --program build/symsrv-bin/symsrv [--before PROGRAM] [--rounds 3]

Each connection has got one object before it is idle. Memory is the growth of the resident set since the server's first answer, for
each connection. CPU time of the servers is read from the kernel, so what the load generator costs is not in it.
"""
import argparse
import contextlib
import glob
import os
import re
import socket
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "symsrv"))
import symsrv_harness as h  # noqa: E402
from server_figures import debuginfod, has_peers, make_library, nginx, wait_for, wrk  # noqa: E402

IDLE_S = 1
COUNTS = (1000, 5000)


class Server:
    def __init__(self, name, pid, port, hit, miss):
        self.name, self.pid, self.port, self.hit, self.miss = name, pid, port, hit, miss
        self.first_kb = self.rss_kb()

    def pids(self):
        """The server and its processes."""
        found = [self.pid]
        for path in glob.glob("/proc/%d/task/*/children" % self.pid):
            with open(path) as file:
                found += [int(word) for word in file.read().split()]
        return found

    def cpu_ns(self):
        total = 0
        for pid in self.pids():
            for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
                with contextlib.suppress(OSError), open(path) as file:
                    total += int(file.read().split()[0])
        return total

    def rss_kb(self):
        total = 0
        for pid in self.pids():
            with open("/proc/%d/status" % pid) as file:
                total += int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
        return total

    def load(self, path, connections=4):
        """CPU time of a request in us, requests a second, 99th percentile in ms."""
        before = self.cpu_ns()
        rate, p99 = wrk("http://127.0.0.1:%d%s" % (self.port, path), connections, 1)
        return (self.cpu_ns() - before) / 1e3 / rate, rate, p99


def open_idle(server, count):
    """Connections that have got their answer."""
    request = ("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % server.hit).encode()
    sockets = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", server.port), timeout=h.WAIT_S)
        one.sendall(request)
        text = one.recv(65536)
        size = int(re.search(rb"(?i)content-length: (\d+)", text).group(1))
        missing = size - (len(text) - text.index(b"\r\n\r\n") - 4)
        while missing > 0:
            missing -= len(one.recv(65536))
        sockets.append(one)
    return sockets


def still_open(sockets):
    """How many the server has not closed."""
    count = 0
    for one in sockets:
        one.setblocking(False)
        try:
            count += one.recv(1) != b""
        except BlockingIOError:
            count += 1
        except OSError:
            pass
    return count


def idle_round(server, count):
    """Bytes a connection, CPU time of idling in ms a second, then of hits beside it: CPU in us, rate, p99 in ms."""
    sockets = open_idle(server, count)
    try:
        grown = (server.rss_kb() - server.first_kb) * 1024 / count
        cpu = server.cpu_ns()
        time.sleep(IDLE_S)
        cpu = (server.cpu_ns() - cpu) / 1e6 / IDLE_S
        row = (grown, cpu) + server.load(server.hit)
        lost = count - still_open(sockets)
        if lost:
            print("%s closed %d of %d idle connections" % (server.name, lost, count))
        return row
    finally:
        for one in sockets:
            one.close()


def print_rows(title, names, rows):
    """`rows`: for each server the rounds; the medians, then ours divided by each of the others."""
    columns = [[statistics.median(column) for column in zip(*rows[name])] for name in names]
    for name, values in zip(names, columns):
        print("%-14s %-11s %s" % (title, name, "  ".join("%10.3f" % value for value in values)), flush=True)
    return dict(zip(names, columns))


def versus(name, ours, peers, at, unit, most):
    """A figure line against each peer; less is better."""
    for peer in peers:
        ratio = ours[at] / peers[peer][at] if peers[peer][at] else float("inf")
        print("%s_vs_%s ours=%.3f%s peer=%.3f%s ratio=%.2f goal=%g %s" % (name, peer, ours[at], unit, peers[peer][at], unit, ratio, most,
                                                                       "ok" if ratio <= most else "short"), flush=True)


def idle_figures(servers, rounds):
    names = [server.name for server in servers]
    for count in COUNTS:
        rows = {name: [] for name in names}
        for _ in range(rounds):
            for server in list(servers):
                try:
                    rows[server.name].append(idle_round(server, count))
                except OSError as error:
                    print("%s does not serve %d connections: %s" % (server.name, count, error), flush=True)
                    servers = [one for one in servers if one is not server]
        medians = print_rows("idle_%d" % count, [server.name for server in servers], rows)
        others = {server.name: medians[server.name] for server in servers[1:]}
        for at, what, unit in ((0, "bytes", ""), (1, "cpu_ms_a_second", "ms"), (2, "hit_cpu", "us"), (4, "hit_p99", "ms")):
            versus("idle_%d_%s" % (count, what), medians[names[0]], others, at, unit, 1.1)


def load_figures(servers, rounds):
    for what in ("hit", "miss"):
        rows = {server.name: [] for server in servers}
        for _ in range(rounds):
            for server in servers:
                rows[server.name].append(server.load(getattr(server, what), 32))
        medians = print_rows(what, [server.name for server in servers], rows)
        versus("known_%s_cpu" % what, medians[servers[0].name], {server.name: medians[server.name] for server in servers[1:]}, 0, "us", 1.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--before", help="an older symsrv")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not has_peers("idle connections"):
        return
    with tempfile.TemporaryDirectory(prefix="bench-idle-") as directory, contextlib.ExitStack() as stack:
        os.chmod(directory, 0o755)
        files = os.path.join(directory, "files")
        os.makedirs(files)
        identity = make_library(os.path.join(files, "small.so"), 16384)
        path, miss = "/buildid/%s/executable" % identity, "/buildid/%s/executable" % h.build_id(3)
        d_port, d_pid = stack.enter_context(with_pid(debuginfod(directory, files), "debuginfod"))
        wait_for(d_port, path)
        n_port, n_pid = stack.enter_context(with_pid(nginx(directory, files, d_port), "nginx"))
        servers = []
        for name, program in (("ours", options.program), ("before", options.before)):
            if not program:
                continue
            one = stack.enter_context(h.Symsrv(os.path.abspath(program), directory, "--upstream", "debuginfod=http://127.0.0.1:%d" % d_port))
            wait_for(one.port, path)
            one.get(miss)
            servers.append(Server(name, one.process.pid, one.port, path, miss))
        servers.append(Server("nginx", n_pid, n_port, "/small.so", "/none"))
        servers.append(Server("debuginfod", d_pid, d_port, path, miss))
        print("%-14s %-11s %s" % ("", "", "idle: bytes, ms of CPU a second; then of hits: us of CPU, rate, p99 in ms"))
        load_figures(servers, 4 * options.rounds)
        idle_figures(servers, options.rounds)


@contextlib.contextmanager
def with_pid(server, name):
    """The port and the process of one of the servers of server_figures.py."""
    with server as port:
        own = [pid for path in glob.glob("/proc/self/task/*/children") for pid in open(path).read().split()
               if open("/proc/%s/comm" % pid).read().strip() == name]
        yield port, int(own[0])


if __name__ == "__main__":
    main()
