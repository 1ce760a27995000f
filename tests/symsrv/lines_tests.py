# SPDX-License-Identifier: MIT
"""POST /v1/resolve with lines: what the debug file's DWARF says, read by processes without rights."""
import http.client
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import uuid

import symsrv_harness as h
from names_tests import functions, libc_debug_file
from resolve_tests import debug_id, post
from symsrv_harness import RUN, check, equal, need, symsrv, test, upstream

SOURCE = """__attribute__((always_inline)) static inline int innermost(volatile int *p)
{
	return *p * 3;
}
__attribute__((always_inline)) static inline int middle(volatile int *p)
{
	return innermost(p) + 1;
}
__attribute__((noinline)) int outer(volatile int *p)
{
	int sum = middle(p);
	return sum + *p;
}
int main(int c, char **v)
{
	(void)v;
	return outer(&c);
}
"""


def built(directory, *options):
    """A program with lines and inlined functions, and its build-id."""
    need("gcc", "readelf")
    source, program = os.path.join(directory, "inlined.c"), os.path.join(directory, "inlined")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", *options, "-o", program, source], check=True)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return program, notes.split("Build ID:")[1].split()[0]


def theirs(path, addresses):
    """For each address, what eu-addr2line prints: [(function, "FILE:LINE"), ...] from the innermost one."""
    text = subprocess.run(["eu-addr2line", "-f", "-i", "-a", "-e", path], input="\n".join("0x%x" % a for a in addresses),
                          capture_output=True, text=True, check=True).stdout.splitlines()
    found, at = [], 0
    while at < len(text):
        check(text[at].startswith("0x"), "an address: " + text[at])
        frames, at = [], at + 1
        while at < len(text) and not text[at].startswith("0x"):
            name, place, at = text[at], text[at + 1], at + 2
            inlined = re.match(r"(\S+) inlined at (\S*?:\d+)\S* in (\S+)$", name)
            frames.append((inlined.group(1) if inlined else name, re.match(r"[^ ]*?:\d+", place).group(0)))
            # It leaves out the caller when that is no function of its own.
            if inlined and (at == len(text) or text[at].startswith("0x")):
                frames.append((inlined.group(3), inlined.group(2)))
        found.append(frames)
    return found


def third_opinion(path, addresses):
    """Where two differ: what llvm-symbolizer prints."""
    if not addresses:
        return []
    need("llvm-symbolizer")
    text = subprocess.run(["llvm-symbolizer", "--obj=" + path, "-i", "--no-demangle"], input="\n".join("0x%x" % a for a in addresses),
                          capture_output=True, text=True, check=True).stdout
    blocks = [[line for line in block.split("\n") if line] for block in text.strip("\n").split("\n\n")]
    return [list(zip(block[0::2], (re.match(r".*?:\d+", place).group(0) for place in block[1::2]))) for block in blocks]


def are_alike(own, other):
    """The last function is that of the symbol table; eu-addr2line prefixes some relative paths twice."""
    return without_lines(own)[:-1] == without_lines(other)[:-1] and \
        [os.path.basename(place) for _, place in own] == [os.path.basename(place) for _, place in other]


def frames_of(result):
    """[(function, "FILE:LINE"), ...] of an answer, from the innermost one."""
    if not result:
        return [("??", "??:0")]
    own = [(one.get("linkage_name") or one.get("function", "??"), "%s:%d" % (one.get("file", "??"), one.get("line", 0)))
           for one in result.get("inlines", []) + [result]]
    return own


def without_lines(frames):
    return [name for name, _ in frames]


