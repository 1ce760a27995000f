# SPDX-License-Identifier: MIT
"""Inside the emulated machine: tests of tests/dotnet on programs that were published for it, since it has no SDK.

Usage: guest.py BUILD PROGRAMS; the checkout is the directory above."""
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))

import live_contract  # noqa: E402
import live_refresh  # noqa: E402
import live_rundown  # noqa: E402
from harness import Runtime  # noqa: E402
from live_tests import Context, run  # noqa: E402


def test_names_the_torture_program_as_its_own_map_does(context):
    """So slow a machine collects dynamic methods before the program has settled; the runtime's rundown has them no more either."""
    live_contract.compare_settled(context, "torture", live_contract.torture_runtime(context), "settle", {}, freed_allowed=True)


TESTS = (
    live_rundown.test_map_has_every_method_of_the_rundown,
    live_rundown.test_map_has_every_precompiled_method_when_the_runtime_writes_no_map,
    live_contract.test_names_a_linq_app_as_its_own_map_does,
    test_names_the_torture_program_as_its_own_map_does,
    live_contract.test_reads_a_process_that_was_started_with_nothing_set,
    live_contract.test_a_rundown_names_what_the_runtime_wrote,
    live_refresh.test_a_refresh_names_what_was_compiled_meanwhile_by_contract,
    live_refresh.test_a_refresh_names_what_was_compiled_meanwhile_by_rundown,
)


class Program(Runtime):
    """A self-contained program: there is nothing to start it with."""

    def __init__(self, programs, name):
        super().__init__(None, os.path.join(programs, name, name), "net10.0", name)
        self.command = [self.sample]


def main():
    build, programs = sys.argv[1:]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        context = Context(build, scratch)
        context.have("sdk", Program(programs, "sample"))
        context.have("torture", Program(programs, "torture"))
        context.have("oracle", os.path.join(programs, "oracle", "oracle"))
        for test in TESTS:
            counts[run("arm64 " + test.__name__.removeprefix("test_").replace("_", " "), test, context)] += 1
            sys.stdout.flush()
    print(f"arm64: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or counts["skipped"] else 0


if __name__ == "__main__":
    sys.exit(main())
