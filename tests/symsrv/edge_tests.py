# SPDX-License-Identifier: MIT
"""Unusual conditions: odd HTTP, scarce descriptors, stores that cannot be written, stubborn clients."""
import concurrent.futures
import contextlib
import http.client
import os
import resource
import shutil
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

import symsrv_harness as h
from symsrv_harness import RUN, Skipped, check, equal, good_upstream, symsrv, test, upstream

TARGET = h.build_id(1500)


def indexed(*identities, size=4096):
    """A directory with files of these build-ids."""
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    for identity in identities:
        with open(os.path.join(directory, identity), "wb") as file:
            file.write(h.make_elf(identity, size))
    return directory


def answers_of(data):
    """(status, headers, body) of each answer in what came over one connection."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        length = int(headers.get(b"content-length", b"0"))
        found.append((int(lines[0].split()[1]), headers, rest[:length]))
        data = rest[length:]
    return found


@test
def head_says_what_get_says():
    files = {h.debug_paths(TARGET)[0]: h.make_elf(TARGET, 60000)}
    paths = ["/buildid/%s/debuginfo" % TARGET, "/symbols" + h.debug_paths(TARGET)[1], "/buildid/%s/section/.symtab" % TARGET,
             "/buildid/%s/debuginfo" % h.build_id(1501), "/healthz", "/readyz", "/version", "/metadata?key=buildid&value=" + TARGET,
             "/nothing", "/buildid/x/debuginfo", "/metadata"]
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        for path in paths:
            program.get(path)
            status, headers, body = program.get(path)
            other_status, other, nothing = program.get(path, method="HEAD")
            headers.pop("date"), other.pop("date")
            equal((other_status, other, nothing), (status, headers, b""), path)
            equal(headers["content-length"], str(len(body)), path)
        for path in ("/", "/metrics"):
            equal(program.get(path, method="HEAD")[::2], (200, b""), path)


@test
def odd_but_lawful_http_is_answered():
    whole = h.make_elf(TARGET)
    path = b"/buildid/%s/debuginfo" % TARGET.encode()
    with symsrv("--index", indexed(TARGET)) as program:
        answer = answers_of(program.raw(b"GET " + path + b" HTTP/1.0\r\n\r\n"))
        equal(answer[0][::2], (200, whole), "HTTP/1.0")
        answer = answers_of(program.raw(b"GET http://somewhere" + path + b"?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
        equal(answer[0][::2], (200, whole), "a target with scheme and host")
        twice = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\nRange: bytes=20-29\r\nConnection: close\r\n\r\n"
        equal(answers_of(program.raw(twice))[0][::2], (200, whole), "two ranges in two lines: everything")
        equal(program.debuginfo(TARGET, method="HEAD", headers={"Range": "bytes=0-9"})[0], 200, "a range is of a GET")
        one = b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n"
        row = one % (path, b"") + one % (b"/nothing", b"") + one % (path, b"Range: bytes=1-3\r\n") + \
            b"HEAD" + (one % (path, b"If-None-Match: *\r\n"))[3:] + one % (b"/healthz", b"Connection: close\r\n")
        answers = answers_of(program.raw(row))
        equal([status for status, _, _ in answers], [200, 404, 206, 304, 200], "pipelined")
        equal((answers[0][2], answers[2][2]), (whole, whole[1:4]), "pipelined bodies")
        with socket.create_connection(("127.0.0.1", program.port), timeout=h.WAIT_S) as connection:
            for byte in one % (b"/healthz", b"Connection: close\r\n"):
                connection.sendall(bytes([byte]))
            check(connection.recv(1000).startswith(b"HTTP/1.1 200"), "byte by byte")


@test
def long_requests_are_refused_and_cost_nothing():
    with symsrv() as program:
        for length, wanted in ((8000, {404}), (30000, {404, 414}), (1 << 20, {414}), (20 << 20, {414})):
            data = b"GET /" + b"a" * length + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            try:
                answer = program.raw(data)
            except OSError:
                answer = b""  # closed while we were still sending
            if answer:
                check(int(answer.split()[1]) in wanted, "%d bytes: %.40r" % (length, answer))
        check(resident_mb(program) < 64, "%d MB" % resident_mb(program))
        equal(program.get("/healthz")[0], 200, "still there")


def resident_mb(program):
    for line in open("/proc/%d/status" % program.process.pid):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024


@test
def other_addresses_can_be_listened_at():
    if not os.path.exists("/proc/net/if_inet6"):
        raise Skipped("no IPv6 here")
    port, path = h.free_port(), os.path.join(RUN.scratch, "socket")
    with symsrv("--index", indexed(TARGET), "--listen", "[::1]:%d" % port, "--listen", "unix:" + path):
        connection = http.client.HTTPConnection("::1", port, timeout=h.WAIT_S)
        connection.request("GET", "/buildid/%s/debuginfo" % TARGET)
        equal(connection.getresponse().read(), h.make_elf(TARGET), "IPv6")
        connection.close()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(b"GET /buildid/%s/debuginfo HTTP/1.0\r\n\r\n" % TARGET.encode())
            data = b""
            while part := client.recv(65536):
                data += part
        equal(answers_of(data)[0][2], h.make_elf(TARGET), "a Unix socket")
    port = h.free_port()
    with symsrv("--index", indexed(TARGET), "--listen", ":%d" % port):
        for address in ("127.0.0.1", "::1"):
            connection = http.client.HTTPConnection(address, port, timeout=h.WAIT_S)
            connection.request("GET", "/healthz")
            equal(connection.getresponse().status, 200, address)
            connection.close()


@test
def where_nobody_can_listen_is_said():
    path = os.path.join(RUN.scratch, "taken")

    def refused(*arguments, status=1):
        command = [RUN.program, "--store", tempfile.mkdtemp(dir=RUN.scratch), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=h.WAIT_S)
        equal(result.returncode, status, " ".join(arguments[:2]))
        return result.stderr

    check(":99999: not " in refused("--listen", ":99999", status=2), "a port that is none")
    many = [text for _ in range(17) for text in ("--listen", "127.0.0.1:0")]
    check("more than 16 sockets" in refused(*many), "more than sixteen")
    with symsrv("--listen", "unix:" + path) as program:
        check("in use" in refused("--listen", "127.0.0.1:0", "--listen", "unix:" + path), "a living server's socket")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
        program.kill()
    with symsrv("--listen", "unix:" + path), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


@test
def the_limit_of_connections_is_for_all_sockets():
    ports = [h.free_port() for _ in range(2)]
    others = [text for port in ports for text in ("--listen", "127.0.0.1:%d" % port)]
    with symsrv("--connections", "20", "--threads", "2", *others) as program:
        crowd, served = [], 0
        try:
            for port in [program.port] + ports:
                for _ in range(25):
                    crowd.append(socket.create_connection(("127.0.0.1", port), timeout=2))
                    with contextlib.suppress(OSError):
                        # With the beginning of another one, so that it is not idle.
                        crowd[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /")
            unheard = set(crowd)
            while ready := select.select(unheard, [], [], 1)[0]:
                for client in ready:
                    unheard.remove(client)
                    with contextlib.suppress(OSError):
                        served += client.recv(100).startswith(b"HTTP/1.1 200")
        finally:
            for client in crowd:
                client.close()
        check(10 <= served <= 20, "%d of 75 are served at a time" % served)
        h.wait_until(lambda: alive(program), "afterwards")


@test
def an_upstream_over_ipv6_is_an_upstream():
    if not os.path.exists("/proc/net/if_inet6"):
        raise Skipped("no IPv6 here")
    port = h.free_port()
    with symsrv("--index", indexed(TARGET), "--listen", "[::1]:%d" % port):
        with symsrv("--upstream", "symsrv=http://[::1]:%d" % port) as front:
            equal(front.debuginfo(TARGET)[2], h.make_elf(TARGET), "body")
        with symsrv("--upstream", "symsrv=http://[::1]:%d" % port, "--deny-net", "::1") as front:
            equal(front.debuginfo(TARGET)[0], 404, "denied")


@test
def what_was_evicted_leaves_the_disk():
    identities = [h.build_id(1510 + i) for i in range(40)]
    with good_upstream(*identities, size=100000) as server:
        with symsrv("--upstream", "ssqp=" + server.url, "--max-bytes", "1M") as program:
            for identity in identities:
                equal(program.debuginfo(identity)[0], 200, "fetch")
                equal(program.get("/buildid/%s/section/.symtab" % identity)[0], 200, "section")
            check(not deleted_files(program), "still open: %s" % deleted_files(program)[:3])
            subprocess.run(["find", os.path.join(program.store, "objects"), "-type", "f", "-delete"], check=True)
            h.wait_until(lambda: not deleted_files(program), "what somebody else removed is closed")


def deleted_files(program):
    found = []
    directory = "/proc/%d/fd" % program.process.pid
    for name in os.listdir(directory):
        with contextlib.suppress(OSError):
            target = os.readlink(os.path.join(directory, name))
            if target.endswith("(deleted)"):
                found.append(target)
    return found


@test
def a_store_that_cannot_be_written_costs_the_fetch_only():
    first, second = h.build_id(1560), h.build_id(1561)
    store = tempfile.mkdtemp(dir=RUN.scratch)
    h.give_to_nobody(store)
    with good_upstream(first, second) as server:
        with symsrv("--upstream", "ssqp=" + server.url, store=store, preexec=h.become_nobody) as program:
            equal(program.debuginfo(first)[0], 200, "first")
            os.chmod(os.path.join(store, "tmp"), 0o555)
            equal(program.debuginfo(second)[0], 503, "nothing can be kept: that may pass")
            equal(program.debuginfo(first)[0], 200, "what is here is served")
            h.wait_until(lambda: program.get("/readyz")[0] == 503, "not ready")
            equal(program.get("/healthz")[0], 200, "but alive")
            os.chmod(os.path.join(store, "tmp"), 0o755)
            h.wait_until(lambda: program.get("/readyz")[0] == 200, "ready again")
            equal(program.debuginfo(second)[0], 200, "and fetched: nothing was remembered")
        os.chmod(store, 0o555)
        os.chmod(os.path.join(store, "objects"), 0o000)
        result = subprocess.run([RUN.program, "--store", os.path.join(store, "new"), "--listen", "127.0.0.1:0"],
                                preexec_fn=h.become_nobody, capture_output=True, text=True, timeout=h.WAIT_S)
        equal(result.returncode, 1, "a store that cannot be made")
        check("Permission denied" in result.stderr, result.stderr)
        os.chmod(store, 0o755)
        os.chmod(os.path.join(store, "objects"), 0o755)


@test
def a_store_that_was_removed_is_one_line_in_the_log_until_the_restart():
    first, others = h.build_id(1570), [h.build_id(number) for number in range(1571, 1577)]
    with good_upstream(first, *others) as server:
        with symsrv("--upstream", "ssqp=" + server.url) as program:
            equal(program.debuginfo(first)[0], 200, "first")
            shutil.rmtree(program.store)
            for identity in others:
                equal(program.debuginfo(identity)[0], 503, "nothing can be kept: that may pass")
            equal(program.debuginfo(first)[2], h.make_elf(first), "an open object is served")
            h.wait_until(lambda: program.get("/readyz")[0] == 503, "not ready")
            lines = [line for line in program.log_text().splitlines() if "cannot create a file" in line]
            equal(len(lines), 1, "lines in the log: %s" % lines)
        with symsrv("--upstream", "ssqp=" + server.url, store=program.store) as program:
            equal(program.debuginfo(first)[0], 200, "after a restart")


def status_or_none(program, identity):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return program.debuginfo(identity, timeout=1)[0]
    return None


@test
def scarce_descriptors_are_no_miss():
    identities = [h.build_id(1570 + i) for i in range(60)]

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))

    with symsrv("--index", indexed(*identities, size=100000), preexec=limit) as program:
        crowd = []
        try:
            for _ in range(200):
                client = socket.create_connection(("127.0.0.1", program.port), timeout=2)
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                crowd.append(client)
            with concurrent.futures.ThreadPoolExecutor(10) as pool:
                statuses = set(pool.map(lambda identity: status_or_none(program, identity), identities))
            check(404 not in statuses, "statuses %s" % statuses)
        finally:
            for client in crowd:
                client.close()
        h.wait_until(lambda: alive(program), "it recovers")
        for identity in identities:
            equal(program.debuginfo(identity)[0], 200, "afterwards")


def alive(program):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return program.get("/healthz", timeout=1)[0] == 200
    return False


@test
def what_waits_for_an_upstream_holds_no_descriptor():
    stop = threading.Event()
    with upstream(lambda handler: stop.wait(30)) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--max-fetches", "4", "--drain-timeout", "1") as program:
            crowd = [socket.create_connection(("127.0.0.1", program.port)) for _ in range(100)]
            for i, client in enumerate(crowd):
                client.sendall(b"GET /buildid/%s/debuginfo HTTP/1.1\r\nHost: x\r\n\r\n" % h.build_id(1700 + i).encode())
            h.wait_until(lambda: program.metric("symsrv_waiters") == 100, "everybody waits")
            # Another thread asks than the one that counts who waits, and opens the files before it asks.
            h.wait_until(lambda: len(server.requests) == 4, "four are asked for")
            equal(len(os.listdir(os.path.join(program.store, "tmp"))), 4, "files that arrive")
            for client in crowd:
                client.close()
            stop.set()


@test
def stopping_loses_no_request_of_those_who_keep_their_connection():
    with symsrv("--index", indexed(TARGET, size=200000)) as program:
        program.debuginfo(TARGET)
        lost, ended, answered = [], [], []

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=h.WAIT_S)
            connection.connect()
            connection.auto_open = 0
            while True:
                try:
                    connection.request("GET", "/buildid/%s/debuginfo" % TARGET)
                    answer = connection.getresponse()
                    closes = answer.getheader("Connection") == "close"
                    equal(len(answer.read()), len(h.make_elf(TARGET, 200000)), "body")
                    answered.append(1)
                except (OSError, http.client.HTTPException, AssertionError) as error:
                    lost.append(error)
                    return
                if closes:
                    ended.append(1)
                    return

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        h.wait_until(lambda: len(answered) >= 16 or lost, "answers")
        started = time.monotonic()
        program.process.send_signal(signal.SIGTERM)
        equal(program.process.wait(h.WAIT_S), 0, "exit status")
        took = time.monotonic() - started
        for thread in threads:
            thread.join()
        equal(lost, [], "requests lost, of %d" % len(answered))
        equal(len(ended), 16, "connections that were told")
        check(took < 5, "it took %.1f s" % took)


@test
def a_flood_from_an_upstream_fills_no_memory():
    def headers(handler):
        handler.send_response(200)
        for i in range(400000):
            handler.wfile.write(b"X-%d: %s\r\n" % (i, b"y" * 200))

    def page(handler):
        handler.send_response(404)
        handler.end_headers()
        for _ in range(4000):
            handler.wfile.write(b"n" * 65536)

    for name, flood, wanted in (("headers", headers, 503), ("a miss without end", page, 404)):
        with upstream(flood) as server, symsrv("--upstream", "ssqp=" + server.url, "--retries", "0") as program:
            started = time.monotonic()
            equal(program.debuginfo(TARGET)[0], wanted, name)
            check(time.monotonic() - started < 15, name + ": it took all of it")
            check(resident_mb(program) < 64, "%s: %d MB" % (name, resident_mb(program)))


@test
def directories_to_index_may_be_links_large_or_absent():
    real, absent = indexed(TARGET), os.path.join(RUN.scratch, "absent")
    link = os.path.join(RUN.scratch, "link-to-index")
    os.symlink(real, link)
    with symsrv("--index", link, "--index", absent) as program:
        equal(program.debuginfo(TARGET)[0], 200, "through the link")
        check("absent" in program.log_text(), "nothing is said of the directory that is not there")
    fifo = os.path.join(real, "fifo")
    os.mkfifo(fifo)
    os.mkdir(os.path.join(real, "d"), 0)
    for i in range(20000):
        with open(os.path.join(real, "f%d" % i), "wb") as file:
            file.write(b"\x7fELF")
    program = symsrv("--index", real)
    program.start(wait=False)
    try:
        statuses = set()
        deadline = time.monotonic() + h.WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                statuses.add(program.debuginfo(TARGET)[0])
                if program.get("/readyz")[0] == 200:
                    break
        equal(program.debuginfo(TARGET)[0], 200, "when everything is looked at")
        check(404 not in statuses, "a miss before everything was looked at: %s" % statuses)
    finally:
        program.__exit__()


@test
def the_size_of_an_indexed_file_does_not_matter():
    """Sparse files of a tebibyte: who reads one of them whole does not come back in time."""
    large, small = [h.build_id(1590 + i) for i in range(5)], h.build_id(1599)
    directory = indexed(*large, small)
    try:
        for identity in large:
            os.truncate(os.path.join(directory, identity), 1 << 40)
    except OSError as error:
        raise Skipped("no files of a tebibyte here: %s" % error)
    with symsrv("--index", directory) as program:
        tags = set()
        for identity in large:
            status, headers, _ = program.debuginfo(identity, method="HEAD")
            equal((status, headers["content-length"]), (200, str(1 << 40)), "a large one")
            tags.add(headers["etag"])
        equal(len(tags), len(large), "tags")
        equal(program.debuginfo(large[0], headers={"Range": "bytes=0-3", "If-Range": headers["etag"]}, method="HEAD")[0], 200, "HEAD")
        status, _, body = program.debuginfo(large[-1], headers={"Range": "bytes=0-3", "If-Range": headers["etag"]})
        equal((status, body), (206, b"\x7fELF"), "a part")
        equal(program.debuginfo(small)[2], h.make_elf(small), "a small one")


@test
def a_file_that_is_cut_while_it_is_sent_ends_the_connection():
    directory = indexed(TARGET, size=30 << 20)
    with symsrv("--index", directory) as program, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", program.port))
        client.settimeout(60)
        client.sendall(b"GET /buildid/%s/debuginfo HTTP/1.1\r\nHost: x\r\n\r\n" % TARGET.encode())
        count = len(client.recv(1000))
        os.truncate(os.path.join(directory, TARGET), 1 << 20)
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(1 << 20):
                count += len(part)
        check(count < 30 << 20, "%d bytes" % count)


def status_in_time(program, identity, wanted):
    """Asks until that is answered: its headers."""
    answers = []

    def is_as_wanted():
        answers.append(program.debuginfo(identity))
        return answers[-1][0] == wanted
    h.wait_until(is_as_wanted, "status %d" % wanted)
    return answers[-1][1]


# The time that an indexed file is served without a look at its path has unit tests: tests/symsrv/lookup/test_indexed_files.c.
# This one has the real clock, and the scan that a server begins by itself.
@test
def an_indexed_file_that_was_moved_is_missing_for_a_moment_only_and_not_for_certain():
    directory = indexed(TARGET, h.build_id(1650))
    with symsrv("--index", directory) as program:
        equal(program.debuginfo(TARGET)[0], 200, "before")
        os.rename(os.path.join(directory, TARGET), os.path.join(directory, "elsewhere"))
        missed = status_in_time(program, TARGET, 404)
        equal(missed["cache-control"], "no-store", "where it is now is not known")
        check("x-symsrv-unasked" in missed, "another symsrv takes it for certain")
        status_in_time(program, TARGET, 200)


@test
def an_indexed_file_that_was_removed_is_missing_for_certain_after_a_scan():
    directory = indexed(TARGET, h.build_id(1650))
    with symsrv("--index", directory) as program:
        os.unlink(os.path.join(directory, TARGET))
        equal(program.debuginfo(TARGET)[1]["cache-control"], "no-store", "where it is now is not known")
        program.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: program.debuginfo(TARGET)[1].get("cache-control") == "max-age=30", "missing for certain")


@test
def an_indexed_file_that_was_touched_is_still_served():
    directory = indexed(TARGET, size=300000)
    with symsrv("--index", directory) as program:
        _, before, whole = program.debuginfo(TARGET)
        os.utime(os.path.join(directory, TARGET), (1700000000, 1700000000))

        def has_another_tag():
            status, headers, body = program.debuginfo(TARGET)
            check(status == 503 or body == whole, "status %d" % status)
            return headers.get("etag", before["etag"]) != before["etag"]
        h.wait_until(has_another_tag, "another tag")
