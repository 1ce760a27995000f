# SPDX-License-Identifier: MIT
"""--symbolize-at: names and lines for a machine that has no symbols."""
import json
import os
import re
import signal
import subprocess
import tempfile

import symsrv_harness as h
from dotnet_tests import mapgen
from lines_tests import built, theirs
from names_tests import functions
from symsrv_harness import check, equal, need, symsrv, test, upstream


def stripped_program():
    """A directory with symbols, a stripped copy elsewhere, its build-id, and offsets of a function with what eu-addr2line prints there."""
    need("strip", "eu-addr2line", "readelf")
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    program_file, identity = built(directory)
    bare = os.path.join(tempfile.mkdtemp(dir=h.RUN.scratch), "inlined")
    subprocess.run(["strip", "-s", "-o", bare, program_file], check=True)
    headers = subprocess.run(["readelf", "-lW", program_file], capture_output=True, text=True, check=True).stdout
    offset, vaddr = [[int(x, 16) for x in m] for m in re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x\w+ R E", headers)][0]
    start, size = [(row[0], int(row[1], 0)) for row in functions(program_file) if row[4] == "outer"][0]
    vaddrs = list(range(start, start + size))
    return directory, bare, identity, [v - vaddr + offset for v in vaddrs], theirs(program_file, vaddrs)


def resolved(bare, offsets, url, *options):
    """Exit code, answers, standard error."""
    done = mapgen("resolve", "--symbolize-at", url, "--json", *options, *("%s+0x%x" % (bare, offset) for offset in offsets))
    return done.returncode, json.loads(done.stdout or "[]"), done.stderr


def frames_of(answer):
    """[(function, "FILE:LINE"), ...] of an answer of resolve."""
    names = [one["name"] for one in answer["inlined"]] + [answer["name"]]
    places = [(answer["file"], answer["line"])] + [(one["call_file"], one["call_line"]) for one in answer["inlined"]]
    return [(name, "%s:%d" % place) for name, place in zip(names, places)]


@test
def a_machine_without_symbols_gets_names_and_lines():
    directory, bare, identity, offsets, expected = stripped_program()
    with symsrv("--index", directory) as program:
        status, answers, text = resolved(bare, offsets, program.url, "--inlines")
        equal((status, text), (0, ""), "done")
        equal([frames_of(answer) for answer in answers], expected, "frames")
        equal({answer["reason"] for answer in answers}, {"named by " + program.url}, "where it is from")
        equal(program.metric("symsrv_symbol_questions_total"), 1, "one request for all")
        # Return addresses belong to the byte before.
        after = resolved(bare, [offset + 1 for offset in offsets], program.url, "--inlines", "--return-addresses")[1]
        equal([frames_of(answer) for answer in after], expected, "return addresses")
        equal([answer["offset"] for answer in after], [answer["offset"] + 1 for answer in answers], "offsets")
        # Without lines nothing is asked but names.
        status, answers, _ = resolved(bare, offsets, program.url)
        equal((status, {answer["name"] for answer in answers}), (0, {"outer"}), "names")
        equal(program.metric("symsrv_symbol_questions_total"), 2, "questions")


@test
def addresses_of_a_process_are_asked_for_by_its_images():
    need("strip", "gcc", "readelf")
    directory, empty = tempfile.mkdtemp(dir=h.RUN.scratch), tempfile.mkdtemp(dir=h.RUN.scratch)
    source, program_file, bare = os.path.join(directory, "waits.c"), os.path.join(directory, "waits"), os.path.join(empty, "waits")
    with open(source, "w") as file:
        file.write('#include <stdio.h>\n#include <unistd.h>\nstatic int hidden(void)\n{\n\treturn getchar();\n}\n'
                   'int main(void)\n{\n\tprintf("%p\\n", (void *)hidden);\n\tfflush(stdout);\n\treturn hidden();\n}\n')
    subprocess.run(["gcc", "-O0", "-g", "-Wl,--build-id", "-o", program_file, source], check=True)
    subprocess.run(["strip", "-s", "-o", bare, program_file], check=True)
    with symsrv("--index", directory) as program, subprocess.Popen([bare], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        done = mapgen("resolve", str(process.pid), "--symbolize-at", program.url, "--lines", address)
        process.stdin.close()
        equal((done.returncode, done.stderr), (0, ""), "done")
        equal(done.stdout, "%s hidden+0x0 (%s) %s:4\n" % (address, bare, source), "answer")


@test
def a_server_that_fails_leaves_the_answers_of_this_machine_and_a_reason():
    directory, bare, identity, offsets, _ = stripped_program()

    def silent(handler):
        h.send(handler, b"", 503)

    def garbage(handler):
        h.send(handler, b'{"complete": true, "modules": [{"found": true, "results": [7, 8]}]}')

    for answer, reason in ((silent, "status 503"), (garbage, "malformed"), (h.serve_files({}), "status 404")):
        with upstream(answer) as server:
            status, answers, text = resolved(bare, offsets[:3], server.url)
            equal(status, 3, "exit status with %s: %s" % (reason, text))
            check(reason in text and text.count("\n") == 1 and "3 answers" in text, "one line: " + text)
            equal([one["resolved"] for one in answers], [False] * 3, "no names")
            check(len(server.requests) <= 1, "asked once")
    status, answers, text = resolved(bare, offsets[:3], "http://user:secret@127.0.0.1:1")
    equal(status, 3, "exit status")
    check("secret" not in text and "127.0.0.1:1" in text, text)
    with symsrv() as program:
        # The file certainly does not exist: that is no failure.
        status, answers, text = resolved(bare, offsets[:3], program.url)
        equal((status, text, [one["resolved"] for one in answers]), (0, "", [False] * 3), "unknown")
    for url in ("file:///etc/passwd", "127.0.0.1", ""):
        equal(resolved(bare, offsets[:1], url)[0], 2, "usage: " + url)


def spinning_program():
    """A directory with a program that uses the processor, and a stripped copy elsewhere."""
    directory, empty = tempfile.mkdtemp(dir=h.RUN.scratch), tempfile.mkdtemp(dir=h.RUN.scratch)
    source, program_file, bare = os.path.join(directory, "spins.c"), os.path.join(directory, "spins"), os.path.join(empty, "spins")
    with open(source, "w") as file:
        file.write("static volatile unsigned long sum;\n__attribute__((noinline)) static void hidden_spin(void)\n{\n"
                   "\tfor (int i = 0; i < 1000000; i++)\n\t\tsum += i;\n}\nint main(void)\n{\n\tfor (;;)\n\t\thidden_spin();\n}\n")
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", program_file, source], check=True)
    subprocess.run(["strip", "-s", "-o", bare, program_file], check=True)
    return directory, bare


def record_enough(pid, path, record=lambda pid, path, seconds: mapgen("record", str(pid), "--for", seconds, "-F", "999", "-o", path)):
    """Records a process for a moment, and longer where a busy machine let it run too little for 20 samples. Returns the last recorder's end."""
    for seconds in ("0.3", "1", "4", "16"):
        done = record(pid, path, seconds)
        if not os.path.exists(path) or json.loads(mapgen("report", "cpu", "-i", path, "--format=json").stdout)["views"][0]["samples"] >= 20:
            break
    return done


def perf_record(pid, path, seconds):
    return subprocess.run(["perf", "record", "-q", "-g", "-o", path, "-p", str(pid), "sleep", seconds], capture_output=True, text=True)


@test
def a_report_of_a_recording_gets_names_of_stripped_programs():
    need("strip", "gcc")
    directory, bare = spinning_program()
    empty = os.path.dirname(bare)
    recording = os.path.join(empty, "spins.trace.zip")
    with subprocess.Popen([bare]) as process:
        try:
            done = record_enough(process.pid, recording)
        finally:
            process.kill()
    if not os.path.exists(recording):
        raise h.Skipped("nothing could be recorded: " + done.stderr[:200])
    bare_report = mapgen("report", "-i", recording, "--format=folded")
    check("hidden_spin" not in bare_report.stdout and "spins!0x" in bare_report.stdout, bare_report.stdout[:300])
    with symsrv("--index", directory) as program:
        done = mapgen("report", "-i", recording, "--format=folded", "--symbolize-at", program.url)
        equal((done.returncode, done.stderr), (0, ""), "done")
        check("main;hidden_spin" in done.stdout.replace("[spins]", "") and "spins!0x" not in done.stdout, done.stdout[:500])
    done = mapgen("report", "-i", recording, "--format=folded", "--symbolize-at", "http://127.0.0.1:1")
    equal((done.returncode, done.stdout), (3, bare_report.stdout), "without the server")
    check("127.0.0.1:1" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    folded = os.path.join(empty, "folded")
    with open(folded, "w") as file:
        file.write(bare_report.stdout)
    done = mapgen("report", "-i", folded, "--symbolize-at", "http://127.0.0.1:1")
    equal(done.returncode, 1, "only a recording has build-ids")
    check("needs a recording" in done.stderr, done.stderr)


@test
def a_report_of_a_perf_data_gets_names_of_stripped_programs():
    need("strip", "gcc", "perf")
    directory, bare = spinning_program()
    data = os.path.join(os.path.dirname(bare), "perf.data")
    with subprocess.Popen([bare]) as process:
        try:
            done = record_enough(process.pid, data, perf_record)
            if done.returncode or not os.path.exists(data):
                raise h.Skipped("nothing could be recorded: " + done.stderr[:200])
            process.send_signal(signal.SIGSTOP)
            with symsrv("--index", directory) as program:
                # While the process lives, its own mappings are used.
                alive = mapgen("report", "-i", data, "--format=folded", "--symbolize-at", program.url)
        finally:
            process.kill()
    without = mapgen("report", "-i", data, "--format=folded")
    check("hidden_spin" not in without.stdout and "spins!0x" in without.stdout, without.stdout[:300])
    with symsrv("--index", directory) as program:
        gone = mapgen("report", "-i", data, "--format=folded", "--symbolize-at", program.url)
        for done in (alive, gone):
            equal((done.returncode, done.stderr), (0, ""), "done")
            check("main;hidden_spin" in done.stdout.replace("[spins]", "") and "spins!0x" not in done.stdout, done.stdout[:500])
    done = mapgen("report", "-i", data, "--format=folded", "--symbolize-at", "http://127.0.0.1:1")
    equal((done.returncode, done.stdout), (3, without.stdout), "without the server")


# One entry of the unwind table spans the first two functions. The third has no size.
TWO_IN_ONE = """	.text
	.globl two_in_one
	.type quiet_one, @function
	.type two_in_one, @function
	.cfi_startproc
quiet_one:
	ret
	.size quiet_one, . - quiet_one
two_in_one:
	mov $1000000, %ecx
1:	dec %ecx
	jnz 1b
	ret
	.size two_in_one, . - two_in_one
	.cfi_endproc
	.globl without_size
	.type without_size, @function
without_size:
	.cfi_startproc
	mov $1000000, %ecx
1:	dec %ecx
	jnz 1b
	ret
	.cfi_endproc
	.section .note.GNU-stack,"",@progbits
"""


@test
def code_with_the_bounds_of_two_functions_gets_no_wrong_name():
    need("strip", "gcc", "perf")
    directory, empty = tempfile.mkdtemp(dir=h.RUN.scratch), tempfile.mkdtemp(dir=h.RUN.scratch)
    source, program_file, bare = (os.path.join(place, name) for place, name in ((directory, "two"), (directory, "spins"), (empty, "spins")))
    for ending, text in ((".s", TWO_IN_ONE), (".c", "void two_in_one(void);\nvoid without_size(void);\nint main(void)\n{\n\tfor (;; without_size())\n\t\ttwo_in_one();\n}\n")):
        with open(source + ending, "w") as file:
            file.write(text)
    subprocess.run(["gcc", "-O1", "-Wl,--build-id", "-o", program_file, source + ".c", source + ".s"], check=True)
    subprocess.run(["strip", "-s", "-o", bare, program_file], check=True)
    recording, data = os.path.join(empty, "spins.trace.zip"), os.path.join(empty, "perf.data")
    with subprocess.Popen([bare]) as process:
        try:
            record_enough(process.pid, recording)
            record_enough(process.pid, data, perf_record)
        finally:
            process.kill()
    found = [path for path in (recording, data) if os.path.exists(path)]
    if not found:
        raise h.Skipped("nothing could be recorded")
    with symsrv("--index", directory) as program:
        for path in found:
            done = mapgen("report", "-i", path, "--format=folded", "--symbolize-at", program.url)
            equal((done.returncode, done.stderr), (0, ""), "done")
            check("quiet_one" not in done.stdout and "spins!0x" in done.stdout, done.stdout[:500])
            check("without_size" in done.stdout, done.stdout[:500])
