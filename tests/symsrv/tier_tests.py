# SPDX-License-Identifier: MIT
"""An object store behind the disk: Swift's S3 or Ceph's (check_symsrv.py --store), which check signatures and checksums."""
import hashlib
import os
import signal
import socket
import tempfile
import threading

import symsrv_harness as h
from ceph_server import Ceph
from fleet_tests import ask_at_once, fleet
from s3_store import ACCESS_KEY, SECRET_KEY
from swift_server import Swift
from symsrv_harness import RUN, check, equal, good_upstream, symsrv, test, upstream


STORES = {"swift": Swift, "ceph": Ceph}


def real_store():
    return STORES[RUN.store](tempfile.mkdtemp(prefix=RUN.store + "-", dir=RUN.scratch))


def credentials(secret=SECRET_KEY, name="credentials"):
    path = os.path.join(RUN.scratch, name)
    with open(path, "w") as file:
        file.write("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\nregion = us-east-1\n" % (ACCESS_KEY, secret))
    return path


def tier(url, *more, file=None, bucket="symbols"):
    return ("--tier", "bucket@s3=%s/%s" % (url, bucket), "--credentials", "bucket=" + (file or credentials())) + more


def path_of(key):
    digest = hashlib.sha256(key.encode()).hexdigest()
    return "/objects/%s/%s" % (digest[:2], digest[2:])


def stored_in(store, key):
    """The object file in the bucket. It ends with the record of `key`."""
    body = store.object(path_of(key))
    check(body and ("\nkey: %s\n" % key).encode() in body[-600:], "the bucket has " + key)
    return body


@test
def an_object_store_behind_the_disk():
    with real_store() as store:
        serves_a_node_with_an_empty_disk(store)
        a_fleet_asks_its_upstream_once(store)
        a_better_file_is_not_replaced(store)
        failures_of_the_bucket_cost_no_client_an_answer(store)


def serves_a_node_with_an_empty_disk(store):
    one, two, gone = h.build_id(81), h.build_id(82), h.build_id(83)
    with good_upstream(one, two, size=100000) as server:
        with symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url)) as first:
            for identity in (one, two):
                equal(first.debuginfo(identity)[2], h.make_elf(identity, 100000), "from the upstream")
            equal(first.debuginfo(gone)[1]["cache-control"], "max-age=30", "a certain miss")
            h.wait_until(lambda: first.metric("symsrv_tier_stored_total") == 2, "uploads: " + first.log_text())
        # Without an upstream: a busy store may take longer than the server waits before it asks that too.
        with symsrv(*tier(store.url)) as second:
            status, headers, body = second.debuginfo(one)
            equal((status, body), (200, h.make_elf(one, 100000)), "from the bucket")
            equal(headers["x-symsrv-source"], "127.0.0.1:%d" % server.port, "its origin is kept")
            equal(second.metric("symsrv_tier_stored_total"), 0, "nothing is uploaded again")
        good, other = stored_in(store, "debuginfo/" + one), stored_in(store, "debuginfo/" + two)
        check(good.startswith(h.make_elf(one, 100000)), "the object file with its record")
        for forged in (other, good[:5000] + b"X" + good[5001:], good[:-20], b"x"):
            equal(store.request("PUT", path_of("debuginfo/" + one), body=forged), "200", "forged")
            with symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url)) as third:
                equal(third.debuginfo(one)[2], h.make_elf(one, 100000), "forged objects are not served")
                h.wait_until(lambda: third.metric("symsrv_tier_stored_total") == 1, "the good one replaces the forged one")


