# SPDX-License-Identifier: MIT
"""perf-fix beside cp --reflink=never, on warm data, interleaved; and that its memory does not grow.

The data is made here: samples like those of perf record -g, with a mapping now and then, and
no process that lives. Usage: perf_fix_figures.py --build DIR [--megabytes N]
"""
import argparse
import os
import struct
import subprocess
import tempfile

ROUNDS = 3


def make(path, megabytes):
    """A perf.data of that size."""
    def mmap2(start):
        name = b"/memfd:doublemapper (deleted)\0\0\0"
        return struct.pack("<IHHIIQQQIIQQII", 10, 2, 72 + len(name) + 16, 1 << 22, 1 << 22, start, 4096, 0, 0, 1, 7, 0, 5, 1) + name + b"\0" * 16

    def sample(at, depth):
        return (struct.pack("<IHHQIIQQQ", 9, 2, 48 + 8 * depth, at, 1 << 22, 1 << 22, 0, 1000, depth)
                + b"\x11\x22\x33\x44\x55\x7f\0\0" * depth)

    block = mmap2(0x7F0000000000) + b"".join(sample(0x7F0000000000 + 16 * n, n % 40) for n in range(4000))
    attributes = struct.pack("<IIQQQ", 1, 128, 0, 0, 0x127) + b"\0" * 96 + struct.pack("<QQ", 0, 0)
    count = megabytes * (1 << 20) // len(block)
    at = 104 + len(attributes)
    with open(path, "wb") as out:
        out.write(b"PERFILE2" + struct.pack("<QQQQQQQQ4Q", 104, 144, 104, len(attributes), at, count * len(block), 0, 0, 0, 0, 0, 0))
        out.write(attributes)
        for _ in range(count):
            out.write(block)


def cpu_seconds(command):
    """CPU time and peak memory in KB of a command."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise SystemExit(f"{command[0]}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--megabytes", type=int, default=1024)
    arguments = parser.parse_args()
    program = os.path.abspath(os.path.join(arguments.build, "dotnet-mapgen"))
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="perf-fix-bench-") as scratch:
        large, small, out = (os.path.join(scratch, name) for name in ("large", "small", "out"))
        make(large, arguments.megabytes)
        make(small, max(1, arguments.megabytes // 16))
        with open(large, "rb") as file:  # warm
            while file.read(1 << 22):
                pass

        def fix(path):
            return cpu_seconds([program, "perf-fix", "--buildid-dir", scratch + "/ids", "-o", out, path])

        ours, peer, memory = [], [], 0
        for _ in range(ROUNDS):
            seconds, _ = cpu_seconds(["cp", "--reflink=never", large, out])
            peer.append(seconds)
            os.unlink(out)
            seconds, memory = fix(large)
            ours.append(seconds)
            os.unlink(out)
        _, small_memory = fix(small)
        megabytes = os.path.getsize(large) / 1e6
    ratio = min(peer) / min(ours)
    print(f"perf_fix_{arguments.megabytes}MB ours={megabytes / min(ours):.0f}MB/cpu-s peer=cp:{megabytes / min(peer):.0f}MB/cpu-s "
          f"ratio={ratio:.2f} goal=0.70 {'ok' if ratio >= 0.7 else 'short'}")
    growth = memory / small_memory
    print(f"perf_fix_memory ours={memory}KB peer=sixteenth:{small_memory}KB ratio={growth:.2f} goal=1.10 "
          f"{'ok' if growth <= 1.1 else 'short'}")


if __name__ == "__main__":
    main()
