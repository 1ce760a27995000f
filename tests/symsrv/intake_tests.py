# SPDX-License-Identifier: MIT
"""Requests with a body: lists of objects to look for or to fetch, recordings, and objects themselves."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import threading
import zipfile

import symsrv_harness as h
from client_tests import compile_program
from map_tests import framework, map_path, pe_key
from symsrv_harness import RUN, check, equal, good_upstream, need, symsrv, test, upstream

TOKEN = "correct-horse-battery"


def token_file(text=TOKEN + "\n"):
    path = os.path.join(tempfile.mkdtemp(dir=RUN.scratch), "token")
    with open(path, "w") as file:
        file.write(text)
    return path


def send(program, method, path, body, headers=None, length=True):
    """Status, headers, body; without `length` the body is sent in chunks."""
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=h.WAIT_S)
    try:
        if not length:
            connection.request(method, path, iter([body[i:i + 4096] for i in range(0, len(body), 4096)]), headers or {},
                               encode_chunked=True)
        else:
            connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def put(program, body, name=None, token=TOKEN, **options):
    headers = {"Authorization": "Bearer " + token} if token else {}
    return send(program, "PUT", "/v1/objects" + ("?name=" + name if name else ""), body, headers, **options)


def status_of(program, method, path, length, token=None):
    """The status for the headers alone: a client with a long body waits for it."""
    head = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (method, path, length)
    if token:
        head += "Authorization: Bearer %s\r\n" % token
    return int(program.raw(head.encode() + b"Expect: 100-continue\r\n\r\n").split()[1])


def have(program, paths):
    status, headers, body = send(program, "POST", "/v1/have", json.dumps({"objects": paths}))
    equal((status, headers["content-type"]), (200, "application/json"), body)
    return json.loads(body)["have"]


def debug_path(number):
    return "/buildid/%s/debuginfo" % h.build_id(number)


@test
def have_says_which_objects_are_here():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "a.debug"), "wb") as file:
        file.write(h.make_elf(h.build_id(202)))
    with good_upstream(h.build_id(201), h.build_id(203)) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--index", directory) as program:
            equal(program.debuginfo(h.build_id(201))[0], 200, "fetched")
            h.wait_until(lambda: program.metric("symsrv_index_files") == 1, "indexed")
            asked = len(server.requests)
            equal(have(program, [debug_path(n) for n in (201, 202, 203)] + [h.debug_paths(h.build_id(201))[1].replace("/_", "/symbols/_", 1)]),
                  [True, True, False, True], "have")
            equal(len(server.requests), asked, "no upstream is asked")
        with symsrv(store=program.store) as again:
            equal(have(again, [debug_path(201)]), [True], "after a restart")


@test
def prefetch_fetches_in_the_background():
    here, wanted, missing = h.build_id(211), [h.build_id(n) for n in range(212, 232)], h.build_id(240)
    with good_upstream(here, *wanted) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        equal(program.debuginfo(here)[0], 200, "fetched")
        paths = ["/buildid/%s/debuginfo" % identity for identity in [here, missing] + wanted]
        status, _, body = send(program, "POST", "/v1/prefetch", json.dumps({"objects": paths}))
        equal((status, json.loads(body)), (202, {"queued": 21, "have": 1, "dropped": 0}), "answer")
        h.wait_until(lambda: program.metric("symsrv_prefetch_waiting") == 0, "done")
        equal([program.metric("symsrv_prefetch_%s_total" % word) for word in ("found", "missing", "failed", "dropped")],
              [20, 1, 0, 0], "counts")
        asked = len(server.requests)
        equal({program.debuginfo(identity)[0] for identity in wanted}, {200}, "objects")
        equal(len(server.requests), asked, "they were here")


@test
def strangers_leave_room_in_the_queue_for_those_with_the_token():
    release = threading.Event()

    def answer(handler):
        release.wait(h.WAIT_S)
        h.send(handler, b"no", 404)

    def queue(program, first, count, headers=None):
        body = json.dumps({"objects": [debug_path(n) for n in range(first, first + count)]})
        status, _, text = send(program, "POST", "/v1/prefetch", body, headers)
        equal(status, 202, text)
        found = json.loads(text)
        return found["queued"], found["dropped"]

    with upstream(answer) as server, symsrv("--upstream", "debuginfod=" + server.url, "--upload-token", token_file()) as program:
        try:
            equal(queue(program, 1000, 2500), (2000, 500), "without the token")
            equal(queue(program, 4000, 10, {"Authorization": "Bearer wrong"}), (0, 10), "with a wrong one")
            equal(queue(program, 5000, 2500, {"Authorization": "Bearer " + TOKEN}), (2500, 0), "with it")
            equal(program.metric("symsrv_prefetch_dropped_total"), 510, "counted")
            equal(program.metric("symsrv_uploads_denied_total"), 0, "no upload was tried")
        finally:
            release.set()
    # Where there is no token, there are no strangers.
    with symsrv() as program:
        equal(queue(program, 1000, 2500), (2500, 0), "without tokens")


@test
def prefetch_takes_a_recording():
    need("gcc")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    _, debug, identity = compile_program(directory)
    lines = "P\t0\t1\t1\t0\t0\tx\nI\t0\t0\telf\t%s\t/usr/bin/x\nI\t1\t0\tr2r\t0a0b\t/a.dll\nI\t2\t0\telf\t-\t/y\nI\t3\t0\telf\tnohex\t/z\n" % identity
    with upstream(h.serve_files({"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()})) as server, \
            symsrv("--upstream", "debuginfod=" + server.url, "--upload-token", token_file()) as program:
        for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
            path = os.path.join(directory, "x.trace.zip")
            with zipfile.ZipFile(path, "w", method) as archive:
                archive.writestr("recording.json", "{}")
                archive.writestr("names/symbols", lines)
            with open(path, "rb") as file:
                body = file.read()
            status, _, text = send(program, "POST", "/v1/prefetch", body)
            equal(status, 202, text)
            h.wait_until(lambda: program.metric("symsrv_prefetch_waiting") == 0, "done")
        equal(json.loads(text), {"queued": 0, "have": 1, "dropped": 0}, "the second time")
        asked = len(server.requests)
        equal(program.get("/buildid/%s/symtab" % identity)[0], 200, "names")
        equal(program.debuginfo(identity)[0], 200, "the debug file")
        equal(len(server.requests), asked, "both were here")
        # A long one needs the token.
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
            archive.writestr("perf.data", os.urandom(3 << 20))
        with open(path, "rb") as file:
            body = file.read()
        equal(status_of(program, "POST", "/v1/prefetch", len(body)), 413, "without the token")
        equal(send(program, "POST", "/v1/prefetch", body, {"Authorization": "Bearer " + TOKEN})[0], 202, "with it")


@test
def bad_lists_and_recordings_are_refused():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    damaged = os.path.join(directory, "damaged.zip")
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("names/symbols", "I\t0\t0\telf\tab\t/x\n" * 1000)
    with open(damaged, "rb") as file:
        whole = file.read()
    bomb = os.path.join(directory, "bomb.zip")
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("names/symbols", b"\0" * (300 << 20))
    with open(bomb, "rb") as file:
        bomb_body = file.read()
    path = debug_path(1)
    cases = [
        (400, b"{"), (400, b"[]"), (400, b"{}"), (400, b'{"objects":1}'), (400, b'{"objects":[1]}'), (400, b'{"objects":["/"]}'),
        (400, b'{"objects":["/metrics"]}'), (400, b'{"objects":["/buildid/xyz/debuginfo"]}'), (400, b'{"objects":[],"objects":[]}'),
        (400, b'{"objects":["%s/../.."]}' % path.encode()), (400, b"[" * 500000), (400, b'{"objects":' * 50000), (400, b"\xff\xfe"),
        (400, json.dumps({"objects": [path] * 10001}).encode()),
    ]
    with symsrv() as program:
        for place in ("/v1/have", "/v1/prefetch"):
            for status, body in cases:
                for length in (True, False):
                    answer = send(program, "POST", place, body, length=length)
                    equal(answer[0], status, "%s %.60r: %r" % (place, body, answer[2]))
            equal(status_of(program, "POST", place, 60 << 20), 413, "a million objects")
            equal(program.get(place)[0], 405, "GET")
        for body in (b"PK", b"PK\3\4" + b"x" * 100, whole[:-30], whole[:60] + b"XXXX" + whole[64:], bomb_body):
            status, _, text = send(program, "POST", "/v1/prefetch", body)
            check(status in (400, 422), "%d %r" % (status, text))
        equal(program.metric("symsrv_prefetch_waiting"), 0, "nothing waits")
        equal(program.get("/readyz")[0], 200, "ready")


@test
def uploads_need_the_token():
    body = h.make_elf(h.build_id(250))
    with symsrv() as program:
        equal(put(program, body)[0], 403, "uploads are off")
    path = token_file()
    with symsrv("--upload-token", path) as program:
        status, headers, _ = put(program, body, token=None)
        equal((status, headers.get("www-authenticate")), (401, "Bearer"), "no token")
        for wrong in ("wrong", TOKEN[:-1], TOKEN + "x", "", "x" * 5000):
            check(put(program, body, token=wrong)[0] in (401, 403), wrong)
        equal(send(program, "PUT", "/v1/objects", body, {"Authorization": "Basic " + TOKEN})[0], 401, "another scheme")
        equal(program.stored_files(), [], "nothing is stored")
        equal(program.debuginfo(h.build_id(250))[0], 404, "nor served")
        check(program.metric("symsrv_uploads_denied_total") >= 6, "counted")
        equal(put(program, body)[0], 201, "the token")
        with open(path, "w") as file:
            file.write("another-long-enough-token\n")
        program.process.send_signal(h.signal.SIGHUP)
        h.wait_until(lambda: put(program, body, token="another-long-enough-token")[0] == 200, "a new token")
        equal(put(program, body)[0], 403, "the old token")
    for bad in (token_file("short\n"), token_file(""), "/nonexistent"):
        try:
            symsrv("--upload-token", bad).start()
        except RuntimeError as error:
            check("--upload-token" in str(error), str(error))
        else:
            raise AssertionError("it started")


@test
def an_upload_is_served_and_kept_only_when_it_is_better():
    identity, other = h.build_id(260), h.build_id(261)
    worse, better = h.make_elf(identity, 6000), h.make_elf(identity, 5000, dwarf=True)
    with symsrv("--upload-token", token_file()) as program:
        equal(program.debuginfo(identity)[0], 404, "a miss")
        status, _, body = put(program, worse)
        equal((status, json.loads(body)), (201, {"stored": ["/buildid/%s/debuginfo" % identity], "kept": []}), "stored")
        equal(program.debuginfo(identity)[2], worse, "served although it was a miss")
        equal(put(program, worse)[0], 200, "the same again")
        equal(put(program, h.make_elf(identity, 7000))[0], 200, "as good")
        equal(program.debuginfo(identity)[2], worse, "it stays")
        equal(put(program, better)[0], 201, "with DWARF")
        equal(program.debuginfo(identity)[2], better, "it replaces the worse one")
        equal(put(program, worse)[0], 200, "a worse one again")
        equal(program.debuginfo(identity)[2], better, "the better one stays")
        program_file = h.make_elf(other, 9000, code=True)
        status, _, body = put(program, program_file, length=False)
        equal((status, sorted(json.loads(body)["stored"])),
              (201, ["/buildid/%s/debuginfo" % other, "/buildid/%s/executable" % other]), "a program with symbols, in chunks")
        for word in ("debuginfo", "executable"):
            equal(program.get("/buildid/%s/%s" % (other, word))[2], program_file, word)
    equal(subprocess.run([RUN.program, "--store", program.store, "--scrub"], capture_output=True).returncode, 0, "scrub")


@test
def a_fetch_under_way_does_not_replace_a_better_upload():
    identity, asked, answer_now = h.build_id(262), threading.Event(), threading.Event()
    worse, better = h.make_elf(identity, 6000), h.make_elf(identity, 5000, dwarf=True)

    def answer(handler):
        asked.set()
        answer_now.wait(h.WAIT_S)
        h.send(handler, worse)

    with upstream(answer) as server, symsrv("--upstream", "debuginfod=" + server.url, "--upload-token", token_file()) as program:
        found = []
        client = threading.Thread(target=lambda: found.append(program.debuginfo(identity)[2]))
        client.start()
        check(asked.wait(h.WAIT_S), "asked")
        equal(put(program, better)[0], 201, "uploaded meanwhile")
        answer_now.set()
        client.join()
        equal((found, program.debuginfo(identity)[2]), ([better], better), "the better one")


@test
def an_uploaded_image_has_a_map_and_a_pdb_its_name():
    path = os.path.join(framework(), "System.Linq.dll")
    with open(path, "rb") as file:
        body = file.read()
    pdb = h.make_pdb("ab" * 16, 2)
    with symsrv("--upload-token", token_file()) as program:
        equal(put(program, body)[0], 422, "without a name")
        status, _, text = put(program, body, name="System.Linq.dll")
        equal((status, json.loads(text)["stored"]), (201, ["/symbols/system.linq.dll/%s/system.linq.dll" % pe_key(body)]), "stored")
        equal(program.get("/symbols/System.Linq.dll/%s/System.Linq.dll" % pe_key(body))[2], body, "served")
        r2rmap = program.get("/pe/System.Linq.dll/%s/r2rmap" % pe_key(body))[2]
        equal(program.get(map_path("System.Linq.ni.r2rmap", r2rmap))[2], r2rmap, "its map by signature")
        for name in ("..", "a/b.pdb", "a%0Ab.pdb", "x" * 300):
            equal(put(program, pdb, name=name)[0], 422, name)
        equal(put(program, pdb, name="a.pdb")[0], 201, "a PDB")
        equal(program.get("/symbols/a.pdb/%s2/a.pdb" % ("ab" * 16))[2], pdb, "served")


@test
def what_cannot_be_verified_is_not_taken():
    good = h.make_elf(h.build_id(270), 30000)
    with symsrv("--upload-token", token_file(), "--max-object-bytes", "100K") as program:
        for body in (b"text", b"<!doctype html><html>", good[:1000], good[:-100], h.make_elf("", 100), b"\x7fELF" + b"\xff" * 4000,
                     b"MZ" + bytes(100), h.make_pe(1, 1)[:100], b"int main(void) { return 0; }\n"):
            status, headers, text = put(program, body, name="a.dll")
            equal(status, 422, "%.30r: %r" % (body, text))
            check(headers["content-type"].startswith("text/plain") and len(text) > 5, "a reason: %r" % text)
        equal(put(program, b"")[0], 400, "empty")
        large = h.make_elf(h.build_id(271), 200000)
        equal(status_of(program, "PUT", "/v1/objects", len(large), TOKEN), 413, "too large")
        equal(status_of(program, "PUT", "/v1/objects", 1 << 60, TOKEN), 413, "far too large")
        equal(put(program, large, length=False)[0], 413, "too large, in chunks")
        equal(program.stored_files(), [], "nothing is stored")
        equal(os.listdir(os.path.join(program.store, "tmp")), [], "and nothing is left")
        equal(program.get("/v1/objects")[0], 405, "GET")
        equal(put(program, good)[0], 201, "a good one")


@test
def clients_that_break_off_leave_nothing():
    body = h.make_elf(h.build_id(280), 500000)
    head = ("PUT /v1/objects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (TOKEN, len(body))).encode()
    with symsrv("--upload-token", token_file(), "--header-timeout", "1") as program:
        program.raw(head + body[:100000], timeout=5)
        h.wait_until(lambda: not os.listdir(os.path.join(program.store, "tmp")), "the arrival is gone")
        equal(program.metric("symsrv_store_arriving_bytes"), 0, "and its room")
        threads = [threading.Thread(target=put, args=(program, body)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(program.debuginfo(h.build_id(280))[2], body, "uploaded by six at once")
        equal(program.metric("symsrv_uploads_stored_total") + program.metric("symsrv_uploads_kept_total"), 6, "six")
        equal(program.metric("symsrv_uploads_stored_total"), 1, "one was stored")
