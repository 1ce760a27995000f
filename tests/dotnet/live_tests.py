# SPDX-License-Identifier: MIT
"""Tests on real .NET processes: one line a test, then the counts.

tests/support/runner.py has the form of the lines and the rest of the options.
Usage: live_tests.py --build DIR [--part PART] [-j N] [--slowest N] [NAME...]
"""
import glob
import os
import subprocess
import sys

from harness import Fail, Mapgen, build_project, built, npm_runtime, sdk_runtime
from runner import Missing, arguments, need, run_all, tests_of

# Two parts of like length, which may run side by side: what is known of a runtime, and what tools make of it.
# A module that is not listed here belongs to the first.
PARTS = {
    "runtime": ("live_rundown", "live_merge", "live_containers", "live_bad_input", "live_crossgen", "live_contract", "live_refused",
                "live_watch", "live_refresh", "live_core", "live_shapes", "live_perfinfo", "live_deleted", "live_frameworks", "live_musl", "live_newest"),
    "tools": ("live_frames", "live_nothing_set", "live_demo", "live_bcc", "live_bcc_tools", "live_bcc_table", "live_symbolize",
              "live_profiler", "live_perf_fix", "live_perf_forms", "live_perf_native", "live_perf_annotate",
              "live_standin", "live_jitdump", "live_text_lines", "live_source_link", "live_perf_data_lines"),
    "long": ("long_record", "long_names", "long_event_views", "long_lines"),
}
EVERY_TIME = ("runtime", "tools")


class Context:
    """Passed to each test: the program under test, scratch space, runtimes on demand."""

    def __init__(self, build, scratch):
        self.build = build
        self.scratch = scratch
        self.mapgen = Mapgen(build, scratch)
        self._made = {}

    def once(self, key, make):
        if key not in self._made:
            self._made[key] = make()
        value, why = self._made[key]
        if value is None:
            raise Missing(why)
        return value

    def have(self, key, value):
        """Stores a value that once() need not make."""
        self._made[key] = value, None

    def sdk(self):
        """The SDK's runtime with the sample built from source."""
        return self.once("sdk", sdk_runtime)

    def npm(self):
        return self.once("npm", npm_runtime)

    def oracle(self):
        return self.once("oracle", self._build_oracle)

    def rundown(self, pid):
        """The runtime's own list of its methods: rows (kind, start, size, type, method)."""
        done = subprocess.run(["dotnet", self.oracle(), str(pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise Fail(f"rundown: {done.stderr.strip().splitlines()[:1]}")
        rows = []
        for line in done.stdout.splitlines():
            if line.startswith("#"):
                if not line.endswith(" lost 0"):
                    raise Fail(f"the rundown lost events: {line}")
                continue
            kind, start, size, owner, method = line.split("\t")[:5]
            rows.append((kind, int(start, 16), int(size, 16), owner, method))
        return rows

    @staticmethod
    def _build_oracle():
        need("dotnet")
        artifacts = built("oracle")
        why = build_project("tests/dotnet/oracle", artifacts)
        if why:
            return None, f"the rundown reader does not build: {why}"
        return os.path.join(artifacts, "bin", "oracle", "release", "oracle.dll"), None

    def directory(self, name):
        path = os.path.join(self.scratch, name)
        os.makedirs(path, exist_ok=True)
        return path

    @staticmethod
    def figure(text):
        print("    " + text, flush=True)


def main():
    parser = arguments()
    parser.add_argument("--part", choices=PARTS, action="append", help="runtime and tools unless given")
    options = parser.parse_args()
    listed = {name for part in PARTS.values() for name in part}
    found = {os.path.basename(path)[:-3] for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "live_*.py"))}
    PARTS["runtime"] += tuple(sorted(found - listed - {"live_tests"}))
    modules = [name for part in options.part or EVERY_TIME for name in PARTS[part]]
    return run_all("live", tests_of(modules), options, lambda scratch: Context(options.build, scratch))


if __name__ == "__main__":
    sys.exit(main())
