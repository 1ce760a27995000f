#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Live tests of symsrv: hostile upstreams, many clients, crashes, a full disk, real debuginfod clients.

    check_symsrv.py [--program PATH] [--long] [NAME...]

Loopback only; every load is bounded in number and time.
"""
import argparse
import os
import shutil
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import object_tests  # noqa: E402,F401
import hostile_tests  # noqa: E402,F401
import crowd_tests  # noqa: E402,F401
import crash_tests  # noqa: E402,F401
import index_tests  # noqa: E402,F401
import edge_tests  # noqa: E402,F401
import client_tests  # noqa: E402,F401
import dotnet_tests  # noqa: E402,F401
from symsrv_harness import RUN, TESTS, Skipped  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/symsrv-bin/symsrv")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    RUN.program, RUN.long = os.path.abspath(options.program), options.long
    RUN.scratch = tempfile.mkdtemp(prefix="check-symsrv-")
    failures = 0
    for function in TESTS:
        name = function.__name__.replace("_", " ")
        if options.names and not any(wanted in function.__name__ for wanted in options.names):
            continue
        try:
            function()
            print("ok symsrv: " + name, flush=True)
        except Skipped as reason:
            print("skipped symsrv: %s: %s" % (name, reason), flush=True)
        except Exception as error:  # noqa: BLE001 - reported
            failures += 1
            if os.environ.get("TRACE"):
                traceback.print_exc()
            print("FAILED symsrv: %s: %s" % (name, error), flush=True)
    shutil.rmtree(RUN.scratch, ignore_errors=True)
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