@test
def lines_and_inlined_functions_are_those_of_eu_addr2line():
    need("eu-addr2line")
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    program_file, identity = built(directory)
    start, size = [(row[0], int(row[1], 0)) for row in functions(program_file) if row[4] == "outer"][0]
    addresses = list(range(start, start + size))
    expected = theirs(program_file, addresses)
    check(["innermost", "middle", "outer"] in [without_lines(one) for one in expected], "a chain of two: %r" % expected)
    with symsrv("--index", directory) as program:
        status, _, answer = post(program, {"modules": [{"build_id": identity, "addresses": addresses}], "lines": True})
        equal((status, answer["complete"]), (200, True), "answer %r" % answer)
        results = answer["modules"][0]["results"]
        for address, one, own in zip(addresses, expected, results):
            equal(frames_of(own), one, hex(address))
        equal(program.metric("symsrv_symbol_workers"), 1, "processes")
        # A client of Mozilla's API gets the same, without names of linkers.
        job = {"memoryMap": [["inlined", debug_id(identity)]], "stacks": [[[0, address] for address in addresses]]}
        frames = post(program, {"jobs": [job]}, path="/symbolicate/v5")[2]["results"][0]["stacks"][0]
        for own, frame in zip(results, frames):
            equal([frame.get(name) for name in ("function", "file", "line", "inlines")],
                  [own.get(name) for name in ("function", "file", "line", "inlines")], "frame")
        equal(program.metric("symsrv_symbol_workers_started_total"), 1, "the process is kept")
        # Without lines nothing but names is there, and no process is asked.
        asked = program.metric("symsrv_symbol_questions_total")
        names = post(program, {"modules": [{"build_id": identity, "addresses": addresses}]})[2]["modules"][0]["results"]
        equal(names, [{"function": "outer", "offset": address - start} for address in addresses], "names")
        equal(program.metric("symsrv_symbol_questions_total"), asked, "questions")


