#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""24 processes that are started and killed all the time, while list, info, merge, watch, resolve and symbolize look at them.

Nothing may be reported but that a process has ended, and the commands that run all the time grow neither in memory nor in descriptors.
The lives of the processes come from a seed; which command meets which state does not.
Usage: soak.py --build DIR [--seconds N] [--seed N]
"""
import argparse
import collections
import contextlib
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from long_inputs import Inputs, Target  # noqa: E402
from waiting import wait_until  # noqa: E402

PROCESSES = 24
LONGEST_LIFE_S = 3.0
# Messages that the end of a process causes.
ENDED = re.compile(r"process \d+.*(ended|is gone|no longer|No such process|was replaced|not running|exited|no such)|"
                   r"\d+: No such (file or directory|process)|reset by peer|Broken pipe|refused|closed the connection|hosts no \.NET runtime|"
                   r"process \d+: there is none|has ended the tracing session|has no diagnostics socket of its own")
# Says what was done, not what failed.
REMARKS = re.compile(r"the runtime was asked|jitted code: \d|for (names in|methods that)|native images:|writes? its map|is running:|ends within a line|"
                     r"reports each method|until the (process|time)|refreshes|addresses without a name|no process that can be seen|goes on writing|set O_APPEND|symbol cache|"
                     r"was asked over its diagnostics socket|reports each method|frames have a time before|(threads|processes) that have ended|"
                     r"process(es)? may not be looked at by this user")
# It may grow until every cache has been in use once.
WARM_UP = 0.3
GROWTH_BYTES = 12 << 20
GROWTH_DESCRIPTORS = 4


class Crowd:
    """Keeps the processes coming and going."""

    def __init__(self, inputs, chance):
        self.inputs, self.chance, self.stop = inputs, chance, threading.Event()
        self.alive, self.lock, self.started = {}, threading.Lock(), 0
        self.threads = [threading.Thread(target=self.live, args=(random.Random(chance.random()),)) for _ in range(PROCESSES)]

    def live(self, chance):
        while not self.stop.is_set():
            try:
                target = Target(self.inputs)
            except ValueError:
                continue  # killed by the end of the test
            with self.lock:
                self.alive[target.pid] = target
                self.started += 1
            self.stop.wait(chance.random() * LONGEST_LIFE_S)
            with self.lock:
                del self.alive[target.pid]
            target.end()

    def one(self):
        chosen = []

        def is_chosen():
            with self.lock:
                if self.alive:
                    chosen.append(self.chance.choice(list(self.alive.values())))
            return chosen
        wait_until(is_chosen, "no process is started")
        return chosen[0]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class Watched:
    """A command that runs all the time; its memory and descriptors."""

    def __init__(self, name, words, environment, questions):
        self.name, self.questions = name, questions
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.errors, env=environment)
        self.samples = []

    def feed(self):
        """Whatever it is asked next; what it has no room for is left out."""
        os.set_blocking(self.process.stdin.fileno(), False)
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self.process.stdin.fileno(), self.questions().encode())

    def sample(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            memory = int(file.read().split()[1]) * 4096
        self.samples.append((memory, len(os.listdir(f"/proc/{self.process.pid}/fd"))))

    def growth(self):
        """(bytes, descriptors) from the end of the warm-up to the most afterwards; None when there is nothing to say."""
        early = self.samples[:int(len(self.samples) * WARM_UP) + 1]
        late = self.samples[-max(1, len(self.samples) // 10):]
        return tuple(min(row[i] for row in late) - max(row[i] for row in early) for i in (0, 1))

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.errors.seek(0)
        return code, self.errors.read().decode(errors="replace")


def complaints(text):
    return [line for line in text.splitlines() if not ENDED.search(line) and not REMARKS.search(line)]


class Soak:
    def __init__(self, build, scratch, chance):
        self.program = os.path.join(os.path.abspath(build), "dotnet-mapgen")
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(scratch, "cache"), LC_ALL="C.UTF-8")
        self.scratch, self.chance = scratch, chance
        self.counts, self.wrong = collections.Counter(), collections.Counter()

    def judge(self, name, code, said):
        self.counts[f"{name} {code}"] += 1
        if code not in (0, 1, 3):
            self.wrong[f"{name}: exit code {code}: {said[-200:]}"] += 1
        for line in complaints(said):
            self.wrong[f"{name}: " + re.sub(r"\d+", "N", line)] += 1

    def run(self, name, *words, stdin=None):
        done = subprocess.run([self.program, *map(str, words)], input=stdin, capture_output=True, text=True, errors="replace",
                              env=self.environment, timeout=120, **({} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        self.judge(name, done.returncode, done.stderr)

    def turn(self, crowd):
        """One command on whatever is alive; it may be gone before the command sees it."""
        target, out = crowd.one(), os.path.join(self.scratch, f"map-{threading.get_ident()}")
        kind = self.chance.randrange(7)
        if kind == 0:
            self.run("list", "list")
        elif kind == 1:
            self.run("info", "info", target.pid)
        elif kind == 2:
            self.run("merge", "merge", target.pid, "-o", out)
        elif kind == 3:
            self.run("merge in place", "merge", target.pid, "--mode=replace")
        elif kind == 4:
            self.run("watch", "watch", target.pid, "-o", out, "--interval=0.05")
        elif kind == 5:
            self.run("resolve", "resolve", target.pid, *map(hex, target.addresses()))
        else:
            self.run("symbolize", "symbolize", stdin=stack(target))

    def turns(self, crowd, end):
        while time.monotonic() < end:
            self.turn(crowd)


def stack(target):
    return f"target {target.pid} 1.000000:          1 cpu-clock: \n" + "".join(f"\t{address:16x} [unknown] (//anon)\n" for address in target.addresses()) + "\n"


def soak(options, scratch):
    chance = random.Random(options.seed)
    inputs, run = Inputs(scratch), Soak(options.build, scratch, chance)
    with Crowd(inputs, chance) as crowd, Target(inputs) as steady:
        watched = [
            Watched("symbolize", [run.program, "symbolize"], run.environment, lambda: stack(crowd.one())),
            Watched("watch", [run.program, "watch", str(steady.pid), "-o", os.path.join(scratch, "steady"), "--interval=0.05"], run.environment,
                    lambda: ""),
            Watched("resolve", [run.program, "resolve", str(steady.pid)], run.environment,
                    lambda: "".join(f"{address:x}\n" for address in steady.addresses())),
        ]
        end = time.monotonic() + options.seconds
        workers = [threading.Thread(target=run.turns, args=(crowd, end)) for _ in range(2)]
        for worker in workers:
            worker.start()
        while time.monotonic() < end:
            for command in watched:
                command.feed()
                command.sample()
            time.sleep(0.2)
        for worker in workers:
            worker.join()
        watched[1].process.terminate()
        ends = [(command, *command.end()) for command in watched]
    for command, code, said in ends:
        if command.name != "watch":
            run.judge("long " + command.name, code, said)
        memory, descriptors = command.growth()
        print(f"    {command.name}: {command.samples[-1][0] >> 10} kB, {command.samples[-1][1]} descriptors at the end; "
              f"grew by {memory >> 10} kB, {descriptors}")
        if memory > GROWTH_BYTES or descriptors > GROWTH_DESCRIPTORS:
            run.wrong[f"{command.name} grew by {memory >> 10} kB and {descriptors} descriptors"] += 1
    print(f"    {crowd.started} processes; " + ", ".join(f"{name}: {count}" for name, count in sorted(run.counts.items())))
    return run.wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=20261128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="libsym-soak-") as scratch:
        wrong = soak(options, scratch)
    for line, count in wrong.most_common(20):
        print(f"    {count} times {line}")
    name = f"{PROCESSES} processes that come and go for {options.seconds:.0f} s"
    print(f"FAILED {name}: {sum(wrong.values())} reports" if wrong else f"ok {name}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
