# SPDX-License-Identifier: MIT
"""The whole way: names for the native frames of a live .NET process through symsrv.

Microsoft's debug file of libcoreclr.so cannot be had here, so one is made: the
file's own headers and build-id, and a name for every function that its own
.eh_frame_hdr lists.
"""
import bisect
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import symsrv_harness as h
from sampling import sampling
from symsrv_harness import RUN, Skipped, check, equal, need, symsrv, test, upstream

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dotnet"))
TREE = "/usr/lib/debug/.build-id"


def function_starts(path):
    """Virtual addresses of the functions in the binary search table of .eh_frame_hdr."""
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    line = re.search(r"\.eh_frame_hdr\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)", sections)
    address, offset, size = (int(text, 16) for text in line.groups())
    text = re.search(r"\]\s+\.text\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", sections)
    text_start, text_size = (int(part, 16) for part in text.groups())
    with open(path, "rb") as file:
        file.seek(offset)
        table = file.read(size)
    equal(table[:4], b"\x01\x1b\x03\x3b", "form of .eh_frame_hdr")
    count = struct.unpack_from("<I", table, 8)[0]
    starts = [address + struct.unpack_from("<i", table, 12 + 8 * i)[0] for i in range(count)]
    return [start - text_start for start in starts if 0 <= start - text_start < text_size], text_start


def make_debug_file(library, directory):
    """A debug file whose functions are called coreclr_at_VADDR."""
    need("objcopy", "readelf")
    bare, result = os.path.join(directory, "bare"), os.path.join(directory, "libcoreclr.so.dbg")
    subprocess.run(["objcopy", "--only-keep-debug", library, bare], check=True)
    offsets, text_start = function_starts(library)
    arguments = os.path.join(directory, "symbols")
    with open(arguments, "w") as file:
        for offset in offsets:
            file.write("--add-symbol coreclr_at_%x=.text:0x%x,function,global\n" % (text_start + offset, offset))
    subprocess.run(["objcopy", "@" + arguments, bare, result], check=True)
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    return result, notes.split("Build ID:")[1].split()[0]


def sample_process(prefix=(), resting=True):
    import harness
    runtime, why = harness.sdk_runtime()
    if not runtime:
        raise Skipped(why)
    return harness.Sample(runtime, prefix=prefix, resting=resting)


def mapped(pid, name):
    for line in open("/proc/%d/maps" % pid):
        if line.rstrip().endswith("/" + name):
            return line.split()[5]
    raise Skipped("the process has no " + name)


def mapgen(*arguments, prefix=()):
    program = os.path.join(os.path.dirname(RUN.program), "..", "dotnet-mapgen")
    if not os.path.exists(program):
        raise Skipped("dotnet-mapgen was not built")
    return subprocess.run([*prefix, program, *arguments], capture_output=True, text=True)


def private_tree():
    """Command prefix for a process that has its own tree of debug files. In the machine's tree the made-up names would be
    visible to all other tests: their maps leave out what has a name, and lose it with the file."""
    need("unshare", "nsenter")
    if os.geteuid() != 0:
        return ()
    os.makedirs(TREE, exist_ok=True)
    own = tempfile.mkdtemp(dir=RUN.scratch)
    prefix = ["unshare", "--mount", "sh", "-c", f'mount --bind "$0" {TREE} && exec "$@"', own]
    return () if subprocess.run([*prefix, "true"], capture_output=True).returncode else prefix


