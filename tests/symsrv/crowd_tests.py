# SPDX-License-Identifier: MIT
"""Many clients, slow clients, other servers in a chain or a ring."""
import asyncio
import contextlib
import os
import resource
import socket
import tempfile
import threading
import time

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, symsrv, test, upstream

EXCLUSIVE = True  # a thousand clients take the whole machine

TARGET = h.build_id(100)
GOOD = h.make_elf(TARGET, 50000)


# ---- many clients ----

async def fetch(port, path, timeout_s=60):
    reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), timeout_s)
    try:
        writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
        answer = await asyncio.wait_for(reader.read(-1), timeout_s)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


async def fetch_all(port, paths):
    return await asyncio.gather(*(fetch(port, path) for path in paths))


@test
def a_thousand_cold_requests_are_one_fetch():
    paths = h.debug_paths(TARGET)
    asked = ["/buildid/%s/debuginfo" % TARGET, "/symbols" + paths[1]] * 500
    for kind, path in (("debuginfod", paths[0]), ("ssqp", paths[1])):
        with upstream(h.serve_files({path: GOOD}, delay_s=1)) as server:
            with symsrv("--upstream", "%s=%s" % (kind, server.url)) as program:
                answers = asyncio.run(fetch_all(program.port, asked))
                equal({status for status, _ in answers}, {200}, "statuses")
                check(all(body == GOOD for _, body in answers), "a body differs")
                equal(len(server.requests), 1, "upstream requests")


@test
def hits_are_served_while_every_upstream_hangs():
    stop = threading.Event()
    identity = h.build_id(300)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "f"), "wb") as file:
        file.write(h.make_elf(identity, dwarf=True))

    async def park(program, count, rounds):
        port = program.port
        waiting = [asyncio.create_task(fetch(port, "/buildid/%s/debuginfo" % h.build_id(1000 + i))) for i in range(count)]
        # The first ones are answered after --wait-timeout, so all of them need not wait at once.
        await asyncio.to_thread(h.wait_until, lambda: program.metric("symsrv_waiters") >= count / 2, "clients that wait")
        for _ in range(rounds):
            status, _ = await fetch(port, "/buildid/%s/debuginfo" % identity, 5)
            equal(status, 200, "a hit")
        stop.set()
        return [status for status, _ in await asyncio.gather(*waiting)]

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with upstream(lambda r: stop.wait(60)) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--index", directory, "--wait-timeout", "6",
                    "--retries", "0") as program:
            statuses = asyncio.run(park(program, 1000, 100))
            equal(set(statuses), {503}, "the others are told to come again")


@test
def a_ring_of_two_servers_ends():
    ports = h.free_port(), h.free_port()
    for kind in ("symsrv", "debuginfod", "ssqp"):
        a = symsrv("--upstream", "%s=http://127.0.0.1:%d%s" % (kind, ports[1], "/symbols" if kind == "ssqp" else ""),
                   port=ports[0])
        b = symsrv("--upstream", "%s=http://127.0.0.1:%d%s" % (kind, ports[0], "/symbols" if kind == "ssqp" else ""),
                   port=ports[1])
        with a, b:
            started = time.monotonic()
            equal(a.debuginfo(h.build_id(400))[0], 404, kind)
            check(time.monotonic() - started < 10, "%s: it went round and round" % kind)


@test
def a_ring_remembers_what_nobody_in_it_has():
    port = h.free_port()
    with symsrv("--upstream", "symsrv=http://127.0.0.1:%d" % port) as a, symsrv("--upstream", "symsrv=" + a.url, port=port) as b:
        for _ in range(3):
            status, headers, _ = a.debuginfo(h.build_id(401))
            equal((status, headers.get("x-symsrv-unasked")), (404, None), "who asked both is certain")
        equal(a.metric('symsrv_upstream_requests_total{upstream="127.0.0.1:%d"}' % port), 1, "requests to the other one")
        equal(b.metric("symsrv_negative_entries"), 0, "what the other one, who did not ask, remembers")


