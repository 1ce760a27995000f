# SPDX-License-Identifier: MIT
"""Crashes, damage, full disks, reload, stop, and the server's reports."""
import contextlib
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, good_upstream, symsrv, test, upstream

TARGET = h.build_id(100)


# ---- crashes and full disks ----

@test
def kill_9_never_leaves_half_an_object():
    kill_at_random_moments(200 if RUN.long else 40)
    equal(WRONG, [], "a wrong body was served")


def kill_at_random_moments(rounds):
    """Kills the server while eight objects of 400 KB arrive; afterwards everything must be whole. Wrong bodies go to WRONG."""
    identities = [h.build_id(2000 + i) for i in range(8)]
    files = {h.debug_paths(i)[0]: h.make_elf(i, 400000) for i in identities}
    random.seed(1)
    with upstream(h.serve_files(files)) as server:
        program = symsrv("--upstream", "debuginfod=" + server.url)
        for turn in range(rounds):
            program.start()
            threads = [threading.Thread(target=quietly, args=(program, i)) for i in identities]
            for thread in threads:
                thread.start()
            time.sleep(random.uniform(0, 0.08))
            program.kill()
            for thread in threads:
                thread.join()
            program.log.close()
            if turn % 4 == 3:
                shutil.rmtree(os.path.join(program.store, "objects"))
        with program:
            equal(os.listdir(os.path.join(program.store, "tmp")), [], "tmp is empty after a start")
            for i in identities:
                equal(program.debuginfo(i)[2], files[h.debug_paths(i)[0]], "body")
        scrubbed = subprocess.run([RUN.program, "--scrub", "--store", program.store], capture_output=True, text=True)
        equal(scrubbed.returncode, 0, scrubbed.stdout)


WRONG = []


def quietly(program, identity):
    try:
        status, _, body = program.debuginfo(identity, timeout=5)
        if status == 200 and body != h.make_elf(identity, 400000):
            WRONG.append(identity)
    except Exception:  # noqa: BLE001 - the server was killed
        pass


@test
def scrubbing_finds_damage():
    identities = [h.build_id(600 + i) for i in range(4)]
    with good_upstream(*identities) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        for identity in identities:
            equal(program.debuginfo(identity)[0], 200, "fetch")
        victims = program.stored_files()[:2]
        with open(victims[0], "r+b") as file:
            file.seek(1000)
            file.write(b"damage")
        os.truncate(victims[1], 100)
        result = subprocess.run([RUN.program, "--scrub", "--store", program.store], capture_output=True, text=True)
        equal(result.returncode, 3, "exit status")
        check("checksum differs" in result.stdout and "2 objects good" in result.stdout and "2 removed" in result.stdout,
              result.stdout)
        again = subprocess.run([RUN.program, "--scrub", "--store", program.store], capture_output=True, text=True)
        equal(again.returncode, 0, "clean afterwards")
    with symsrv("--upstream", "ssqp=" + "http://127.0.0.1:1", store=program.store) as restarted:
        good = [i for i in identities if restarted.debuginfo(i)[0] == 200]
        equal(len(good), 2, "objects that are left")


@test
def the_store_keeps_its_size():
    identities = [h.build_id(700 + i) for i in range(40)]
    with good_upstream(*identities, size=100000) as server:
        with symsrv("--upstream", "ssqp=" + server.url, "--max-bytes", "1M") as program:
            for identity in identities:
                status, _, body = program.debuginfo(identity)
                equal((status, body), (200, h.make_elf(identity, 100000)), "object")
            total = sum(os.path.getsize(path) for path in program.stored_files())
            check(500000 < total <= 1 << 20, "the store has %d bytes" % total)


