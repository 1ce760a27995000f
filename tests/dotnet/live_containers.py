# SPDX-License-Identifier: MIT
"""A process in PID and mount namespaces of its own, with a private /tmp."""
import os
import shutil
import subprocess
import sys

from harness import Runtime, Sample, Skip, expect, read_map, remove_leftovers
from live_deleted import Place


def in_namespaces(tmp_options="mode=1777"):
    """Command prefix that starts a program in its own PID and mount namespaces, /tmp empty; Skip without permission."""
    prefix = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
              f'mount -t tmpfs -o {tmp_options} tmpfs /tmp && exec "$@"', "sh"]
    if not shutil.which("unshare"):
        raise Skip("unshare is not installed (package util-linux)")
    done = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"namespaces cannot be made: {done.stderr.strip()}")
    return prefix


OTHER_USERS = """
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
if not os.fork():
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{os.getppid()}/{name}", "w") as file:
            file.write("0 100000 65536")
    os.write(go[1], b"x")
    os._exit(0)
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x20000):
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
os.write(ready[1], b"x")
os.read(go[0], 1)
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"mode=1777"):
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def with_other_users():
    """Command prefix of a container of a plain user: its root is user 100000 here, and root here has no id there."""
    if os.geteuid():
        raise Skip("user ids are mapped by root")
    prefix = [sys.executable, "-c", OTHER_USERS]
    done = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"a user namespace cannot be made: {done.stderr.strip()}")
    return prefix


def copied_sample(context):
    """The sample outside /tmp, which the process will not see."""
    runtime = context.sdk()
    directory = os.path.join(context.directory("contained"), "app")
    shutil.copytree(os.path.dirname(runtime.sample), directory, dirs_exist_ok=True)
    return Runtime(runtime.dotnet, os.path.join(directory, "sample.dll"), runtime.framework, runtime.description)


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def has_precompiled(path):
    return any(name.endswith("[PreJIT]") for _, _, name in read_map(path))


def test_map_of_a_container_is_written_for_the_host_pid(context):
    prefix = in_namespaces()
    with Sample(copied_sample(context), {"DOTNET_PerfMapEnabled": "1"}, prefix, resting=True) as sample:
        pid = child_of(sample.pid)
        host_map = f"/tmp/perf-{pid}.map"
        inside = f"/proc/{pid}/root/tmp/perf-1.map"
        try:
            expect(os.path.exists(inside), "the sample writes no map in its namespace")
            before = os.path.getsize(inside)
            done = context.mapgen.must("merge", pid)
            said = done.stdout + done.stderr
            rows = read_map(host_map)
            expect(any(name.endswith("[PreJIT]") for _, _, name in rows), "no precompiled methods in the host's map")
            jitted = {name for _, _, name in read_map(inside)}
            expect(jitted & {name for _, _, name in rows}, "no lines of the container's map in the host's")
            expect("--in-target" in said, f"nothing is said about the map that hides it: {said!r}")
            expect(not has_precompiled(inside) and os.path.getsize(inside) >= before, "the container's map was touched")
            context.mapgen.must("merge", pid, "--in-target")
            expect(has_precompiled(inside), "--in-target did not update the container's map")
        finally:
            remove_leftovers(pid)


def test_map_inside_a_container_with_user_ids_of_its_own(context):
    """Nothing can be made in its file systems that is root's for a moment."""
    place = Place(context, context.sdk(), "other-users")
    environment = {"HOME": "/tmp", "DOTNET_ROOT": place.runtime_directory, "DOTNET_PerfMapEnabled": "0"}
    with Sample(place.runtime, environment, with_other_users(), resting=True) as sample:
        inside = f"/proc/{sample.pid}/root/tmp/perf-{sample.pid}.map"
        context.mapgen.must("merge", sample.pid, "--in-target")
        expect(has_precompiled(inside), "--in-target made no map")
        expect(os.stat(inside).st_uid == 100000, f"it belongs to {os.stat(inside).st_uid}")
        expect([name for name in os.listdir(os.path.dirname(inside)) if name.startswith(".sym")] == [], "something was left")


def test_addresses_of_a_container_are_named(context):
    prefix = in_namespaces()
    with Sample(copied_sample(context), {"DOTNET_PerfMapEnabled": "1"}, prefix, resting=True) as sample:
        pid = child_of(sample.pid)
        try:
            rows = [row for row in read_map(f"/proc/{pid}/root/tmp/perf-1.map") if "::" in row[2]][:200]
            answers = context.mapgen.resolve(pid, [start for start, _, _ in rows])
            named = sum(answers[start]["name"] is not None for start, _, _ in rows)
            context.figure(f"{named} of {len(rows)} jitted methods named")
            expect(named == len(rows), f"{named} of {len(rows)} addresses named")
        finally:
            remove_leftovers(pid)


def test_a_map_is_not_appended_to_where_there_is_no_room_for_all(context):
    """A cut line would fill the target's disk, and tear its own next line."""
    prefix = in_namespaces("size=4m")
    with Sample(copied_sample(context), {"DOTNET_PerfMapEnabled": "1"}, prefix, resting=True) as sample:
        pid = child_of(sample.pid)
        inside = f"/proc/{pid}/root/tmp/perf-1.map"
        done = context.mapgen.run("merge", pid, "--in-target")
        expect(done.returncode == 1 and "No space left" in done.stderr, f"{done.returncode}: {done.stderr}")
        expect(not has_precompiled(inside), "a part was written")
        room = os.statvfs(f"/proc/{pid}/root/tmp")
        expect(room.f_bavail * room.f_frsize > 1 << 20, f"{room.f_bavail} pages are left")
