# SPDX-License-Identifier: MIT
"""Upstreams that lie, fail or lead astray; requests that make no sense."""
import base64
import concurrent.futures
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, good_upstream, symsrv, test, upstream

TARGET = h.build_id(100)
GOOD = h.make_elf(TARGET, 50000)


# ---- hostile upstreams ----

def lie_chunked_cut(handler):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n" % len(GOOD) + GOOD[:1000])
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def lie_unframed_cut(handler):
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + GOOD[:-200])


def lie_endless(handler):
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    for _ in range(2000):
        handler.wfile.write(chunk)


LIES = {
    "another build-id": lambda r: h.send(r, h.make_elf(h.build_id(101))),
    "no build-id": lambda r: h.send(r, h.make_elf("")),
    "a program without symbols": lambda r: h.send(r, h.make_elf(TARGET, debug=False, code=True)),
    "a login page": lambda r: h.send(r, b"<!DOCTYPE html><html>log in</html>"),
    "nothing": lambda r: h.send(r, b""),
    "a cut file, honestly framed": lambda r: h.send(r, GOOD[:-200]),
    "a cut file without a length": lie_unframed_cut,
    "a body shorter than its length": lambda r: (h.send(r, GOOD[:1000], headers=[("Content-Length", str(len(GOOD)))]),
                                                 r.connection.shutdown(socket.SHUT_RDWR)),
    "a body in chunks that is cut": lie_chunked_cut,
    "a length beyond the limit": lambda r: h.send(r, b"x", headers=[("Content-Length", str(1 << 40))]),
    "a body without end": lie_endless,
    "a compressed bomb": lambda r: h.send(r, h.gzip_bomb(40 << 20), headers=[("Content-Encoding", "gzip")]),
    "broken compression": lambda r: h.send(r, b"no gzip", headers=[("Content-Encoding", "gzip")]),
    "a redirect to itself": lambda r: h.send(r, b"", 302, [("Location", r.path)]),
    "a redirect to a file": lambda r: h.send(r, b"", 302, [("Location", "file:///etc/passwd")]),
    "a redirect inside": lambda r: h.send(r, b"", 302, [("Location", "http://169.254.169.254/latest")]),
    "a redirect to nowhere": lambda r: h.send(r, b"", 302),
    "403": lambda r: h.send(r, b"no", 403),
    "an error": lambda r: h.send(r, b"no", 500),
    "garbage": lambda r: r.wfile.write(b"\0\1\2 nonsense\r\n\r\n") and setattr(r, "close_connection", True),
    "a zip file": lambda r: h.send(r, b"PK\3\4" + b"x" * 1000),
    "a core of zeroes": lambda r: h.send(r, b"\x7fELF\2\1\1" + b"\0" * 57),
}
TRANSIENT = ("a body shorter than its length", "a body in chunks that is cut", "an error", "garbage",
             "broken compression")
# To ask again would cost as many bytes again.
TOO_LARGE = ("a length beyond the limit", "a body without end", "a compressed bomb")
LIES.update({str(status): lambda r, status=status: h.send(r, b"no", status) for status in (400, 401, 407, 413, 414, 431)})


def meet_lie(name, lie):
    paths = h.debug_paths(TARGET)
    mood = {"lie": lie}
    with upstream(lambda r: mood["lie"](r)) as liar, upstream(h.serve_files({paths[0]: GOOD})) as honest:
        limits = ("--max-object-bytes", "4M", "--retries", "1")
        with symsrv("--upstream", "a@debuginfod=" + liar.url, *limits) as program:
            status, _, body = program.debuginfo(TARGET)
            check(status in (404, 503), "%s: status %d" % (name, status))
            check(len(body) < 100, "%s: body" % name)
            equal(program.stored_files(), [], "%s: nothing is kept" % name)
            equal(status == 503, name in TRANSIENT, "%s: transient" % name)
            if name not in TOO_LARGE:
                mood["lie"] = lambda r: h.send(r, GOOD)
                equal(program.debuginfo(TARGET)[0], 200, "%s: forgiven at once" % name)
        mood["lie"] = lie
        with symsrv("--upstream", "a@debuginfod=" + liar.url, "--upstream", "b@debuginfod=" + honest.url,
                    *limits) as program:
            status, headers, body = program.debuginfo(TARGET)
            equal((status, body), (200, GOOD), "%s: the next upstream" % name)
            equal(headers["x-symsrv-source"], "b", "source")
        with symsrv("--ask", "together", "--upstream", "a@debuginfod=" + liar.url, "--upstream",
                    "b@debuginfod=" + honest.url, *limits) as program:
            equal(program.debuginfo(TARGET)[2], GOOD, "%s: side by side" % name)


