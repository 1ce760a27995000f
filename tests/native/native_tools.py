# SPDX-License-Identifier: MIT
"""Shared by the native checks: our program, the tools of others, ELF headers."""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from runner import CACHE, Fail, Skip, need  # noqa: E402,F401

OPERANDS_AT_ONCE = 2000


class Elf:
    """Segments of a file, as far as a vaddr is to be turned into an offset."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            head = file.read(64)
            self.is_elf = head[:4] == b"\x7fELF"
            if not self.is_elf:
                return
            self.wide = head[4] == 2
            order = ">" if head[5] == 2 else "<"
            form = order + ("QQQ" if self.wide else "III")
            _, phoff, _ = struct.unpack_from(form, head, 24)
            size, count = struct.unpack_from(order + "HH", head, 54 if self.wide else 42)
            file.seek(phoff)
            table = file.read(size * count)
        self.loads = []
        for i in range(count):
            at = i * size
            if self.wide:
                kind, flags, offset, vaddr, _, filesz, _ = struct.unpack_from(order + "IIQQQQQ", table, at)
            else:
                kind, offset, vaddr, _, filesz, _, flags = struct.unpack_from(order + "IIIIIII", table, at)
            if kind == 1:
                self.loads.append((vaddr, offset, filesz, bool(flags & 1)))

    def offset(self, vaddr):
        for start, offset, size, _ in self.loads:
            if start <= vaddr < start + size:
                return offset + vaddr - start
        return None

    def executable(self):
        """Ranges of vaddrs that hold code."""
        return [(start, start + size) for start, _, size, runs in self.loads if runs]


class Tools:
    def __init__(self, build, scratch):
        self.program = os.path.abspath(os.path.join(build, "dotnet-mapgen"))
        self.scratch = scratch

    need = staticmethod(need)

    @staticmethod
    def figure(text):
        print("    " + text, flush=True)

    @staticmethod
    def run(*words, **options):
        if words[0] == "nm":
            # Its plug-in for objects of LLVM takes most of the time to load.
            words = "nm", "--plugin", os.devnull, *words[1:]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace",
                              timeout=options.pop("timeout", 600), **options)
        if done.returncode:
            raise Fail(f"{words[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        return done.stdout

    def resolve(self, path, vaddrs, *options):
        """Our answers, JSON objects, for vaddrs of a file."""
        elf = Elf(path)
        answers = []
        for first in range(0, len(vaddrs), OPERANDS_AT_ONCE):
            part = vaddrs[first:first + OPERANDS_AT_ONCE]
            questions = [f"{path}+0x{elf.offset(vaddr):x}" for vaddr in part]
            answers += json.loads(self.run(self.program, "resolve", "--json", *options, *questions))
        return answers

    def path(self, name):
        return os.path.join(self.scratch, name)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def coreclr():
    """A stripped native image of a runtime of this machine, or None."""
    found = glob.glob("/usr/share/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so") + \
        glob.glob("/usr/lib/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so")
    dotnet = shutil.which("dotnet")
    if dotnet:
        root = os.path.dirname(os.path.realpath(dotnet))
        found += glob.glob(root + "/shared/Microsoft.NETCore.App/*/libcoreclr.so")
    return sorted(found)[-1] if found else None


def sections(tools, path):
    """Section name to (vaddr, offset, size), as readelf has them."""
    table = {}
    for line in tools.run("readelf", "-SW", path).splitlines():
        match = re.match(r"\s*\[ *\d+\] (\S+)\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ", line)
        if match:
            table[match[1]] = tuple(int(word, 16) for word in match.groups()[1:])
    return table
