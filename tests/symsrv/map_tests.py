# SPDX-License-Identifier: MIT
"""Maps of precompiled images, made on the server from images that it holds or fetches."""
import glob
import os
import shutil
import struct
import subprocess
import tempfile

import symsrv_harness as h
from dotnet_tests import mapgen
from resolve_tests import post
from symsrv_harness import RUN, Skipped, check, equal, symsrv, test, upstream

ASSEMBLIES = ("System.Private.CoreLib", "System.Linq", "System.Text.Json")


def framework():
    """The directory of the newest framework of the SDK on PATH."""
    program = shutil.which("dotnet")
    found = sorted(glob.glob(os.path.join(os.path.dirname(os.path.realpath(program)), "shared/Microsoft.NETCore.App/[0-9]*"))
                   if program else [], key=lambda path: [int(part) for part in os.path.basename(path).split("-")[0].split(".")])
    if not found:
        raise Skipped("no .NET")
    return found[-1]


def pe_key(body):
    """TIMESTAMP8 SIZE, as in SSQP."""
    header = struct.unpack_from("<I", body, 0x3C)[0]
    return "%08X%x" % (struct.unpack_from("<I", body, header + 8)[0], struct.unpack_from("<I", body, header + 80)[0])


def generated(path, kind, directory):
    done = mapgen("generate", "--format=" + kind, "-o", directory, path)
    equal(done.returncode, 0, done.stdout + done.stderr)
    maps = glob.glob(glob.escape(directory) + "/*")
    equal(len(maps), 1, "maps")
    with open(maps[0], "rb") as file:
        return os.path.basename(maps[0]), file.read()


def images(tree):
    """Each assembly alone in a directory: (name, body, name of its r2rmap, r2rmap, map)."""
    found = []
    for name in ASSEMBLIES:
        place = os.path.join(tree, name)
        os.mkdir(place)
        path = shutil.copy(os.path.join(framework(), name + ".dll"), place)
        map_name, r2rmap = generated(path, "r2rmap", tempfile.mkdtemp(dir=RUN.scratch))
        text = generated(path, "map", tempfile.mkdtemp(dir=RUN.scratch))[1]
        with open(path, "rb") as file:
            found.append((name + ".dll", file.read(), map_name, r2rmap, text))
    return found


def map_path(name, r2rmap):
    rows = r2rmap.split(b"\n", 2)
    return "/symbols/%s/r2rmap-v%s-%s/%s" % (name, rows[1].split()[2].decode(), rows[0].split()[2].decode().lower(), name)


@test
def maps_are_those_that_generate_writes():
    tree = tempfile.mkdtemp(dir=RUN.scratch)
    assemblies = images(tree)
    files = {}
    for name, body, *_ in assemblies:
        files["/%s/%s/%s" % (name.lower(), pe_key(body), name.lower())] = body
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as fetching, \
            symsrv("--index", tree) as indexing:
        h.wait_until(lambda: indexing.metric("symsrv_index_files") >= len(assemblies), "indexed")
        for name, body, map_name, r2rmap, text in assemblies:
            check(len(r2rmap.splitlines()) > 100, "rows of " + map_name)
            for program in (fetching, indexing):
                place = "/pe/%s/%s/" % (name, pe_key(body))
                equal(program.get(place + "r2rmap")[2].split(b"\n"), r2rmap.split(b"\n"), "r2rmap of " + name)
                equal(program.get(place + "map")[2].split(b"\n"), text.split(b"\n"), "map of " + name)
                for asked in (map_name, map_name.lower()):
                    status, headers, found = program.get(map_path(asked, r2rmap))
                    equal((status, found), (200, r2rmap), "by its signature")
                    equal(headers["content-type"], "application/octet-stream", "type")
        equal(sum(path in files for path, _ in server.requests), len(files), "each image is fetched once")
        equal(fetching.metric('symsrv_maps_total{result="made"}'), 3 * len(files), "each map by a process")
        store = fetching.store
    equal(subprocess.run([RUN.program, "--store", store, "--scrub"], capture_output=True).returncode, 0, "scrub")


@test
def an_image_that_was_evicted_is_fetched_again_for_its_map():
    tree = tempfile.mkdtemp(dir=RUN.scratch)
    name, body, map_name, r2rmap, _ = images(tree)[1]
    path = "/%s/%s/%s" % (name.lower(), pe_key(body), name.lower())
    with upstream(h.serve_files({path: body})) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        equal(program.get(map_path(map_name, r2rmap))[0], 404, "its image is unknown")
        equal(program.get("/symbols" + path)[2], body, "the image")
        for stored in program.stored_files():
            if os.path.getsize(stored) > len(body):
                os.unlink(stored)
    with upstream(h.serve_files({path: body})) as server, symsrv("--upstream", "ssqp=" + server.url, store=program.store) as program:
        equal(program.get(map_path(map_name, r2rmap))[2], r2rmap, "the map")
        equal(server.count(path), 1, "the image was fetched again")


