# SPDX-License-Identifier: MIT
"""Runs one of BCC's Python tools unchanged, but puts "@ADDRESS" behind each user name that it prints.

The tools print names only; a test that counts frames by the memory they lie in needs the addresses. Who answers
for the names is as without this: libbcc, or what stands in its place. Usage: bcc_with_addresses.py TOOL ARGUMENT...
"""
import runpy
import sys

from bcc import BPF

original = BPF.sym


def sym(addr, pid, *arguments, **options):
    name = original(addr, pid, *arguments, **options)
    return name + b"@%x" % addr if pid >= 0 else name


def run(arguments):
    BPF.sym = staticmethod(sym)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    run(sys.argv[1:])
