# SPDX-License-Identifier: MIT
"""Names-only files: the same names as the debug file, for clients that know nothing of them."""
import glob
import os
import subprocess
import tempfile

import symsrv_harness as h
from client_tests import client_environment, compile_program
from symsrv_harness import RUN, Skipped, check, equal, need, symsrv, test, upstream

ZSTD = {"Accept-Encoding": "gzip, zstd"}


def libc_debug_file():
    """The largest debug file of libc6-dbg, and its build-id."""
    found = sorted(glob.glob("/usr/lib/debug/.build-id/*/*.debug"), key=os.path.getsize)
    if not found or os.path.getsize(found[-1]) < 1 << 20:
        raise Skipped("libc6-dbg is not installed")
    return found[-1], os.path.basename(os.path.dirname(found[-1])) + os.path.basename(found[-1])[:-len(".debug")]


def functions(path):
    """(address, size, type, binding, name) of every function, as readelf prints them, in the order of the table."""
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    table = text[text.index("'.symtab'"):].splitlines()
    rows = [line.split(None, 7) for line in table if ": " in line]
    return [(int(row[1], 16), row[2], row[3], row[4], row[7]) for row in rows
            if len(row) == 8 and row[3] in ("FUNC", "IFUNC") and row[6] not in ("UND", "ABS")]


def names_in_order(rows):
    """The names at each address, local and others apart, in the order of the table."""
    found = {}
    for address, _, _, binding, name in rows:
        found.setdefault((address, binding == "LOCAL"), []).append(name)
    return found


def save(name, body):
    path = os.path.join(RUN.scratch, name)
    with open(path, "wb") as file:
        file.write(body)
    return path


def unpacked(body):
    need("zstd")
    return subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout


