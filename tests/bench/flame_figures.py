# SPDX-License-Identifier: MIT
"""How long the page of `flame` takes to open, beside speedscope, for a million samples in 60,000 stacks.

One line a figure, as bench.sh describes. Both get the same folded text, one after the other in the same browser.
Needs chromium, and npm for speedscope and playwright-core.
"""
import argparse
import base64
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(HERE, "..", "dotnet")]
from harness import npm_package  # noqa: E402

RUNS = 1
STACKS, SAMPLES, FUNCTIONS = 60000, 1_000_000, 6000


def write_stacks(path):
    """Stacks of 15 to 60 functions that part now and then, as those of a service do; most are seen a few times."""
    chance = random.Random(1)
    counts = [max(1, int(chance.paretovariate(1.05))) for _ in range(STACKS)]
    scale = SAMPLES / sum(counts)
    with open(path, "w", encoding="utf-8") as file:
        for count in counts:
            at, frames = chance.randint(0, 40), []
            for depth in range(chance.randint(15, 60)):
                at = (at * 31 + depth * 7 + chance.choice((0, 0, 0, 1, 2))) % FUNCTIONS
                frames.append(f"Namespace{at % 50}.Type{at % 400}.Method{at}")
            file.write(f"app;{';'.join(frames)} {max(1, round(count * scale))}\n")


def speedscope_link(scratch, folded, package):
    """The output of speedscope's own command line: its page, and a script that loads the file."""
    script = os.path.join(scratch, "load.js")
    with open(folded, "rb") as file, open(script, "w", encoding="utf-8") as out:
        out.write(f'speedscope.loadFileFromBase64("big.folded", "{base64.b64encode(file.read()).decode()}")')
    return f"file://{package}/dist/release/index.html#localProfilePath={script}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    program = os.path.join(parser.parse_args().build, "dotnet-mapgen")
    browser = shutil.which("chromium")
    playwright, why = npm_package("playwright-core")
    speedscope, why_not = npm_package("speedscope")
    if not browser or not playwright or not speedscope:
        print(f"flame figures: {why or why_not or 'chromium is not installed'}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folded = os.path.join(scratch, "big.folded")
        write_stacks(folded)
        links = {"speedscope": (speedscope_link(scratch, folded, speedscope), "big.folded")}
        for name, words in (("default", ()), ("--all", ("--all",))):
            page = os.path.join(scratch, f"big{name}.html")
            subprocess.run([program, "flame", "-i", folded, "-o", page, *words], stdout=subprocess.DEVNULL, check=True)
            links[name] = (f"file://{page}", "CPU")
        times, heaps = {name: [] for name in links}, {name: [] for name in links}
        for _ in range(RUNS):
            for name, (link, word) in links.items():
                done = subprocess.run(["node", os.path.join(HERE, "flame_page_time.js"), playwright, browser, link, word], capture_output=True, text=True,
                                      check=True)
                milliseconds, megabytes = map(float, done.stdout.split())
                times[name].append(milliseconds)
                heaps[name].append(megabytes)
    for name, goal in (("default", 20), ("--all", 5)):
        for what, unit, values, wanted in (("until usable", "ms", times, goal), ("heap", "MB", heaps, 8)):
            ours, peer = statistics.median(values[name]), statistics.median(values["speedscope"])
            print(f"page of flame, {name}, {what}, beside speedscope ours={ours:.0f}{unit} peer={peer:.0f}{unit} ratio={peer / ours:.1f} goal={wanted} "
                  f"{'ok' if peer >= wanted * ours else 'short'}", flush=True)


if __name__ == "__main__":
    main()
