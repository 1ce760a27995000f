# SPDX-License-Identifier: MIT
"""Which user the server is, and that no capability is left, as /proc shows it."""
import os
import socket
import subprocess
import tempfile

import symsrv_harness as h
from symsrv_harness import RUN, Skipped, check, equal, good_upstream, symsrv, test

NOBODY = 65534


def need_root():
    if os.geteuid():
        raise Skipped("this needs root")


def status_of(pid):
    with open("/proc/%d/status" % pid) as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def check_without_capabilities(program):
    for task in os.listdir("/proc/%d/task" % program.process.pid):
        status = status_of(int(task))
        equal({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16}, "capabilities")
        equal(status["NoNewPrivs"], "1", "no_new_privs")


@test
def as_root_it_gives_up_every_capability():
    need_root()
    with symsrv() as program:
        check_without_capabilities(program)
        equal(status_of(program.process.pid)["Uid"].split(), ["0"] * 4, "user")
        check("gave up all capabilities" in program.log_text(), "it is logged: " + program.log_text())


@test
def it_becomes_another_user_and_gives_up_root():
    """The sockets are root's, all that is opened later is that user's."""
    need_root()
    os.chmod(RUN.scratch, 0o755)
    store, index, closed = (tempfile.mkdtemp(dir=RUN.scratch) for _ in range(3))
    os.chown(store, NOBODY, NOBODY)
    os.chmod(index, 0o755)
    secret, target, public = h.build_id(1801), h.build_id(1802), h.build_id(1803)
    for name, identity, mode in (("secret", secret, 0o600), ("public", public, 0o644)):
        path = os.path.join(index, name)
        with open(path, "wb") as file:
            file.write(h.make_elf(identity, code=True))
        os.chmod(path, mode)
    # No other user can make a socket in this directory.
    os.chmod(closed, 0o711)
    place = os.path.join(closed, "socket")
    with good_upstream(target) as server:
        with symsrv("--user", "nobody", "--index", index, "--listen", "unix:" + place, "--upstream",
                    "debuginfod=" + server.url, store=store) as program:
            status = status_of(program.process.pid)
            equal(status["Uid"].split(), [str(NOBODY)] * 4, "user")
            equal(status["Gid"].split(), [str(NOBODY)] * 4, "group")
            check("0" not in status["Groups"].split(), "groups of root: " + status["Groups"])
            check_without_capabilities(program)
            equal(program.debuginfo(target)[0], 200, "a fetch into the store")
            equal({os.stat(path).st_uid for path in program.stored_files()}, {NOBODY}, "owner of the objects")
            equal(program.get("/buildid/%s/executable" % public)[0], 200, "a file that everybody may read")
            check(program.get("/buildid/%s/executable" % secret)[0] != 200, "a file that only root may read")
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(place)
                connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                check(b" 200 " in connection.recv(100), "over the socket that root made")


@test
def another_user_does_not_wait_for_the_pipe_of_root_that_it_logs_to():
    need_root()
    store = tempfile.mkdtemp(dir=RUN.scratch)
    os.chmod(RUN.scratch, 0o755)
    os.chown(store, NOBODY, NOBODY)
    place = os.path.join(store, "socket")
    command = [RUN.program, "--store", store, "--listen", "unix:" + place, "--access-log", "-", "--user", "nobody"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            h.wait_until(lambda: os.path.exists(place) and status_of(process.pid)["Uid"].split()[0] == str(NOBODY), "it runs")
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(place)
                connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                check(b" 200 " in connection.recv(100), "it serves")
            pipe = os.readlink("/proc/%d/fd/2" % process.pid)
            flags = []
            for number in os.listdir("/proc/%d/fd" % process.pid):
                if number != "2" and os.readlink("/proc/%d/fd/%s" % (process.pid, number)) == pipe:
                    with open("/proc/%d/fdinfo/%s" % (process.pid, number)) as file:
                        flags.append(int([line.split()[1] for line in file if line.startswith("flags:")][0], 8))
            equal([flag & os.O_NONBLOCK for flag in flags], [os.O_NONBLOCK] * 2, "log and access log do not wait")
        finally:
            process.terminate()
            process.communicate()


@test
def a_user_that_it_cannot_become_is_an_error():
    store = tempfile.mkdtemp(dir=RUN.scratch)
    arguments = [RUN.program, "--store", store, "--listen", "unix:" + store + "/socket", "--user"]
    done = subprocess.run(arguments + ["no such user"], capture_output=True, text=True, timeout=h.WAIT_S)
    equal(done.returncode, 1, "exit status")
    check("no such user" in done.stderr, done.stderr)
    need_root()
    os.chmod(RUN.scratch, 0o755)
    os.chown(store, NOBODY, NOBODY)
    os.chmod(os.path.dirname(store), 0o755)
    if not h.accessible(RUN.program):
        raise Skipped("the program cannot be run by another user")
    done = subprocess.run(arguments + ["root"], capture_output=True, text=True, timeout=h.WAIT_S, preexec_fn=h.become_nobody)
    equal(done.returncode, 1, "exit status of another user")
