# SPDX-License-Identifier: MIT
"""A bucket that is full, refuses, is slow or lies: no client gets a wrong or partial body, and no hit fails.

The bucket is a server of these tests, because real ones cannot be made to fail in each of these ways. tier_tests.py has Swift and Ceph,
and fault_tests.py a Swift that is full or slow.
"""
import concurrent.futures
import contextlib
import gzip
import hashlib
import http.server
import socket
import statistics
import threading
import time

import symsrv_harness as h
from symsrv_harness import check, equal, symsrv, test, upstream
from tier_tests import tier

ERROR = "<?xml version='1.0'?><Error><Code>%s</Code><Message>no</Message></Error>"


class Bucket:
    """Objects in memory. `fault(handler, body)` may answer in place of the bucket; True: it has answered."""

    def __init__(self):
        self.objects, self.fault, self.requests = {}, None, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, body=b"", code=None):
                if code:
                    body = (ERROR % code).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))) if self.command == "PUT" else b""
                outer.requests.append((self.command, self.path))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    if outer.fault and outer.fault(self, body):
                        return
                    if self.command == "PUT":
                        digest = hashlib.sha256(body).hexdigest()
                        if digest != self.headers["x-amz-content-sha256"]:
                            self.answer(400, code="XAmzContentSHA256Mismatch")
                            return
                        outer.objects[self.path] = body
                        self.answer(200)
                    elif self.path in outer.objects:
                        self.answer(200, outer.objects[self.path])
                    else:
                        self.answer(404, code="NoSuchKey")

            do_GET = do_PUT = do_HEAD = do_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def refuses(code, status=403, methods=("GET", "PUT", "HEAD")):
    def fault(handler, _):
        if handler.command not in methods:
            return False
        handler.answer(status, code=code)
        return True
    return fault


def cuts(bucket):
    """The first half of an object, and the end of the connection."""
    def fault(handler, _):
        whole = bucket.objects.get(handler.path)
        if handler.command != "GET" or not whole:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        handler.wfile.write(whole[:len(whole) // 2])
        handler.close_connection = True
        return True
    return fault


def drips(stop, bucket):
    """A byte at a time, until the test ends. An answer to HEAD has none."""
    def fault(handler, _):
        whole = bucket.objects.get(handler.path, b"x" * 1000)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        for byte in whole:
            if handler.command == "HEAD" or stop.wait(0.2):
                break
            handler.wfile.write(bytes([byte]))
        handler.close_connection = True
        return True
    return fault


class Line:
    """A line to a store; while `fault` is set, it brings 5 KB a second in each direction of a connection."""

    def __init__(self, port):
        self.fault = None
        self.port = port
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.socket.accept()[0]
                store = socket.create_connection(("127.0.0.1", self.port))
                for ends in ((client, store), (store, client)):
                    threading.Thread(target=self.bring, args=ends, daemon=True).start()

    def bring(self, source, target):
        with contextlib.suppress(OSError):
            while part := source.recv(1024 if self.fault else 65536):
                target.sendall(part)
                if self.fault and self.fault.wait(0.2):
                    break
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def all_answers(program, identities, times):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda identity: (identity, program.debuginfo(identity)), identities * times))


def hits_ms(program, stored, others, word):
    """The median time of hits, while others ask for objects that are not on the disk. All get the whole object."""
    def ask(identity):
        begun = time.monotonic()
        status, _, body = program.debuginfo(identity)
        equal((status, body == body_of(identity)), (200, True), word + ": an answer")
        return 1000 * (time.monotonic() - begun)

    with concurrent.futures.ThreadPoolExecutor(4) as pool, concurrent.futures.ThreadPoolExecutor(len(others)) as other_pool:
        answers = other_pool.map(ask, others)
        median = statistics.median(pool.map(ask, stored * 30))
        return median, list(answers)


def tier_lines(program):
    """On a busy machine this bucket may be silent for a second before it shows its fault, or instead."""
    lines = [line for line in program.log_text().splitlines() if "bucket" in line and "answers again" not in line]
    return [line for line in lines if "no answer for a second" not in line] or lines


def body_of(identity):
    return h.make_elf(identity, 60000)


