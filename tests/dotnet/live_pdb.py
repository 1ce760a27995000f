# SPDX-License-Identifier: MIT
"""PDBs of assemblies from a symbol server, which this test is: key, checksum, and what does not fit."""
import contextlib
import hashlib
import http.server
import json
import os
import shutil
import threading
import uuid

from harness import Runtime, Sample, build_project, built, expect

ELSEWHERE = b"/no/such/directory"


class Server:
    """A symbol server that refuses who names no checksum, as that of NuGet does."""

    def __init__(self, files):
        self.files, self.asked = files, []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append((self.path, self.headers.get("SymbolChecksum")))
                content = server.files.get(self.path)
                refused = self.path.endswith(".pdb") and not self.headers.get("SymbolChecksum")
                self.send_response(403 if refused else 200 if content else 404)
                body = content if content and not refused else b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def with_pdb(context):
    """The sample, built with a PDB beside it."""
    runtime = context.sdk()
    artifacts = built("with-pdb")
    why = build_project("fixtures/src/sample", artifacts, f"-p:SampleFramework={runtime.framework}", "-p:DebugType=portable")
    expect(why is None, f"the sample does not build: {why}")
    return Runtime(runtime.dotnet, os.path.join(artifacts, "bin", "sample", "release", "sample.dll"), runtime.framework, "with a PDB")


def move_away(runtime, directory):
    """The sample in a directory without its PDB, and no path to it; the PDB, its GUID and its checksum."""
    shutil.copytree(os.path.dirname(runtime.sample), directory, dirs_exist_ok=True)
    path = os.path.join(directory, "sample.dll")
    with open(path, "rb") as file:
        image = file.read()
    at = image.index(b"RSDS")
    guid = uuid.UUID(bytes_le=image[at + 4:at + 20])
    end = image.index(b"\0", at + 24)
    written = image[at + 24:end]
    moved = (ELSEWHERE + b"/" * len(written))[:len(written) - len(b"/sample.pdb")] + b"/sample.pdb"
    with open(path, "wb") as file:
        file.write(image[:at + 24] + moved + image[end:])
    start = image.index(b"SHA256\0") + 7
    with open(os.path.join(directory, "sample.pdb"), "rb") as file:
        pdb = file.read()
    os.unlink(os.path.join(directory, "sample.pdb"))
    return Runtime(runtime.dotnet, path, runtime.framework, "without a PDB"), pdb, guid, image[start:start + 32]


def without_id(pdb):
    """The bytes that the checksum covers: the stream #Pdb begins with the id."""
    version = int.from_bytes(pdb[12:16], "little")
    at = 16 + version + 4
    while True:
        offset, name = int.from_bytes(pdb[at:at + 4], "little"), pdb[at + 8:pdb.index(b"\0", at + 8)]
        if name == b"#Pdb":
            return pdb[:offset] + bytes(20) + pdb[offset + 20:], offset
        at += 8 + (len(name) // 4 + 1) * 4


def row_of(context, pid, *words):
    done = context.mapgen.run("fetch-symbols", pid, "--json", *words)
    rows = [row for row in json.loads(done.stdout) if row["image"].endswith("/sample.dll")]
    expect(len(rows) == 1, f"rows of the sample: {rows}; {done.stderr}")
    return rows[0]


def test_pdb_is_fetched_and_verified(context):
    directory, tree = context.directory("without-pdb"), context.directory("pdb-tree")
    runtime, pdb, guid, checksum = move_away(with_pdb(context), directory)
    covered, offset = without_id(pdb)
    expect(hashlib.sha256(covered).digest() == checksum, "the PDB of the sample is not the one that it names")
    key = f"/sample.pdb/{guid.hex}FFFFFFFF/sample.pdb"
    other = pdb[:offset] + bytes(16) + pdb[offset + 16:]
    changed = pdb[:-1] + bytes([pdb[-1] ^ 1])
    with Sample(runtime, resting=True) as sample:
        row = row_of(context, sample.pid, "--offline", f"--debug-tree={tree}")
        expect(row["symbols"] == "missing" and row["guid"] == guid.hex, f"offline: {row}")
        for content, outcome, why in ((None, "missing", None), (other, "failed", "another build"), (changed, "failed", "another build"),
                                      (pdb[:len(pdb) // 2], "failed", "damaged"), (b"<html>", "failed", "no portable PDB")):
            with Server({key: content} if content else {}) as server:
                row = row_of(context, sample.pid, f"--server={server.url}", f"--debug-tree={tree}")
                expect(row["symbols"] == outcome and (why is None or why in row["reason"]), f"{outcome}: {row}")
                expect((key, "SHA256:" + checksum.hex()) in server.asked, f"asked for: {server.asked[:5]}")
        left = [name for _, _, names in os.walk(tree) for name in names]
        expect(not left, f"files that are left: {left}")
        with Server({key: pdb}) as server:
            row = row_of(context, sample.pid, f"--server={server.url}", f"--debug-tree={tree}")
        expect(row["symbols"] == "fetched" and row["debug_file"] == tree + key, f"{row}")
        with open(row["debug_file"], "rb") as file:
            expect(file.read() == pdb, "the file is not the PDB")
        row = row_of(context, sample.pid, "--offline", f"--debug-tree={tree}")
        expect(row["symbols"] == "here", f"afterwards: {row}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, "sample.pdb"))