def a_fleet_asks_its_upstream_once(store):
    """3,000 requests to three nodes for an object that neither they nor the bucket have."""
    identity, miss, answer_now = h.build_id(96), h.build_id(97), threading.Event()
    path, whole = "/buildid/%s/debuginfo" % identity, h.make_elf(identity, 20000)
    serve = h.serve_files({path: whole})

    def answer(handler):
        answer_now.wait(h.WAIT_S)
        serve(handler)

    with upstream(answer) as server:
        with fleet(3, *tier(store.url, "--upstream", "debuginfod=" + server.url)) as nodes:
            answers = ask_at_once(nodes, path, 3000, answer_now)
            equal({(text[:15], text[text.index(b"\r\n\r\n") + 4:]) for text in answers}, {(b"HTTP/1.1 200 OK", whole)}, "answers")
            for node in nodes + nodes:
                status, headers, _ = node.debuginfo(miss)
                equal((status, headers["cache-control"]), (404, "max-age=30"), "a certain miss")
            h.wait_until(lambda: sum(node.metric("symsrv_tier_stored_total") for node in nodes) == 1, "one upload")
        equal(server.count(path), 1, "requests to the upstream for the object")
        equal(server.count("/buildid/%s/debuginfo" % miss), 1, "requests to the upstream for the miss")
    check(stored_in(store, "debuginfo/" + identity).startswith(whole), "the object file")
    with symsrv(*tier(store.url)) as program:
        equal(program.debuginfo(identity)[2], whole, "from the bucket, to a node with an empty disk")


def a_better_file_is_not_replaced(store):
    """A bucket that cannot be read for a moment: the node fetches a worse file elsewhere, and uploads later."""
    identity = h.build_id(84)
    better, worse = h.make_elf(identity, 5000, dwarf=True), h.make_elf(identity, 6000)
    path = "/buildid/%s/debuginfo" % identity
    with upstream(h.serve_files({path: better})) as server:
        with symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url)) as program:
            equal(program.debuginfo(identity)[2], better, "with DWARF")
            h.wait_until(lambda: program.metric("symsrv_tier_stored_total") == 1, "upload")
    with upstream(h.serve_files({path: worse})) as server:
        with symsrv(*tier(store.url, "--upstream", "debuginfod=" + server.url)) as program:
            store.signal(store.storage, signal.SIGSTOP)
            try:
                equal(program.debuginfo(identity)[2], worse, "while the bucket hangs")
            finally:
                store.signal(store.storage, signal.SIGCONT)
            h.wait_until(lambda: program.metric("symsrv_tier_kept_total") == 1, "not uploaded: " + program.log_text())
    check(stored_in(store, "debuginfo/" + identity).startswith(better), "the bucket keeps the better file")


def failures_of_the_bucket_cost_no_client_an_answer(store):
    known = h.build_id(85)
    with good_upstream(*[h.build_id(n) for n in range(85, 95)]) as server:
        ask = ("--upstream", "debuginfod=" + server.url)
        with socket.socket() as unbound, socket.socket() as silent:
            unbound.bind(("127.0.0.1", 0))
            silent.bind(("127.0.0.1", 0))
            silent.listen(64)
            cases = {
                "wrong secret": tier(store.url, *ask, file=credentials("wrong", "wrong")),
                "no such bucket": tier(store.url, *ask, bucket="none"),
                "refused": tier("http://127.0.0.1:%d" % unbound.getsockname()[1], *ask),
                "silence": tier("http://127.0.0.1:%d" % silent.getsockname()[1], *ask),
            }
            for name, options in cases.items():
                with symsrv(*options) as program:
                    equal(program.debuginfo(known)[2], h.make_elf(known), name)
                    status, headers, _ = program.debuginfo(h.build_id(1000))
                    equal((status, headers["cache-control"]), (404, "max-age=30"), name + ": a miss is certain")
                    equal(program.get("/readyz")[0], 200, name + ": ready")
                    if name == "wrong secret":
                        h.wait_until(lambda: program.metric("symsrv_tier_failed_total") == 1, "the upload failed")
                        text = program.log_text()
                        check("SignatureDoesNotMatch" in text, text)
        with symsrv(*tier(store.url, *ask)) as program:
            store.stop(store.storage)
            for number in range(87, 90):
                equal(program.debuginfo(h.build_id(number))[2], h.make_elf(h.build_id(number)), "without the storage")


@test
def a_tier_needs_its_credentials():
    for words in (("--tier", "b@s3=http://127.0.0.1:9/bucket"), ("--tier", "b@s3=http://127.0.0.1:9"),
                  ("--tier", "b@ssqp=http://127.0.0.1:9/x"), ("--upstream", "b@s3=http://127.0.0.1:9/bucket")):
        try:
            symsrv(*words).start()
        except RuntimeError:
            continue
        raise AssertionError("started with " + " ".join(words))