def with_fault(bucket, fault, word, seen, start=300):
    """Hits, objects of the bucket, objects of the upstream and misses while the bucket has the fault."""
    stored, fresh, warm, cold, unknown = ([h.build_id(start + 6 * part + n) for n in range(6)] for part in range(5))
    files = {"/buildid/%s/debuginfo" % identity: body_of(identity) for identity in stored + fresh + warm + cold}
    bucket.fault = None
    with upstream(h.serve_files(files)) as server:
        options = tier(bucket.url, "--upstream", "debuginfod=" + server.url)
        with symsrv(*options) as first:
            equal({answer[2] == body_of(identity) for identity, answer in all_answers(first, stored, 1)}, {True}, "the first time")
            # A real store on a busy machine may be left out for ten seconds first.
            h.waiting.wait_until(lambda: first.metric("symsrv_tier_stored_total") == len(stored), "uploaded", 90)
            before_ms, _ = hits_ms(first, stored, warm, word)
            bucket.fault = fault
            during_ms, others_ms = hits_ms(first, stored, cold, word)
            print("      %s: hits, median %.2f ms, before %.2f ms (%.2f times); not on the disk %.0f ms" %
                  (word, during_ms, before_ms, during_ms / before_ms, statistics.median(others_ms)))
        with symsrv(*options) as second:
            for identity, (status, _, body) in all_answers(second, stored + fresh, 2):
                equal((status, body == body_of(identity)), (200, True), word + ": not on the disk")
            for identity, (status, headers, _) in all_answers(second, unknown, 1):
                equal((status, headers["cache-control"]), (404, "max-age=30"), word + ": a miss is certain")
            equal(second.get("/readyz")[0], 200, word + ": ready")
            h.wait_until(lambda: seen(second), word + ": in the metrics")
            lines = tier_lines(second)
            equal(len(lines), 1, "%s: lines in the log: %s" % (word, lines))


@test
def a_full_bucket_costs_the_uploads_and_nothing_else():
    with Bucket() as bucket:
        with_fault(bucket, refuses("QuotaExceeded", methods=("PUT",)), "full", lambda program: program.metric("symsrv_tier_failed_total") >= 6)


@test
def a_bucket_that_refuses_the_secret_or_the_clock_costs_nothing():
    for code in ("SignatureDoesNotMatch", "RequestTimeTooSkewed"):
        with Bucket() as bucket:
            with_fault(bucket, refuses(code), code, lambda program: program.metric("symsrv_tier_failed_total") >= 6)


@test
def a_bucket_with_errors_or_cut_objects_costs_nothing():
    with Bucket() as bucket:
        with_fault(bucket, refuses("ServiceUnavailable", 503), "503", lambda program: program.metric("symsrv_tier_waiting") > 0)
    with Bucket() as bucket:
        with_fault(bucket, cuts(bucket), "cut", lambda program: program.metric("symsrv_tier_stored_total") >= 6)


def is_counted(program):
    """An answer that came too late counts as refused."""
    return program.metric('symsrv_upstream_answers_total{upstream="bucket",result="refused"}') > 0


@test
def a_slow_bucket_delays_no_hit():
    stop = threading.Event()
    with Bucket() as bucket:
        started = time.monotonic()
        with_fault(bucket, drips(stop, bucket), "slow", is_counted)
        check(time.monotonic() - started < 60, "no client waited for the bucket to end")
        stop.set()


