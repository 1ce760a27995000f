# SPDX-License-Identifier: MIT
"""The real crossgen of runtime pack 3.1.3: compiles assemblies, makes maps of images, as perfcollect had it do.

Knows its command line and its one known fault; compares nothing by itself.
"""
import os
import re
import shutil
import subprocess

import crossgen2_maps
from harness import Skip, expect, first_line

VERSION = "3.1.3"
PACK = "Microsoft.NETCore.App.Runtime.linux-x64"
# As its time allows; newer builds of the packages refer to what 3.1 does not have.
PACKAGES = [("Newtonsoft.Json", "13.0.3", "lib/netstandard2.0/Newtonsoft.Json.dll"),
            ("Humanizer.Core", "2.14.1", "lib/netstandard2.0/Humanizer.dll"),
            ("Dapper", "2.1.66", "lib/netstandard2.0/Dapper.dll")]


class Crossgen:
    def __init__(self, scratch):
        why = crossgen2_maps.fetch([(PACK, VERSION)])
        if why:
            raise Skip(why)
        pack = crossgen2_maps.pack(PACK, VERSION)
        runtime = os.path.join(pack, "runtimes", "linux-x64")
        self.directories = [os.path.join(runtime, "lib", "netcoreapp3.1"), os.path.join(runtime, "native")]
        self.program = os.path.join(scratch, "crossgen")
        shutil.copy(os.path.join(pack, "tools", "crossgen"), self.program)
        os.chmod(self.program, 0o755)

    def run(self, *arguments, further=()):
        return subprocess.run([self.program, "/Platform_Assemblies_Paths", ":".join([*self.directories, *further]), *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              env=dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1"))

    def images(self):
        return [os.path.join(directory, name) for directory in self.directories
                for name in sorted(os.listdir(directory)) if name.endswith(".dll")]

    def compile(self, path, out):
        """A ReadyToRun image of an assembly; None, or why crossgen does not make one."""
        done = self.run("/JITPath", os.path.join(self.directories[1], "libclrjit.so"), "/nologo", "/ReadyToRun",
                        "/out", os.path.join(out, os.path.basename(path)), path, further=[os.path.dirname(path)])
        return None if done.returncode == 0 else first_line(done.stderr or done.stdout)

    def make_map(self, image, out):
        """Makes the map of an image in a directory; crossgen's exit code (11: there is no code in it)."""
        return self.run("/CreatePerfMap", out, image, further=[os.path.dirname(image)]).returncode


def package_files():
    why = crossgen2_maps.fetch([(name, version) for name, version, _ in PACKAGES])
    if why:
        raise Skip(why)
    return [os.path.join(crossgen2_maps.pack(name, version), path) for name, version, path in PACKAGES]


def rows_of(path):
    """{(rva, size): name as bytes}; a name that is not ASCII has lost its end and its newline, and so runs on."""
    with open(path, "rb") as file:
        text = file.read()
    text = re.sub(rb"([^\n]*[\x80-\xff][^\n]*?)([0-9a-f]{8} [0-9a-f]+ )", rb"\1\n\2", text)
    rows = {}
    for line in text.splitlines():
        rva, size, name = line.split(b" ", 2)
        rows.setdefault((rva, size), set()).add(name)
    return rows


def same_names(theirs, ours):
    """Equal, or theirs the beginning of ours where crossgen cuts it: as many bytes as the name has characters."""
    if theirs == ours:
        return True
    for name in theirs - ours:
        if not any(len(name) >= len(own.decode("utf-8", "replace")) and own.startswith(name) for own in ours - theirs):
            return False
    return len(theirs) == len(ours)


def compare(theirs_path, ours_path):
    """(rows, equal rows, first difference or None)."""
    theirs, ours = rows_of(theirs_path), rows_of(ours_path)
    equal = sum(len(names) for place, names in theirs.items() if place in ours and same_names(names, ours[place]))
    rows = sum(map(len, theirs.values()))
    bad = [place for place in theirs.keys() | ours.keys()
           if place not in theirs or place not in ours or not same_names(theirs[place], ours[place])]
    expect(rows, f"{os.path.basename(theirs_path)} has no rows")
    return rows, equal, f"{bad[0]}: {theirs.get(bad[0])}, ours {ours.get(bad[0])}" if bad else None
