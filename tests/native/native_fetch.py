# SPDX-License-Identifier: MIT
"""Debug files that are brought when an address asks: from a debuginfod that this test is, with files that gcc and strip made."""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

from native_cases import every_address, sharing_parts
from native_files import Process, build, expect, place
from native_tools import Fail, Skip


class Server:
    """A debuginfod of one file for each build-id; remembers who asked for what."""

    def __init__(self, files):
        self.files, self.asked, self.is_unsure, self.redirected = files, [], False, {}
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                if self.path in server.redirected:
                    self.send_response(302)
                    self.send_header("Location", server.redirected[self.path])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                match = re.fullmatch(r"/buildid/([0-9a-f]+)/debuginfo", self.path)
                if not match or match[1] not in server.files:
                    self.send_response(404)
                    if server.is_unsure:
                        self.send_header("x-symsrv-unasked", "symsrv-0123456789abcdef")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                with open(server.files[match[1]], "rb") as file:
                    content = file.read()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

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


def split_by_id(tools, name, text="1"):
    """A stripped library, its debug file, its build-id, and the vaddr of a function that only the latter names."""
    path = build(tools, name, "-Wl,--build-id=0x" + text * 40)
    vaddr = place(tools, path, "hidden")
    debug = path + ".separate"
    tools.run("objcopy", "--only-keep-debug", path, debug)
    tools.run("strip", path)
    return path, debug, text * 40, vaddr


def fetch(tools, server, store, path, vaddrs, *options):
    return tools.resolve(path, vaddrs, "--fetch", f"--server={server.url}", f"--debug-tree={tools.path(store)}", *options)


def test_lines_are_asked_for_behind_a_file_that_has_only_names(tools):
    """One server has a symbol table, another the DWARF; and so has a tree that was filled before."""
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, vaddr = split_by_id(tools, "fetch-lines/libbrought.so", "7")
    names = debug + ".names"
    tools.run("strip", "-g", "-o", names, debug)
    with Server({build_id: names}) as poor, Server({build_id: debug}) as rich:
        expect(fetch(tools, poor, "poor", path, [vaddr])[0], "hidden")
        for store in ("poor", "empty"):
            answer = tools.resolve(path, [vaddr], "--fetch", f"--server={poor.url}", f"--server={rich.url}", "--lines",
                                   f"--debug-tree={tools.path(store)}")[0]
            expect(answer, "hidden")
            if not answer["line"]:
                raise Fail(f"store {store}: {answer}")
        asked = len(rich.asked)
        expect(fetch(tools, poor, "alone", path, [vaddr], "--lines")[0], "hidden")
        expect(fetch(tools, rich, "alone-names", path, [vaddr])[0], "hidden")
    if not asked:
        raise Fail("the server with DWARF was not asked")


def test_servers_that_lead_away_or_are_not_there(tools):
    """The target of a redirect is not the server, a directory that is not there has not said that it has nothing, and schemes are
    written in either case."""
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, vaddr = split_by_id(tools, "fetch-away/libbrought.so", "8")
    other, other_debug, other_id, other_vaddr = split_by_id(tools, "fetch-away/libother.so", "9")
    with Server({other_id: other_debug}) as server:
        server.redirected = {f"/buildid/{build_id}/debuginfo": "file:///etc/hostname"}
        command = [tools.program, "resolve", "--fetch", f"--server={server.url}", f"--debug-tree={tools.path('away')}", f"{path}+0x{vaddr:x}",
                   f"{other}+0x{other_vaddr:x}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if "not asked again" in done.stderr or " hidden+0x0 " not in done.stdout.splitlines()[1]:
            raise Fail(f"redirect: {done.stdout} {done.stderr}")
        done = subprocess.run([*command[:3], "--server=file:///nonexistent/directory", *command[4:]], capture_output=True, text=True, timeout=60)
        if "cannot reach file:///nonexistent/directory" not in done.stderr:
            raise Fail(f"directory: {done.stdout} {done.stderr}")
        done = subprocess.run([*command[:3], f"--debug-tree={tools.path('upper')}", command[-1]], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, DEBUGINFOD_URLS=server.url.replace("http", "HTTP")))
        if " hidden+0x0 " not in done.stdout:
            raise Fail(f"upper case: {done.stdout} {done.stderr}")


