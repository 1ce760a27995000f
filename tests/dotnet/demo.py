# SPDX-License-Identifier: MIT
"""Shows one call chain of a .NET process before and after dotnet-mapgen, and counts the frames with names.

The process is a live one where .NET and perf are usable, else the recorded one
in fixtures/recorded; the output says which, and why. "Before" is what perf
script prints; "after" is what `dotnet-mapgen resolve` answers. At the end the
process is recorded, and `dotnet-mapgen report` shows where its time goes; where
there is no live process, it reads fixtures/recording. Ends the process it
started, and removes the maps that it made.
"""
import argparse
import glob
import os
import re
import shutil
import sys
import tempfile

import perf_samples
from harness import ROOT, Fail, Mapgen, Memory, Sample, npm_runtime, say, sdk_runtime

SECONDS = 2
BEFORE = 18  # columns
AFTER = 78


class Picture:
    """Call chains of one process with the names before, and how to get those after."""

    def __init__(self, what, pid, chains, memory, options=()):
        self.what = what
        self.pid = pid
        self.chains = chains
        self.memory = memory
        self.options = list(options)


def shortened(name, width):
    """Without type arguments where they are too long, then without the middle."""
    inner = re.compile(r"\[[^][…]+\]")
    while len(name) > width and inner.search(name):
        name = inner.sub("…", name)
    return name if len(name) <= width else name[: width // 2 - 1] + "…" + name[len(name) - width // 2:]


def run_shown(mapgen, *arguments):
    """Runs a command of dotnet-mapgen, showing it and the lines in which it counts."""
    say(f"$ dotnet-mapgen {' '.join(map(str, arguments))}")
    done = mapgen.must(*arguments, codes=(0, 3))
    for line in done.stdout.strip().splitlines():
        if line.startswith(("map ", "native images")):
            say("  " + line)


def name_of(answer):
    """The start of a function that no symbol names is no name."""
    return answer["name"] if answer["resolved"] else None


def looked_up(chain):
    """A caller's frame holds the address behind its call: look one byte before it."""
    return [frame.address - (1 if depth else 0) for depth, frame in enumerate(chain)]


def choose(picture, answers):
    """The chain in which most methods got a name, among those that fit on a screen."""
    def score(chain):
        return len({name_of(answers[address]) for frame, address in zip(chain, looked_up(chain)) if frame.perf_name is None})

    short = [chain for chain in picture.chains if len(chain) <= 30]
    return max(short or picture.chains, key=score)


def show_chain(picture, chain, answers):
    say()
    say(f"  {'perf script':<{BEFORE}}  dotnet-mapgen resolve")
    say(f"  {'-' * BEFORE}  {'-' * AFTER}")
    native = 0
    for frame, address in zip(chain, looked_up(chain)):
        answer = answers[address]
        if frame.perf_name is None and not name_of(answer) and picture.memory.kind_of(address) == "native":
            native += 1
            continue
        native = show_native(native)
        after = name_of(answer) or f"[{answer['status']}]"
        say(f"  {shortened(frame.perf_name or '[unknown]', BEFORE):<{BEFORE}}  {shortened(after, AFTER)}")
    show_native(native)


def show_native(count):
    if count:
        say(f"  {'[unknown]':<{BEFORE}}  ({count} frames of the runtime's own native code)")
    return 0


def show_counts(picture, answers):
    counts = {kind: [0, 0, 0] for kind in ("r2r", "jit", "native")}
    bounded = 0
    for chain in picture.chains:
        for frame, address in zip(chain, looked_up(chain)):
            row = counts.setdefault(picture.memory.kind_of(address), [0, 0, 0])
            row[0] += 1
            row[1] += frame.perf_name is not None
            row[2] += name_of(answers[address]) is not None
            bounded += answers[address]["name"] is not None and name_of(answers[address]) is None
    counts["net"] = [r2r + jit for r2r, jit in zip(counts["r2r"], counts["jit"])]
    say()
    say(f"  {'frames with a method name':<28}{'before':>8}{'now':>8}{'of':>8}")
    for kind, title in (("r2r", "precompiled .NET code"), ("jit", "jitted .NET code"), ("net", "all .NET code")):
        total, before, after = counts[kind]
        say(f"  {title:<28}{before:>8}{after:>8}{total:>8}")
    total, before, after = counts["native"]
    say(f"  Native code: {total} frames, {before} named by perf script, {after} by dotnet-mapgen,\n"
        f"  and {bounded} told by the start of their function (libcoreclr.so!0xVADDR), which merge puts into the map.")
    return counts


def show(picture, mapgen):
    say(picture.what)
    say(f"{len(picture.chains)} call chains of process {picture.pid}, recorded with perf record -e cpu-clock -g")
    say()
    if picture.options:
        made = os.path.join("build", "demo")
        os.makedirs(made, exist_ok=True)
        try:
            run_shown(mapgen, "generate", picture.pid, *picture.options, "-o", os.path.join(made, "maps"))
            run_shown(mapgen, "merge", picture.pid, *picture.options, "-o", os.path.join(made, "perf.map"))
        finally:
            shutil.rmtree(made)
    else:
        run_shown(mapgen, "generate", picture.pid)
        run_shown(mapgen, "merge", picture.pid)
    addresses = sorted({address for chain in picture.chains for address in looked_up(chain)})
    say(f"$ dotnet-mapgen {' '.join(['resolve', str(picture.pid), *picture.options])} < addresses")
    answers = mapgen.resolve(picture.pid, addresses, "--names=short", *picture.options)
    say(f"  {sum(name_of(answer) is not None for answer in answers.values())} of {len(addresses)} addresses have a name")
    show_chain(picture, choose(picture, answers), answers)
    return show_counts(picture, answers)


def show_recording(mapgen, path):
    """Where the time goes, by a recording: the tree of calls."""
    say()
    say(f"$ dotnet-mapgen report cpu --by=tree -i {os.path.basename(path)}")
    for line in mapgen.must("report", "cpu", "--by=tree", "--top=24", "-i", path).stdout.rstrip().splitlines():
        say(f"  {line[:110]}")


def record_and_show(mapgen, pid, scratch):
    path = os.path.join(scratch, "sample.trace.zip")
    say()
    say(f"$ dotnet-mapgen record -d 2 -o sample.trace.zip {pid}")
    done = mapgen.run("record", "-d", "2", "--no-kernel", "-o", path, str(pid))
    for line in (done.stdout + done.stderr).rstrip().splitlines():
        say(f"  {line.replace(scratch + os.sep, '')}")
    if os.path.exists(path):
        show_recording(mapgen, path)


def live_picture(runtime, sample, scratch):
    data = os.path.join(scratch, "perf.data")
    why = perf_samples.record(sample.pid, SECONDS, data)
    if why:
        return None, why
    chains, _ = perf_samples.samples(data)
    if not chains:
        return None, "perf recorded no samples"
    return Picture(f"A live process on {runtime.description}.", sample.pid, chains, Memory(sample.pid)), None


def show_live(mapgen, scratch):
    """Counts, or why no live process can be shown."""
    runtime, why = sdk_runtime()
    if not runtime:
        runtime, why_not_npm = npm_runtime()
        if not runtime:
            return None, f"{why}, {why_not_npm}"
    try:
        with Sample(runtime, {"DOTNET_PerfMapEnabled": "1", "COMPlus_PerfMapEnabled": "1"}) as sample:
            picture, why = live_picture(runtime, sample, scratch)
            if not picture:
                return None, why
            counts = show(picture, mapgen)
            record_and_show(mapgen, sample.pid, scratch)
            return counts, None
    except Fail as failure:
        return None, str(failure)


def show_recorded(mapgen, why):
    root = os.path.join("fixtures", "recorded")
    pid = int(os.path.basename(glob.glob(f"{root}/proc/[0-9]*")[0]))
    chains = []
    with open(f"{root}/chains.txt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                chains.append([])
            else:
                address, name = line.rstrip("\n").split(" ", 1)
                chains[-1].append(perf_samples.Frame(int(address, 16), None if name == "-" else name))
    what = f"A recorded process, because there is no live one here ({why}).\nOnly its own assembly was kept, not the framework's."
    counts = show(Picture(what, pid, chains, Memory(pid, root), ["--root", root]), mapgen)
    show_recording(mapgen, os.path.join("fixtures", "recording", "sample.trace.zip"))
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--recorded", action="store_true", help="the recorded process, whatever this machine has")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="libsym-demo-") as scratch:
        mapgen = Mapgen(arguments.build, scratch)
        why = "asked for"
        counts = None
        if not arguments.recorded:
            counts, why = show_live(mapgen, scratch)
        if not counts:
            counts = show_recorded(mapgen, why)
    total, before, after = counts.get("r2r", (0, 0, 0))
    # With symbol files where perf looks, all names are there before.
    return 0 if after > before or after == total > 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Fail as failure:
        sys.exit(f"demo: {failure}")
