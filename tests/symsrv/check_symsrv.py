#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Live tests of symsrv: hostile upstreams, many clients, crashes, a full disk, real debuginfod clients.

    check_symsrv.py [--program PATH] [--long] [--store swift|ceph] [-j N] [--slowest N] [NAME...]

Loopback only; every load is bounded in number and time. tests/support/runner.py has the form of the lines.
"""
import functools
import glob
import importlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from symsrv_harness import RUN, TESTS  # noqa: E402
from runner import Test, arguments, run_all  # noqa: E402


def without_context(function):
    """The tests of symsrv share what RUN has, and take no argument."""
    @functools.wraps(function)
    def call(_):
        function()
    return call


def main():
    parser = arguments()
    parser.add_argument("--program", default="build/symsrv-bin/symsrv")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--store", choices=("swift", "ceph"), default="swift", help="the object store of the tests that have a real one")
    options = parser.parse_args()
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*_tests.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    RUN.program, RUN.long, RUN.store = os.path.abspath(options.program), options.long, options.store

    def make_context(scratch):
        RUN.scratch = scratch

    tests = [Test("symsrv: " + function.__name__.replace("_", " "), without_context(function), function.__module__)
             for function in TESTS]
    return run_all("symsrv", tests, options, make_context)


if __name__ == "__main__":
    sys.exit(main())