@test
def a_full_disk_costs_the_fetch_and_nothing_else():
    small, large = h.build_id(800), h.build_id(801)
    files = {h.debug_paths(small)[0]: h.make_elf(small), h.debug_paths(large)[0]: h.make_elf(large, 3 << 20)}

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    with upstream(h.serve_files(files)) as server:
        with symsrv("--upstream", "debuginfod=" + server.url, preexec=limit) as program:
            equal(program.debuginfo(small)[0], 200, "small")
            equal(program.debuginfo(large)[0], 503, "what does not fit may pass")
            equal(program.debuginfo(small)[2], files[h.debug_paths(small)[0]], "the server goes on")
            equal(os.listdir(os.path.join(program.store, "tmp")), [], "tmp")
        with symsrv("--upstream", "debuginfod=" + server.url, "--max-bytes", "1M") as program:
            equal(program.debuginfo(large)[0], 503, "larger than the store")
            equal(program.debuginfo(small)[0], 200, "small")
        disk = tempfile.mkdtemp(dir=RUN.scratch)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True).returncode:
            print("   (no tmpfs here: a really full disk was not tried)")
            return
        try:
            with symsrv("--upstream", "debuginfod=" + server.url, store=disk + "/store") as program:
                equal({program.debuginfo(large)[0] for _ in range(5)}, {503}, "full")
                lines = [line for line in program.log_text().splitlines() if "store:" in line or "in the store" in line]
                equal(len(lines), 1, "lines in the log: %s" % lines)
                equal(program.debuginfo(small)[2], files[h.debug_paths(small)[0]], "small on a small disk")
                equal(len(program.stored_files()), 1, "objects")
        finally:
            subprocess.run(["umount", disk], check=True)


@test
def an_object_larger_than_the_store_pushes_nothing_out():
    small, large = [h.build_id(810 + i) for i in range(6)], h.build_id(820)
    files = {h.debug_paths(i)[0]: h.make_elf(i, 50000) for i in small}
    body = h.make_elf(large, 3 << 20)

    def told(handler):
        h.send(handler, body)

    def untold(handler):
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)

    for way in (told, untold):
        with upstream(lambda r, way=way: way(r) if large in r.path else h.serve_files(files)(r)) as server:
            with symsrv("--upstream", "debuginfod=" + server.url, "--max-bytes", "1M") as program:
                equal([program.debuginfo(i)[0] for i in small], [200] * len(small), "small")
                equal(program.debuginfo(large)[0], 503, "large")
                equal(program.metric("symsrv_store_evicted_total"), 0, "objects pushed out")


@test
def the_store_is_counted_before_directories_are_scanned():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    for i in range(20000):
        with open(os.path.join(directory, "f%d" % i), "wb") as file:
            file.write(b"\x7fELF")
    with good_upstream(TARGET) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        equal(program.debuginfo(TARGET)[0], 200, "fetch")
    program = symsrv("--index", directory, store=program.store)
    program.start(wait=False)
    try:
        seen, deadline = set(), time.monotonic() + h.WAIT_S
        while (1, 20000) not in seen and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                known = program.get("/metadata?key=buildid&value=" + TARGET)[2]
                lines = dict(line.rsplit(" ", 1) for line in program.get("/metrics")[2].decode().splitlines() if line[0] != "#")
                seen.add((int(lines["symsrv_store_objects"]), int(lines["symsrv_index_files_seen"])))
                check(b'"complete":false' in known or lines["symsrv_index_files_seen"] != "0", "complete before the scan is through")
        check((1, 0) in seen, "objects and files counted: %s" % seen)
    finally:
        program.__exit__()


# ---- running it ----