@test
def two_servers_that_ask_each_other_never_wait_for_each_other():
    """Each asks the other one only when it is asked itself: what it asks for must not wait for the request that waits for it."""
    port, gates = h.free_port(), {}

    def hold(handler):
        gates[handler.path].wait(h.WAIT_S)
        h.serve_files({h.debug_paths(TARGET)[0]: GOOD})(handler)

    absent = [h.build_id(410 + i) for i in range(8)]
    for identity in absent + [TARGET]:
        gates[h.debug_paths(identity)[0]] = threading.Event()
    with upstream(hold) as origin:
        first = ("--upstream", "origin@debuginfod=" + origin.url, "--max-fetches", "4")
        with symsrv(*first, "--upstream", "symsrv=http://127.0.0.1:%d" % port) as a:
            with symsrv(*first, "--upstream", "symsrv=" + a.url, port=port) as b:
                statuses = {}

                def ask(server, identity):
                    statuses[server.port, identity] = server.debuginfo(identity)[0]

                askers = [threading.Thread(target=ask, args=(server, identity))
                          for identity in absent + [TARGET] for server in (a, b)]
                for asker in askers:
                    asker.start()
                h.wait_until(lambda: a.metric("symsrv_waiters") >= 9 and b.metric("symsrv_waiters") >= 9, "all wait")
                for gate in gates.values():
                    gate.set()
                for asker in askers:
                    asker.join()
                equal([statuses.pop((server.port, TARGET)) for server in (a, b)], [200, 200], "what the origin has")
                equal(set(statuses.values()), {404}, "what nobody has")


@test
def a_miss_of_who_asked_nobody_is_not_believed():
    paths = h.debug_paths(TARGET)
    port = h.free_port()
    with upstream(h.serve_files({paths[0]: GOOD})) as origin:
        with symsrv("--upstream", "symsrv=http://127.0.0.1:%d" % port, "--upstream", "debuginfod=" + origin.url) as a:
            with symsrv("--upstream", "symsrv=" + a.url, port=port) as b:
                equal(a.debuginfo(TARGET)[0], 200, "through the mesh")
                equal(b.debuginfo(TARGET)[0], 200, "who was asked meanwhile, and could only ask back")
        with symsrv("--upstream", "debuginfod=" + origin.url, "--forwarded-limit", "0") as last:
            with symsrv("--upstream", "symsrv=" + last.url) as first:
                equal(first.debuginfo(TARGET)[0], 404, "one server too many")
                equal(last.debuginfo(TARGET)[0], 200, "asked directly")
                equal(first.debuginfo(TARGET)[2], GOOD, "now that it is there")


@test
def symsrv_chains_bring_every_kind():
    with upstream(h.serve_files({"/system.sample.dll/9757F3A636c00/system.sample.dll": h.make_pe(0x9757F3A6, 0x36C00),
                                 "/_.debug/elf-buildid-sym-%s/_.debug" % TARGET: GOOD})) as server:
        with symsrv("--upstream", "ssqp=" + server.url) as first:
            with symsrv("--upstream", "symsrv=" + first.url) as second:
                equal(second.get("/symbols/System.Sample.dll/9757F3A636c00/System.Sample.dll")[0], 200, "PE")
                equal(second.debuginfo(TARGET)[2], GOOD, "ELF")


@test
def slow_clients_take_nothing_from_others():
    duration_s = 60 if RUN.long else 12
    identity = h.build_id(500)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "f"), "wb") as file:
        file.write(h.make_elf(identity, 8 << 20))
    path = b"/buildid/%s/debuginfo" % identity.encode()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    async def drip(port, kind, deadline):
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                if kind == 0:
                    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
                elif kind == 1:
                    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
                else:
                    writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                while time.monotonic() < deadline:
                    if kind < 2:
                        writer.write(b"X-a: b\r\n" if kind == 0 else b"x")
                        await writer.drain()
                    else:
                        await reader.read(1)
                    await asyncio.sleep(1)
            finally:
                writer.close()

    async def attack(port):
        deadline = time.monotonic() + duration_s
        attackers = [asyncio.create_task(drip(port, i % 3, deadline)) for i in range(1000)]
        slowest = 0
        while time.monotonic() < deadline:
            started = time.monotonic()
            status, _ = await fetch(port, "/healthz", 5)
            slowest = max(slowest, time.monotonic() - started)
            equal(status, 200, "a fresh client")
            await asyncio.sleep(0.2)
        for task in attackers:
            task.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)
        return slowest

    with symsrv("--index", directory, "--header-timeout", "4") as program:
        slowest = asyncio.run(attack(program.port))
        closed = program.metric("symsrv_connections_shut_down_total")
        check(closed > 300, "only %d slow connections were closed" % closed)
        print("   slowest fresh client: %.1f ms" % (slowest * 1000))


def fetch_each(program, identities):
    """Asks for all of them at once; their statuses and bodies."""
    return asyncio.run(fetch_all(program.port, ["/buildid/%s/debuginfo" % identity for identity in identities]))