def forged_objects(key, other, good, other_good, object_file):
    """Object files of the bucket that are not what was put there, each with a word for messages."""
    record = object_file[len(good):]
    swapped = other_good + record.replace(good[:16], other_good[:16])
    footer = hashlib.sha256(good).hexdigest().encode()
    return {
        "the object of another key": other,
        "another content with this record": swapped,
        "a record with another key": object_file.replace(("\nkey: %s\n" % key).encode(), b"\nkey: debuginfo/" + b"ab" * 20 + b"\n"),
        "cut in the content": object_file[:len(good) // 2],
        "cut in the record": object_file[:-10],
        "bytes behind the end": object_file + b"more",
        "a changed byte": object_file[:5000] + bytes([object_file[5000] ^ 1]) + object_file[5001:],
        "a changed checksum": object_file.replace(footer, b"0" * 64),
        "a record only": record,
        "empty": b"",
        "a web page": b"<!doctype html><html>login</html>",
        "compressed": gzip.compress(object_file),
        "a bomb": h.gzip_bomb(64 << 20),
        "zeros": bytes(1 << 20),
    }


@test
def forged_objects_of_the_bucket_reach_no_client():
    identity, neighbour = h.build_id(340), h.build_id(341)
    files = {"/buildid/%s/debuginfo" % one: body_of(one) for one in (identity, neighbour)}
    key = "debuginfo/" + identity
    with Bucket() as bucket, upstream(h.serve_files(files)) as server:
        options = tier(bucket.url, "--upstream", "debuginfod=" + server.url)
        with symsrv(*options) as program:
            for one in (identity, neighbour):
                equal(program.debuginfo(one)[2], body_of(one), "from the upstream")
            h.wait_until(lambda: program.metric("symsrv_tier_stored_total") == 2, "uploaded")
        place, = [path for path, body in bucket.objects.items() if ("\nkey: %s\n" % key).encode() in body]
        other, = [body for path, body in bucket.objects.items() if path != place]
        forged = forged_objects(key, other, body_of(identity), body_of(neighbour), bucket.objects[place])
        for word, body in forged.items():
            if word in ("the object of another key", "cut in the content", "a bomb"):
                bucket.objects[place] = body
                with symsrv(*options) as program:
                    status, _, found = program.debuginfo(identity)
                    equal((status, found == body_of(identity)), (200, True), word)
                    equal(program.metric("symsrv_tier_failed_total"), 0, word)
            # A node without upstreams has nothing rather than that.
            with symsrv(*tier(bucket.url)) as program:
                bucket.objects[place] = body
                equal(program.debuginfo(identity)[0], 404, word + ", without upstreams")
                equal(program.stored_files(), [], word + ": nothing is stored")


@test
def lies_in_the_headers_of_the_bucket_reach_no_client():
    identity = h.build_id(342)
    whole = body_of(identity)

    def says(status, *headers, body=None):
        def fault(handler, _):
            stored = bucket.objects.get(handler.path)
            if handler.command != "GET" or stored is None:
                return False
            content = stored if body is None else body
            handler.send_response(status)
            for name, value in headers:
                handler.send_header(name, value)
            if not any(name == "Content-Length" for name, _ in headers):
                handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
            handler.close_connection = True
            return True
        return fault

    with Bucket() as bucket, upstream(h.serve_files({"/buildid/%s/debuginfo" % identity: whole})) as server:
        options = tier(bucket.url, "--upstream", "debuginfod=" + server.url)
        with symsrv(*options) as program:
            equal(program.debuginfo(identity)[2], whole, "from the upstream")
            h.wait_until(lambda: program.metric("symsrv_tier_stored_total") == 1, "uploaded")
        lies = {
            "a huge size": says(200, ("Content-Length", str(1 << 50))),
            "more than came": says(200, ("Content-Length", str(1 << 20))),
            "a negative size": says(200, ("Content-Length", "-1")),
            "gzip that is none": says(200, ("Content-Encoding", "gzip")),
            "a bomb": says(200, ("Content-Encoding", "gzip"), body=h.gzip_bomb(64 << 20)),
            "a part": says(206, ("Content-Range", "bytes 0-99/100"), body=b"x" * 100),
            "a redirect": says(302, ("Location", server.url + "/buildid/%s/debuginfo" % identity)),
            "no content": says(204, body=b""),
            "another checksum": says(200, ("ETag", '"0"'), ("x-amz-checksum-sha256", "AAAA")),
        }
        for word, fault in lies.items():
            bucket.fault = fault
            with symsrv(*options) as program:
                status, _, found = program.debuginfo(identity)
                equal((status, found == whole), (200, True), word)
                status, headers, _ = program.debuginfo(h.build_id(343))
                equal((status, headers["cache-control"]), (404, "max-age=30"), word + ": a miss is certain")
                equal(program.get("/readyz")[0], 200, word + ": ready")