def an_address_of(pid, library, vaddr):
    """Where a vaddr of the library lies in the process."""
    headers = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    loads = [tuple(int(x, 16) for x in m) for m in re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", headers)]
    offset = next(o + vaddr - v for o, v, size in loads if v <= vaddr < v + size)
    for line in open("/proc/%d/maps" % pid):
        fields = line.split()
        if len(fields) > 5 and fields[5] == library and "x" in fields[1]:
            start, end = (int(x, 16) for x in fields[0].split("-"))
            begin = int(fields[2], 16)
            if begin <= offset < begin + end - start:
                return start + offset - begin
    raise AssertionError("not mapped")


@test
def the_frames_of_libcoreclr_get_their_names_through_symsrv():
    need("dotnet", "objcopy", "readelf")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    private = private_tree()
    with sample_process(private, resting=False) as sample:
        library = mapped(sample.pid, "libcoreclr.so")
        debug, identity = make_debug_file(library, directory)
        place = os.path.join(TREE, identity[:2], identity[2:] + ".debug")
        if os.path.exists(place):
            raise Skipped("this machine has a debug file for libcoreclr.so already")
        offline = mapgen("fetch-symbols", str(sample.pid), "--offline")
        equal(offline.returncode, 3, "offline: " + offline.stderr)
        check("missing  %s  build-id %s" % (library, identity) in offline.stdout, offline.stdout)
        with upstream(h.serve_files({h.debug_paths(identity)[1]: open(debug, "rb").read()})) as server:
            with symsrv("--upstream", "ms@ssqp=" + server.url) as front:
                own = tempfile.mkdtemp(dir=RUN.scratch)
                for url in (front.url, server.url):  # through symsrv; and from a symbol server itself
                    result = mapgen("fetch-symbols", str(sample.pid), "--server", url, "--debug-tree", own, "--json")
                    rows = {row["image"]: row for row in json.loads(result.stdout)}
                    equal(rows[library]["symbols"], "fetched", result.stdout[:300])
                    equal(open(rows[library]["debug_file"], "rb").read(), open(debug, "rb").read(), "the file")
                    shutil.rmtree(own)
                if not private:
                    raise Skipped("no mount namespace, or not root: nothing was installed for perf, gdb and resolve")
                prefix = ("nsenter", "--mount", "--target", str(sample.pid))
                result = mapgen("fetch-symbols", str(sample.pid), "--server", front.url, prefix=prefix)
                check("fetched  " + library in result.stdout, result.stdout + result.stderr)
                again = mapgen("fetch-symbols", str(sample.pid), "--offline", prefix=prefix)
                check("here     " + library in again.stdout, again.stdout)
                name_the_frames(sample.pid, library, debug, prefix)
                check(not os.path.exists(place), "the machine's tree was written to")


def name_the_frames(pid, library, debug, prefix):
    symbols = subprocess.run(["nm", debug], capture_output=True, text=True, check=True).stdout.split("\n")
    rows = [line.split() for line in symbols if " coreclr_at_" in line]
    some = rows[:: max(1, len(rows) // 50)]
    addresses = [an_address_of(pid, library, int(row[0], 16)) for row in some]
    answers = mapgen("resolve", str(pid), *("%x" % address for address in addresses), prefix=prefix).stdout.splitlines()
    named = sum(row[2] in answer for row, answer in zip(some, answers))
    equal(named, len(some), "resolve names %d of %d: %s" % (named, len(some), answers[:2]))
    if h.find_tool("gdb"):
        shown = subprocess.run([*prefix, "gdb", "-nx", "-batch", "-p", str(pid), "-ex", "info symbol 0x%x" % addresses[7]],
                               capture_output=True, text=True)
        check(some[7][2] in shown.stdout, "gdb: " + shown.stdout[-300:] + shown.stderr[-300:])
    if h.find_tool("perf"):
        data = os.path.join(RUN.scratch, "perf.data")
        # A cache of its own: the names that this test makes up must not stay in the user's.
        perf = [*prefix, "perf", "--buildid-dir", os.path.join(RUN.scratch, "buildid")]
        rate, seconds = sampling(1997, 1)
        done = subprocess.run([*perf, "record", "-q", "-o", data, "-F", str(rate), "-p", str(pid), "--", "sleep", str(seconds)],
                              capture_output=True, text=True)
        if done.returncode:
            print("   (perf cannot record here: %s)" % done.stderr.strip()[:80])
            return
        script = subprocess.run([*perf, "script", "-i", data, "-F", "ip,sym,dso"], capture_output=True, text=True).stdout
        compare_with_perf(pid, library, [int(row[0], 16) for row in rows], script)


def compare_with_perf(pid, library, starts, script):
    """perf's name of a frame is that of the function whose FDE covers it; where there is no FDE there is no name to expect."""
    places = function_ranges(library)
    first = an_address_of(pid, library, starts[0]) - starts[0]
    frames, wrong, uncovered = 0, [], 0
    for line in script.splitlines():
        if "libcoreclr.so" not in line:
            continue
        vaddr = int(line.split()[0], 16) - first
        place = bisect.bisect_right(places, (vaddr, float("inf"))) - 1
        if place < 0 or vaddr >= places[place][1]:
            uncovered += 1
            continue
        frames += 1
        if "coreclr_at_%x" % places[place][0] not in line:
            wrong.append("%s at 0x%x" % (line.strip(), vaddr))
    print("   perf: %d frames in functions of libcoreclr.so, %d without their name; %d outside of every function"
          % (frames, len(wrong), uncovered))
    check(frames, "perf saw no frame in libcoreclr.so")
    check(not wrong, "perf: " + "\n".join(wrong[:5]))


def function_ranges(path):
    """(start, end) of every FDE, as readelf reads them, in order."""
    text = subprocess.run(["readelf", "--debug-dump=frames", path], capture_output=True, text=True).stdout
    return sorted((int(a, 16), int(b, 16)) for a, b in re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", text))


@test
def nothing_that_does_not_fit_is_installed():
    need("dotnet")
    with sample_process() as sample:
        library = mapped(sample.pid, "libcoreclr.so")
        lies = {
            "another build-id": lambda r: h.send(r, h.make_elf(h.build_id(1))),
            "a page": lambda r: h.send(r, b"<html>"),
            "half": lambda r: h.send(r, b"x", headers=[("Content-Length", "1000")]) or r.connection.shutdown(2),
            "an error": lambda r: h.send(r, b"", 500),
            "nobody has it": lambda r: h.send(r, b"", 404),
        }
        for name, lie in lies.items():
            own = tempfile.mkdtemp(dir=RUN.scratch)
            with upstream(lie) as server:
                result = mapgen("fetch-symbols", str(sample.pid), "--server", server.url, "--debug-tree", own, "--json")
            rows = {row["image"]: row for row in json.loads(result.stdout)}
            equal(rows[library]["symbols"], "missing" if name == "nobody has it" else "failed", name)
            equal(result.returncode, 3, name)
            files = [f for _, _, names in os.walk(own) for f in names]
            equal(files, [], "%s: files that are left" % name)
        equal(mapgen("fetch-symbols").returncode, 2, "without a process")
        equal(mapgen("fetch-symbols", "1", "2").returncode, 2, "with two")


@test
def whoever_meets_a_stripped_image_is_told_what_brings_its_names():
    need("dotnet", "readelf")
    with sample_process() as sample:
        library = mapped(sample.pid, "libcoreclr.so")
        inside = [a for a, b in function_ranges(library) if b - a > 64][100:160]
        exported = subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout
        inside = [a for a in inside if "%016x" % a not in exported]
        command = "dotnet-mapgen fetch-symbols %d" % sample.pid
        result = mapgen("resolve", str(sample.pid), *("%x" % an_address_of(sample.pid, library, a) for a in inside))
        check(command in result.stderr and result.stderr.count("\n") == 1, "resolve: " + result.stderr)
        nobody = mapgen("resolve", str(sample.pid), "1")
        check(command not in nobody.stderr, "resolve of nothing: " + nobody.stderr)
        merged = mapgen("merge", str(sample.pid), "--output", os.path.join(RUN.scratch, "merged.map"))
        check(command in merged.stdout + merged.stderr, "merge: " + merged.stdout + merged.stderr)


@test
def a_server_that_is_not_there_costs_one_line_and_no_time():
    need("dotnet")
    with sample_process() as sample:
        library = mapped(sample.pid, "libcoreclr.so")
        own = tempfile.mkdtemp(dir=RUN.scratch)
        dead = "http://127.0.0.1:%d" % h.free_port()
        with upstream(lambda r: h.send(r, b"", 404)) as server:
            result = mapgen("fetch-symbols", str(sample.pid), "--server", dead, "--server", server.url, "--debug-tree", own)
            equal(result.stderr.count(dead), 1, "lines about it: " + result.stderr)
            check("failed   %s  %s: " % (library, dead) in result.stdout, result.stdout)
            check(server.requests, "the other server was not asked")
            seen = [path for path, _ in server.requests]
            equal(len(seen), len(set(seen)), "asked twice for the same")
        with upstream(lambda r: h.send(r, b"", 403)) as server:
            result = mapgen("fetch-symbols", str(sample.pid), "--server", server.url, "--debug-tree", own)
            check("failed   %s  %s: status 403" % (library, server.url) in result.stdout, "who refuses: " + result.stdout)
        result = mapgen("fetch-symbols", str(sample.pid), "--server", dead, "--debug-tree", "/proc/nowhere")
        equal((result.returncode, result.stdout), (1, ""), "a place that cannot be written")