@test
def no_lie_of_an_upstream_is_served_or_kept():
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for met in [pool.submit(meet_lie, *lie) for lie in LIES.items()]:
            met.result()


@test
def a_failure_that_may_pass_is_reset_for_clients_that_would_remember_it():
    with upstream(lambda r: h.send(r, b"no", 500)) as liar:
        with symsrv("--upstream", "debuginfod=" + liar.url, "--retries", "0") as program:
            path = "/buildid/%s/debuginfo" % TARGET
            equal(program.get(path)[0], 503, "others")
            try:
                program.get(path, headers={"User-Agent": "elfutils/0.188,Linux/x86_64,debian/12"})
            except ConnectionResetError:
                pass
            else:
                raise AssertionError("no reset")
            if h.find_tool("debuginfod-find"):
                cache = tempfile.mkdtemp(dir=RUN.scratch)
                found = subprocess.run(["debuginfod-find", "debuginfo", TARGET], capture_output=True,
                                       env=dict(os.environ, DEBUGINFOD_URLS=program.url, DEBUGINFOD_CACHE_PATH=cache))
                check(found.returncode != 0, "found what nobody has")
                check(not os.path.exists(os.path.join(cache, TARGET, "debuginfo")), "the client remembers a miss")


@test
def redirects_and_tries_share_one_fetch_timeout():
    """No measure of time: an upstream that takes two seconds a hop is not asked for more hops than fit."""
    def lead_on(handler):
        time.sleep(2)
        handler.send_response(302)
        handler.send_header("Location", handler.path + "x")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with upstream(lead_on) as server, symsrv("--upstream", "debuginfod=" + server.url, "--fetch-timeout", "3s", "--retries", "5",
                                             "--wait-timeout", "1m") as program:
        equal(program.debuginfo(TARGET)[0], 503, "transient")
        check(len(server.requests) <= 2, "%d hops of 2 s in 3 s" % len(server.requests))


@test
def a_redirect_takes_no_credentials_along():
    paths = h.debug_paths(TARGET)
    secret = os.path.join(RUN.scratch, "secret")
    with open(secret, "w") as file:
        file.write("Bearer s3cret\n")
    with upstream(h.serve_files({"/blob": GOOD})) as blob:
        with upstream(lambda r: h.send(r, b"", 302, [("Location", blob.url + "/blob")])) as front:
            arguments = ("--upstream", "a@debuginfod=http://user:pass@127.0.0.1:%d" % front.port)
            with symsrv(*arguments) as program:
                equal(program.debuginfo(TARGET)[0], 404, "a redirect to an internal address")
                equal(blob.requests, [], "it was not connected to")
            for extra in ((), ("--credentials", "a=" + secret)):
                with symsrv(*arguments, "--allow-net", "127.0.0.0/8", *extra) as program:
                    equal(program.debuginfo(TARGET)[2], GOOD, "an internal network that is allowed")
                    check("pass" not in program.get("/")[2].decode() and "pass" not in program.log_text(), "shown")
            check(all("Authorization" in headers for _, headers in front.requests[1:]), "the upstream gets them")
            equal(front.requests[-1][1]["Authorization"], "Bearer s3cret", "from the file")
            with symsrv("--upstream", "debuginfod=http://us%%40er:p%%3Aw@127.0.0.1:%d" % front.port) as program:
                program.debuginfo(TARGET)
            equal(base64.b64decode(front.requests[-1][1]["Authorization"].split()[1]), b"us@er:p:w", "escapes in the URL")
            check(not any("Authorization" in headers for _, headers in blob.requests), "the other one got them")


@test
def denied_networks_are_not_connected_to():
    with good_upstream(TARGET) as server:
        for url in ("http://127.0.0.1:%d" % server.port, "http://localhost:%d" % server.port):
            with symsrv("--upstream", "debuginfod=" + url, "--deny-net", "127.0.0.0/8", "--deny-net", "::1") as program:
                equal(program.debuginfo(TARGET)[0], 404, url)
        equal(server.requests, [], "it was connected to")


@test
def misses_are_remembered_and_failures_are_not():
    files = {}
    with upstream(h.serve_files(files)) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--negative-ttl", "1h") as program:
            for _ in range(5):
                equal(program.debuginfo(TARGET)[0], 404, "miss")
            equal(len(server.requests), 1, "asked once")
            program.process.send_signal(signal.SIGHUP)
            files[h.debug_paths(TARGET)[0]] = GOOD
            h.wait_until(lambda: program.debuginfo(TARGET)[0] == 200, "SIGHUP forgets the miss")


