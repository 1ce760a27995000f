# SPDX-License-Identifier: MIT
"""Servers of one fleet: one of them asks the upstreams for an object."""
import concurrent.futures
import contextlib
import resource
import socket
import threading

import symsrv_harness as h
from symsrv_harness import check, equal, symsrv, test, upstream


@contextlib.contextmanager
def fleet(count, *options):
    """Servers that have each other as peers, with one configuration."""
    ports = [h.free_port() for _ in range(count)]
    peers = [word for port in ports for word in ("--peer", "http://127.0.0.1:%d/" % port)]
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(symsrv(*peers, "--self", "http://127.0.0.1:%d" % port, *options, port=port)) for port in ports]


def ask_at_once(nodes, path, count, answer_now):
    """The answers to `count` requests that all wait at the same time, spread over the nodes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    request = ("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path).encode()
    with contextlib.ExitStack() as stack:
        sockets = []
        for number in range(count):
            sockets.append(stack.enter_context(socket.create_connection(("127.0.0.1", nodes[number % len(nodes)].port))))
            sockets[-1].sendall(request)
        h.wait_until(lambda: sum(node.metric("symsrv_waiters") for node in nodes) >= count, "all requests wait")
        answer_now.set()
        return [b"".join(iter(lambda one=one: one.recv(65536), b"")) for one in sockets]


@test
def three_thousand_requests_for_a_cold_object_are_one_request_to_the_upstream():
    identity, answer_now = h.build_id(100), threading.Event()
    path, whole = "/buildid/%s/debuginfo" % identity, h.make_elf(identity, 20000)

    def answer(handler):
        answer_now.wait(h.WAIT_S)
        h.send(handler, whole)

    with upstream(answer) as server, fleet(3, "--upstream", "debuginfod=" + server.url) as nodes:
        answers = ask_at_once(nodes, path, 3000, answer_now)
        equal({(text[:15], text[text.index(b"\r\n\r\n") + 4:]) for text in answers}, {(b"HTTP/1.1 200 OK", whole)}, "answers")
        equal(len(server.requests), 1, "requests to the upstream")


@test
def a_fleet_asks_its_upstream_once_for_an_object_and_for_a_miss():
    hit, miss = h.build_id(101), h.build_id(102)
    whole = h.make_elf(hit, 20000)
    files = {"/buildid/%s/debuginfo" % hit: whole}
    with upstream(h.serve_files(files, delay_s=0.5)) as server:
        with fleet(3, "--upstream", "debuginfod=" + server.url) as nodes, concurrent.futures.ThreadPoolExecutor(60) as pool:
            answers = list(pool.map(lambda number: nodes[number % 3].debuginfo(hit), range(300)))
            equal({(status, body) for status, _, body in answers}, {(200, whole)}, "answers")
            equal(server.count("/buildid/%s/debuginfo" % hit), 1, "requests for the object")
            for _ in range(2):
                answers = list(pool.map(lambda number: nodes[number % 3].debuginfo(miss), range(60)))
                equal({(status, headers["cache-control"]) for status, headers, _ in answers}, {(404, "max-age=30")}, "misses")
            equal(server.count("/buildid/%s/debuginfo" % miss), 1, "requests for the miss")


@test
def a_fleet_asks_again_for_a_miss_when_it_is_forgotten():
    path = "/buildid/%s/debuginfo" % h.build_id(103)
    with upstream(h.serve_files({})) as server, fleet(3, "--upstream", "debuginfod=" + server.url, "--negative-ttl", "5") as nodes:
        def ask_all():
            equal({node.get(path)[0] for node in nodes}, {404}, "answers")
            return server.count(path)

        equal([ask_all(), ask_all()], [1, 1], "requests at first")
        h.wait_until(lambda: ask_all() > 1, "asked again")
        equal([ask_all(), ask_all()], [2, 2], "requests afterwards")


@test
def a_dead_owner_is_left_out():
    identities = [h.build_id(number) for number in range(110, 122)]
    files = {"/buildid/%s/debuginfo" % identity: h.make_elf(identity) for identity in identities}
    with upstream(h.serve_files(files)) as server, fleet(3, "--upstream", "debuginfod=" + server.url) as nodes:
        nodes[0].kill()
        for number, identity in enumerate(identities):
            equal(nodes[1 + number % 2].debuginfo(identity)[2], h.make_elf(identity), "with one node dead")
        for path in files:
            check(server.count(path) == 1, "%d requests for %s" % (server.count(path), path))


@test
def a_wrong_self_makes_no_object_missing():
    identities = [h.build_id(number) for number in range(130, 154)]
    files = {"/buildid/%s/debuginfo" % identity: h.make_elf(identity) for identity in identities}
    ports = [h.free_port() for _ in range(3)]
    peers = [word for port in ports for word in ("--peer", "http://127.0.0.1:%d" % port)]
    with upstream(h.serve_files(files)) as server, contextlib.ExitStack() as stack:
        # The second one has the first one's URL, so it is one of its own peers.
        nodes = [stack.enter_context(symsrv(*peers, "--self", "http://127.0.0.1:%d" % own, "--upstream", "debuginfod=" + server.url, port=port))
                 for port, own in zip(ports, (ports[0], ports[0], ports[2]))]
        for identity in identities:
            for node in nodes[1:] + nodes[:1]:
                status, _, body = node.debuginfo(identity)
                equal((status, body == h.make_elf(identity)), (200, True), "an object that the upstream has")
        equal({node.debuginfo(h.build_id(155))[1]["cache-control"] for node in nodes}, {"max-age=30"}, "a miss")
        equal([node.log_text().count("--self is not the URL") for node in nodes], [0, 1, 0], "lines in the log")


@test
def names_of_a_fleet_are_made_from_one_debug_file():
    from names_tests import libc_debug_file
    debug, identity = libc_debug_file()
    files = {"/buildid/%s/debuginfo" % identity: open(debug, "rb").read()}
    with upstream(h.serve_files(files)) as server, fleet(3, "--upstream", "debuginfod=" + server.url) as nodes:
        bodies = {node.get("/buildid/%s/symtab" % identity)[2] for node in nodes}
        equal(len(bodies), 1, "names")
        equal(len(server.requests), 1, "requests")
        equal({node.debuginfo(identity)[2] == files["/buildid/%s/debuginfo" % identity] for node in nodes}, {True}, "the file")
        equal(len(server.requests), 1, "requests")


@test
def peers_need_to_know_which_of_them_a_server_is():
    try:
        symsrv("--peer", "http://127.0.0.1:9").start()
    except RuntimeError as error:
        check("--peer: needs --self" in str(error), str(error))
    else:
        raise AssertionError("it started")
