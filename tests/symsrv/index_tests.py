# SPDX-License-Identifier: MIT
"""Files in directories beside the objects of upstreams, and the messages on standard error."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, symsrv, test, upstream


def directory_with(**files):
    """A new directory; `name=bytes`, of which '__' is a dot."""
    directory = tempfile.mkdtemp(prefix="index-", dir=RUN.scratch)
    for name, content in files.items():
        with open(os.path.join(directory, name.replace("__", ".")), "wb") as file:
            file.write(content)
    return directory


# ---- symbolic links ----

@test
def links_in_an_indexed_directory_are_not_followed():
    """SSQP and debuginfod clients must not get files that the directory does not hold."""
    outside, inside, later = h.build_id(990), h.build_id(991), h.build_id(992)
    hidden = directory_with(secret=h.make_elf(outside, code=True))
    index = directory_with(real=h.make_elf(inside, code=True))
    os.symlink(os.path.join(hidden, "secret"), os.path.join(index, "file"))
    os.symlink(hidden, os.path.join(index, "directory"))
    os.mkdir(os.path.join(index, "sub"))
    with open(os.path.join(index, "sub", "later"), "wb") as file:
        file.write(h.make_elf(later, code=True))
    entrance = os.path.join(RUN.scratch, "entrance")
    os.symlink(index, entrance)
    with symsrv("--index", entrance) as program:
        executable = "/buildid/%s/executable"
        equal(program.get(executable % inside)[0], 200, "over the link that the operator named")
        equal(program.get(executable % outside)[0], 404, "over a link in the directory")
        # After the scan: another directory with the same file is put in its place.
        os.rename(os.path.join(index, "sub"), os.path.join(hidden, "sub"))
        os.symlink(os.path.join(hidden, "sub"), os.path.join(index, "sub"))
        check(program.get(executable % later)[0] != 200, "a directory that became a link")
    os.unlink(entrance)


@test
def links_in_a_store_are_refused_and_not_scrubbed():
    """A user who may write to a store must not get files elsewhere removed by the administrator's --scrub."""
    victim = directory_with(precious=b"not an object")
    with symsrv() as program:
        pass
    shelf = os.path.join(program.store, "objects", "7f")
    os.rmdir(shelf)
    os.symlink(victim, shelf)
    scrubbed = subprocess.run([RUN.program, "--scrub", "--store", program.store], capture_output=True, text=True)
    check(os.path.exists(os.path.join(victim, "precious")), "a file outside of the store was removed")
    equal(scrubbed.returncode, 1, "exit status of the scrub")
    check("objects/7f: cannot be read" in scrubbed.stdout, "what could not be read is named: " + scrubbed.stdout)
    served = subprocess.run([RUN.program, "--store", program.store, "--listen", "unix:" + program.store + "/socket"],
                            capture_output=True, text=True, timeout=h.WAIT_S)
    equal(served.returncode, 1, "exit status of the server")
    check(os.path.exists(os.path.join(victim, "precious")), "a file outside of the store was removed")


# ---- a program here, its debug file elsewhere ----

@test
def a_symbol_table_here_does_not_hide_the_debug_file_of_an_upstream():
    here, there, alone = h.build_id(901), h.build_id(902), h.build_id(903)
    program_files = {name: h.make_elf(identity, code=True) for name, identity in (("one", here), ("two", alone))}
    program_files["three"] = h.make_elf(there, dwarf=True, code=True)
    debug_file = h.make_elf(here, 9000, dwarf=True)
    better = {path: debug_file for path in h.debug_paths(here)}
    better.update({path: h.make_elf(there, 7000, dwarf=True) for path in h.debug_paths(there)})
    index = directory_with(**program_files)
    with upstream(h.serve_files(better)) as server, \
            symsrv("--index", index, "--upstream", "debuginfod=" + server.url) as program:
        equal(program.debuginfo(here)[::2], (200, debug_file), "the better one")
        equal(program.get("/buildid/%s/section/.debug_info" % here)[0], 200, "its section")
        equal(program.get("/buildid/%s/executable" % here)[::2], (200, program_files["one"]), "the program")
        equal(program.debuginfo(there)[::2], (200, program_files["three"]), "what is whole here")
        equal(server.count(h.debug_paths(there)[0]), 0, "nobody is asked for it")
        for _ in range(3):
            equal(program.debuginfo(alone)[::2], (200, program_files["two"]), "where nobody has a better one")
            equal(program.get("/buildid/%s/section/.symtab" % alone)[0], 200, "its symbols")
            equal(program.get("/buildid/%s/section/.debug_info" % alone)[0], 404, "what it does not have")
        equal(server.count(h.debug_paths(alone)[0]), 1, "asked once")


