#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names of native code against the tools that everybody trusts.

Real binaries of this machine and small ones built here; the expectation always
comes from readelf, objdump, eu-addr2line or gdb. One line a test: `ok NAME`,
`FAILED NAME: why` or `skipped NAME: why`; figures stand before the line of their
test, indented. Usage: check_native.py --build DIR [NAME...]
"""
import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

from native_tools import CI, Absent, Fail, Skip, Tools

MODULES = ("native_bounds", "native_files", "native_fetch", "native_bcc", "native_cases", "native_processes", "native_forked", "native_archive", "native_examples", "native_lines", "native_split", "native_jit", "native_go", "native_shortage")


def tests_of(module):
    found = [value for name, value in vars(module).items() if name.startswith("test_")]
    return sorted(found, key=lambda function: function.__code__.co_firstlineno)


def run(name, test, tools):
    try:
        test(tools)
    except Absent as why:
        print(f"skipped {name}: {why}", flush=True)
        return True
    except Skip as why:
        print(f"{'FAILED' if CI else 'skipped'} {name}: {why}", flush=True)
        return not CI
    except (Fail, subprocess.TimeoutExpired) as why:
        print(f"FAILED {name}: {why}", flush=True)
        return False
    except Exception as why:  # a defect of the test itself is a failure like any other
        traceback.print_exc(file=sys.stdout)
        print(f"FAILED {name}: {type(why).__name__}: {why}", flush=True)
        return False
    print(f"ok {name}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="native-")
    tools = Tools(options.build, scratch)
    passed = True
    try:
        for module in MODULES:
            for test in tests_of(importlib.import_module(module)):
                name = "native " + test.__name__[len("test_"):].replace("_", " ")
                if not options.names or any(word in name for word in options.names):
                    passed = run(name, test, tools) and passed
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
