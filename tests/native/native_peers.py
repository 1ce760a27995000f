# SPDX-License-Identifier: MIT
"""Runtimes that are slow to answer over their diagnostics sockets, several at once.

The peers are programs of uid 65534 that look like .NET processes. When one of them is asked, it says so to the
test, and it answers when the test says so; the test waits until all were asked. Who asks one after another waits
for the first one without success.
"""
import contextlib
import os
import socket
import subprocess
import sys
import threading

from native_tools import Fail, Skip

ATTACKER = 65534
CODE = 0x7000000000

# The session is Collect4 {..} -> u64 id; Stop {id} over another connection; then the stream ends.
PEER = """
import ctypes, os, socket, struct, sys
runtime, gate = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mmap(None, 4096, 5, 2, os.open(runtime, os.O_RDONLY), 0)
libc.mmap(0x7000000000, 1 << 20, 7, 0x32, -1, 0)
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
path = f"/tmp/dotnet-diagnostic-{os.getpid()}-{start}-socket"
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(8)
print("ready", flush=True)
def reply(payload):
    return b"DOTNET_IPC_V1\\0" + struct.pack("<HBBH", 20 + len(payload), 0xff, 0, 0) + payload
sessions, questions = {}, []
def serve(peer):
    command = peer.recv(4096)
    if command[16:18] == b"\\2\\1":
        with sessions.pop(command[20:28]) as stream:
            stream.sendall(b"Nettrace" + struct.pack("<I", 20) + b"!FastSerialization.1\\1")
        peer.sendall(reply(bytes(8)))
        return
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(gate)
    asked.send(b"%d" % os.getpid())
    questions.append((peer, asked))
    if asked.recv(1):
        number = struct.pack("<Q", len(questions))
        sessions[number] = peer
        peer.sendall(reply(number))
while True:
    peer, _ = listener.accept()
    try:
        serve(peer)
    except OSError:
        pass
"""


class Gate:
    """Where peers say that they were asked. They may answer when `together` of them were."""

    def __init__(self, path, together):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(64)
        self.together = together
        self.waiting, self.asked = [], []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.asked.append(int(peer.recv(16)))
            self.waiting.append(peer)
            if len(set(self.asked)) >= self.together:
                for one in self.waiting:
                    with contextlib.suppress(OSError):
                        one.send(b"x")
                self.waiting = []


@contextlib.contextmanager
def peers(tools, name, count, together):
    """PIDs of `count` peers and their gate."""
    tools.need("setpriv", "python3")
    if os.geteuid():
        raise Skip("root runs the product here")
    directory = tools.path(name)
    runtime = os.path.join(directory, "shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so")
    os.makedirs(os.path.dirname(runtime))
    with open(runtime, "wb") as file:
        file.write(bytes(4096))
    program = tools.write(f"{name}/peer.py", PEER)
    for path in (tools.scratch, directory):
        os.chmod(path, 0o755)
    gate = Gate(os.path.join(directory, "gate"), together)
    with contextlib.ExitStack() as stack:
        stack.callback(gate.listener.close)
        pids = []
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen(
                ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups", sys.executable, program, runtime,
                 os.path.join(directory, "gate")], stdout=subprocess.PIPE, text=True, cwd="/"))
            stack.callback(process.kill)
            if process.stdout.readline() != "ready\n":
                raise Fail("a peer did not start")
            pids.append(process.pid)
        yield pids, gate


def text_of(pids):
    """As perf script prints it."""
    return "".join(f"python3 {pid}   568.578983:   10101010 cpu-clock: \n\t{CODE + 16:16x} [unknown] (//anon)\n\n" for pid in pids)


def expect_asked(pids, gate, done):
    missing = [pid for pid in pids if f"process {pid} (python3) was asked over its diagnostics socket" not in done.stderr]
    if missing:
        raise Fail(f"{len(missing)} of {len(pids)} were not waited for: {done.stderr}")
    if set(gate.asked) != set(pids):
        raise Fail(f"{gate.asked} were asked, not {pids}")


def test_symbolize_asks_the_runtimes_of_several_processes_side_by_side(tools):
    with peers(tools, "peers-symbolize", 6, 6) as (pids, gate):
        done = subprocess.run([tools.program, "symbolize"], input=text_of(pids), capture_output=True, text=True, timeout=120)
        expect_asked(pids, gate, done)


def test_perf_fix_asks_the_runtimes_of_several_processes_side_by_side(tools):
    tools.need("perf")
    with peers(tools, "peers-perf-fix", 6, 6) as (pids, gate):
        data = tools.path("peers.data")
        tools.run("perf", "record", "-q", "-e", "cpu-clock", "-p", ",".join(map(str, pids)), "-o", data, "sleep", "0.1")
        done = subprocess.run([tools.program, "perf-fix", data], capture_output=True, text=True, timeout=120)
        if "answer" in done.stderr or set(gate.asked) != set(pids):
            raise Fail(f"{gate.asked} of {pids} were asked: {done.stderr}")


def test_peers_that_are_silent_do_not_take_the_time_of_one_that_answers(tools):
    """Nine are asked and never answer. The last one does when all were asked."""
    with peers(tools, "peers-silent", 9, 1 << 20) as (silent, gate_of_silent), peers(tools, "peers-answering", 1, 1) as (answering, gate):
        done = subprocess.run([tools.program, "symbolize"], input=text_of(silent + answering), capture_output=True, text=True,
                              timeout=120)
        expect_asked(answering, gate, done)
        if done.stderr.count("jitted code has no names: ") != 8 or sorted(gate_of_silent.asked) != sorted(silent):
            raise Fail(f"{gate_of_silent.asked} of {silent} were asked: {done.stderr}")
