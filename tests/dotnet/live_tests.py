# SPDX-License-Identifier: MIT
"""Tests on real .NET processes: one line a test, then the counts.

`ok NAME`, `FAILED NAME: why` or `skipped NAME: why`; figures stand before the
line of their test, indented. A missing .NET skips a test visibly; with CI=true
it is a failure. Usage: live_tests.py --build DIR [--part PART] [NAME...]
"""
import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

from harness import CI, ROOT, Fail, Mapgen, Skip, build_project, npm_runtime, sdk_runtime

# Two parts of like length, which may run side by side: what is known of a runtime, and what tools make of it.
PARTS = {
    "runtime": ("live_rundown", "live_merge", "live_containers", "live_bad_input", "live_crossgen", "live_contract", "live_refused",
                "live_watch", "live_refresh", "live_core", "live_shapes", "live_perfinfo", "live_deleted", "live_frameworks", "live_musl", "live_newest"),
    "tools": ("live_frames", "live_nothing_set", "live_demo", "live_bcc", "live_bcc_tools", "live_bcc_table", "live_symbolize",
              "live_profiler", "live_perf_fix", "live_perf_forms", "live_perf_native", "live_perf_annotate",
              "live_standin", "live_jitdump"),
}


# Some publish applications first, which takes minutes on a slow machine.
LONGEST_SECONDS = 900


class Context:
    """What a test is given: the program under test, scratch space, runtimes on demand."""

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
            raise Fail(why) if CI else Skip(why)
        return value

    def have(self, key, value):
        """What once() need not make."""
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
        if not shutil.which("dotnet"):
            return None, "no .NET SDK"
        artifacts = os.path.join(ROOT, "build", "dotnet", "oracle")
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


def tests_of(module):
    """Functions of a module named test_*, in the order of the file."""
    found = [value for name, value in vars(module).items() if name.startswith("test_")]
    return sorted(found, key=lambda function: function.__code__.co_firstlineno)


def take_too_long(*_):
    raise Fail(f"it did not end within {LONGEST_SECONDS} s")


def run(name, test, context):
    signal.signal(signal.SIGALRM, take_too_long)
    signal.alarm(LONGEST_SECONDS)
    try:
        test(context)
    except Skip as why:
        print(f"skipped {name}: {why}")
        return "skipped"
    except (Fail, subprocess.TimeoutExpired) as why:
        print(f"FAILED {name}: {why}")
        return "failed"
    except Exception as why:  # a defect of the test itself is a failure like any other
        traceback.print_exc(file=sys.stdout)
        print(f"FAILED {name}: {type(why).__name__}: {why}")
        return "failed"
    finally:
        signal.alarm(0)
    print(f"ok {name}")
    return "passed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--part", choices=PARTS, action="append", help="both unless given")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    # Not below /tmp: some tests mount a /tmp of their own over it.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-live-") as scratch:
        os.chmod(scratch, 0o755)
        context = Context(arguments.build, scratch)
        for module_name in (name for part in arguments.part or PARTS for name in PARTS[part]):
            module = importlib.import_module(module_name)
            for test in tests_of(module):
                name = test.__name__.removeprefix("test_").replace("_", " ")
                if arguments.names and not any(wanted in (module_name, test.__name__) or wanted in name
                                               for wanted in arguments.names):
                    continue
                counts[run(name, test, context)] += 1
                sys.stdout.flush()
    print(f"live: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