@test
def a_symbol_table_here_serves_while_the_upstream_is_away():
    identity, answers = h.build_id(904), {"status": 500}
    content, better = h.make_elf(identity, code=True), h.make_elf(identity, 9000, dwarf=True)

    def answer(handler):
        h.send(handler, better if answers["status"] == 200 else b"", answers["status"])

    with upstream(answer) as server, \
            symsrv("--index", directory_with(one=content), "--upstream", "debuginfod=" + server.url, "--retries", "0") as program:
        status, headers, body = program.debuginfo(identity)
        equal((status, body, headers["cache-control"]), (200, content, "no-store"), "what is here")
        equal(program.get("/buildid/%s/section/.debug_info" % identity, headers={"User-Agent": "test"})[0], 503, "not certain")
        answers["status"] = 200
        status, headers, body = program.debuginfo(identity)
        equal((status, body), (200, better), "at once when it is back")
        check("max-age=86400" in headers["cache-control"], headers["cache-control"])


@test
def another_symsrv_is_not_given_what_may_not_be_the_best():
    identity, answers = h.build_id(906), {"status": 500}
    content, better = h.make_elf(identity, code=True), h.make_elf(identity, 9000, dwarf=True)

    def answer(handler):
        h.send(handler, better if answers["status"] == 200 else b"", answers["status"])

    with upstream(answer) as server, \
            symsrv("--index", directory_with(one=content), "--upstream", "debuginfod=" + server.url, "--retries", "0") as inner, \
            symsrv("--upstream", "symsrv=" + inner.url, "--retries", "0") as outer:
        equal(inner.debuginfo(identity)[::2], (200, content), "to a client")
        equal(outer.debuginfo(identity, headers={"User-Agent": "test"})[0], 503, "to another symsrv")
        answers["status"] = 200
        equal(outer.debuginfo(identity)[::2], (200, better), "when the upstream is back")


@test
def another_symsrv_is_not_given_a_program_while_its_debug_file_is_away():
    identity = h.build_id(911)
    content, better = h.make_elf(identity, code=True), h.make_elf(identity, 9000, dwarf=True)
    debug_files = directory_with(two=better)
    with symsrv("--index", directory_with(one=content), "--index", debug_files) as inner, \
            symsrv("--upstream", "symsrv=" + inner.url, "--retries", "0") as outer:
        os.rename(debug_files, debug_files + ".away")
        inner.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: inner.debuginfo(identity)[::2] == (200, content), "the program is served")
        equal(outer.debuginfo(identity, headers={"User-Agent": "test"})[0], 503, "to another symsrv")
        os.rename(debug_files + ".away", debug_files)
        inner.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: inner.debuginfo(identity)[::2] == (200, better), "it is back")
        equal(outer.debuginfo(identity)[::2], (200, better), "to another symsrv, then")


@test
def another_symsrv_is_not_given_a_program_while_its_debug_file_is_elsewhere():
    identity = h.build_id(912)
    content, better = h.make_elf(identity, code=True), h.make_elf(identity, 9000, dwarf=True)
    debug_files = directory_with(two=better)
    with symsrv("--index", directory_with(one=content), "--index", debug_files) as inner, \
            symsrv("--upstream", "symsrv=" + inner.url, "--retries", "0") as outer:
        os.rename(os.path.join(debug_files, "two"), os.path.join(debug_files, "three"))
        status, _, body = outer.debuginfo(identity, headers={"User-Agent": "test"})
        check(body != content, "%d, and the program" % status)
        inner.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: inner.debuginfo(identity)[::2] == (200, better), "it is found")
        equal(outer.debuginfo(identity)[::2], (200, better), "to another symsrv, then")


