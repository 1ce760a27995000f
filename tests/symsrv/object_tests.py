# SPDX-License-Identifier: MIT
"""The served objects; both protocols serve them."""
import os
import signal
import subprocess
import tempfile
import threading

import symsrv_harness as h
from symsrv_harness import RUN, check, equal, good_upstream, symsrv, test, upstream


# ---- one object, both protocols ----

@test
def both_protocols_give_the_same_bytes_from_either_kind_of_upstream():
    one, two = h.build_id(1), h.build_id(2)
    with good_upstream(one, two) as server:
        for kind in ("ssqp", "debuginfod"):
            with symsrv("--upstream", "%s=%s" % (kind, server.url)) as program:
                for identity in (one, two):
                    whole = h.make_elf(identity)
                    paths = ["/buildid/%s/debuginfo" % identity,
                             "/symbols/_.debug/elf-buildid-sym-%s/_.debug" % identity.upper(),
                             "/symbols/_.debug%%2Felf-buildid-sym-%s%%2f_.debug" % identity]
                    for path in paths:
                        status, headers, body = program.get(path)
                        equal((status, body), (200, whole), path)
                        equal(headers["x-debuginfod-size"], str(len(whole)), "size header")
                        equal(headers["content-length"], str(len(whole)), "length")
                equal(len(server.requests) % 2, 0, "one request for each object")
    equal(len(server.requests), 4, "upstream requests")


@test
def head_ranges_and_tags():
    identity = h.build_id(3)
    whole = h.make_elf(identity, 300000)
    with good_upstream(identity, size=300000) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        status, headers, body = program.debuginfo(identity, method="HEAD")
        equal((status, body, headers["content-length"]), (200, b"", str(len(whole))), "HEAD")
        tag = headers["etag"]

        def ask(**wanted):
            return program.debuginfo(identity, headers={k.replace("_", "-"): v for k, v in wanted.items()})

        equal(ask(If_None_Match=tag)[0], 304, "If-None-Match")
        equal(ask(If_None_Match='"other"')[0], 200, "another tag")
        equal(ask(If_Modified_Since=headers["last-modified"])[0], 304, "If-Modified-Since")
        equal(ask(If_Modified_Since=headers["last-modified"], If_None_Match='"other"')[0], 200, "the tag decides")
        equal(ask(If_Modified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0], 200, "modified since")
        status, headers, body = ask(Range="bytes=100-199")
        equal((status, body, headers["content-range"]), (206, whole[100:200], "bytes 100-199/%d" % len(whole)), "range")
        equal(ask(Range="bytes=-7")[2], whole[-7:], "suffix")
        equal(ask(Range="bytes=%d-" % len(whole))[0], 416, "behind the end")
        equal(ask(Range="bytes=0-1,5-6")[2], whole, "several ranges: everything")
        equal(ask(Range="bytes=5-9", If_Range=tag)[2], whole[5:10], "If-Range holds")
        equal(ask(Range="bytes=5-9", If_Range='"other"')[2], whole, "If-Range does not hold")
        equal(ask(X_DEBUGINFOD_MAXSIZE="1000")[0], 406, "MAXSIZE")
        if h.find_tool("curl"):
            target = os.path.join(RUN.scratch, "resumed")
            with open(target, "wb") as file:
                file.write(whole[:12345])
            subprocess.run(["curl", "-sfC", "-", "-o", target, program.url + "/buildid/%s/debuginfo" % identity], check=True)
            equal(open(target, "rb").read(), whole, "curl -C -")


@test
def files_of_other_kinds():
    image, name = h.make_pe(0x9757F3A6, 0x36C00), "System.Sample.dll"
    guid = "00112233445566778899aabbccddeeff"
    text = b"FFFFFFFF 00 " + guid.upper().encode() + b"\nFFFFFFFE 00 1\nFFFFFFFD 00 2\n00001000 0D N.T::M()\n"
    source = b"class C {}\n"
    import hashlib
    digest = hashlib.sha1(source).hexdigest()
    files = {
        "/system.sample.dll/9757F3A636c00/system.sample.dll": image,
        "/a.ni.r2rmap/r2rmap-v1-%s/a.ni.r2rmap" % guid: text,
        "/cut.ni.r2rmap/r2rmap-v1-%s/cut.ni.r2rmap" % guid: text[:-4],
        "/c.cs/sha1-%s/c.cs" % digest: source,
        "/Mixed.dll/11111111200/Mixed.dll": h.make_pe(0x11111111, 0x200),
        "/Made.pdb/%s1/Made.pdb" % guid.upper(): h.make_pdb(guid, 1),
    }
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        equal(program.get("/symbols/%s/9757f3a636C00/%s" % (name, name))[2], image, "PE in any case")
        equal(program.get("/symbols//a.ni.r2rmap/r2rmap-v1-%s/a.ni.r2rmap" % guid)[2], text, "r2rmap")
        equal(program.get("/symbols/cut.ni.r2rmap/r2rmap-v1-%s/cut.ni.r2rmap" % guid)[0], 404, "r2rmap without its end")
        equal(program.get("/symbols/c.cs/sha1-%s/c.cs" % digest)[2], source, "sha1")
        equal(program.get("/symbols/Mixed.dll/11111111200/Mixed.dll")[0], 200, "as the client spells it")
        equal(program.get("/symbols/Made.pdb/%s1/Made.pdb" % guid)[0], 200, "as symstore.exe writes it")
        equal(program.get("/symbols/%s/9757f3a636C01/%s" % (name, name))[0], 404, "another size")
        for probe in ("/symbols/a.pdb/%s1/a.pd_" % guid, "/symbols/a.pdb/%s1/file.ptr" % guid, "/symbols/index2.txt"):
            before = len(server.requests)
            equal(program.get(probe)[0], 404, probe)
            equal(len(server.requests), before, "probes go nowhere")


