# SPDX-License-Identifier: MIT
"""The first minutes with the server: its unit, its sample configuration, its page, its log."""
import os
import re
import signal
import socket
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


def installed_units():
    """The service, its socket, and the configuration."""
    target = tempfile.mkdtemp(dir=RUN.scratch)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    subprocess.run(["make", "-s", "-C", SOURCES, "install-units", "DESTDIR=" + target, "PREFIX=/usr"], check=True,
                   env=environment)
    units = target + "/usr/lib/systemd/system/symsrv."
    return open(units + "service").read(), open(units + "socket").read(), open(target + "/etc/symsrv.conf").read()


@test
def the_installed_unit_has_an_absolute_program_and_its_configuration():
    service, _, sample = installed_units()
    starts = [line.split("=", 1)[1].split() for line in service.splitlines() if line.startswith("ExecStart=")]
    equal(starts, [["/usr/bin/symsrv", "--store", "/var/cache/symsrv", "--config", "/etc/symsrv.conf"]], "ExecStart")
    check(sample, "the configuration is installed")


def started_by_systemd(configuration, listener, log):
    """The program as the service starts it, with a socket of systemd or None."""
    path = os.path.join(tempfile.mkdtemp(dir=RUN.scratch), "symsrv.conf")
    with open(path, "w") as file:
        file.write(configuration)

    def hand_over():
        os.dup2(listener.fileno(), 3)

    script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"' if listener else 'exec "$0" "$@"'
    with open(log, "wb") as output:
        return subprocess.Popen(["sh", "-c", script, RUN.program, "--store", tempfile.mkdtemp(dir=RUN.scratch), "--config", path],
                                preexec_fn=hand_over if listener else None, stderr=output,
                                pass_fds={3, listener.fileno()} if listener else ())


@test
def the_service_serves_other_machines_with_the_line_of_the_sample():
    """systemctl enable --now symsrv starts what the unit brings along before it."""
    service, unit, sample = installed_units()
    check("#listen :8002\n" in sample, "the line")
    port, log = h.free_port(), os.path.join(RUN.scratch, "log-service")
    has_socket = re.search(r"^(Also|Requires|Wants|Sockets)=.*symsrv\.socket", service, re.M)
    place = re.search(r"^ListenStream=(.*):8002$", unit, re.M).group(1)
    listener = socket.create_server((place, port)) if has_socket else None
    process = started_by_systemd(sample.replace("#listen :8002", "listen :%d" % port), listener, log)
    try:
        program = symsrv(port=port)
        h.wait_until(lambda: process.poll() is not None or program.is_ready(), "it starts")
        equal(process.poll(), None, open(log).read())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(h.WAIT_S)
        if listener:
            listener.close()


@test
def a_port_that_systemd_has_is_named():
    port, log = h.free_port(), os.path.join(RUN.scratch, "log-port")
    with socket.create_server(("127.0.0.1", port)) as listener:
        process = started_by_systemd("listen :%d\n" % port, listener, log)
        equal(process.wait(h.WAIT_S), 1, "exit status")
    check(":%d: Address already in use: symsrv.socket" % port in open(log).read(), open(log).read())


@test
def a_changed_listen_is_not_taken_silently():
    path = os.path.join(tempfile.mkdtemp(dir=RUN.scratch), "symsrv.conf")
    open(path, "w").close()
    with symsrv("--config", path) as program:
        def read_again(text):
            count = program.metric("symsrv_reloads_total")
            with open(path, "w") as file:
                file.write(text)
            program.process.send_signal(signal.SIGHUP)
            h.wait_until(lambda: program.metric("symsrv_reloads_total") > count, "read again")

        read_again("retries 3\n")
        check("restart" not in program.log_text(), program.log_text())
        read_again("listen 127.0.0.1:%d\n" % h.free_port())
        check("listen has changed: that needs a restart" in program.log_text(), program.log_text())


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