@test
def what_cannot_be_made_is_not_found():
    tree = tempfile.mkdtemp(dir=RUN.scratch)
    name, body, map_name, r2rmap, _ = images(tree)[1]
    native = h.make_pe(0x5F000001, 0x3000)
    header = struct.unpack_from("<I", body, 0x3C)[0]
    # The same identity, and rubbish behind the headers.
    damaged = body[:header + 0x400] + bytes(len(body) - header - 0x400)
    files = {"/n.dll/5F0000013000/n.dll": native, "/%s/%s/%s" % (name.lower(), pe_key(body), name.lower()): damaged}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as program:
        for path in ("/pe/n.dll/5F0000013000/r2rmap", "/pe/n.dll/5F0000013000/map", "/pe/%s/%s/map" % (name, pe_key(body)),
                     "/pe/none.dll/5F0000013000/map"):
            for _ in range(2):
                status, headers, _ = program.get(path)
                equal((status, headers["cache-control"]), (404, "max-age=30"), path)
        check(program.metric('symsrv_maps_total{result="none"}') >= 2, "images without maps")
        equal(program.metric('symsrv_maps_total{result="failed"}'), 0, "processes that failed")
        lines = [line for line in program.log_text().splitlines() if "no map" in line]
        equal(len(lines), 1, "lines in the log, whatever clients ask for: %s" % lines)
        for path in ("/pe/", "/pe/n.dll", "/pe/n.dll/map", "/pe/n.dll/xyz/map", "/pe/../5F0000013000/map", "/pe/n.dll/5F0000013000/other",
                     "/pe/n.dll/5F0000013000/x/map", "/pe//5F0000013000/map", "/pe/a.pdb/%s1/map" % ("ab" * 16), "/pe/%s/1/map" % ("a" * 3000)):
            equal(program.get(path)[0], 404, path)


def composite(directory):
    """Two packages that crossgen2 compiles into one image: the path of the image, and its map as crossgen2 wrote it."""
    import crossgen2_maps
    from harness import Skip
    path = os.path.join(directory, "together.r2r.dll")
    try:
        build = crossgen2_maps.Build("composite", ("--composite",), together=True)
        shutil.copytree(crossgen2_maps.compiled(crossgen2_maps.Compiler("10"), build, crossgen2_maps.package_files()[:2]), directory,
                        dirs_exist_ok=True)
    except Skip as why:
        raise Skipped(str(why))
    with open(path.replace(".dll", ".ni.r2rmap"), "rb") as file:
        return path, file.read()


@test
def a_composite_image_has_no_map_and_no_name_without_its_assemblies():
    directory, alone = tempfile.mkdtemp(dir=RUN.scratch), tempfile.mkdtemp(dir=RUN.scratch)
    path, r2rmap = composite(directory)
    rows = [line.split(b" ", 2) for line in r2rmap.splitlines() if not line.startswith(b"FFFFFF")]
    check(len(rows) > 1000, "%d methods" % len(rows))
    with open(path, "rb") as file:
        body = file.read()
    # The names are in the metadata of the assemblies beside it.
    equal(generated(path, "r2rmap", tempfile.mkdtemp(dir=RUN.scratch))[1].split(b"\n"), r2rmap.split(b"\n"), "with its assemblies")
    shutil.copy(path, alone)
    done = mapgen("generate", "--format=r2rmap", "-o", tempfile.mkdtemp(dir=RUN.scratch), alone)
    equal(done.returncode, 3, "generate of the image alone: " + done.stderr)
    for tree in (alone, directory):
        with symsrv("--index", tree) as program:
            for form in ("r2rmap", "map"):
                status, headers, _ = program.get("/pe/together.r2r.dll/%s/%s" % (pe_key(body), form))
                equal((status, headers["cache-control"]), (404, "max-age=30"), form)
            lines = [line for line in program.log_text().splitlines() if "no map" in line]
            check(len(lines) == 1 and "metadata of another assembly" in lines[0], "the reason in the log: %s" % lines)
            module = {"pe": "together.r2r.dll", "key": pe_key(body), "addresses": [int(row[0], 16) for row in rows[:1000]]}
            status, _, answer = post(program, {"modules": [module], "lines": True})
            equal((status, answer["complete"], answer["modules"][0]["found"]), (200, True, True), "answer")
            equal(answer["modules"][0]["results"], [None] * 1000, "names")
            # A component has no code of its own.
            with open(os.path.join(directory, "Dapper.dll"), "rb") as file:
                key = pe_key(file.read())
            equal(program.get("/pe/Dapper.dll/%s/map" % key)[0], 404, "its component")
