# SPDX-License-Identifier: MIT
"""record on a web application under load, for each version of .NET; oracles are perf, which reads the file, and frame pointers."""
import os
import re
import shutil
import subprocess
import sys

import recorded_stacks
import shapes
import waiting
from harness import ROOT, Skip, build_environment, build_project, built, expect, need, npm_program, remove_leftovers

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from free_port import free_port  # noqa: E402
from sampling import sampling  # noqa: E402

# Where a thread begins: glibc 2.36 says clone3 with its debug file and without.
STARTS = {"clone3", "__clone3", "clone", "__clone", "_start"}
CPU_GOAL, SWITCH_GOAL = 99.5, 99.0
# Seconds of processor time after which most of the code is compiled.
WARM_SECONDS = 2

REQUESTS = """
local paths, next = { "/work", "/wait", "/work", "/later" }, 0
request = function()
  next = next + 1
  return wrk.format("GET", paths[next % #paths + 1])
end
"""


def dotnet_of(version):
    """The program dotnet of a version; Skip where it cannot be had."""
    if version == "10.0":
        return shutil.which("dotnet")
    if version == "3.1":
        root, why = npm_program("dotnet-3.1-linux-x64")
        dotnet = root
    else:
        root, why = shapes._lay_out(version)
        dotnet = root and os.path.join(root, "dotnet")
    if why:
        raise Skip(why)
    return dotnet


def command_of(version):
    """Words that run the server with a version of the runtime."""
    artifacts = built("load")
    why = build_project("tests/dotnet/load", artifacts)
    if why:
        raise Skip(f"the server does not build: {why}")
    return [dotnet_of(version), os.path.join(artifacts, "bin", "load", "release", "load.dll")]


class Server:
    """The server, and wrk that keeps it busy."""

    def __init__(self, context, version, connections=12):
        need("wrk")
        self.port = free_port()
        environment = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
        environment.pop("DOTNET_ROOT", None)
        self.process = subprocess.Popen([*command_of(version), str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid
        self.clients = None
        if self.process.stdout.readline().strip() != "ready":
            self.process.kill()
            raise Skip(f"the server of {version} did not start: {self.process.communicate()[1].strip()[:200]}")
        script = os.path.join(context.scratch, "requests.lua")
        with open(script, "w", encoding="utf-8") as file:
            file.write(REQUESTS)
        self.clients = subprocess.Popen(["wrk", "-t1", f"-c{connections}", "-d600", "-s", script, f"http://127.0.0.1:{self.port}/"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_until_warm(self):
        """Until it has used the processor for a while, so that most of its code is compiled."""
        waiting.wait_until_warm(self.process, WARM_SECONDS)

    def __enter__(self):
        self.wait_until_warm()
        return self

    def stop_load(self):
        self.clients.kill()
        self.clients.wait()

    def __exit__(self, *_):
        self.stop_load()
        self.process.kill()
        self.process.communicate()
        remove_leftovers(self.pid)


def record(context, pid, output, *words):
    done = subprocess.run([context.mapgen.program, "record", str(pid), "-o", output, *words], capture_output=True, text=True, timeout=120)
    if done.returncode == 1 and "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    expect(not done.returncode, f"record: {done.returncode} {done.stderr}")
    return done.stdout


def rate_and_time(seconds):
    """Options for as many samples as 1,997 Hz takes in these seconds."""
    rate, seconds = sampling(1997, seconds)
    return ["-F", str(rate), "-d", str(seconds)]


def ends_of(data):
    """For each event the names of the last user frames, as stock perf has them."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "event,ip,sym"], capture_output=True, text=True, errors="replace",
                          check=True).stdout
    found = {}
    for sample in text.split("\n\n"):
        lines = sample.strip("\n").split("\n")
        event = re.search(r"(cpu-clock|context-switches)", lines[0])
        frames = [line.split(None, 1) for line in lines[1:] if line.strip() and not line.strip().startswith("ffffffff")]
        if event and frames:
            found.setdefault(event[1], []).append(frames[-1][-1].split("+0x")[0].split("@")[0])
    return found


def check_version(context, version):
    need("perf")
    output, kept = (os.path.join(context.scratch, f"load-{version}-{kind}.data") for kind in ("plain", "kept"))
    with Server(context, version) as server:
        said = record(context, server.pid, output, *rate_and_time(0.8), "--off-cpu")
        # perf unwinds by itself, too, where a file has the bytes.
        record(context, server.pid, kept, *rate_and_time(0.3), "--off-cpu", "--keep-stack-bytes")
    figures = []
    for event, goal, chance in (("cpu-clock", CPU_GOAL, 4), ("context-switches", SWITCH_GOAL, 2)):
        ends = ends_of(output).get(event, [])
        whole = sum(name in STARTS for name in ends)
        share = 100 * whole / max(len(ends), 1)
        figures.append(f"{share:.2f} % of {len(ends)} {event} stacks")
        expect(len(ends) > 20, f"only {len(ends)} samples of {event}")
        bad = [name for name in ends if name not in STARTS]
        # In a few hundred samples, so many are within what chance does to the share.
        expect(len(bad) <= max(chance, len(ends) * (100 - goal) / 100), f"{version}: {share:.2f} % of {len(ends)} {event} stacks reach the thread's start; others end in "
                              f"{sorted(set(bad), key=bad.count)[-3:]}; {said}")
    compared = wrong = 0
    for sample in recorded_stacks.read(kept):
        chain, complete = sample.frame_pointers() if sample.registers else ([], False)
        if not complete or len(sample.chain) < 3 or chain[-1] not in sample.chain[-3:]:
            continue
        compared += 1
        wrong += not recorded_stacks.is_part(chain, sample.chain)
    context.figure(f".NET {version}: {', '.join(figures)} reach the thread's start; {compared} complete chains of frame pointers, "
                   f"{wrong} not a part of ours")
    expect(not wrong, f"{wrong} of {compared} chains of frame pointers are no part of ours")


def test_record_of_a_web_application_8(context):
    check_version(context, "8.0")


def test_record_of_a_web_application_10(context):
    check_version(context, "10.0")