@test
def an_upstream_whose_object_flows_is_not_given_up():
    """Longer than the five seconds of silence after which the next one is asked."""
    pieces = [GOOD[i:i + 4000] for i in range(0, len(GOOD), 4000)]
    check(len(pieces) * 0.6 > 7, "too fast")

    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(GOOD)))
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(0.6)

    def stall(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(GOOD)))
        handler.end_headers()
        handler.wfile.write(GOOD[:-1])
        handler.wfile.flush()

    with upstream(h.serve_files({h.debug_paths(TARGET)[0]: GOOD})) as other:
        for slow, source in ((drip, "slow"), (stall, "other")):
            with upstream(slow) as server:
                arguments = "--upstream", "slow@debuginfod=" + server.url, "--upstream", "other@debuginfod=" + other.url
                with symsrv(*arguments) as program:
                    status, headers, body = program.debuginfo(TARGET)
                    equal((status, body, headers["x-symsrv-source"]), (200, GOOD, source), source)


@test
def a_refusal_is_told_once_and_makes_nothing_missing():
    identities = [h.build_id(130 + i) for i in range(3)]
    mood = {"status": 403}
    with upstream(lambda r: h.send(r, h.make_elf(r.path.split("/")[2]), mood["status"])) as server:
        with symsrv("--upstream", "strict@debuginfod=" + server.url) as program:
            for identity in identities:
                status, headers, _ = program.debuginfo(identity)
                equal((status, headers["cache-control"]), (404, "no-store"), "refused")
            equal(program.log_text().count("HTTP status 403"), 1, "lines in the log")
            mood["status"] = 401
            program.debuginfo(identities[0])
            equal(program.log_text().count("HTTP status 401"), 1, "another refusal")
            check('{upstream="strict",result="refused"} 4' in program.get("/metrics")[2].decode(), "counted")
            mood["status"] = 410
            equal(program.debuginfo(identities[2])[0], 404, "gone")
            mood["status"] = 200
            equal([program.debuginfo(identity)[0] for identity in identities], [200, 200, 404], "a miss is remembered")


@test
def a_request_that_upstreams_refuse_harms_no_other():
    """nginx answers 400 to a header of more than 8 KiB."""
    def answer(handler):
        forwarded = handler.headers["X-Forwarded-For"]
        h.send(handler, GOOD, 400 if len(forwarded) > 8192 or not forwarded.isprintable() else 200)

    with upstream(answer) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        for forwarded in ("a" * 10000, "a\x01b", "1, 2, 3, 4, 5, 6, 7, 8, 9", "a" * 2000):
            program.debuginfo(h.build_id(140), headers={"X-Forwarded-For": forwarded})
            status = program.debuginfo(TARGET, headers={"X-Forwarded-For": forwarded})[0]
            check(status in (200, 404), "status %d" % status)
            if len(forwarded) > 2048:
                equal(server.requests, [], "it was passed on")
        equal(program.debuginfo(TARGET)[0], 200, "everybody else")


@test
def a_header_in_several_lines_is_one():
    with upstream(h.serve_files({h.debug_paths(TARGET)[0]: GOOD})) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--forwarded-limit", "2") as program:

            def ask(identity, *lines):
                request = "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % h.debug_paths(identity)[0]
                answer = program.raw((request + "".join(line + "\r\n" for line in lines) + "\r\n").encode())
                return answer.split()[1]

            equal(ask(h.build_id(160), "X-Forwarded-For: 10.0.0.1", "x-forwarded-for: 10.0.0.2"), b"404", "two servers")
            passed_on = server.requests[-1][1]["X-Forwarded-For"]
            check(passed_on.startswith("10.0.0.1, 10.0.0.2, 127.0.0.1, _symsrv-"), "passed on: " + passed_on)
            own_name = server.requests[-1][1]["Via"].split()[1]
            count = len(server.requests)
            equal(ask(TARGET, *("X-Forwarded-For: 10.0.0.%d" % i for i in range(3))), b"404", "one server too many")
            equal(ask(TARGET, "Via: 1.1 proxy", "Via: 1.1 " + own_name), b"404", "a request that was here before")
            equal(ask(TARGET, "X-Forwarded-For: 10.0.0.1", "X-Forwarded-For: _" + own_name), b"404", "or passed one that relays this")
            equal(len(server.requests), count, "requests that went on")
            equal(ask(TARGET, "X-Forwarded-For: 10.0.0.1", "Via: 1.1 proxy"), b"200", "another one")