def exchange_s(program, body):
    """Seconds from the request to the last byte of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
    begun = time.monotonic()
    connection.request("POST", "/v1/resolve", body)
    connection.getresponse().read()
    connection.close()
    return time.monotonic() - begun


@test
def lines_of_the_c_library_are_those_of_eu_addr2line():
    need("eu-addr2line", "readelf")
    debug, identity = libc_debug_file()
    rows = functions(debug)
    chosen, count = random.Random(4), 10000 if RUN.long else 1000
    addresses = [row[0] + chosen.randrange(max(1, int(row[1], 0))) for row in (chosen.choice(rows) for _ in range(count))]
    begun = time.monotonic()
    expected = theirs(debug, addresses)
    their_s = time.monotonic() - begun
    with upstream(h.serve_files({"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()})) as server:
        with symsrv("--upstream", "debuginfod=" + server.url) as program:
            question = {"modules": [{"build_id": identity, "addresses": addresses}], "lines": True}
            # With a process that has the debug information but not these positions, then again.
            others = {"modules": [{"build_id": identity, "addresses": [address + 1 for address in addresses]}], "lines": True}
            times = [exchange_s(program, json.dumps(one)) for one in [others] + [question] * 4]
            status, _, answer = post(program, question)
            equal((status, answer["complete"]), (200, True), "answer")
            pairs = [(address, frames_of(own), one) for address, one, own in zip(addresses, expected, answer["modules"][0]["results"])]
            differ = [pair for pair in pairs if not are_alike(*pair[1:])]
            for (address, own, one), third in zip(differ, third_opinion(debug, [pair[0] for pair in differ])):
                check(are_alike(own, third), "%x: %r, eu-addr2line %r, llvm-symbolizer %r" % (address, own, one, third))
            equal(len(server.requests), 1, "requests")
    print("      %d addresses, %d where only llvm-symbolizer agrees: eu-addr2line %.2f s, first %.2f s, others %.3f s (%.0f times as fast), again %.3f s (%.0f times)" %
          (count, len(differ), their_s, times[0], times[1], their_s / times[1], min(times[2:]), their_s / min(times[2:])))


def worker_of(program):
    """The PID of the one process that reads debug information."""
    pid = program.process.pid
    found = []
    for thread in os.listdir("/proc/%d/task" % pid):
        found += open("/proc/%d/task/%s/children" % (pid, thread)).read().split()
    equal(len(found), 1, "processes")
    return int(found[0])


@test
def a_process_that_reads_lines_has_no_rights():
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    program_file, identity = built(directory)
    start = [row[0] for row in functions(program_file) if row[4] == "outer"][0]
    with symsrv("--index", directory) as program:
        equal(post(program, {"modules": [{"build_id": identity, "addresses": [start]}], "lines": True})[2]["complete"], True, "answer")
        worker = worker_of(program)
        status = dict(line.split(":\t", 1) for line in open("/proc/%d/status" % worker).read().splitlines() if ":\t" in line)
        equal((status["Seccomp"], status["NoNewPrivs"], int(status["CapEff"], 16), int(status["CapPrm"], 16)), ("2", "1", 0, 0), "rights")
        limits = open("/proc/%d/limits" % worker).read()
        for name, most in (("Max file size", 0), ("Max processes", 0), ("Max core file size", 0), ("Max address space", 2 << 30)):
            equal(int(re.search(name + r"\s+(\d+)", limits).group(1)), most, name)
        equal(open("/proc/%d/environ" % worker).read(), "", "environment")
        kinds = sorted(os.readlink("/proc/%d/fd/%s" % (worker, fd)).split(":")[0] for fd in os.listdir("/proc/%d/fd" % worker))
        check(set(kinds) <= {"/dev/null", "socket", program_file}, "descriptors: %r" % kinds)
    check(not os.path.exists("/proc/%d" % worker), "it ends with the server")


@test
def a_process_that_dies_or_hangs_costs_its_own_image_only():
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    program_file, identity = built(directory)
    other_directory = os.path.join(directory, "other")
    os.mkdir(other_directory)
    _, other = built(other_directory, "-DOTHER", "-Wl,--defsym=another=1")
    start = [row[0] for row in functions(program_file) if row[4] == "outer"][0]

    def ask(*identities, at=start, **more):
        request = dict({"modules": [{"build_id": one, "addresses": [at]} for one in identities], "lines": True}, **more)
        answer = post(program, request)[2]
        return answer["complete"], [module["results"][0] for module in answer["modules"]], answer["modules"]

    with symsrv("--index", directory) as program:
        complete, (first,), _ = ask(identity)
        check(complete and first["line"], "a line")
        worker = worker_of(program)
        os.kill(worker, signal.SIGSTOP)
        equal(ask(identity)[:2], (True, [first]), "what was asked for before is known")
        complete, (late, good), modules = ask(identity, other, at=start + 1, deadline_ms=2000)
        equal((complete, late), (False, {"function": "outer", "offset": 1}), "hanging: the name is there")
        check(good["line"], "the other image has lines")
        check("deadline" in modules[0]["problem"], modules[0]["problem"])
        equal(program.metric('symsrv_symbol_failures_total{reason="deadline"}'), 1, "late")
        # It goes on, and what it answered too late is not taken for a new answer.
        os.kill(worker, signal.SIGCONT)
        complete, (second,), _ = ask(identity, at=start + 2)
        equal((complete, second["offset"]), (True, 2), "goes on")
        os.kill(worker, signal.SIGKILL)
        complete, (dead, good), modules = ask(identity, other, at=start + 3)
        equal((complete, dead), (False, {"function": "outer", "offset": 3}), "dead: the name is there")
        check("ended" in modules[0]["problem"] and "problem" not in modules[1] and good["line"], "the other: %r" % modules)
        equal(program.metric('symsrv_symbol_failures_total{reason="crash"}'), 1, "crashed")
        # It is not started for every request.
        started = program.metric("symsrv_symbol_workers_started_total")
        check("less than a minute" in ask(identity)[2][0]["problem"], "not again")
        equal(program.metric("symsrv_symbol_workers_started_total"), started, "processes")
        equal(program.get("/healthz")[0], 200, "the server")
        lines = [line for line in program.log_text().splitlines() if "debug information" in line]
        equal(len(lines), 2, "lines in the log, one for each cause: %s" % lines)


@test
def damaged_debug_information_leaves_names_or_a_reason():
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    program_file, identity = built(directory)
    start = [row[0] for row in functions(program_file) if row[4] == "outer"][0]
    good = open(program_file, "rb").read()
    sections = subprocess.run(["readelf", "-SW", program_file], capture_output=True, text=True, check=True).stdout
    at, size = (int(text, 16) for text in re.search(r"\.debug_info\s+\S+\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)", sections).groups())
    chosen = random.Random(7)
    for number in range(20 if not RUN.long else 200):
        bad = bytearray(good)
        for _ in range(chosen.randrange(1, 40)):
            bad[at + chosen.randrange(size)] = chosen.randrange(256)
        path = os.path.join(directory, "inlined.new")
        with open(path, "wb") as file:
            file.write(bad)
        os.rename(path, program_file)
        with symsrv("--index", directory) as program:
            status, _, answer = post(program, {"modules": [{"build_id": identity, "addresses": [start, start + 1]}], "lines": True})
            equal((status, answer["modules"][0]["results"][0]["function"]), (200, "outer"), "copy %d" % number)
            equal(program.get("/healthz")[0], 200, "the server")


def identity_of(image):
    """The keys of a precompiled assembly and of its PDB on symbol servers."""
    header = image.u32(0x3C)
    at = image.data.index(b"RSDS") + 4
    guid = uuid.UUID(bytes_le=image.data[at:at + 16]).hex
    return "%08X%x" % (image.u32(header + 8), image.u32(header + 24 + 56)), guid + "FFFFFFFF"


def own_frames(program_file):
    """The StackTrace of the program's own threads: (method, native offset) to places, of precompiled code only."""
    import live_lines
    os.environ["DOTNET_TieredCompilation"] = "0"
    try:
        with live_lines.Lines(["dotnet", program_file]) as lines:
            frames = [frame for thread in lines.threads for frame in thread["frames"][1:] if frame["place"]]
    finally:
        del os.environ["DOTNET_TieredCompilation"]
    return {(frame["method"], frame["offset"]): frame["place"][:2] for frame in frames}


