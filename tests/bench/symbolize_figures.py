# SPDX-License-Identifier: MIT
"""Figures of dotnet-mapgen symbolize: text in which nothing is to be done, text in which everything is.

One line a figure, as bench.sh describes; the median of several runs, CPU time of
the command, its start and its look at the process included. The process is the
recorded one of fixtures/, its text is made in perf script's form. The peer of
the first figure is `grep -c`, which reads the same lines and writes none.
"""
import argparse
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORDED = os.path.join(ROOT, "fixtures", "recorded")
RUNS = 5
NAMED_BYTES = 200 << 20
FRAMES = 1_000_000


def cpu_seconds(command, path):
    """CPU seconds of one run with a file as standard input, and its standard error."""
    with open(path, "rb") as text, open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(command, stdin=text, stdout=nothing, stderr=subprocess.PIPE)
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


def methods(pid):
    """(address, name) of the recorded process's jitted methods."""
    rows = []
    with open(os.path.join(RECORDED, "tmp", f"perf-{pid}.map"), encoding="utf-8") as lines:
        for line in lines:
            start, size, name = line.rstrip("\n").split(" ", 2)
            if "::" in name and int(size, 16) > 16:
                rows.append((int(start, 16), name))
    return rows


def as_offset(pid, address):
    """An address as perf 6.1 prints it: an offset, and the file in parentheses."""
    with open(os.path.join(RECORDED, "proc", pid, "maps"), encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(None, 5)
            start, end = (int(part, 16) for part in fields[0].split("-"))
            if start <= address < end and len(fields) > 5:
                return address - start + int(fields[2], 16), fields[5]
    return address, "[unknown]"


def write_text(path, pid, named, size):
    """Samples of 20 frames; `size` counts bytes of named text, frames of unnamed."""
    frames = []
    for address, name in methods(pid)[:400]:
        offset, file = as_offset(pid, address + 5)
        frames.append(f"\t{offset:16x} {name + '+0x5' if named else '[unknown]'} ({file})\n")
    head = f"dotnet {pid}/{pid} [000]   568.578983:   10101010 cpu-clock:ppp: \n"
    samples = [head + "".join(frames[at:at + 20]) + "\n" for at in range(0, len(frames) - 19, 20)]
    piece = "".join(samples).encode()
    unit = len(piece) if named else 20 * len(samples)
    with open(path, "wb") as file:
        for _ in range(-(-size // unit)):
            file.write(piece)
    return os.path.getsize(path), 20 * len(samples) * -(-size // unit)


def say(name, ours, peer, ratio, goal, unit, note, ok):
    print(f"{name} ours={ours:.0f}{unit} peer={peer} ratio={ratio} goal={goal:g}{unit} {note}{'ok' if ok else 'short'}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    program = os.path.join(ROOT, arguments.build, "dotnet-mapgen")
    pid = next(name for name in os.listdir(os.path.join(RECORDED, "proc")) if name.isdigit())
    command = [program, "symbolize", "--json", f"--root={RECORDED}"]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        path = os.path.join(scratch, "text")
        size, _ = write_text(path, pid, True, NAMED_BYTES)
        ours, peers, memory = [], [], 0
        for _ in range(RUNS):
            seconds, memory, said = cpu_seconds(command, path)
            ours.append(seconds)
            peers.append(cpu_seconds(["grep", "-c", "unknown"], path)[0])
            assert '"addresses": 0' in said, said
        speed, peer = size / 1e6 / statistics.median(ours), size / 1e6 / statistics.median(peers)
        say("symbolize_nothing_to_do", speed, f"{peer:.0f}MB/s", f"{speed / peer:.2f}", 100, "MB/s",
            f"memory={memory:.0f}MB ", speed >= 100)
        size, frames = write_text(path, pid, False, FRAMES)
        ours = []
        for _ in range(RUNS):
            seconds, memory, said = cpu_seconds(command, path)
            ours.append(seconds)
            counted = int(re.search(r'"named": (\d+)', said).group(1))
            assert counted == frames, said
        speed = frames / statistics.median(ours)
        say("symbolize_everything", speed, "none", "none", 500_000, "frames/s", f"frames={frames} memory={memory:.0f}MB ",
            speed >= 500_000)


if __name__ == "__main__":
    if not glob.glob(os.path.join(RECORDED, "proc", "[0-9]*")):
        sys.exit("symbolize figures: fixtures/recorded is missing")
    main()