@test
def misses_are_forgotten_by_a_scan_that_finds_something():
    directory, absent = tempfile.mkdtemp(dir=RUN.scratch), h.build_id(150)
    count = 0

    def put(name, identity):
        nonlocal count
        count += 1
        with open(os.path.join(directory, name), "wb") as file:
            file.write(h.make_elf(identity))

    put("old", h.build_id(151))
    with upstream(h.serve_files({})) as server:
        with symsrv("--index", directory, "--upstream", "debuginfod=" + server.url, "--rescan", "0") as program:
            def scan():
                program.process.send_signal(signal.SIGUSR1)
                h.wait_until(lambda: program.metric("symsrv_index_files_seen") == count, "it is scanned")

            for _ in range(3):
                equal(program.debuginfo(absent)[0], 404, "missing")
                # No identity: looked at, and nothing that anybody could have missed.
                put("text-%d" % count, "")
                scan()
            equal(len(server.requests), 1, "asked once, over scans that found nothing")
            put("new", absent)
            scan()
            equal(program.debuginfo(absent)[0], 200, "what a scan has found")


@test
def a_file_that_is_indexed_while_an_upstream_denies_it_is_served():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    indexed = threading.Event()

    def deny_late(handler):
        indexed.wait(h.WAIT_S)
        h.send(handler, b"no", 404)

    with upstream(deny_late) as server:
        with symsrv("--index", directory, "--upstream", "debuginfod=" + server.url, "--negative-ttl", "1h") as program:
            statuses = []
            asker = threading.Thread(target=lambda: statuses.append(program.debuginfo(TARGET)[0]))
            asker.start()
            h.wait_until(lambda: server.requests, "the upstream is asked")
            with open(os.path.join(directory, "f"), "wb") as file:
                file.write(GOOD)
            program.process.send_signal(signal.SIGHUP)
            h.wait_until(lambda: program.metric("symsrv_index_files_seen") == 1, "the file is indexed")
            indexed.set()
            asker.join()
            equal(statuses, [200], "who was waiting for the upstream")
            equal(program.debuginfo(TARGET)[0], 200, "who asks next")


@test
def an_upstream_that_keeps_failing_is_left_alone():
    port = h.free_port()
    with symsrv("--upstream", "dead@debuginfod=http://127.0.0.1:%d" % port, "--retries", "0") as program:
        for i in range(20):
            equal(program.debuginfo(h.build_id(200 + i))[0], 503, "transient")
        text = program.get("/metrics")[2].decode()
        check('symsrv_upstream_requests_total{upstream="dead"} 5\n' in text, "asked more than five times")
        check('symsrv_upstream_available{upstream="dead"} 0\n' in text, "still available")


@test
def an_upstream_that_wants_a_rest_gets_it():
    with upstream(lambda r: h.send(r, b"slow down", 429, [("Retry-After", "60")])) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--retries", "3") as program:
            equal([program.debuginfo(h.build_id(230 + i))[0] for i in range(5)], [503] * 5, "transient")
            equal(len(server.requests), 1, "requests")