def test_a_debug_file_is_brought_once_and_kept(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, vaddr = split_by_id(tools, "fetch/libbrought.so")
    with Server({build_id: debug}) as server:
        for answer in fetch(tools, server, "kept", path, [vaddr + i for i in range(8)]):
            expect(answer, "hidden")
        if server.asked != [f"/buildid/{build_id}/debuginfo"]:
            raise Fail(f"asked {server.asked}")
        if not os.path.exists(tools.path(f"kept/.build-id/{build_id[:2]}/{build_id[2:]}.debug")):
            raise Fail("it was not kept")
        expect(fetch(tools, server, "kept", path, [vaddr])[0], "hidden")
        if len(server.asked) != 1:
            raise Fail("asked for what is in the store")


def test_lines_are_brought_too(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, vaddr = split_by_id(tools, "fetch/liblines.so", "2")
    with Server({build_id: debug}) as server:
        answer = fetch(tools, server, "lines", path, [vaddr], "--lines")[0]
    expect(answer, "hidden")
    if not (answer["file"] or "").endswith("files.c") or answer["line"] != 3:
        raise Fail(str(answer))


def test_nothing_is_brought_that_no_address_needs(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, vaddr = split_by_id(tools, "fetch/libspared.so", "3")
    whole = build(tools, "fetch/libwhole.so", "-Wl,--build-id=0x" + "4" * 40)
    exported = place(tools, whole, "exported")
    with Server({build_id: debug}) as server:
        expect(fetch(tools, server, "spared", path, [exported])[0], "exported")
        expect(fetch(tools, server, "spared", whole, [place(tools, whole, "hidden")])[0], "hidden")
        fetch(tools, server, "spared", whole, [place(tools, whole, "hidden") - 1, place(tools, whole, "exported") - 1])
        if server.asked:
            raise Fail(f"asked {server.asked}")
        expect(fetch(tools, server, "spared", path, [exported, vaddr])[1], "hidden")


def test_what_is_brought_is_believed_by_its_build_id_only(tools):
    tools.need("gcc", "objcopy", "strip")
    path, _, build_id, vaddr = split_by_id(tools, "fetch/libwrong.so", "5")
    _, other, _, _ = split_by_id(tools, "fetch/libother.so", "6")
    bounds = f"libwrong.so!0x{vaddr:x}"
    with Server({build_id: other}) as server:
        expect(fetch(tools, server, "wrong", path, [vaddr, vaddr + 1])[1], bounds)
        if server.asked.count(f"/buildid/{build_id}/debuginfo") != 1:
            raise Fail(f"asked {server.asked}")
    with Server({}) as server:
        answer = fetch(tools, server, "missing", path, [vaddr])[0]
        expect(answer, bounds)
        if answer["reason"]:
            raise Fail(f"a file that nobody has is no trouble: {answer['reason']}")


def build_id_of(tools, path):
    return re.search(r"Build ID: ([0-9a-f]+)", tools.run("readelf", "-n", path))[1]


def test_what_debug_files_share_is_brought_too(tools):
    """dwz lays names of inlined functions into a file of their own, which a debuginfod has by its build-id."""
    tools.need("gcc", "dwz", "readelf")
    path, other = sharing_parts(tools, "fetchshared")
    asked = every_address(tools, path)
    plain = [[frame["name"] for frame in answer["inlined"]] for answer in tools.resolve(path, asked, "--inlines")]
    common, away = tools.path("cases/fetched.dwz"), tools.path("cases/away.dwz")
    tools.run("dwz", "-m", common, "-M", common, path, other)
    if not os.path.exists(common):
        raise Skip("dwz found nothing to share")
    os.rename(common, away)
    shared_id = build_id_of(tools, away)
    with Server({shared_id: away}) as server:
        for _ in range(2):
            answers = fetch(tools, server, "shared", path, asked, "--inlines")
            if [[frame["name"] for frame in answer["inlined"]] for answer in answers] != plain:
                raise Fail(f"other names than before dwz; asked {server.asked}")
        if server.asked != [f"/buildid/{shared_id}/debuginfo"]:
            raise Fail(f"asked {server.asked}")
    if not any(plain):
        raise Fail("nothing was inlined")


def test_symbols_bring_what_debug_files_share(tools):
    """Without it gdb reads nothing of the debug file."""
    tools.need("gcc", "dwz", "readelf", "objcopy", "strip")
    parts = sharing_parts(tools, "symbolsshared", "-shared", "-fPIC")
    debugs = [path + ".debug" for path in parts]
    for path, debug in zip(parts, debugs):
        tools.run("objcopy", "--only-keep-debug", path, debug)
        tools.run("strip", path)
    common, away = tools.path("cases/symbols.dwz"), tools.path("cases/symbols-away.dwz")
    tools.run("dwz", "-m", common, "-M", common, *debugs)
    if not os.path.exists(common):
        raise Skip("dwz found nothing to share")
    shared_id, path = build_id_of(tools, common), parts[0]
    store = tools.path("symbols-store")
    with Process(tools, path) as process, Server({build_id_of(tools, path): debugs[0], shared_id: common}) as server:
        pid, options = process.process.pid, (f"--server={server.url}", f"--debug-tree={store}")
        if common in rows_of(tools, pid, *options):
            raise Fail("it is where the debug file says")
        os.rename(common, away)
        server.files[shared_id] = away
        for wanted in ("fetched", "here"):
            row = rows_of(tools, pid, *options).get(common)
            if not row or (row["symbols"], row["build_id"]) != (wanted, shared_id):
                raise Fail(f"{row}, not {wanted}; asked {server.asked}")
    with open(away, "rb") as one, open(f"{store}/.build-id/{shared_id[:2]}/{shared_id[2:]}.debug", "rb") as other:
        if one.read() != other.read():
            raise Fail("another file")


def test_a_password_is_not_printed(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, _ = split_by_id(tools, "fetch/libsecret.so", "a")
    with Process(tools, path) as process, Server({build_id: debug}) as server:
        urls = [url.replace("http://", "http://me:geheim@") for url in (server.url, "http://127.0.0.1:1")]
        words = [tools.program, "fetch-symbols", str(process.process.pid), f"--debug-tree={tools.path('secret')}", *(f"--server={url}" for url in reversed(urls))]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    if "geheim" in said or f"from {server.url}" not in said or "cannot reach http://127.0.0.1:1" not in said:
        raise Fail(said)


def rows_of(tools, pid, *options):
    done = subprocess.run([tools.program, "fetch-symbols", str(pid), "--json", *options], capture_output=True, text=True, timeout=60)
    return {row["image"]: row for row in json.loads(done.stdout)}


def symbols_of(tools, pid, path, *options):
    rows = rows_of(tools, pid, *options)
    if path not in rows:
        raise Fail(f"nothing is said of {path}: {rows}")
    return rows[path]


def test_a_directory_is_asked_as_libdebuginfod_does(tools):
    tools.need("gcc", "objcopy", "strip")
    path, debug, build_id, _ = split_by_id(tools, "fetch/libdirectory.so", "b")
    directory = tools.path("directory")
    os.makedirs(f"{directory}/buildid/{build_id}")
    shutil.copy(debug, f"{directory}/buildid/{build_id}/debuginfo")
    with Process(tools, path) as process:
        options = f"--server=file://{directory}", f"--debug-tree={tools.path('of-directory')}"
        row = symbols_of(tools, process.process.pid, path, *options)
        if (row["symbols"], row["server"]) != ("fetched", f"file://{directory}"):
            raise Fail(str(row))
        os.unlink(row["debug_file"])
        os.unlink(f"{directory}/buildid/{build_id}/debuginfo")
        row = symbols_of(tools, process.process.pid, path, *options)
        if row["symbols"] != "missing":
            raise Fail(str(row))


def test_a_server_that_did_not_ask_its_upstreams_does_not_know(tools):
    tools.need("gcc", "objcopy", "strip")
    path, *_ = split_by_id(tools, "fetch/libunsure.so", "c")
    with Process(tools, path) as process, Server({}) as server:
        for server.is_unsure, wanted in ((True, "failed"), (False, "missing")):
            row = symbols_of(tools, process.process.pid, path, f"--server={server.url}", f"--debug-tree={tools.path('unsure')}")
            if row["symbols"] != wanted:
                raise Fail(f"{row}, not {wanted}")


def test_symbols_are_brought_for_a_library_that_was_upgraded(tools):
    """Its path leads to another file by then, and the process has the one before."""
    tools.need("gcc", "objcopy", "strip")
    if os.geteuid():
        raise Skip("what a process has mapped is for root")
    path, debug, build_id, _ = split_by_id(tools, "fetch/libold.so", "7")
    with Process(tools, path) as process, Server({build_id: debug}) as server:
        new, *_ = split_by_id(tools, "fetch/libnew.so", "8")
        os.rename(new, path)
        row = symbols_of(tools, process.process.pid, path, f"--server={server.url}", f"--debug-tree={tools.path('upgraded')}")
        if (row["symbols"], row["build_id"]) != ("fetched", build_id):
            raise Fail(str(row))


def test_what_the_standard_tree_has_is_here_with_any_store(tools):
    tools.need("gcc", "objcopy", "strip", "unshare")
    if os.geteuid():
        raise Skip("a mount namespace takes root")
    path, debug, build_id, _ = split_by_id(tools, "fetch/libhere.so", "9")
    place_of = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    with Process(tools, path) as process:
        script = (f"mount -t tmpfs none /usr/lib/debug && mkdir -p {os.path.dirname(place_of)} && cp {debug} {place_of} && "
                  f"exec {tools.program} fetch-symbols {process.process.pid} --json --offline --debug-tree={tools.path('elsewhere')}")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60)
    rows = {row["image"]: row for row in json.loads(done.stdout)} if done.stdout else {}
    if rows.get(path, {}).get("debug_file") != place_of:
        raise Fail(f"{rows.get(path)} {done.stderr}")