# ---- directories that are away, odd names, copies ----

@test
def what_is_in_a_directory_that_cannot_be_read_is_not_missing_for_certain():
    identity = h.build_id(905)
    directory = directory_with(one=h.make_elf(identity))
    away = directory + ".away"
    with symsrv("--index", directory) as program:
        equal(program.debuginfo(identity)[0], 200, "there")
        os.rename(directory, away)
        program.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: program.debuginfo(h.build_id(999), headers={"User-Agent": "test"})[0] == 503, "nobody knows")
        complete = json.loads(program.get("/metadata?key=buildid&value=" + identity)[2])["complete"]
        equal(complete, False, "metadata")
        os.rename(away, directory)
        h.wait_until(lambda: program.debuginfo(h.build_id(999))[0] == 404, "it is seen that it is back")
        equal(program.debuginfo(identity)[0], 200, "there again")


@test
def neither_is_what_was_in_a_directory_below_that_cannot_be_read_any_more():
    """Each state is asked for a file of its own: one that was served is served for five seconds."""
    first, second, third, other = (h.build_id(number) for number in (906, 913, 914, 907))
    directory = directory_with(one=h.make_elf(other))
    store = tempfile.mkdtemp(dir=RUN.scratch)
    inner, locked = os.path.join(directory, "inner"), os.path.join(directory, "locked")
    os.mkdir(inner)
    os.mkdir(locked)
    for identity in first, second, third:
        with open(os.path.join(inner, identity), "wb") as file:
            file.write(h.make_elf(identity))
    h.give_to_nobody(directory)
    h.give_to_nobody(store)
    os.chmod(locked, 0)
    with symsrv("--index", directory, store=store, preexec=h.become_nobody) as program:
        equal(program.debuginfo(first)[0], 200, "there")
        equal(program.debuginfo(h.build_id(999))[0], 404, "what never could be read is no reason to doubt")
        os.chmod(inner, 0)
        for _ in range(2):
            program.process.send_signal(signal.SIGUSR1)
            h.wait_until(lambda: program.debuginfo(second, headers={"User-Agent": "test"})[0] == 503, "nobody knows")
            equal(program.debuginfo(other)[0], 200, "what can be read")
        os.chmod(inner, 0o755)
        program.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: program.debuginfo(h.build_id(999))[0] == 404, "it is seen that it is back")
        equal(program.debuginfo(second)[0], 200, "there again")
        shutil.rmtree(inner)
        program.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: program.debuginfo(third)[1].get("cache-control") == "max-age=30", "what is gone is missing")
        os.chmod(locked, 0o755)


@test
def names_of_files_do_not_matter_where_no_request_has_them():
    identity = h.build_id(906)
    directory = directory_with(one=h.make_elf(identity))
    os.rename(os.path.join(directory, "one"), os.path.join(directory, "o\tn\ne"))
    with symsrv("--index", directory) as program:
        equal(program.debuginfo(identity)[0], 200, "a control character")
    name = "lib_"
    files = {"/%s/elf-buildid-%s/%s" % (name, h.build_id(907), name): h.make_elf(h.build_id(907), code=True)}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        equal(program.get("/symbols/%s/elf-buildid-%s/%s" % (name, h.build_id(907), name))[0], 200, "an underscore")
        equal(program.get("/symbols/a.pdb/%s1/a.pd_" % ("0" * 32))[0], 404, "a compressed file")


@test
def metadata_tells_every_copy():
    identity = h.build_id(908)
    directory = directory_with(one=h.make_elf(identity), two=h.make_elf(identity))
    with symsrv("--index", directory) as program:
        for key, value in (("buildid", identity), ("glob", directory + "/*")):
            results = json.loads(program.get("/metadata?key=%s&value=%s" % (key, value))[2])["results"]
            equal(sorted(os.path.basename(result["file"]) for result in results), ["one", "two"], key)


# ---- a symsrv behind another ----