@test
def names_only_are_the_names_of_the_debug_file():
    need("readelf", "eu-addr2line")
    debug, identity = libc_debug_file()
    files = {"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        status, headers, packed = program.get("/names/buildid/%s/debuginfo" % identity, headers=ZSTD)
        equal((status, headers["content-encoding"], headers["vary"]), (200, "zstd", "Accept-Encoding"), "packed")
        check(len(packed) <= os.path.getsize(debug) * 0.015, "%d bytes of %d" % (len(packed), os.path.getsize(debug)))
        status, headers, plain = program.get("/buildid/%s/symtab" % identity, headers={"Accept-Encoding": "zstd;q=0"})
        equal((status, headers.get("content-encoding")), (200, None), "plain")
        equal(unpacked(packed), plain, "both are the same file")
        equal(program.get("/buildid/%s/symtab" % identity, headers=dict(ZSTD, Range="bytes=0-3"))[2], packed[:4], "a range")
        equal(len(server.requests), 1, "the debug file is fetched once")
    names = save("libc.names", plain)
    all_names, kept = functions(debug), functions(names)
    equal(sorted(kept), sorted(all_names), "functions")
    equal(names_in_order(kept), names_in_order(all_names), "order of the names at one address")
    addresses = "\n".join("0x%x" % (row[0] + min(int(row[1], 0), 16) // 2) for row in all_names[::5])
    answers = [subprocess.run(["eu-addr2line", "-S", "-e", path], input=addresses, capture_output=True, text=True,
                              check=True).stdout.splitlines()[::2] for path in (debug, names)]
    check(len(answers[0]) > 1000, "addresses")
    equal(answers[1], answers[0], "eu-addr2line")


@test
def clients_of_debuginfod_take_names_only_for_a_debug_file():
    need("debuginfod-find", "gdb", "eu-addr2line")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program_file, debug, identity = compile_program(directory)
    files = {"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        environment = client_environment(program.url + "/names")
        found = subprocess.run(["debuginfod-find", "debuginfo", identity], capture_output=True, text=True,
                               env=environment, check=True).stdout.strip()
        check(b".debug_info" not in open(found, "rb").read(), "no DWARF")
        text = subprocess.run(["gdb", "-batch", "-iex", "set debuginfod enabled on", "-ex", "info address answer_of_the_sample",
                               program_file], capture_output=True, text=True, env=environment, timeout=120).stdout
        check("answer_of_the_sample\" is at 0x" in text, "gdb: " + text)
        address = [row[0] for row in functions(debug) if row[4] == "answer_of_the_sample"][0]
        text = subprocess.run(["eu-addr2line", "-S", "-e", program_file, "0x%x" % (address + 1)], capture_output=True,
                              text=True, env=environment).stdout
        check(text.startswith("answer_of_the_sample+0x1"), "eu-addr2line: " + text)
        equal(program.get("/names/buildid/%s/executable" % identity)[0], 404, "programs are not served there")
        equal(program.get("/names/buildid/%s/source/a.c" % identity)[0], 404, "nor sources")
        equal(program.get("/names/buildid/xyz/debuginfo")[0], 400, "a malformed build-id")


@test
def fetch_symbols_brings_names_only_into_a_tree():
    mapgen = os.path.join(os.path.dirname(RUN.program), "..", "dotnet-mapgen")
    if not os.path.exists(mapgen):
        raise Skipped("dotnet-mapgen is not built")
    directory, tree = tempfile.mkdtemp(dir=RUN.scratch), tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "wait.c"), "w") as file:
        file.write("#include <unistd.h>\nstatic int waits(void) { return pause(); }\nint main(void) { return waits(); }\n")
    whole, bare = os.path.join(directory, "wait"), os.path.join(tree, "wait")
    subprocess.run(["gcc", "-O0", "-g", "-Wl,--build-id", "-o", whole, os.path.join(directory, "wait.c")], check=True)
    subprocess.run(["strip", "-o", bare, whole], check=True)
    with symsrv("--index", directory) as program, subprocess.Popen([bare]) as process:
        try:
            h.wait_until(lambda: os.readlink("/proc/%d/exe" % process.pid) == bare, "the program runs")
            done = subprocess.run([mapgen, "fetch-symbols", "--names-only", "--server", program.url, "--debug-tree", tree,
                                   str(process.pid)], capture_output=True, text=True)
            check("fetched  %s" % bare in done.stdout, done.stdout + done.stderr)
            found = glob.glob(tree + "/.build-id/*/*.debug")
            equal(len(found), 1, "files in the tree")
            equal(sorted(functions(found[0])), sorted(functions(whole)), "functions")
        finally:
            process.kill()


@test
def names_come_from_a_symsrv_as_names():
    debug, identity = libc_debug_file()
    files = {"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as middle:
        with symsrv("--upstream", "symsrv=" + middle.url) as edge:
            one = edge.get("/buildid/%s/symtab" % identity)
            equal(one[0], 200, "edge")
            equal(one[2], middle.get("/buildid/%s/symtab" % identity)[2], "the same file")
            check(edge.metric("symsrv_store_bytes") < os.path.getsize(debug) / 5, "the debug file did not travel to the edge")
            # And with what the middle holds, packed at the edge:
            equal(unpacked(edge.get("/buildid/%s/symtab" % identity, headers=ZSTD)[2]), one[2], "packed at the edge")
        equal(len(server.requests), 1, "requests")


@test
def names_that_cannot_be_made_are_a_miss_that_is_remembered():
    without, unknown, good = h.build_id(71), h.build_id(72), h.build_id(73)
    files = {"/buildid/%s/debuginfo" % without: h.make_elf(without, dwarf=True)}
    files["/buildid/%s/debuginfo" % good] = b"\x7fELF"
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        for identity in (without, unknown):
            for _ in range(3):
                status, headers, _ = program.get("/buildid/%s/symtab" % identity)
                equal((status, headers["cache-control"]), (404, "max-age=30"), "a certain miss")
        equal(len(server.requests), 4, "each file is asked for once: " + str([path for path, _ in server.requests]))
        status, headers, _ = program.get("/buildid/%s/symtab" % good)
        equal((status, headers["cache-control"]), (404, "no-store"), "a damaged file is no certain miss")


@test
def names_are_made_from_an_indexed_program_too():
    need("gcc", "readelf")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "one.c"), "w") as file:
        file.write("static int hidden(int x) { return x * 3; }\nint main(int c, char **v) { (void)v; return hidden(c); }\n")
    whole = os.path.join(directory, "one")
    subprocess.run(["gcc", "-O0", "-Wl,--build-id", "-o", whole, os.path.join(directory, "one.c")], check=True)
    notes = subprocess.run(["readelf", "-n", whole], capture_output=True, text=True, check=True).stdout
    with symsrv("--index", directory) as program:
        status, _, body = program.get("/buildid/%s/symtab" % notes.split("Build ID:")[1].split()[0])
        equal(status, 200, "status")
        equal(sorted(functions(save("one.names", body))), sorted(functions(whole)), "functions")
        equal(subprocess.run([RUN.program, "--store", program.store, "--scrub"], capture_output=True).returncode, 0, "scrub")


@test
def perf_names_a_stripped_program_from_names_only():
    """Debian's perf is built without debuginfod, so a client of debuginfod brings the file into its cache of build-ids, where record put the program."""
    need("perf", "debuginfod-find", "gcc", "objcopy", "readelf")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    whole, bare, data = (os.path.join(directory, name) for name in ("whole", "hot", "perf.data"))
    with open(whole + ".c", "w") as file:
        file.write("static volatile unsigned long total;\n"
                   "__attribute__((noinline)) static void hidden_loop(unsigned long n) { for (unsigned long i = 0; i < n; i++) total += i; }\n"
                   "int main(void) { for (int i = 0; i < 30; i++) hidden_loop(10000000); return 0; }\n")
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", whole, whole + ".c"], check=True)
    subprocess.run(["strip", "-o", bare, whole], check=True)
    served = tempfile.mkdtemp(dir=RUN.scratch)
    subprocess.run(["objcopy", "--only-keep-debug", whole, os.path.join(served, "hot.debug")], check=True)
    perf = ["perf", "--buildid-dir", os.path.join(directory, "cache")]
    if subprocess.run(perf + ["record", "-q", "-o", data, bare], capture_output=True).returncode:
        raise Skipped("perf cannot record")
    notes = subprocess.run(["readelf", "-n", bare], capture_output=True, text=True, check=True).stdout
    identity = notes.split("Build ID:")[1].split()[0]

    def report():
        return subprocess.run(perf + ["report", "-i", data, "--stdio"], capture_output=True, text=True, check=True).stdout

    check("hidden_loop" not in report(), "without names")
    with symsrv("--index", served) as program:
        h.wait_until(lambda: program.metric("symsrv_index_files") == 1, "indexed")
        found = subprocess.run(["debuginfod-find", "debuginfo", identity], capture_output=True, text=True,
                               env=client_environment(program.url + "/names"))
        equal(found.returncode, 0, found.stderr)
    # As the manual says.
    subprocess.run(perf + ["buildid-cache", "--remove", bare], check=True)
    subprocess.run(perf + ["buildid-cache", "--add", found.stdout.strip()], check=True)
    check("hidden_loop" in report(), "with names: " + report())
