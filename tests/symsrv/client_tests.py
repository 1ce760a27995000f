# SPDX-License-Identifier: MIT
"""debuginfod, its client, gdb and elfutils, unmodified."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time

import symsrv_harness as h
from symsrv_harness import RUN, Skipped, check, equal, good_upstream, need, symsrv, test, upstream


# ---- real clients and servers ----

def compile_program(directory):
    need("gcc", "objcopy", "readelf")
    source = os.path.join(directory, "sample.c")
    program = os.path.join(directory, "sample")
    with open(source, "w") as file:
        file.write("int answer_of_the_sample(int x) { return x + 41; }\nint main(void) { return answer_of_the_sample(1) - 42; }\n")
    subprocess.run(["gcc", "-g", "-O0", "-Wl,--build-id", "-o", program, source], check=True)
    debug = os.path.join(directory, "sample.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return program, debug, notes.split("Build ID:")[1].split()[0]


def client_environment(url):
    return dict(os.environ, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=tempfile.mkdtemp(dir=RUN.scratch), HOME=RUN.scratch)


@test
def debuginfod_find_gdb_and_addr2line_work_unmodified():
    need("debuginfod-find", "gdb", "eu-addr2line")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program, debug, identity = compile_program(directory)
    with upstream(h.serve_files({h.debug_paths(identity)[1]: open(debug, "rb").read()})) as server:
        with symsrv("--upstream", "ssqp=" + server.url) as front:
            environment = client_environment(front.url)
            found = subprocess.run(["debuginfod-find", "debuginfo", identity], env=environment, capture_output=True, text=True)
            equal(open(found.stdout.strip(), "rb").read(), open(debug, "rb").read(), "debuginfod-find")
            section = subprocess.run(["debuginfod-find", "section", identity, ".debug_info"], env=environment,
                                     capture_output=True, text=True)
            equal(section.returncode, 0, section.stderr)
            shown = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled on", "-ex", "file " + program, "-ex",
                                    "info line answer_of_the_sample"], env=client_environment(front.url),
                                   capture_output=True, text=True)
            check("sample.c" in shown.stdout, "gdb: " + shown.stdout + shown.stderr)
            address = subprocess.run(["nm", debug], capture_output=True, text=True, check=True).stdout
            address = [line.split()[0] for line in address.splitlines() if line.endswith(" answer_of_the_sample")][0]
            line = subprocess.run(["eu-addr2line", "-f", "-e", program, "0x" + address], env=client_environment(front.url),
                                  capture_output=True, text=True)
            check("answer_of_the_sample" in line.stdout, "eu-addr2line: " + line.stdout + line.stderr)


@contextlib.contextmanager
def real_debuginfod(*arguments, environment=None):
    need("debuginfod")
    port = h.free_port()
    database = os.path.join(RUN.scratch, "debuginfod-%d.sqlite" % port)
    process = subprocess.Popen(["debuginfod", "-p", str(port), "-d", database, "-t", "0", *arguments], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = symsrv(port=port)
        for _ in range(300):
            with contextlib.suppress(OSError):
                if b"ready 1" in server.get("/metrics")[2]:
                    break
            time.sleep(0.05)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(h.WAIT_S)


@test
def a_real_debuginfod_is_upstream_client_and_half_of_a_ring():
    need("debuginfod", "debuginfod-find")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program, debug, identity = compile_program(directory)
    with real_debuginfod("-F", directory) as real:
        with symsrv("--upstream", "real@debuginfod=" + real.url, "--trust", "real") as front:
            for _ in range(100):
                if front.debuginfo(identity)[0] == 200:
                    break
                time.sleep(0.1)
                front.process.send_signal(signal.SIGHUP)
            equal(front.debuginfo(identity)[2], open(debug, "rb").read(), "debuginfo")
            equal(front.get("/buildid/%s/executable" % identity)[2], open(program, "rb").read(), "executable")
            source = front.get("/buildid/%s/source%s/sample.c" % (identity, os.path.realpath(directory)))
            equal(source[2], open(os.path.join(directory, "sample.c"), "rb").read(), "source")
    other = h.build_id(950)
    with good_upstream(other) as server, symsrv("--upstream", "ssqp=" + server.url) as back:
        with real_debuginfod(environment=client_environment(back.url)) as real:
            equal(real.debuginfo(other)[2], h.make_elf(other), "a real debuginfod asks symsrv")
    port = h.free_port()
    with real_debuginfod(environment=client_environment("http://127.0.0.1:%d" % port)) as real:
        with symsrv("--upstream", "debuginfod=" + real.url, port=port) as ring:
            started = time.monotonic()
            equal(ring.debuginfo(h.build_id(951))[0], 404, "a ring with a real debuginfod")
            check(time.monotonic() - started < 15, "it went round and round")


@test
def distribution_debug_files_are_content_like_any_other():
    directory = "/usr/lib/debug/.build-id"
    if not os.path.isdir(directory):
        raise Skipped("no debug files in " + directory)
    samples = []
    for prefix in sorted(os.listdir(directory))[:60]:
        for name in os.listdir(os.path.join(directory, prefix)):
            if name.endswith(".debug"):
                samples.append((prefix + name[:-6], os.path.join(directory, prefix, name)))
    with symsrv("--index", directory) as first, symsrv("--upstream", "symsrv=" + first.url) as second:
        for identity, path in samples:
            equal(second.debuginfo(identity)[2], open(path, "rb").read(), path)