@test
def fetches_wait_for_room_that_others_hold():
    identities = [h.build_id(520 + i) for i in range(12)]
    files = {h.debug_paths(i)[0]: h.make_elf(i, 900000) for i in identities}
    all_ask = threading.Event()

    def send_later(handler, is_told):
        body = files[handler.path]
        if len(server.requests) >= len(files):
            all_ask.set()
        handler.send_response(200)
        if is_told:
            handler.send_header("Content-Length", str(len(body)))
        else:
            handler.close_connection = True
            handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in (body[:200000], body[200000:]):
            handler.wfile.write(part if is_told else b"%x\r\n%s\r\n" % (len(part), part))
            handler.wfile.flush()
            # Every client has some answers before any client has all.
            all_ask.wait(h.WAIT_S)
        if not is_told:
            handler.wfile.write(b"0\r\n\r\n")

    for is_told in (True, False):
        all_ask.clear()
        with upstream(lambda r, is_told=is_told: send_later(r, is_told)) as server:
            with symsrv("--upstream", "debuginfod=" + server.url, "--max-bytes", "3M") as program:
                answers = fetch_each(program, identities)
                equal([status for status, _ in answers], [200] * 12, "statuses, told %s: %s" % (is_told, program.log_text()))
                check([body for _, body in answers] == list(files.values()), "a body differs")
                equal(os.listdir(os.path.join(program.store, "tmp")), [], "tmp")
                equal(program.metric("symsrv_store_arriving_bytes"), 0, "bytes that arrive")
                if is_told:
                    equal(len(server.requests), 12, "requests")


@test
def copies_wait_for_room_that_others_hold():
    identities = [h.build_id(540 + i) for i in range(40)]
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    files = [h.make_elf(identity, 3000000) for identity in identities]
    for identity, file in zip(identities, files):
        place = os.path.join(directory, identity)
        os.mkdir(place)
        with open(os.path.join(place, "debuginfo"), "wb") as out:
            out.write(file)
    for room in ("7M", "4M"):
        with symsrv("--upstream", "dir=" + directory, "--max-bytes", room) as program:
            answers = fetch_each(program, identities)
            equal([status for status, _ in answers], [200] * 40, "statuses: " + program.log_text())
            check([body for _, body in answers] == files, "a body differs")
            equal(program.metric("symsrv_stored_total"), 40, "fetches with room for " + room)


@test
def a_fetch_that_waits_for_room_ends_in_time():
    """The other one is not done before its own time is over."""
    first, second = h.build_id(590), h.build_id(591)
    body = h.make_elf(first, 700000)
    stop, has_begun = threading.Event(), threading.Event()

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:1000])
        handler.wfile.flush()
        has_begun.set()
        stop.wait(h.WAIT_S)

    with upstream(answer) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, "--max-bytes", "1M", "--fetch-timeout", "3") as program:
            status = []
            asker = threading.Thread(target=lambda: status.append(program.debuginfo(first)[0]))
            asker.start()
            has_begun.wait(h.WAIT_S)
            h.wait_until(lambda: program.metric("symsrv_store_arriving_bytes") > 0, "the first one has its room")
            equal(program.debuginfo(second)[0], 503, "the second one")
            asker.join()
            stop.set()
            equal(status, [503], "the first one")


REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def read_answer(client):
    """Status line and body of one answer with a length."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = client.recv(65536)
        check(part, "the connection ends in an answer")
        answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    body = bytearray(body)
    while len(body) < length:
        part = client.recv(65536)
        check(part, "the connection ends after %d of %d bytes" % (len(body), length))
        body += part
    return head.split(b"\r\n")[0], body


@test
def idle_connections_make_room():
    identity = h.build_id(510)
    large = h.make_elf(identity, 32 << 20)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "f"), "wb") as file:
        file.write(large)
    with symsrv("--index", directory, "--connections", "20") as program:
        with contextlib.ExitStack() as stack:

            def connect():
                client = stack.enter_context(socket.create_connection(("127.0.0.1", program.port), timeout=h.WAIT_S))
                client.sendall(REQUEST)
                equal(read_answer(client)[0], b"HTTP/1.1 200 OK", "a newcomer")
                return client

            halfway, taking = connect(), connect()
            halfway.sendall(REQUEST[:20])
            taking.sendall(b"GET /buildid/%s/debuginfo HTTP/1.1\r\nHost: x\r\n\r\n" % identity.encode())
            check(taking.recv(100, socket.MSG_PEEK).startswith(b"HTTP/1.1 200"), "an answer that has begun")
            idle = [connect() for _ in range(60)]
            equal(program.get("/healthz")[0], 200, "one more")
            idle[-1].sendall(REQUEST)
            equal(read_answer(idle[-1])[0], b"HTTP/1.1 200 OK", "who came last stays")
            equal(idle[0].recv(1), b"", "who waited longest has gone")
            halfway.sendall(REQUEST[20:])
            equal(read_answer(halfway)[0], b"HTTP/1.1 200 OK", "a request that had begun")
            check(read_answer(taking)[1] == large, "the answer is another one")
            check(program.metric("symsrv_connections_dismissed_total") >= 42, "connections that were ended")
            equal(program.metric("symsrv_connections_shut_down_total"), 0, "connections that missed a deadline")
