# SPDX-License-Identifier: MIT
"""SIGTERM while clients ask: the server ends with status 0 and answers every request that had reached it.

STOPS=N sets how often (40; 10000 with --long). A request that was sent before SIGTERM must be answered, also
where its connection still waits in the queue of the listening socket. A later connection may be refused.
"""
import concurrent.futures
import contextlib
import multiprocessing
import os
import random
import signal
import socket
import tempfile

import symsrv_harness as h
from symsrv_harness import RUN, Symsrv, check, equal, test

IDENTITY = h.build_id(1700)
KEPT, NEW, LATE = 6, 10, 4
AT_A_TIME = 4
# --drain-timeout is 30 s.
END_S = 60


def request(path, ends):
    return ("GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (path, "Connection: close\r\n" if ends else "")).encode()


def read_answer(connection):
    """Status and body of one answer; raises when it is not whole."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("ended after %d bytes of the header" % len(answer))
        answer += part
    head, body = answer.split(b"\r\n\r\n", 1)
    length = int([line.split(b":")[1] for line in head.lower().splitlines() if line.startswith(b"content-length:")][0])
    body = bytearray(body)
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("ended after %d of %d bytes" % (len(body), length))
        body += part
    return int(head.split()[1]), body


class Clients:
    """Connections to one server: some are kept, others are new for each request."""

    def __init__(self, connect, body):
        self.connect, self.body = connect, body
        self.paths = {"/buildid/%s/executable" % IDENTITY: (200, body), "/": (200, None), "/healthz": (200, None),
                      "/buildid/%s/executable" % h.build_id(1): (404, None)}

    def ask(self, connection, ends):
        path = random.choice(list(self.paths))
        connection.sendall(request(path, ends))
        return connection, self.paths[path]

    def take(self, asked):
        connection, (status, body) = asked
        got_status, got_body = read_answer(connection)
        equal(got_status, status, "status")
        check(body is None or body == got_body, "another body")

    def ask_new(self, stack):
        return self.ask(stack.enter_context(self.connect()), True)

    def load(self, rounds, stop):
        with contextlib.ExitStack() as stack:
            kept = [stack.enter_context(self.connect()) for _ in range(KEPT)]
            for _ in range(rounds):
                with contextlib.ExitStack() as short:
                    asked = [self.ask(connection, False) for connection in kept]
                    asked += [self.ask_new(short) for _ in range(NEW // 2)]
                    for one in asked:
                        self.take(one)
            under_way = [self.ask(connection, False) for connection in kept] + [self.ask_new(stack) for _ in range(NEW)]
            stop()
            with contextlib.suppress(OSError):
                for _ in range(LATE):
                    self.ask_new(stack)
            for one in under_way:
                self.take(one)


def stop_once(program, clients, seed):
    random.seed(seed)
    try:
        program.start()
        clients.load(random.randrange(1, 6), lambda: program.process.send_signal(signal.SIGTERM))
        status = program.process.wait(END_S)
    except Exception as error:
        with contextlib.suppress(Exception):
            program.process.terminate()
            error = "%s (exit status %d)" % (error, program.process.wait(END_S))
        raise AssertionError("stop %d: %s\n%s" % (seed, error, program.log_text())) from None
    finally:
        if program.process.poll() is None:
            program.kill()
    equal(status, 0, "stop %d: exit status" % seed)
    program.log.close()


def stop_often(turns):
    """In a process of its own."""
    executable, scratch, index, port, kind, first, count = turns
    with open(os.path.join(index, "f"), "rb") as file:
        body = file.read()
    place = os.path.join(tempfile.mkdtemp(dir=scratch), "socket")
    arguments = ["--index", index, "--threads", "3"] + (["--listen", "unix:" + place] if kind == "unix" else [])
    program = Symsrv(executable, scratch, *arguments, port=port)

    def connect():
        if kind == "tcp":
            return socket.create_connection(("127.0.0.1", program.port), timeout=h.WAIT_S)
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(h.WAIT_S)
        connection.connect(place)
        return connection

    for seed in range(first, first + count):
        stop_once(program, Clients(connect, body), seed)
    return count


def stop_under_load(kind, count):
    index = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(index, "f"), "wb") as file:
        file.write(h.make_elf(IDENTITY, 300000, code=True))
    at_a_time = min(20, max(1, count // AT_A_TIME))
    turns = [(RUN.program, RUN.scratch, index, h.free_port(), kind, first, min(at_a_time, count - first))
             for first in range(0, count, at_a_time)]
    with concurrent.futures.ProcessPoolExecutor(AT_A_TIME, multiprocessing.get_context("fork")) as pool:
        done = [pool.submit(stop_often, turn) for turn in turns]
        try:
            equal(sum(future.result() for future in done), count, "stops")
        finally:
            pool.shutdown(cancel_futures=True)


@test
def a_stop_under_load_ends_well_and_loses_no_request():
    stop_under_load("tcp", int(os.environ.get("STOPS", 10000 if RUN.long else 40)))


@test
def a_stop_under_load_on_a_unix_socket_loses_no_request():
    stop_under_load("unix", int(os.environ.get("STOPS", 10000 if RUN.long else 40)) // 4)