@test
def a_miss_under_one_name_is_none_under_another():
    identity, image = h.build_id(11), h.make_pe(0x11111111, 0x200)
    program_file = h.make_elf(identity, debug=False, code=True)
    files = {"/apphost/elf-buildid-%s/apphost" % identity: program_file, "/Mixed.dll/11111111200/Mixed.dll": image}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        for _ in range(2):
            equal(program.get("/symbols/renamed/elf-buildid-%s/renamed" % identity)[0], 404, "renamed")
            equal(program.get("/symbols/mixed.dll/11111111200/mixed.dll")[0], 404, "in lower case")
        equal(len(server.requests), 2, "both are remembered")
        equal(program.get("/symbols/apphost/elf-buildid-%s/apphost" % identity)[2], program_file, "its name")
        equal(program.get("/symbols/Mixed.dll/11111111200/Mixed.dll")[2], image, "its spelling")


@test
def flights_of_one_name_take_no_other_along():
    image, release = h.make_pe(0x11111111, 0x200), threading.Event()

    def answer(handler):
        if handler.path.startswith("/mixed"):
            release.wait(h.WAIT_S)
        h.serve_files({"/Mixed.dll/11111111200/Mixed.dll": image})(handler)

    with upstream(answer) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        statuses = {}

        def ask(name):
            statuses[name] = program.get("/symbols/%s/11111111200/%s" % (name, name))[0]

        askers = [threading.Thread(target=ask, args=(name,)) for name in ("mixed.dll", "Mixed.dll")]
        askers[0].start()
        h.wait_until(lambda: server.requests, "the first asks")
        askers[1].start()
        h.wait_until(lambda: program.metric("symsrv_waiters") == 2, "both wait")
        release.set()
        for asker in askers:
            asker.join()
        equal(statuses["Mixed.dll"], 200, "the second, who spells it right")