@test
def reload_and_stop_lose_no_request():
    identity = h.build_id(900)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "f"), "wb") as file:
        file.write(h.make_elf(identity, 200000))
    config = os.path.join(RUN.scratch, "config")
    with open(config, "w") as file:
        file.write("# nothing yet\n")
    results, stop = [], threading.Event()

    def ask(program):
        while not stop.is_set():
            try:
                results.append(program.debuginfo(identity)[0])
            except OSError as error:
                results.append(error)

    slow = h.build_id(901)
    with upstream(h.serve_files({h.debug_paths(slow)[0]: h.make_elf(slow)}, delay_s=1.5)) as server:
        with symsrv("--index", directory, "--config", config) as program:
            threads = [threading.Thread(target=ask, args=(program,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            equal(program.debuginfo(slow)[0], 404, "no upstream yet")
            with open(config, "w") as file:
                file.write("upstream debuginfod=%s\n" % server.url)
            for i in range(10):
                program.process.send_signal(signal.SIGHUP)
                asked = len(results)
                h.wait_until(lambda: program.metric("symsrv_reloads_total") > i and len(results) >= asked + 6, "it is read again, among requests")
            with open(config, "w") as file:
                file.write("nonsense\n")
            program.process.send_signal(signal.SIGHUP)
            h.wait_until(lambda: program.metric("symsrv_failed_reloads_total") == 1, "a bad configuration is refused")
            late = []
            waiter = threading.Thread(target=lambda: late.append(program.debuginfo(slow)[0]))
            waiter.start()
            h.wait_until(lambda: server.requests, "the upstream is asked")
            stop.set()
            for thread in threads:
                thread.join()
            program.process.send_signal(signal.SIGTERM)
            waiter.join()
            equal(late, [200], "a request under way when it was told to stop")
            equal(program.process.wait(h.WAIT_S), 0, "exit status")
        equal(set(results), {200}, "answers during reloads")


@test
def what_an_old_configuration_misses_is_asked_for_again():
    """A fetch is under way when the configuration gets another upstream: later requests do not get the old one's answer."""
    identity = h.build_id(905)
    config = os.path.join(RUN.scratch, "config-of-one")
    release = threading.Event()

    def miss(handler):
        release.wait(h.WAIT_S)
        h.send(handler, b"no", 404)

    with upstream(miss) as old, upstream(h.serve_files({h.debug_paths(identity)[0]: h.make_elf(identity)})) as new:
        with open(config, "w") as file:
            file.write("upstream debuginfod=%s\n" % old.url)
        with symsrv("--config", config) as program:
            asked = [[], []]
            askers = [threading.Thread(target=lambda said: said.append(program.debuginfo(identity)[0]), args=(said,)) for said in asked]
            askers[0].start()
            h.wait_until(lambda: old.requests, "the old upstream is asked")
            with open(config, "w") as file:
                file.write("upstream debuginfod=%s\n" % new.url)
            program.process.send_signal(signal.SIGHUP)
            h.wait_until(lambda: program.metric("symsrv_reloads_total") == 1, "it is read again")
            askers[1].start()
            h.wait_until(lambda: program.metric("symsrv_waiters") == 2, "both wait")
            release.set()
            for asker in askers:
                asker.join()
            equal(asked[0] in ([503], [200]), True, "who asked before the change gets no certain miss: %s" % asked[0])
            equal(asked[1], [200], "who asked after the change")
            equal(program.debuginfo(identity)[0], 200, "later")


@test
def a_directory_that_comes_with_a_reload_is_waited_for():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    identity = h.build_id(906)
    for i in range(4000):
        with open(os.path.join(directory, "%05d" % i), "wb") as file:
            file.write(h.make_elf(h.build_id(10000 + i), 4096))
    os.mkdir(os.path.join(directory, "last"))
    with open(os.path.join(directory, "last", "wanted"), "wb") as file:
        file.write(h.make_elf(identity))
    config = os.path.join(RUN.scratch, "config-with-index")
    open(config, "w").close()
    with symsrv("--config", config) as program:
        equal(program.debuginfo(identity)[0], 404, "nothing is here")
        with open(config, "w") as file:
            file.write("index %s\n" % directory)
        program.process.send_signal(signal.SIGHUP)
        h.wait_until(lambda: program.metric("symsrv_reloads_total") == 1, "it is read again")
        statuses = []
        h.wait_until(lambda: statuses.append(program.debuginfo(identity)[0]) or statuses[-1] == 200, "it is scanned")
        check(set(statuses) <= {200, 503}, "while it is scanned: %s" % set(statuses))


@test
def sockets_can_be_handed_over():
    identity = h.build_id(902)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    with open(os.path.join(directory, "f"), "wb") as file:
        file.write(h.make_elf(identity))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def hand_over():
            os.dup2(listener.fileno(), 3)
            os.environ["LISTEN_PID"] = str(os.getpid())

        script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"'
        store = tempfile.mkdtemp(dir=RUN.scratch)
        process = subprocess.Popen(["sh", "-c", script, RUN.program, "--store", store, "--index", directory],
                                   preexec_fn=hand_over, pass_fds=(3,) if listener.fileno() == 3 else (3, listener.fileno()),
                                   stderr=subprocess.DEVNULL)
        try:
            program = symsrv(port=port)
            h.wait_until(lambda: program.debuginfo(identity)[0] == 200, "an answer over the socket that was handed over")
        finally:
            process.send_signal(signal.SIGTERM)
            equal(process.wait(h.WAIT_S), 0, "exit status")


@test
def what_it_says_of_itself():
    with good_upstream(TARGET) as server:
        log = os.path.join(RUN.scratch, "access")
        with symsrv("--upstream", "good@ssqp=" + server.url, "--access-log", log) as program:
            program.debuginfo(TARGET, headers={"User-Agent": 'evil" agent'})
            program.get("/symbols/%3Cscript%3E.dll/9757F3A636c00/%3Cscript%3E.dll")
            page = program.get("/")[2].decode()
            check("<script" not in page.lower() and "&lt;script" not in page.lower(), "raw paths are shown as they came")
            check("good" in page and "ssqp" in page, "the page names the upstream")
            check(TARGET in program.get("/?id=" + TARGET[:8])[2].decode(), "look-up by the beginning of an id")
            check("&lt;b&gt;" in program.get("/?id=%3Cb%3E")[2].decode(), "what is looked up is escaped")
            equal(program.get("/version")[2].split()[0], b"symsrv", "version")
            text = program.get("/metrics")[2].decode()
            names = set()
            for line in text.splitlines():
                if line.startswith("# TYPE"):
                    check(line.split()[2] not in names, "family twice: " + line)
                    names.add(line.split()[2])
                elif not line.startswith("#"):
                    float(line.split()[-1])
            if h.find_tool("promtool"):
                subprocess.run(["promtool", "check", "metrics"], input=text.encode(), check=True, capture_output=True)
        lines = open(log).read().splitlines()
        first = [line for line in lines if TARGET in line][0]
        check('status=200' in first and 'source="good"' in first and r'agent="evil\x22 agent"' in first, first)


@test
def an_access_log_that_takes_nothing_holds_nobody_up():
    fifo = os.path.join(RUN.scratch, "access-fifo")
    os.mkfifo(fifo)
    command = [RUN.program, "--store", os.path.join(RUN.scratch, "unlogged"), "--listen", "127.0.0.1:0", "--access-log", fifo]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=h.WAIT_S)
    equal(refused.returncode, 1, refused.stderr)
    check(fifo in refused.stderr, refused.stderr)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    lines = b""

    def has(word):
        nonlocal lines
        try:
            lines += os.read(reader, 1 << 16)
        except BlockingIOError:
            pass
        return word in lines

    with symsrv("--access-log", fifo) as program:
        program.get("/first")
        h.wait_until(lambda: has(b"/first"), "the first line")
        os.close(reader)
        program.get("/nobody")
        h.wait_until(lambda: "lines are lost" in program.log_text(), "the loss is logged, once")
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        program.get("/last")
        h.wait_until(lambda: has(b"/last"), "the last line")
        check(b"lost=1" in lines, lines.decode())
    os.close(reader)


@test
def the_manual_has_every_option_and_no_other():
    text = subprocess.run([RUN.program, "--help"], capture_output=True, text=True, check=True).stdout
    listed = {line.split()[0] for line in text.splitlines() if line.startswith("  --")}
    manual = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../symsrv/symsrv.8")
    described = {"-" + line.split()[2].replace("\\", "") for line in open(manual) if line.startswith(".It Fl")}
    equal(sorted(described), sorted(listed), "options")
    for wrong in (["--nope"], [], ["--store"], ["--store", os.path.join(RUN.scratch, "unused"), "--upstream", "ftp=x"]):
        equal(subprocess.run([RUN.program, *wrong], capture_output=True).returncode in (1, 2), True, str(wrong))