# Stands for name servers that do not answer.
SLOW_NAMES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	__typeof__(getaddrinfo) *real = (__typeof__(getaddrinfo) *)dlsym(RTLD_NEXT, "getaddrinfo");

	if (node && !strcmp(node, "silent.example"))
		sleep(60);
	return real(node, service, hints, ret);
}
"""


@test
def a_name_server_that_does_not_answer_keeps_nobody_waiting():
    h.need("gcc")
    source, library = (os.path.join(RUN.scratch, name) for name in ("slow_names.c", "slow_names.so"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(SLOW_NAMES)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    many = [h.build_id(400 + i) for i in range(4)]
    with good_upstream(*many) as server:
        options = ("--upstream", "debuginfod=http://silent.example", "--upstream", "debuginfod=" + server.url,
                   "--connect-timeout", "1s", "--retries", "0")
        begin = time.monotonic()
        with symsrv(*options, environment={"LD_PRELOAD": library}) as program:
            with concurrent.futures.ThreadPoolExecutor(len(many)) as clients:
                equal([answer[0] for answer in clients.map(program.debuginfo, many)], [200] * len(many), "from the upstream behind it")
        check(time.monotonic() - begin < 40, "someone waited for the name server")


@test
def an_outage_and_bad_requests_fill_no_log():
    port = h.free_port()
    with symsrv("--upstream", "dead@debuginfod=http://127.0.0.1:%d" % port, "--retries", "0", "--threads", "1") as program:
        for i in range(30):
            try:
                program.debuginfo(h.build_id(200 + i), headers={"User-Agent": "elfutils/0.188"})
            except ConnectionResetError:
                pass
        program.raw(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n")
        program.raw(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100000 + b"\r\n\r\n")
        equal(program.metric("symsrv_aborted_responses_total"), 0, "our own resets are not what clients did not take")
        lines = program.log_text().splitlines()
        equal([line for line in lines if "server:" in line], [], "what the server says of its clients")
        equal(sum("not asked" in line for line in lines), 1, "that it rests")
        check(len(lines) < 10, "%d lines: %s" % (len(lines), lines[-3:]))
    wrong = h.make_elf(h.build_id(1))
    with upstream(lambda handler: h.send(handler, wrong)) as server, symsrv("--upstream", "liar@debuginfod=" + server.url) as program:
        for number in range(240, 250):
            equal(program.debuginfo(h.build_id(number))[0], 404, "another file")
        equal(program.metric('symsrv_upstream_answers_total{upstream="liar",result="rejected"}'), 10, "the metric")
        lines = [line for line in program.log_text().splitlines() if "rejected" in line]
        equal(len(lines), 1, "lines in the log: %s" % lines)


# ---- malformed requests ----

MALFORMED = {
    "/buildid/": 400, "/buildid/xyz/debuginfo": 400, "/buildid/ABCD/debuginfo": 400, "/buildid/abc/debuginfo": 400,
    "/buildid/abcd": 400, "/buildid/abcd/other": 400, "/buildid/" + "a" * 130 + "/debuginfo": 400,
    "/buildid/abcd/section/a%2Fb": 400, "/buildid/../../etc/passwd": 400, "/buildid/abcd/source": 400,
    "/symbols/": 404, "/symbols/a/b/c": 404, "/symbols/../../../etc/passwd": 404,
    "/symbols/..%2f..%2f..%2fetc%2fpasswd": 404, "/symbols/a%00b/9757F3A636c00/a%00b": 404,
    "/symbols/a/elf-buildid-" + "0" * 40 + "/a": 404, "/symbols/%": 404, "/%zz": 400, "/nope": 404, "/../": 404,
    "/symbols/" + "a" * 300 + "/9757F3A636c00/" + "a" * 300: 404, "/metadata": 400, "/metadata?key=glob": 400,
    "/metadata?key=glob&value=" + "*" * 20: 400, "/metadata?key=buildid&value=%": 400,
    "/buildid/" + "ab" * 20 + "/source/" + "x" * 5000: 400,
}


@test
def malformed_requests_get_their_4xx_and_never_a_5xx():
    with symsrv() as program:
        for path, status in MALFORMED.items():
            equal(program.get(path)[0], status, path[:80])
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"):
            equal(program.get("/healthz", method=method)[0], 405, method)
        raw = {
            b"GET / HTTP/1.1\r\n\r\n": b"400",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n": b"400",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello": b"400",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": b"400",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n": b"400",
            b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n": b"4",
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100000 + b"\r\n\r\n": b"4",
            b"\r\n\r\n\r\n": b"", b"\0\0\0\0\r\n\r\n": b"", b"GET\r\n\r\n": b"", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n": b"",
        }
        for data, status in raw.items():
            answer = program.raw(data + b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", timeout=5)
            first = answer[9:12]
            check(first.startswith(status), "%.60r: %.60r" % (data, answer))
            check(not first.startswith(b"5") or first == b"505", "%.60r: %.60r" % (data, answer))
        equal(program.get("/healthz")[0], 200, "still there")


@test
def random_requests_do_no_harm():
    random.seed(4711)
    pieces = [b"GET", b" ", b"/buildid/", b"/symbols/", b"ab" * 20, b"/debuginfo", b"%2F", b"%00", b"\r\n", b"HTTP/1.1",
              b"Host: x", b"Range: bytes=", b"-", b"0", b"999999999999999999999", b",", b"If-None-Match: ", b'"', b"*",
              b"Content-Length: ", b"Transfer-Encoding: chunked", b"\0", b"\xff", b"?", b"&", b"=", b"_.debug", b":"]
    with symsrv() as program:
        for _ in range(400):
            data = b"".join(random.choice(pieces) for _ in range(random.randrange(1, 40)))
            answer = program.raw(b"GET /" + data + b"\r\n\r\n", timeout=0.2)
            check(not answer[9:10] == b"5" or answer[9:12] == b"505", "%r: %.80r" % (data, answer))
        equal(program.get("/healthz")[0], 200, "still there")