@test
def what_the_inner_one_does_not_know_does_not_open_the_outer_ones_breaker():
    here = h.build_id(909)

    def fail(handler):
        h.send(handler, b"", 500)

    for how in "503", "reset":
        with upstream(fail) as server, \
                symsrv("--index", directory_with(one=h.make_elf(here, dwarf=True)), "--upstream", "debuginfod=" + server.url,
                       "--retries", "0", "--transient", how) as inner, \
                symsrv("--upstream", "symsrv=" + inner.url, "--retries", "0") as outer:
            for number in range(8):
                equal(outer.debuginfo(h.build_id(920 + number), headers={"User-Agent": "test"})[0], 503, "not certain")
            equal(outer.debuginfo(here)[0], 200, "what the inner one has, " + how)


# ---- options, standard error ----

@test
def wrong_values_of_options_end_with_2():
    for words in (["--upstream", "foo"], ["--trust", "nobody"], ["--credentials", "nobody=/x"], ["--deny-net", "10.0.0.0/99"],
                  ["--allow-net", "x"], ["--listen", "nowhere"], ["--listen", "127.0.0.1:99999"], ["--listen", "unix:relative"]):
        store = os.path.join(tempfile.mkdtemp(dir=RUN.scratch), "store")
        done = subprocess.run([RUN.program, "--store", store, "--listen", "127.0.0.1:%d" % h.free_port(), *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
        check(done.returncode == 2 and "--help" in done.stderr, "%s: %d, %s" % (words, done.returncode, done.stderr))


def ask_nonsense(program, count):
    """Each of another kind that libmicrohttpd itself refuses, or is cut."""
    for number in range(count):
        with socket.create_connection(("127.0.0.1", program.port), timeout=10) as connection:
            connection.sendall((b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", b"BAD\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                                b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                                b"GET /\0 HTTP/1.1\r\n\r\n")[number % 6])
            connection.shutdown(socket.SHUT_WR)
            try:
                connection.recv(4096)
            except ConnectionResetError:
                pass


@test
def what_clients_send_does_not_fill_the_log():
    with symsrv() as program:
        ask_nonsense(program, 300)
        lines = program.log_text().count("\n")
        check(lines < 10, "%d lines: %s" % (lines, program.log_text()[:600]))


@test
def a_pipe_that_nobody_reads_stops_nothing():
    stop_nothing(*os.pipe())


@test
def a_socket_that_nobody_reads_stops_nothing():
    stop_nothing(*[end.detach() for end in socket.socketpair()])


def is_ready(program):
    try:
        return program.get("/readyz", timeout=1)[0] == 200
    except OSError:
        return False


def stop_nothing(read_end, write_end):
    port = h.free_port()
    store = tempfile.mkdtemp(dir=RUN.scratch)
    program = h.Symsrv(RUN.program, RUN.scratch, port=port, store=store)

    def fail(handler):
        h.send(handler, b"", 403 if len(server.requests) % 2 else 418)

    with upstream(fail) as server:
        program.process = subprocess.Popen([RUN.program, "--store", store, "--listen", "127.0.0.1:%d" % port, "--access-log", "-",
                                            "--upstream", "debuginfod=" + server.url], stderr=write_end)
        os.close(write_end)
        try:
            h.wait_until(lambda: is_ready(program), "ready")
            for number in range(1200):
                program.debuginfo(h.build_id(2000 + number), timeout=10)
            equal(program.get("/healthz", timeout=10)[0], 200, "it answers")
            program.process.terminate()
            program.process.wait(20)
        finally:
            program.process.kill()
            program.process.wait()
            os.close(read_end)


@test
def a_redirect_to_an_address_that_leads_to_another_network_is_denied():
    for host in ("[fec0::1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[100::1]"):
        def answer(handler, host=host):
            h.send(handler, b"", 302, [("Location", "http://%s:9/x" % host)])

        with upstream(answer) as server, symsrv("--upstream", "debuginfod=" + server.url, "--retries", "0", "--connect-timeout", "1") as program:
            program.debuginfo(h.build_id(950), headers={"User-Agent": "test"})
            check("must not be reached" in program.log_text(), "%s: %s" % (host, program.log_text()))
