# SPDX-License-Identifier: MIT
"""Files that were deleted or replaced under a running process, looked at without any privilege.

Root reaches the files behind /proc/PID/map_files. Here the process and the
program under test run as one ordinary user, so that the memory of the process
is all that is left: what is named then must be what was named before.
"""
import json
import os
import shutil
import subprocess

from harness import Runtime, Sample, expect

ORDINARY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


class Place:
    """A runtime and the sample in a directory of their own, and the program under test for an ordinary user."""

    def __init__(self, context, runtime, name):
        self.directory = os.path.join(context.scratch, name + "-runtime")
        os.makedirs(self.directory)
        self.runtime_directory = os.path.join(self.directory, "runtime")
        self.copy_runtime(os.path.dirname(os.path.realpath(runtime.dotnet)))
        sample = os.path.join(self.directory, "app")
        shutil.copytree(os.path.dirname(runtime.sample), sample)
        self.runtime = Runtime(os.path.join(self.runtime_directory, "dotnet"),
                               os.path.join(sample, os.path.basename(runtime.sample)), runtime.framework, "")
        self.program = os.path.join(self.directory, "dotnet-mapgen")
        shutil.copy(context.mapgen.program, self.program)
        self.prefix = ORDINARY if os.geteuid() == 0 else ()
        self.home = os.path.join(self.directory, "home")
        os.mkdir(self.home)
        if self.prefix:
            os.chown(self.home, 65534, 65534)

    def copy_runtime(self, source):
        """Only what runs; an SDK has a gigabyte more."""
        for name in ("dotnet", "host", "shared/Microsoft.NETCore.App"):
            path, target = os.path.join(source, name), os.path.join(self.runtime_directory, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(path):
                shutil.copytree(path, target)
            else:
                shutil.copy(path, target)
        os.chmod(os.path.join(self.runtime_directory, "dotnet"), 0o755)

    def start(self):
        return Sample(self.runtime, {"HOME": self.home, "DOTNET_ROOT": self.runtime_directory}, prefix=self.prefix, resting=True)

    def ask(self, *arguments):
        done = subprocess.run([*self.prefix, self.program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="surrogateescape", timeout=120, env=dict(os.environ, HOME=self.home, XDG_CACHE_HOME=self.home))
        expect(done.returncode in (0, 3), f"{arguments[0]}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def precompiled(self, pid):
        lines = self.ask("merge", "--output=-", "--jit=none", pid).splitlines()
        return sorted(line for line in lines if line.endswith("[PreJIT]"))


def check(context, runtime, name, change):
    place = Place(context, runtime, name)
    with place.start() as sample:
        before, info_before = place.precompiled(sample.pid), json.loads(place.ask("info", sample.pid, "--json"))
        change(place)
        after, info_after = place.precompiled(sample.pid), json.loads(place.ask("info", sample.pid, "--json"))
        listed = place.ask("list", sample.pid)
    expect(len(before) > 10000, f"only {len(before)} precompiled methods")
    missing, wrong = len(set(before) - set(after)), len(set(after) - set(before))
    context.figure(f"{len(before)} precompiled methods before, {len(after)} after; {missing} missing, {wrong} other")
    expect(before == after, f"{missing} lines are missing, {wrong} are new: {sorted(set(after) ^ set(before))[:1]}")
    for fact in ("runtime_version", "shape", "precompiled_methods"):
        expect(info_before[fact] == info_after[fact], f"{fact}: {info_before[fact]}, then {info_after[fact]}")
    complaints = [line for line in listed.splitlines() if "  [/" in line]
    expect(not complaints, f"list has {len(complaints)} complaints: {complaints[:1]}")
    shutil.rmtree(place.directory)


def delete(place):
    shutil.rmtree(place.runtime_directory)
    shutil.rmtree(os.path.dirname(place.runtime.sample))


def replace(place):
    """Other files under the same names, as a deployment of the next version does it."""
    for directory, _, names in os.walk(place.runtime_directory):
        for name in names:
            path = os.path.join(directory, name)
            with open(path + ".new", "wb") as file:
                file.write(b"MZ" + b"another version" * 1000)
            os.rename(path + ".new", path)


def test_deleted_files_are_read_from_memory(context):
    check(context, context.sdk(), "deleted", delete)


def test_replaced_files_are_read_from_memory(context):
    check(context, context.sdk(), "replaced", replace)


def test_deleted_files_of_3_1_are_read_from_memory(context):
    check(context, context.npm(), "deleted-3.1", delete)
