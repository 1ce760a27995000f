# SPDX-License-Identifier: MIT
"""contract_figures.py --build DIR: reading 10,000 jitted methods by data contract, beside its own system calls alone.

The process is the C# compiler with nothing precompiled, stopped when it has compiled that many.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))

from harness import remove_leftovers, sdk_runtime  # noqa: E402
from live_contract import csc_command, read_methods  # noqa: E402

WANTED = 10000


class Context:
    """The little of a test's context that csc_command() needs."""

    def __init__(self, runtime):
        self.runtime = runtime

    def sdk(self):
        return self.runtime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    build = parser.parse_args().build
    runtime, why = sdk_runtime()
    if not runtime:
        print(f"contract figures: {why}")
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-bench-") as scratch:
        process = subprocess.Popen(csc_command(Context(runtime), scratch), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, DOTNET_ReadyToRun="0", DOTNET_PerfMapEnabled="3"))
        try:
            path = f"/tmp/perf-{process.pid}.map"
            while process.poll() is None and (not os.path.exists(path) or len(read_methods(path)[0]) < WANTED):
                time.sleep(0.5)
            process.send_signal(19)
            if process.poll() is None:
                subprocess.run([os.path.join(build, "bench", "bench_contract"), str(process.pid)], check=False)
        finally:
            process.kill()
            process.wait()
            remove_leftovers(process.pid)


if __name__ == "__main__":
    main()
