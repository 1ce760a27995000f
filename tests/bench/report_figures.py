# SPDX-License-Identifier: MIT
"""report to folded text beside perf script, of a million samples with call chains; and that memory grows with
different stacks, not with samples.

The data is made here: chains through the functions of the C library and of libcrypto, as perf record -g has them, of two processors,
with rounds; no process of them lives. Usage: report_figures.py --build DIR [--samples N]
"""
import argparse
import os
import random
import struct
import subprocess
import tempfile

STACKS = 20000
PLACES = 5000  # different addresses in all of them
DEPTH = 43
THREADS = 8
ROUND = 2000
PID = 1 << 22


def libraries():
    """Paths of libraries that nearly every process has, with a size of code each."""
    found = []
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.split()
            if len(fields) > 5 and "x" in fields[1] and fields[5].startswith("/"):
                start, end = (int(part, 16) for part in fields[0].split("-"))
                major, minor = (int(part, 16) for part in fields[3].split(":"))
                found.append((fields[5], start, end - start, int(fields[2], 16), major, minor, int(fields[4])))
    return found


def mmap2(path, start, size, offset, major, minor, inode):
    name = path.encode() + b"\0"
    name += b"\0" * (-len(name) % 8)
    trailer = struct.pack("<IIQ", PID, PID, 0)
    return struct.pack("<IHHIIQQQIIQQII", 10, 2, 72 + len(name) + len(trailer), PID, PID, start, size, offset, major, minor, inode, 0, 5, 2) + name + trailer


def make(path, samples):
    """A perf.data with that many samples: first each stack of each thread once, so that two files differ in nothing else."""
    chance = random.Random(1)
    mapped = libraries()
    chains = []
    places = [place[1] + chance.randrange(place[2]) for place in (chance.choice(mapped) for _ in range(PLACES))]
    for _ in range(STACKS):
        addresses = [chance.choice(places) for _ in range(DEPTH)]
        chains.append((addresses[0], struct.pack(f"<QQ{DEPTH}Q", DEPTH + 1, (1 << 64) - 512, *addresses)))
    attribute = struct.pack("<IIQQQQQ", 1, 128, 0, 99, 0x27 | 0x100, 0, 1 | 1 << 10 | 1 << 18) + b"\0" * 80
    tables = attribute + struct.pack("<QQ", 0, 0)
    at = 104 + len(tables)
    size = 8 + 8 + 8 + 8 + 8 + 8 * (DEPTH + 2)
    with open(path, "wb") as out:
        out.write(b"\0" * 104 + tables)
        out.write(struct.pack("<IHHII", 3, 0, 8 + 8 + 8 + 16, PID, PID) + b"bench\0\0\0" + struct.pack("<IIQ", PID, PID, 0))
        for place in mapped:
            out.write(mmap2(*place))
        for n in range(samples):
            ip, chain = chains[n // THREADS if n < STACKS * THREADS else chance.randrange(STACKS)]
            # Two processors: each second record is older than the one before it.
            time = 1000000000 + 10000 * (n ^ 1)
            out.write(struct.pack("<IHHQIIQQ", 9, 2, size, ip, PID, PID + n % THREADS, time, 10101010) + chain)
            if n % ROUND == ROUND - 1:
                out.write(struct.pack("<IHH", 68, 0, 8))
        end = out.tell()
        out.seek(0)
        out.write(b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, len(tables), 104, len(tables), at, end - at, 0, 0, 0, 0, 0, 0))


def run(command):
    """CPU time and peak memory in KB of a command; None for one that is not there."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return None, None
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--samples", type=int, default=1000000)
    arguments = parser.parse_args()
    program = os.path.abspath(os.path.join(arguments.build, "dotnet-mapgen"))
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="report-bench-") as scratch:
        large, small = (os.path.join(scratch, name) for name in ("large.data", "small.data"))
        make(large, arguments.samples)
        make(small, max(STACKS * THREADS, arguments.samples // 8))
        folded = [program, "report", "cpu", "--format=folded", "-i"]
        run(folded + [large])  # warm
        ours, memory = run(folded + [large])
        _, small_memory = run(folded + [small])
        peer, _ = run(["perf", "script", "-i", large])
    if peer is None:
        print("skipped report_folded: no perf")
    else:
        ratio = peer / ours
        print(f"report_folded_{arguments.samples} ours={ours:.2f}cpu-s peer=perf-script:{peer:.2f}cpu-s ratio={ratio:.1f} goal=20 "
              f"{'ok' if ratio >= 20 else 'short'}")
    growth = memory / small_memory
    print(f"report_memory ours={memory}KB peer=eighth:{small_memory}KB ratio={growth:.2f} goal=1.20 {'ok' if growth <= 1.2 else 'short'}")


if __name__ == "__main__":
    main()
