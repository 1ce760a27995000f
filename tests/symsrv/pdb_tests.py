# SPDX-License-Identifier: MIT
"""Symbolization of PE images by the identity of their PDB, which is all that many clients have."""
import os
import shutil
import struct
import tempfile

import symsrv_harness as h
from lines_tests import built, identity_of
from map_tests import framework
from names_tests import functions
from resolve_tests import debug_id, post
from symsrv_harness import RUN, check, equal, symsrv, test, upstream


def assembly(directory, name="System.Linq"):
    """A precompiled assembly of the framework: path, PE key, PDB key, some starts of functions."""
    import dotnet_tests  # noqa: F401: the path of r2r_image
    from r2r_image import Image
    path = shutil.copy(os.path.join(framework(), name + ".dll"), directory)
    image = Image(path)
    return (path,) + identity_of(image) + ([start for start, _ in image.functions()][:200],)


def ask(program, *modules, **more):
    status, _, answer = post(program, dict({"modules": list(modules)}, **more))
    equal(status, 200, "answer %.200r" % (answer,))
    return answer["modules"] + [answer["complete"]]


@test
def an_image_is_found_by_its_pdb():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    path, key, pdb_key, starts = assembly(directory)
    by_image = {"pe": "System.Linq.dll", "key": key, "addresses": starts}
    expected_image = {"pe": "system.linq.dll", "key": key}
    files = {"/system.linq.dll/%s/system.linq.dll" % key: open(path, "rb").read()}
    with symsrv("--index", directory) as indexing, upstream(h.serve_files(files)) as server, \
            symsrv("--upstream", "ssqp=" + server.url) as fetching:
        expected = ask(indexing, by_image)[0]["results"]
        check(sum(1 for one in expected if one) > 150, "names")
        # A Windows PDB has an age; that of a portable one is -1 on symbol servers and 1 in images.
        for given in (pdb_key, pdb_key[:32] + "1", pdb_key[:32].upper() + "1"):
            found, complete = ask(indexing, {"pdb": "System.Linq.pdb", "key": given, "addresses": starts})
            equal((complete, found["found"], found["image"]), (True, True, expected_image), given)
            equal(found["results"], expected, given)
        asked = {"pdb": "System.Linq.pdb", "key": pdb_key, "addresses": starts}
        found, complete = ask(fetching, asked)
        equal((complete, found["found"], found["results"][0]), (False, None, None), "its image is unknown")
        check("no image" in found["problem"], found["problem"])
        equal(ask(fetching, by_image)[0]["results"], expected, "fetched")
        found, complete = ask(fetching, asked)
        equal((complete, found["image"], found["results"]), (True, expected_image, expected), "known since then")
        store = fetching.store
    with symsrv(store=store) as restarted:
        equal(ask(restarted, asked)[0]["results"], expected, "after a restart")


@test
def a_pdb_of_several_images_names_none():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    path, key, pdb_key, starts = assembly(directory)
    body = bytearray(open(path, "rb").read())
    header = struct.unpack_from("<I", body, 0x3C)[0]
    struct.pack_into("<I", body, header + 8, struct.unpack_from("<I", body, header + 8)[0] ^ 1)
    copy, other = os.path.join(directory, "copy"), os.path.join(directory, "other")
    for place in (copy, other):
        os.mkdir(place)
    asked = {"pdb": "System.Linq.pdb", "key": pdb_key, "addresses": starts}
    shutil.copy(path, copy)
    with symsrv("--index", directory) as program:
        equal(ask(program, asked)[0]["found"], True, "two equal files are one image")
    with open(os.path.join(other, "System.Linq.dll"), "wb") as file:
        file.write(body)
    with symsrv("--index", directory) as program:
        found, complete = ask(program, asked)
        equal((complete, found["found"], set(map(repr, found["results"]))), (False, None, {"None"}), "two images")
        check("several" in found["problem"], found["problem"])
        equal(ask(program, {"pe": "System.Linq.dll", "key": key, "addresses": starts})[0]["found"], True, "by its own identity")


@test
def lines_in_a_windows_pdb_are_said_to_be_not_read():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    path, key, _, starts = assembly(directory)
    with open(path, "rb") as file:
        body = file.read()
    # Rows of the debug directory with a CodeView record: their minor version makes a PDB portable.
    rows = struct.pack("<HHI", 0x0100, 0x504D, 2)
    check(body.count(rows) == 1, "a portable PDB")
    asked = {"pe": "System.Linq.dll", "key": key, "addresses": starts}
    with symsrv("--index", directory) as program:
        check("problem" not in ask(program, asked, lines=True)[0], "a portable PDB that is nowhere")
    with open(path, "wb") as file:
        file.write(body.replace(rows, struct.pack("<HHI", 0, 0, 2)))
    with symsrv("--index", directory) as program:
        found, complete = ask(program, asked, lines=True)
        equal((complete, found["found"]), (True, True), "another request would get the same")
        check("Windows PDB" in found["problem"], found["problem"])
        check(sum(1 for one in found["results"] if one) > 150, "names")
        check("problem" not in ask(program, asked)[0], "without lines")


@test
def one_request_has_native_code_and_assemblies():
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    _, key, pdb_key, starts = assembly(directory)
    program_file, identity = built(directory)
    start = [row[0] for row in functions(program_file) if row[4] == "outer"][0]
    with symsrv("--index", directory) as program:
        native, managed, by_pdb, complete = ask(
            program, {"build_id": identity, "addresses": [start]}, {"pe": "system.linq.dll", "key": key, "addresses": starts[:3]},
            {"pdb": "system.linq.pdb", "key": pdb_key, "addresses": starts[:3]}, lines=True)
        equal((complete, native["results"][0]["function"], "line" in native["results"][0]), (True, "outer", True), "native")
        equal(managed["results"], by_pdb["results"], "managed")
        # Mozilla's API.
        guid = pdb_key[:32].upper()
        job = {"memoryMap": [["inlined", debug_id(identity)], ["System.Linq.pdb", guid + "1"], ["none.pdb", guid[::-1] + "2"]],
               "stacks": [[[1, starts[0]], [0, start], [1, starts[2]], [2, 4]]]}
        status, _, answer = post(program, {"jobs": [job]}, path="/symbolicate/v5")
        equal(status, 200, "status")
        result = answer["results"][0]
        frames = result["stacks"][0]
        equal([frame.get("function") for frame in frames],
              [managed["results"][0]["function"], "outer", managed["results"][2]["function"], None], "functions")
        equal([frame["module"] for frame in frames], ["system.linq.dll", "inlined", "system.linq.dll", "none.pdb"], "modules")
        equal(list(result["found_modules"].values()), [True, True, False], "found")


@test
def malformed_pdb_ids_are_rejected():
    with symsrv() as program:
        for name, key in (("a.dll", "ab" * 16 + "1"), ("a.pdb", "ab" * 15), ("a.pdb", ""), ("../a.pdb", "ab" * 16 + "1"), ("a.pdb", "xy" * 16 + "1"),
                          ("a.pdb", "ab" * 16 + "123456789")):
            equal(post(program, {"modules": [{"pdb": name, "key": key, "addresses": [1]}]})[0], 400, name + key)
        equal(ask(program, {"pdb": "a.pdb", "key": "ab" * 16 + "1", "addresses": [1, 2]})[0]["results"], [None, None], "unknown")
