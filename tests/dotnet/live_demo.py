# SPDX-License-Identifier: MIT
"""The demo shows more names after than before, on a live process and on the recorded one."""
import os
import re
import subprocess
import sys

from harness import CI, ROOT, Skip, expect


def demo(context, *options):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "dotnet", "demo.py"), "--build", context.build, *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    expect(done.returncode == 0, f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    counts = {match.group(1).strip(): tuple(map(int, match.groups()[1:]))
              for match in re.finditer(r"^  ([a-zA-Z. ]+?)\s+(\d+)\s+(\d+)\s+(\d+)$", done.stdout, re.MULTILINE)}
    before, after, total = counts["precompiled .NET code"]
    context.figure(f"precompiled frames with a name: {before} before, {after} after, of {total}")
    return done.stdout, before, after, total


def test_demo_of_the_recorded_process(context):
    text, before, after, _ = demo(context, "--recorded")
    expect("A recorded process" in text, "it is not said that the process is a recorded one")
    expect(before == 0 and after > 50, f"{before} names before, {after} after")
    expect(re.search(r"[0-9.]+ % +Thread.StartCallback\(\)  precompiled", text) and "[unknown]" not in text.partition("--by=tree")[2],
           f"the tree of the recording: {text.partition('--by=tree')[2]}")


def test_demo_of_a_live_process(context):
    context.sdk()
    text, before, after, total = demo(context)
    if "A live process" not in text:
        expect(not CI, text.splitlines()[0])
        raise Skip(text.splitlines()[0])
    expect(before == 0 and after >= 0.99 * total > 100, f"{before} names before, {after} after, of {total}")
    expect("--by=tree" in text and "Thread.StartCallback" in text.partition("--by=tree")[2], "it shows no tree of calls: " + text.partition("mapgen record")[2])
    left = [name for name in os.listdir("/tmp") if name.startswith("libsym-demo-")]
    expect(not left, f"left behind: {left}")
