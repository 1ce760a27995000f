# SPDX-License-Identifier: MIT
"""POST /v1/resolve: names for hosts that have no symbols."""
import http.client
import json
import os
import random
import socket
import subprocess
import tempfile
import uuid

import symsrv_harness as h
from names_tests import functions, libc_debug_file
from symsrv_harness import RUN, check, equal, need, symsrv, test, upstream


def post(program, body, path="/v1/resolve", headers=None):
    """Status, headers, body (decoded when it is JSON)."""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
    try:
        connection.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body), headers or {})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, dict(answer.getheaders()), json.loads(content) if answer.status == 200 else content
    finally:
        connection.close()


@test
def addresses_get_the_names_that_eu_addr2line_prints():
    need("eu-addr2line", "readelf")
    debug, identity = libc_debug_file()
    rows = functions(debug)
    # eu-addr2line takes milliseconds for each.
    chosen, count = random.Random(48), 10000 if RUN.long else 2000
    addresses = [row[0] + chosen.randrange(max(1, int(row[1], 0))) for row in (chosen.choice(rows) for _ in range(count))]
    names_at = {}
    for start, _, _, _, name in rows:
        names_at.setdefault(start, set()).add(name.split("@")[0])
    text = subprocess.run(["eu-addr2line", "-S", "-e", debug], input="\n".join("0x%x" % a for a in addresses),
                          capture_output=True, text=True, check=True).stdout.splitlines()[::2]
    with upstream(h.serve_files({"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()})) as server:
        with symsrv("--upstream", "debuginfod=" + server.url) as program:
            status, _, answer = post(program, {"modules": [{"build_id": identity, "addresses": addresses}]})
            equal((status, answer["complete"], answer["modules"][0]["found"]), (200, True, True), "answer")
            results = answer["modules"][0]["results"]
            equal(len(results), len(addresses), "results")
            for address, theirs, ours in zip(addresses, text, results):
                their_name = theirs.split("+0x")[0].split(" ")[0].split("@")[0]
                our_name = (ours.get("linkage_name") or ours["function"]).split("@")[0]
                check(our_name == their_name or {our_name, their_name} <= names_at[address - ours["offset"]],
                      "%x: %s, eu-addr2line: %s" % (address, our_name, theirs))
            equal(len(server.requests), 1, "requests")


@test
def modules_that_are_missing_or_late_leave_the_others_their_names():
    need("gcc", "readelf")
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    with open(os.path.join(directory, "one.c"), "w") as file:
        file.write("int only_one(int x) { return x * 3; }\nint main(int c, char **v) { (void)v; return only_one(c); }\n")
    program_file = os.path.join(directory, "one")
    subprocess.run(["gcc", "-O0", "-Wl,--build-id", "-o", program_file, os.path.join(directory, "one.c")], check=True)
    notes = subprocess.run(["readelf", "-n", program_file], capture_output=True, text=True, check=True).stdout
    identity = notes.split("Build ID:")[1].split()[0]
    start = [row[0] for row in functions(program_file) if row[4] == "only_one"][0]
    gone, late = h.build_id(201), h.build_id(202)

    def answer(handler):
        if late in handler.path:
            release.wait(h.WAIT_S)
        h.send(handler, b"no", 404)

    import threading
    release = threading.Event()
    with upstream(answer) as server, symsrv("--index", directory, "--upstream", "debuginfod=" + server.url) as program:
        request = {"modules": [{"build_id": gone, "addresses": [1, 2]}, {"build_id": identity, "addresses": [start, start + 2, 1 << 62]},
                               {"build_id": late, "addresses": [5]}], "deadline_ms": 1500}
        # A known object answers at once, however busy the machine is.
        equal(post(program, {"modules": request["modules"][:2]})[2]["complete"], True, "without the late one")
        try:
            status, _, found = post(program, request)
        finally:
            release.set()
        equal((status, found["complete"]), (200, False), "answer")
        equal(found["modules"][0], {"found": False, "results": [None, None]}, "missing")
        equal(found["modules"][1], {"found": True, "results": [{"function": "only_one", "offset": 0},
                                                               {"function": "only_one", "offset": 2}, None]}, "here")
        equal(found["modules"][2], {"found": None, "results": [None]}, "late")


@test
def requests_that_are_malformed_get_a_status_that_says_so():
    with symsrv() as program:
        module = {"build_id": h.build_id(1), "addresses": [1]}
        bad = [b"", b"{", b"[]", b'{"modules": 1}', b"[" * 100000, {"modules": [1]}, {"modules": [{"addresses": [1]}]},
               {"modules": [dict(module, addresses=["1"])]}, {"modules": [dict(module, addresses=[-1])]},
               {"modules": [dict(module, addresses=[1.5])]}, {"modules": [dict(module, build_id="xyz")]},
               {"modules": [dict(module, build_id="ab" * 200)]}, {"modules": [dict(module, build_id="a/../b")]},
               {"modules": [module] * 1025}, {"modules": [module], "deadline_ms": 0},
               {"modules": [module], "lines": 1}, {"modules": [dict(module, addresses=[1] * 100001)]},
               {"modules": [dict(module, addresses=[1] * 60000)] * 2}, {"modules": [dict(module, addresses=[1 << 64])]},
               {"modules": [{"pe": "../a.dll", "key": "1234567812", "addresses": [1]}]},
               {"modules": [{"pe": "a.dll", "key": "", "addresses": [1]}]}, b'{"modules": [], "modules": []}']
        for body in bad:
            status, headers, text = post(program, body)
            equal(status, 400, "status for %.60r" % (body,))
            equal(headers["Content-Type"], "text/plain; charset=utf-8", "type")
            check(text.endswith(b"\n") and text.count(b"\n") == 1 and len(text) > 5, "a reason in a line: %r" % text)
        equal(post(program, {"modules": [dict(module, addresses=[0xffffffff81000000])]})[2], b"a number is beyond 9223372036854775807\n", "a kernel's")
        equal(post(program, {"modules": []})[2], {"complete": True, "modules": []}, "nothing")
        too_long = b"POST /v1/resolve HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % ((1 << 20) + 1)
        check(b" 413 " in program.raw(too_long)[:40], "too long, and known before the body comes")
        chunked = b"POST /v1/resolve HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        # Nothing behind it: what the server leaves unread would reset the connection.
        chunked += (b"40000\r\n" + b" " * 0x40000 + b"\r\n") * 5 + b"0\r\n\r\n"
        check(b" 413 " in program.raw(chunked)[:40], "too long in chunks")
        equal(program.get("/v1/resolve")[0], 405, "GET")
        equal(post(program, b"{}", path="/healthz")[0], 400, "a body elsewhere")
        equal(program.get("/healthz")[0], 200, "it still serves")


def program_with_a_long_name(directory):
    """A program whose one function has a name of 3,500 letters: its build-id and the address."""
    need("gcc", "readelf")
    source, path = os.path.join(directory, "long.c"), os.path.join(directory, "long")
    with open(source, "w") as file:
        file.write("int %s(int x) { return x; }\nint main(int c, char **v) { (void)v; return %s(c); }\n" % (("x" * 3500,) * 2))
    subprocess.run(["gcc", "-O0", "-Wl,--build-id", "-o", path, source], check=True)
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return notes.split("Build ID:")[1].split()[0], [row[0] for row in functions(path) if row[4].startswith("xxx")][0]


@test
def clients_that_do_not_read_their_answers_do_not_use_up_the_memory():
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    identity, address = program_with_a_long_name(directory)
    large = json.dumps({"modules": [{"build_id": identity, "addresses": [address] * 30000}]}).encode()
    head = b"POST /v1/resolve HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(large)
    small = {"modules": [{"build_id": identity, "addresses": [address]}]}
    waiting = []
    with symsrv("--index", directory) as program:
        try:
            # Each answer has 64 MB.
            while not program.metric("symsrv_request_memory_refused_total") and len(waiting) < 12:
                held = program.metric("symsrv_request_memory_bytes")
                waiting.append(socket.create_connection(("127.0.0.1", program.port)))
                waiting[-1].sendall(head + large)
                h.wait_until(lambda: program.metric("symsrv_request_memory_bytes") > held + (50 << 20) or
                             program.metric("symsrv_request_memory_refused_total"), "an answer, or a refusal")
            check(5 < len(waiting) < 12, "%d answers" % len(waiting))
            equal(waiting[-1].recv(12), b"HTTP/1.1 503", "refused")
            check(program.metric("symsrv_request_memory_bytes") <= 512 << 20, "memory")
            equal(program.get("/healthz")[0], 200, "other requests")
        finally:
            for one in waiting:
                one.close()
        h.wait_until(lambda: program.metric("symsrv_request_memory_bytes") == 0, "given back")
        equal(post(program, small)[0], 200, "it answers again")
        # A body counts before it has come.
        with socket.create_connection(("127.0.0.1", program.port)) as one:
            one.sendall(head)
            h.wait_until(lambda: program.metric("symsrv_request_memory_bytes") == len(large), "a body")
        h.wait_until(lambda: program.metric("symsrv_request_memory_bytes") == 0, "given back")


def debug_id(identity):
    """The debug id of Breakpad: 16 bytes in the order of a GUID, and the age 0."""
    return str(uuid.UUID(bytes_le=bytes.fromhex(identity[:32]))).replace("-", "").upper() + "0"


@test
def clients_of_mozillas_api_get_functions():
    equal(debug_id("ef8f58a0b402d11c68f78342ef4fcc7d23798d4c"), "A0588FEF02B41CD168F78342EF4FCC7D0", "as sentry-cli prints it")
    need("gcc", "readelf")
    directory = tempfile.mkdtemp(dir=h.RUN.scratch)
    with open(os.path.join(directory, "fix.c"), "w") as file:
        file.write("int in_fix(int x) { return x * 3; }\nint main(int c, char **v) { (void)v; return in_fix(c); }\n")
    twin, sibling = "00112233445566778899aabbccddeeff", "01112233445566778899aabbccddeeff"
    for number in (1, 2):
        with open(os.path.join(directory, "twin%d.debug" % number), "wb") as file:
            file.write(h.make_elf(twin + "0000000%d" % number))
    # The same beginning, and two lengths.
    for number, more in enumerate(("", "11223344", "1122334455667788")):
        with open(os.path.join(directory, "sibling%d.debug" % number), "wb") as file:
            file.write(h.make_elf(sibling + more))
    # A program at a fixed address: offsets count from its first page.
    fixed = os.path.join(directory, "fix")
    subprocess.run(["gcc", "-O0", "-no-pie", "-Wl,--build-id", "-o", fixed, os.path.join(directory, "fix.c")], check=True)
    notes = subprocess.run(["readelf", "-n", fixed], capture_output=True, text=True, check=True).stdout
    identity = notes.split("Build ID:")[1].split()[0]
    start = [row[0] for row in functions(fixed) if row[4] == "in_fix"][0] - 0x400000
    check(start > 0, "a program at 0x400000")
    known, gone, unused = debug_id(identity), debug_id(h.build_id(1)), debug_id(h.build_id(2))
    job = {"memoryMap": [["fix", known], ["gone.so", gone], ["unused.so", unused], ["twin.so", debug_id(twin)],
                         ["sibling.so", debug_id(sibling)]],
           "stacks": [[[0, start + 4], [1, 5], [-1, 9]], [[3, 1], [0, start], [4, 1]]]}
    with symsrv("--index", directory) as program:
        frames = [{"frame": 0, "module": "fix", "module_offset": hex(start + 4), "function": "in_fix", "function_offset": "0x4"},
                  {"frame": 1, "module": "gone.so", "module_offset": "0x5"}, {"frame": 2, "module": "<unknown>", "module_offset": "0x9"}]
        more = [{"frame": 0, "module": "twin.so", "module_offset": "0x1"},
                {"frame": 1, "module": "fix", "module_offset": hex(start), "function": "in_fix", "function_offset": "0x0"},
                {"frame": 2, "module": "sibling.so", "module_offset": "0x1"}]
        result = {"stacks": [frames, more], "found_modules": {"fix/" + known: True, "gone.so/" + gone: False,
                                                              "unused.so/" + unused: None, "twin.so/" + debug_id(twin): False,
                                                              "sibling.so/" + debug_id(sibling): False}}
        equal(post(program, {"jobs": [job], "version": 5}, path="/symbolicate/v5")[2], {"results": [result]}, "one job")
        equal(post(program, job, path="/symbolicate/v5")[2], {"results": [result]}, "without jobs")
        equal(post(program, {"jobs": [job] * 10}, path="/symbolicate/v5")[2], {"results": [result] * 10}, "ten jobs")
        bad = [b"{", [], {"jobs": [job] * 11}, {"jobs": [{"stacks": []}]}, dict(job, stacks=[]), dict(job, stacks=[[[5, 1]]]),
               dict(job, stacks=[[[-2, 1]]]), dict(job, stacks=[[[0, -1]]]), dict(job, stacks=[[[0]]]), dict(job, stacks=[[0, 1]]),
               dict(job, memoryMap=[["a/b", known]]), dict(job, memoryMap=[["a", "xyz"]]), dict(job, memoryMap=[["a"]]),
               dict(job, memoryMap=[["a", "0"]] * 1025), {}, dict(job, stacks=[[[0, 1]] * 100001])]
        for body in bad:
            status, headers, text = post(program, body, path="/symbolicate/v5")
            equal((status, headers["Content-Type"]), (400, "application/json"), "status for %.60r" % (body,))
            check(json.loads(text)["title"], "a reason")
        equal(program.get("/symbolicate/v5")[0], 405, "GET")
