# SPDX-License-Identifier: MIT
"""A bucket that is full, refuses, is slow or lies: no client gets a wrong or partial body, and no hit fails.

The bucket is a server of these tests, because real ones cannot be made to fail in each of these ways. tier_tests.py has Swift.
"""
import concurrent.futures
import contextlib
import hashlib
import http.server
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
    """A byte at a time, until the test ends."""
    def fault(handler, _):
        whole = bucket.objects.get(handler.path, b"x" * 1000)
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        for byte in whole:
            if stop.wait(0.2):
                break
            handler.wfile.write(bytes([byte]))
        handler.close_connection = True
        return True
    return fault


def all_answers(program, identities, times):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda identity: (identity, program.debuginfo(identity)), identities * times))


def hits_ms(program, identities, times, word):
    """The median time of hits. All of them are answered with the whole object."""
    def ask(identity):
        begun = time.monotonic()
        status, _, body = program.debuginfo(identity)
        equal((status, body == body_of(identity)), (200, True), word + ": a hit")
        return 1000 * (time.monotonic() - begun)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return statistics.median(pool.map(ask, identities * times))


def tier_lines(program):
    return [line for line in program.log_text().splitlines() if "bucket" in line and "answers again" not in line]


def body_of(identity):
    return h.make_elf(identity, 60000)


def with_fault(bucket, fault, word, seen):
    """Hits, objects of the bucket, objects of the upstream and misses while the bucket has the fault."""
    stored = [h.build_id(n) for n in range(300, 306)]
    fresh = [h.build_id(n) for n in range(306, 312)]
    unknown = [h.build_id(n) for n in range(320, 323)]
    files = {"/buildid/%s/debuginfo" % identity: body_of(identity) for identity in stored + fresh}
    bucket.fault = None
    with upstream(h.serve_files(files)) as server:
        options = tier(bucket.url, "--upstream", "debuginfod=" + server.url)
        with symsrv(*options) as first:
            equal({answer[2] == body_of(identity) for identity, answer in all_answers(first, stored, 1)}, {True}, "the first time")
            h.wait_until(lambda: sum(path in bucket.objects for _, path in bucket.requests) and
                         first.metric("symsrv_tier_waiting") == 0, "uploaded")
            before_ms = hits_ms(first, stored, 30, word)
            bucket.fault = fault
            # All of them are hits, whatever the bucket does.
            during_ms = hits_ms(first, stored, 30, word)
            print("      %s: hits, median %.2f ms, before %.2f ms (%.2f times)" % (word, during_ms, before_ms, during_ms / before_ms))
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


@test
def a_slow_bucket_delays_no_hit():
    stop = threading.Event()
    with Bucket() as bucket:
        started = time.monotonic()
        with_fault(bucket, drips(stop, bucket), "slow", lambda program: program.metric("symsrv_tier_waiting") > 0)
        check(time.monotonic() - started < 60, "no client waited for the bucket to end")
        stop.set()