@test
def precompiled_assemblies_have_the_lines_of_their_own_stack_traces():
    need("dotnet")
    import dotnet_tests  # noqa: F401: the path of the harness
    import live_lines
    from harness import Skip
    from r2r_image import Image
    try:
        program_file = live_lines.program("-t:Publish", "-r", "linux-x64", "--self-contained", "false", "-p:PublishReadyToRun=true",
                                          name="lines-ready", published=True)
    except Skip as why:
        raise h.Skipped(str(why))
    image, pdb = Image(program_file), program_file[:-len("dll")] + "pdb"
    key, pdb_key = identity_of(image)
    paths = {"/lines.dll/%s/lines.dll" % key: open(program_file, "rb").read(),
             "/lines.pdb/%s/lines.pdb" % pdb_key: open(pdb, "rb").read()}
    starts = [start for start, _ in image.functions()]

    def ask(program, addresses, **more):
        module = {"pe": "lines.dll", "key": key, "addresses": addresses}
        status, _, answer = post(program, dict({"modules": [module]}, **more))
        equal((status, answer["complete"], answer["modules"][0]["found"]), (200, True, True), "answer %.300r" % answer)
        return answer["modules"][0]["results"]

    with upstream(h.serve_files(paths)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        rvas = {}
        for start, result in zip(starts, ask(program, starts)):
            if result and not result["offset"]:
                rvas.setdefault(result["function"], set()).add(start)
        check(len(rvas) > 100, "%d names" % len(rvas))
        frames = [(min(found) + offset - 1, place) for (method, offset), place in own_frames(program_file).items()
                  for name, found in rvas.items() if " %s(" % method in name and len(found) == 1]
        results = ask(program, [rva for rva, _ in frames], lines=True)
        # The runtime has no line of its own where the compiler recorded none.
        exact = [(result, place) for result, (_, place) in zip(results, frames) if "line_quality" not in result]
        check(len(exact) > 20, "%d lines" % len(exact))
        equal([(result.get("file"), result.get("line")) for result, _ in exact], [place for _, place in exact], "lines")
        asked = [path for path, _ in server.requests if path.endswith(".pdb")]
        equal(len(asked), 1, "requests for the PDB: %r" % asked)
    # The PDB of another build gives no lines.
    paths = {path: body.replace(uuid.UUID(hex=pdb_key[:32]).bytes_le, bytes(16)) if path.endswith(".pdb") else body for path, body in paths.items()}
    with upstream(h.serve_files(paths)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        result = ask(program, [frames[0][0]], lines=True)[0]
        check("file" not in result and result["function"], "a PDB that does not fit: %r" % result)
