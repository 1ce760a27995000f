# SPDX-License-Identifier: MIT
"""Call chains that perf recorded, with the names that perf itself gives them.

perf script prints file offsets for frames in files, so the addresses are read
from perf.data and paired with what perf script says of the same sample. Knows
perf.data (tools/perf/Documentation/perf.data-file-format.txt); knows nothing
of .NET.
"""
import collections
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sampling import sampling  # noqa: E402

Frame = collections.namedtuple("Frame", "address perf_name")
"""A user-space frame; perf_name is None where perf prints [unknown]."""

SAMPLE = 9
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD = (1 << n for n in (0, 1, 2, 3, 4, 5, 6, 7, 8))
STREAM_ID = 1 << 9
CONTEXT_MARKERS = 0xFFFFFFFFFFFFF001  # PERF_CONTEXT_MAX: from here on an entry is a marker
USER_END = 1 << 63


def perf(path):
    """perf with a build-id cache of its own: nothing is left in the user's, and nothing there changes what is named."""
    return ["perf", "--buildid-dir", path + ".buildid"]


# The kernel's symbols take nine tenths of the time in which perf reads a recording; no test asks for the name of one.
NO_KERNEL_SYMBOLS = ("--kallsyms", "/dev/null")

# Ends when processes have used so much CPU time: a recording has as many samples on a busy machine as on an idle one.
WAIT = """
import os, sys, time
def ran():
    ticks = 0
    for pid in sys.argv[1].split(","):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")
seconds, begin = float(sys.argv[2]), time.monotonic()
try:
    first = ran()
    while ran() - first < seconds and time.monotonic() - begin < 20 * seconds + 10:
        time.sleep(0.05)
except OSError:
    pass
"""


def waiting(pid, seconds):
    """The command that ends when a process (or several: "PID,PID") has used so much CPU time."""
    return [sys.executable, "-I", "-S", "-c", WAIT, str(pid), str(seconds)]


def record(pid, seconds, path, frequency=499, options=()):
    """Records call chains of so many seconds of CPU time, longer where the kernel allows a lower rate; None, or why that is not possible."""
    frequency, seconds = sampling(frequency, seconds)
    command = [*perf(path), "record", "-q", "-e", "cpu-clock", "-F", str(frequency), "-g", "-p", str(pid),
               "-o", path, *options, "--", *waiting(pid, seconds)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return "perf is not installed (package linux-perf)"
    if done.returncode:
        return "perf record: " + (done.stderr.strip().splitlines() or ["failed"])[-1]
    return None


def _raw_chains(path):
    """{(thread, time): [user addresses, innermost first]} out of perf.data."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"PERFILE2":
        raise ValueError("not a perf.data file")
    attr_size, attr_offset = struct.unpack_from("<QQ", data, 16)
    data_offset, data_size = struct.unpack_from("<QQ", data, 40)
    sample_type = struct.unpack_from("<Q", data, attr_offset + 24)[0]
    if sample_type & (ADDR | READ) or sample_type & CALLCHAIN == 0:
        raise ValueError(f"sample type {sample_type:#x} is not what was asked for")
    chains = {}
    position, end = data_offset, data_offset + data_size
    while position + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, position)
        if kind == SAMPLE:
            key, chain = _sample(data, position + 8, sample_type)
            chains[key] = chain
        if size < 8:
            break
        position += size
    return chains


def _sample(data, at, sample_type):
    at += 8 * bin(sample_type & (IP | 1 << 16)).count("1")
    _, thread = struct.unpack_from("<II", data, at)
    time = struct.unpack_from("<Q", data, at + 8)[0]
    at += 16 + 8 * bin(sample_type & (ID | STREAM_ID | CPU | PERIOD)).count("1")
    count = struct.unpack_from("<Q", data, at)[0]
    entries = struct.unpack_from(f"<{count}Q", data, at + 8)
    return (thread, time), [e for e in entries if e < USER_END]


FRAME_LINE = re.compile(r"^\s+([0-9a-f]+) (.*) \(([^()]*(?: \(deleted\))?)\)$")
HEAD_LINE = re.compile(r"^\s*(\d+)\s+(\d+)\.(\d+):")


def _named_chains(path):
    """{(thread, time): [name or None of each user frame]} out of perf script."""
    done = subprocess.run([*perf(path), "script", "-i", path, "--ns", "--no-inline", *NO_KERNEL_SYMBOLS, "-F", "tid,time,ip,sym,dso"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace")
    chains, chain = {}, None
    for line in done.stdout.splitlines():
        frame = FRAME_LINE.match(line)
        head = HEAD_LINE.match(line)
        if frame and chain is not None:
            if not frame.group(3).startswith("[") or frame.group(3) in ("[unknown]", "[vdso]", "[heap]", "[stack]"):
                if int(frame.group(1), 16) < USER_END:
                    name = frame.group(2)
                    chain.append(None if name == "[unknown]" else name)
        elif head:
            key = int(head.group(1)), int(head.group(2)) * 10**9 + int(head.group(3))
            chain = chains[key] = []
    return chains


def nameless_samples(path):
    """Every sample as a list of Frame, innermost first, without perf's names, which take longer to find than to record."""
    return [[Frame(address, None) for address in addresses]
            for _, addresses in sorted(_raw_chains(path).items(), key=lambda item: item[0][1]) if addresses]


def samples(path):
    """Every sample as a list of Frame, innermost first; and how many could not be paired."""
    named = _named_chains(path)
    result, unpaired = [], 0
    for key, addresses in sorted(_raw_chains(path).items(), key=lambda item: item[0][1]):
        names = named.get(key)
        if names is None or len(names) != len(addresses):
            unpaired += 1
            continue
        if addresses:
            result.append([Frame(a, n) for a, n in zip(addresses, names)])
    return result, unpaired
