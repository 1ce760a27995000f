# SPDX-License-Identifier: MIT
"""The first minutes with the server: its unit, its sample configuration, its page, its log."""
import os
import subprocess
import tempfile

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, symsrv, test

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


@test
def the_sample_configuration_starts():
    with symsrv("--config", os.path.join(SOURCES, "symsrv", "symsrv.conf")) as program:
        page = program.get("/")[2].decode()
        check("msdl.microsoft.com" in page or "<td>ms<" in page, "its upstreams are on the page")


@test
def the_installed_unit_has_an_absolute_program_and_its_configuration():
    target = os.path.join(RUN.scratch, "installed")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    subprocess.run(["make", "-s", "-C", SOURCES, "install-units", "DESTDIR=" + target, "PREFIX=/usr"], check=True,
                   env=environment)
    with open(target + "/usr/lib/systemd/system/symsrv.service") as file:
        starts = [line.split("=", 1)[1].split() for line in file if line.startswith("ExecStart=")]
    equal(starts, [["/usr/bin/symsrv", "--store", "/var/cache/symsrv", "--config", "/etc/symsrv.conf"]], "ExecStart")
    check(os.path.exists(target + "/etc/symsrv.conf"), "the configuration is installed")


@test
def a_directory_that_is_no_store_is_refused_and_stays_as_it_is():
    for names in (["note.txt"], ["lock", "partial"], ["objects"]):
        foreign = tempfile.mkdtemp(prefix="foreign-", dir=RUN.scratch)
        for name in names:
            if name == "partial":
                os.mkdir(os.path.join(foreign, name))
            else:
                open(os.path.join(foreign, name), "w").close()
        for more in ([], ["--scrub"]):
            done = subprocess.run([RUN.program, "--store", foreign, "--listen", "127.0.0.1:%d" % h.free_port()] + more,
                                  capture_output=True, text=True)
            equal(done.returncode, 1, "exit status with %r" % names)
            check("is no store" in done.stderr, done.stderr)
        equal(sorted(os.listdir(foreign)), sorted(names), "nothing is written there")
    empty = tempfile.mkdtemp(prefix="empty-", dir=RUN.scratch)
    os.mkdir(os.path.join(empty, "lost+found"))
    with symsrv(store=empty):
        pass
    with open(os.path.join(empty, "added-later"), "w"):
        pass
    with symsrv(store=empty):
        pass


@test
def the_page_has_the_line_to_paste_for_the_host_that_was_asked():
    with symsrv() as program:
        page = program.get("/")[2].decode()
        check("export DEBUGINFOD_URLS=http://127.0.0.1:%d<" % program.port in page, "the line")
        raw = "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
        check(b"DEBUGINFOD_URLS=http://sym.example:80<" in program.raw((raw % "sym.example:80").encode()), "a name")
        page = program.raw((raw % "a;rm${IFS}x").encode())
        check(b"a;rm" not in page and b"export DEBUGINFOD_URLS=http://127.0.0.1:8002<" in page, "no foreign command")


@test
def the_log_says_how_many_files_were_indexed():
    directory = tempfile.mkdtemp(prefix="index-", dir=RUN.scratch)
    for number in (1, 2, 3):
        with open(os.path.join(directory, "lib%d.debug" % number), "wb") as file:
            file.write(h.make_elf(h.build_id(number)))
    with open(os.path.join(directory, "readme"), "w") as file:
        file.write("no symbols\n")
    with symsrv("--index", directory) as program:
        h.wait_until(lambda: "indexed 3 files of 4 below " in program.log_text(), "the line")
        equal(program.metric("symsrv_index_files"), 3, "metric")
