#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of native code against the tools that everybody trusts.

Real binaries of this machine and small ones built here; the expectation always
comes from readelf, objdump, eu-addr2line or gdb. tests/support/runner.py has the form of the
lines and the options. Usage: check_native.py --build DIR [-j N] [--slowest N] [NAME...]
"""
import glob
import os
import sys

from native_tools import Tools
from runner import arguments, run_all, tests_of


def main():
    options = arguments().parse_args()
    modules = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "native_*.py")))
    return run_all("native", tests_of(modules, "native "), options, lambda scratch: Tools(options.build, scratch))


if __name__ == "__main__":
    sys.exit(main())
