# SPDX-License-Identifier: MIT
"""Shared by the live tests of symsrv: ELF files, upstreams of every temper, the server itself.

Standard library only. Everything listens on loopback and lives in one scratch directory.
"""
import contextlib
import gzip
import http.client
import http.server
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from free_port import free_port  # noqa: E402
import waiting  # noqa: E402
from runner import Skip as Skipped, find_program as find_tool, need  # noqa: E402,F401
from waiting import is_in_time  # noqa: E402

WAIT_S = 20


def build_id(number):
    return "%040x" % (0xA5 << 152 | number)


def make_elf(identity, size=4096, debug=True, code=False, dwarf=False):
    """An ELF file with this build-id; `size` bytes of .text, of symbols, of .debug_info."""
    symbols = b".debug_info" if dwarf else b".symtab"
    names = b"\0.note.gnu.build-id\0.text\0" + symbols + b"\0.shstrtab\0"
    note = struct.pack("<III", 4, len(identity) // 2, 3) + b"GNU\0" + bytes.fromhex(identity)
    note_at, payload_at = 0x100, 0x200
    filling = identity.encode() or b"none"
    payload = (filling * (size // len(filling) + 1))[:size]
    names_at = payload_at + len(payload)
    sections_at = (names_at + len(names) + 15) // 16 * 16

    def section(name, kind, flags, offset, length):
        return struct.pack("<IIQQQQIIQQ", names.find(name), kind, flags, 0, offset, length, 0, 0, 8, 0)

    headers = b"\0" * 64
    headers += section(b".note.gnu.build-id", 7, 2, note_at, len(note))
    headers += section(b".text", 1 if code else 8, 6, payload_at, len(payload))
    headers += section(symbols, (1 if dwarf else 2) if debug else 8, 0, payload_at, len(payload) // 24 * 24)
    headers += section(b".shstrtab", 3, 0, names_at, len(names))
    header = b"\x7fELF\2\1\1" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, sections_at, 0, 64, 56, 0, 64, 5, 4)
    file = header.ljust(note_at, b"\0") + note
    file = file.ljust(payload_at, b"\0") + payload + names
    return file.ljust(sections_at, b"\0") + headers


def make_pe(timestamp, image_bytes):
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0"
    head += struct.pack("<HHIIIHH", 0x8664, 0, timestamp, 0, 0, 240, 0x2022)
    optional = struct.pack("<H", 0x20B).ljust(56, b"\0") + struct.pack("<I", image_bytes)
    return (head + optional).ljust(0x400, b"\0")


def make_pdb(guid, age):
    """A Windows PDB of six blocks: directory, info stream with GUID and age, no DBI stream."""

    def block(content):
        return content.ljust(512, b"\0")

    parts = bytes.fromhex(guid)
    info = struct.pack("<III", 20000404, 0x12345678, age) + parts[3::-1] + parts[5:3:-1] + parts[7:5:-1] + parts[8:]
    superblock = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0" + struct.pack("<IIIIII", 512, 1, 6, 4 * 6, 0, 2)
    directory = struct.pack("<IIIIII", 4, 0, len(info), 0xFFFFFFFF, 0, 4)
    return block(superblock) + block(b"") + block(struct.pack("<I", 3)) + block(directory) + block(info) + block(b"")


class Upstream:
    """An HTTP server whose answer to a path is a function of the request handler."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers.items())))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    outer.answer(self)

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, path):
        return sum(1 for asked, _ in self.requests if asked == path)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def send(handler, body, status=200, headers=()):
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    if not any(name.lower() == "content-length" for name, _ in headers):
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def serve_files(files, delay_s=0):
    """Answers from a dict of paths, 404 for the rest."""

    def answer(handler):
        if delay_s:
            time.sleep(delay_s)
        body = files.get(handler.path)
        if body is None:
            send(handler, b"no", 404)
        else:
            send(handler, body)

    return answer


def debug_paths(identity):
    padded = identity.ljust(40, "0")
    return "/buildid/%s/debuginfo" % identity, "/_.debug/elf-buildid-sym-%s/_.debug" % padded


class Symsrv:
    """The server under test; a context manager."""

    def __init__(self, program, scratch, *arguments, store=None, port=None, preexec=None, environment=None):
        self.program, self.scratch, self.arguments = program, scratch, list(arguments)
        self.store = store or tempfile.mkdtemp(prefix="store-", dir=scratch)
        self.port = port or free_port()
        self.preexec, self.environment = preexec, environment
        self.process = None

    def start(self, wait=True):
        self.log = open(os.path.join(self.scratch, "log-%d" % self.port), "ab")
        command = [self.program, "--store", self.store, "--listen", "127.0.0.1:%d" % self.port] + self.arguments
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, preexec_fn=self.preexec,
                                        env=dict(os.environ, **(self.environment or {})))
        if wait and not (is_in_time(lambda: self.process.poll() is not None or self.is_ready(), WAIT_S) and self.is_ready()):
            raise RuntimeError("symsrv did not start: " + self.log_text())
        return self

    def is_ready(self):
        with contextlib.suppress(OSError):
            return self.get("/readyz")[0] == 200
        return False

    __enter__ = start

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise RuntimeError("symsrv did not stop")
        self.log.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def log_text(self):
        with open(os.path.join(self.scratch, "log-%d" % self.port), errors="replace") as file:
            return file.read()[-2000:]

    def get(self, path, method="GET", headers=None, timeout=WAIT_S):
        """Status, headers in lower case, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def debuginfo(self, identity, **options):
        return self.get("/buildid/%s/debuginfo" % identity, **options)

    def raw(self, data, timeout=WAIT_S):
        """Sends bytes, returns everything until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            answer = b""
            with contextlib.suppress(ConnectionResetError, socket.timeout):
                while part := connection.recv(65536):
                    answer += part
            return answer

    def metric(self, name):
        for line in self.get("/metrics")[2].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise KeyError(name)

    def stored_files(self):
        found = []
        for directory, _, names in os.walk(os.path.join(self.store, "objects")):
            found += [os.path.join(directory, name) for name in names]
        return found


def gzip_bomb(size):
    return gzip.compress(b"\0" * size, 9)


TESTS = []


class Run:
    """Shared by the whole run."""

    program = scratch = None
    long = False
    store = "swift"


RUN = Run


def test(function):
    TESTS.append(function)
    return function


def accessible(path):
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return False
        path = os.path.dirname(path)
    return True


def become_nobody():
    """For a program that permissions shall hold for: root has all of them."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def give_to_nobody(top):
    """A directory of the scratch directory, for a program that runs as an unprivileged user."""
    if not accessible(RUN.program):
        raise Skipped("the program cannot be run by another user")
    os.chmod(RUN.scratch, 0o755)
    for directory, _, files in os.walk(top):
        for path in [directory] + [os.path.join(directory, name) for name in files]:
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
            os.chmod(path, 0o755)


def symsrv(*arguments, **options):
    return Symsrv(RUN.program, RUN.scratch, *arguments, **options)


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(left, right, text):
    if left != right:
        raise AssertionError("%s: %.200r instead of %.200r" % (text, left, right))


def wait_until(holds, text):
    waiting.wait_until(holds, text, WAIT_S)


@contextlib.contextmanager
def upstream(answer):
    server = Upstream(answer)
    try:
        yield server
    finally:
        server.close()


def good_upstream(*identities, size=4096):
    files = {}
    for identity in identities:
        for path in debug_paths(identity):
            files[path] = make_elf(identity, size)
    return upstream(serve_files(files))