@test
def sections_are_cut_here():
    identity = h.build_id(4)
    files = {"/buildid/%s/debuginfo" % identity: h.make_elf(identity, debug=True, code=False),
             "/buildid/%s/executable" % identity: h.make_elf(identity, 5000, debug=False, code=True)}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "debuginfod=" + server.url) as program:
        path = "/buildid/%s/section/" % identity
        equal(len(program.get(path + ".symtab")[2]), 4096 // 24 * 24, ".symtab from the debug file")
        equal(program.get(path + ".text")[2], h.make_elf(identity, 5000)[0x200:0x200 + 5000], ".text from the program")
        equal(program.get(path + ".nope")[0], 404, "no such section")
        # As debuginfod 0.188: of a section its own size counts.
        status, headers, _ = program.get(path + ".text", headers={"X-DEBUGINFOD-MAXSIZE": "5000"})
        equal((status, headers["x-debuginfod-size"]), (200, "5000"), "a section that is not above MAXSIZE, its file is")
        equal(program.get(path + ".text", headers={"X-DEBUGINFOD-MAXSIZE": "4999"})[0], 406, "a section above MAXSIZE")
        tags = [program.get(place)[1]["etag"] for place in (path + ".symtab", path + ".text", "/buildid/%s/debuginfo" % identity)]
        equal(len(set(tags)), 3, "tags")
        for tag in tags:
            # RFC 9110, 8.8.3: quotes at both ends and nowhere else
            equal((tag[0], tag[-1], tag.count('"')), ('"', '"', 2), "tag " + tag)
        equal(program.get(path + ".symtab", headers={"If-None-Match": ", ".join(tags)})[0], 304, "If-None-Match, own tag first")
        equal(program.get(path + ".text", headers={"If-None-Match": ", ".join(tags)})[0], 304, "If-None-Match, own tag second")
        equal(program.get(path + ".text", headers={"If-None-Match": tags[0]})[0], 200, "tag of another section")
        equal(len(server.requests), 2, "upstream requests")


@test
def sources_come_only_from_whom_the_operator_trusts():
    identity, path = h.build_id(5), "/source/usr/src/a%2Bb.c"
    files = {"/buildid/" + identity + path: b"int main;\n"}
    with upstream(h.serve_files(files)) as server:
        with symsrv("--upstream", "x@debuginfod=" + server.url) as program:
            equal(program.get("/buildid/" + identity + path)[0], 404, "not trusted")
            equal(server.requests, [], "not even asked")
        with symsrv("--upstream", "x@debuginfod=" + server.url, "--trust", "x") as program:
            equal(program.get("/buildid/" + identity + path)[2], b"int main;\n", "trusted")


@test
def indexed_directories_are_served_by_identity():
    identity = h.build_id(6)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    path = os.path.join(directory, "deep", "any name at all")
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(h.make_elf(identity))
    os.symlink("/etc/passwd", os.path.join(directory, "link"))
    with symsrv("--index", directory) as program:
        equal(program.debuginfo(identity)[2], h.make_elf(identity), "found")
        status, _, body = program.get("/metadata?key=glob&value=" + directory.replace("/", "%2F") + "/*/*")
        check(status == 200 and identity.encode() in body and b'"complete":true' in body, "metadata %s" % body)
        equal(program.get("/metadata?key=nope&value=x")[0], 400, "unknown key")
        other = h.build_id(7)
        with open(path + "2", "wb") as file:
            file.write(h.make_elf(other))
        program.process.send_signal(signal.SIGUSR1)
        h.wait_until(lambda: program.debuginfo(other)[0] == 200, "a new file is found after SIGUSR1")


@test
def the_debuggers_libraries_of_an_indexed_runtime_are_found():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    runtimes = h.build_id(20), h.build_id(21)
    files = {}

    def put(place, name, body):
        os.makedirs(os.path.join(directory, place), exist_ok=True)
        files[place, name] = body
        with open(os.path.join(directory, place, name), "wb") as file:
            file.write(body)

    for number, runtime in enumerate(runtimes):
        place = "shared/10.0.%d" % number
        put(place, "libcoreclr.so", h.make_elf(runtime, debug=False, code=True))
        put(place, "libmscordaccore.so", h.make_elf(h.build_id(30 + number), debug=False, code=True))
        put(place, "libmscordbi.so", h.make_elf(h.build_id(40 + number), debug=False, code=True))
        put(place, "libother.so", h.make_elf(h.build_id(50 + number), debug=False, code=True))
        put(place, "libsos.so", b"no library")
        put(place + "/cross", "mscordaccore.dll", h.make_pe(0x12345678, 0x1000))
    put("shared/10.0.0", "mscordaccore.dll", h.make_pe(0x12345679, 0x2000))

    def ask(program, name, runtime):
        return program.get("/symbols/%s/elf-buildid-coreclr-%s/%s" % (name, runtime, name))

    with symsrv("--index", directory) as program:
        for number, runtime in enumerate(runtimes):
            for name in ("libmscordaccore.so", "libmscordbi.so"):
                status, _, body = ask(program, name, runtime)
                equal((status, body == files["shared/10.0.%d" % number, name]), (200, True), name)
        equal(ask(program, "LIBMSCORDACCORE.so", runtimes[0].upper())[0], 200, "in any case")
        equal(ask(program, "mscordaccore.dll", runtimes[0])[2], files["shared/10.0.0", "mscordaccore.dll"], "for Windows")
        for name in ("mscordaccore.dll", "libother.so", "libsos.so", "libcoreclr.so"):
            equal(ask(program, name, runtimes[1])[0], 404, name)
        equal(ask(program, "libmscordaccore.so", h.build_id(30))[0], 404, "by its own build-id")
        equal(program.get("/buildid/%s/executable" % h.build_id(30))[0], 200, "which it has all the same")


@test
def a_directory_can_be_an_upstream():
    identity = h.build_id(8)
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    tree = os.path.join(directory, ".build-id", identity[:2])
    os.makedirs(tree)
    with open(os.path.join(tree, identity[2:] + ".debug"), "wb") as file:
        file.write(h.make_elf(identity))
    outside = h.build_id(9)
    with open(os.path.join(RUN.scratch, "outside"), "wb") as file:
        file.write(h.make_elf(outside))
    os.makedirs(os.path.join(directory, ".build-id", outside[:2]), exist_ok=True)
    os.symlink(os.path.join(RUN.scratch, "outside"), os.path.join(directory, ".build-id", outside[:2], outside[2:] + ".debug"))
    with symsrv("--upstream", "dir=" + directory) as program:
        equal(program.debuginfo(identity)[0], 200, "in the tree")
        equal(program.debuginfo(outside)[0], 404, "a link out of the tree")
        copied = h.build_id(10)
        path = os.path.join(directory, ".build-id", copied[:2], copied[2:] + ".debug")
        for count in (1000, None):
            with open(path, "wb") as file:
                file.write(h.make_elf(copied)[:count])
            status = program.debuginfo(copied)[0]
        equal(status, 200, "a file that was half copied when it was asked for first")
