# SPDX-License-Identifier: MIT
"""Our relative maps against those of a real crossgen: the script of its own beside this file."""
import os
import shutil
import subprocess

from harness import ROOT, Skip, expect


def test_relative_maps_equal_those_of_crossgen(context):
    script = os.path.join(ROOT, "tests", "dotnet", "check-crossgen.sh")
    if not os.path.exists(script):
        raise Skip("there is no comparison with crossgen yet")
    if not shutil.which("dotnet"):
        raise Skip("no .NET SDK to fetch the runtime pack with")
    done = subprocess.run([script], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, BUILD=context.build))
    lines = done.stdout.strip().splitlines()
    for line in lines:
        if line.startswith("skipped "):
            raise Skip(line.split(": ", 1)[-1])
    for line in lines[-3:]:
        context.figure(line)
    expect(done.returncode == 0, (lines or done.stderr.strip().splitlines() or ["no output"])[-1])
